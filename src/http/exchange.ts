import { type IncomingMessage, request as openRequest } from 'node:http';
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect as connectSecure } from 'node:tls';

/** One request, complete. Headers carry the credential, so it is never stored or printed. */
export interface Outgoing {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

/**
 * What became of a request. `not-sent` only if provably no byte of it left: there was no connection
 * in time, or nothing was written to it; `lost` whenever it may have left and no complete response
 * came back.
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

export interface ExchangeLimits {
  /**
   * For everything together, from the look-up of the name to the last byte: a response that drips
   * does not get more.
   */
  readonly timeoutMs: number;
  /** Of the response body. */
  readonly maxBytes: number;
  readonly ca?: string | undefined;
  /**
   * Called when the connection stands and nothing was written to it. What it returns is why nothing
   * may be written; undefined lets the request go.
   */
  readonly connected?: (() => string | undefined) | undefined;
}

/**
 * Sends one request once, over a new connection. Connections are not reused, redirects are not
 * followed and nothing is retried, so a request that arrives twice did not come twice from here.
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
  // The process may have slept so long that its attempt was given up; nothing has left yet.
  socket.destroy();
  return { kind: 'not-sent', why };
}

/**
 * Opens a connection and writes nothing to it; a string says why there is none. That the connection
 * stands before the first byte of a request is written is what makes "nothing was sent" provable:
 * name look-up, connect and TLS handshake all come before it.
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
          // Said explicitly, because an environment variable could otherwise switch the check off.
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
    // These stay: until the request listens, a fault of the open socket must not end the process.
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
    request.on('error', (error) => lose(`the connection broke (${nameOf(error)})`));
    request.on('close', () => lose('the connection was closed without a response'));
    request.end(body ?? '');
  });
}

/**
 * A response counts only when it is complete: neither cut off, nor larger than it may be, nor in
 * another encoding.
 */
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
    return lost(`the response broke off (${nameOf(error)})`);
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

/** The code of a fault. Never its message, which may quote what was sent. */
export function nameOf(error: unknown): string {
  const code = (error as { readonly code?: unknown } | null)?.code;
  return typeof code === 'string' && /^[A-Z0-9_]{1,64}$/.test(code) ? code : 'fault';
}
