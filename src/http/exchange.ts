import { type IncomingMessage, request as openRequest } from 'node:http';
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect as connectSecure } from 'node:tls';

/** One complete request. The headers contain the credential, so it is never stored or printed. */
interface Outgoing {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

/**
 * The result of a request. `not-sent` means that provably no byte was sent: there was no connection
 * in time, or nothing was written to it. `lost` means that it may have been sent, but no complete
 * response came back.
 */
export type Exchanged =
  | { readonly kind: 'not-sent'; readonly why: string }
  | { readonly kind: 'lost'; readonly why: string }
  | {
      readonly kind: 'response';
      readonly status: number;
      readonly headers: Readonly<Record<string, string>>;
      readonly body: Buffer;
    };

interface ExchangeLimits {
  /** The total time, from the name lookup to the last byte. A slow response does not extend it. */
  readonly timeoutMs: number;
  /** The maximum size of the response body. */
  readonly maxBytes: number;
  readonly ca?: string | undefined;
  /**
   * Called once the connection is open and before anything is written. Returns why nothing may be
   * written; undefined lets the request go.
   */
  readonly connected?: (() => string | undefined) | undefined;
}

/**
 * Sends one request once, over a new connection. Connections are not reused, redirects are not
 * followed and nothing is retried. If a request arrives twice, it was not sent twice from here.
 */
export async function exchange(outgoing: Outgoing, limits: ExchangeLimits): Promise<Exchanged> {
  const deadline = performance.now() + limits.timeoutMs;
  const socket = await connect(outgoing.url, limits);
  if (typeof socket === 'string') return { kind: 'not-sent', why: socket };
  const forbidden = limits.connected?.();
  const leftMs = deadline - performance.now();
  const late = leftMs <= 0 ? 'the time was up before anything was written' : undefined;
  const why = forbidden ?? late;
  if (why === undefined) return await converse(socket, outgoing, { ...limits, timeoutMs: leftMs });
  // The process may have been suspended until its attempt was given up. Nothing was sent yet.
  socket.destroy();
  return { kind: 'not-sent', why };
}

/**
 * Opens a connection without writing to it, or returns why there is none. Name lookup, connect and
 * TLS handshake all finish before the first byte of the request is written. This makes it provable
 * that nothing was sent.
 */
function connect(url: URL, { timeoutMs, ca }: ExchangeLimits): Promise<Socket | string> {
  const secure = url.protocol === 'https:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = Number(url.port || (secure ? 443 : 80));
  return new Promise((resolve) => {
    const socket = secure
      ? connectSecure({
          host,
          port,
          // Set explicitly, because an environment variable could otherwise disable the check.
          rejectUnauthorized: true,
          servername: isIP(host) === 0 ? host : undefined,
          ca,
        })
      : connectPlain({ host, port });
    const fail = (why: string) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(`no connection to ${url.host}${why}`);
    };
    const timer = setTimeout(() => fail(` within ${timeoutMs} ms`), timeoutMs);
    // These listeners stay: before the request adds its own, a socket error must not end the
    // process.
    socket.on('error', (error: NodeJS.ErrnoException) => fail(`: ${error.code ?? 'refused'}`));
    socket.on('close', () => fail(': it was closed at once'));
    socket.once(secure ? 'secureConnect' : 'connect', () => {
      clearTimeout(timer);
      resolve(socket);
    });
  });
}

function converse(
  socket: Socket,
  outgoing: Outgoing,
  { timeoutMs, maxBytes }: ExchangeLimits,
): Promise<Exchanged> {
  const { method, url, headers, body } = outgoing;
  return new Promise((resolve) => {
    const settle = (exchanged: Exchanged) => {
      clearTimeout(timer);
      resolve(exchanged);
      socket.destroy();
    };
    const lose = (why: string) => settle(lost(why));
    const timer = setTimeout(() => lose('the response was not complete in time'), timeoutMs);
    const request = openRequest({
      method,
      host: url.hostname,
      port: url.port,
      path: `${url.pathname}${url.search}`,
      headers: {
        ...headers,
        host: url.host,
        connection: 'close',
        'content-length': Buffer.byteLength(body ?? ''),
      },
      createConnection: () => socket,
      maxHeaderSize: 64 * 1024,
    });
    request.on('response', (response) => void collect(response, maxBytes).then(settle));
    request.on('upgrade', () => lose('the service switched to another protocol'));
    request.on('error', (error) => lose(`the connection broke (${safeCodeOf(error)})`));
    request.on('close', () => lose('the connection was closed without a response'));
    request.end(body ?? '');
  });
}

/** A response counts only if it is complete, not too large and not encoded. */
async function collect(response: IncomingMessage, maxBytes: number): Promise<Exchanged> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of response) {
      size += (chunk as Buffer).length;
      if (size > maxBytes) return lost(`the response is larger than ${maxBytes} bytes`);
      chunks.push(chunk as Buffer);
    }
  } catch (error) {
    return lost(`the response broke off (${safeCodeOf(error)})`);
  }
  if (!response.complete) return lost('the response broke off');
  const encoding = response.headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity')
    return lost('the response is encoded in a way that was not asked for');
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(response.headers)) {
    if (typeof value === 'string') headers[name] = value;
  }
  const status = response.statusCode ?? 0;
  return {
    kind: 'response',
    status,
    headers,
    body: Buffer.concat(chunks),
  };
}

function lost(why: string): Exchanged {
  return { kind: 'lost', why };
}

/**
 * The code of an error, or `fault` if it has none that is safe to show. The message is never used,
 * because it may quote what was sent.
 */
export function safeCodeOf(error: unknown): string {
  const code = (error as { readonly code?: unknown } | null)?.code;
  return typeof code === 'string' && /^[A-Z0-9_]{1,64}$/.test(code) ? code : 'fault';
}
