import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect as connectSecure } from 'node:tls';

export interface Target {
  readonly url: URL;
  readonly timeoutMs: number;
  /** Certificates to trust in place of the ones of Node.js, as PEM. */
  readonly ca?: string | undefined;
}

export type Connection =
  | { readonly kind: 'open'; readonly socket: Socket }
  | { readonly kind: 'failed'; readonly why: string };

/**
 * Opens a connection and writes nothing to it. That the connection stands before the first byte of
 * a request is written is what makes "nothing was sent" provable: name look-up, connect and TLS
 * handshake all come before it.
 */
export function connect({ url, timeoutMs, ca }: Target): Promise<Connection> {
  const secure = url.protocol === 'https:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = Number(url.port || (secure ? 443 : 80));
  return new Promise((resolve) => {
    // Said explicitly, because an environment variable could otherwise switch the check of
    // certificates off.
    const socket = secure
      ? connectSecure({
          host,
          port,
          rejectUnauthorized: true,
          ...(isIP(host) === 0 && { servername: host }),
          ...(ca !== undefined && { ca }),
        })
      : connectPlain({ host, port });
    const fail = (why: string) => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ kind: 'failed', why });
    };
    const onError = (error: NodeJS.ErrnoException) =>
      fail(`no connection to ${url.host}: ${error.code ?? 'refused'}`);
    const onClose = () => fail(`no connection to ${url.host}: it was closed at once`);
    const timer = setTimeout(
      () => fail(`no connection to ${url.host} within ${timeoutMs} ms`),
      timeoutMs,
    );
    socket.once('error', onError);
    socket.once('close', onClose);
    socket.once(secure ? 'secureConnect' : 'connect', () => {
      clearTimeout(timer);
      socket.off('error', onError);
      socket.off('close', onClose);
      // Until the request listens, a fault of the socket must not end the process.
      socket.on('error', () => {});
      resolve({ kind: 'open', socket });
    });
  });
}
