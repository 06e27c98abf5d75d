import { type IncomingMessage, request as openRequest } from 'node:http';
import type { Socket } from 'node:net';
import { connect, type Target } from './connect.ts';

/** One request, complete. Headers carry the credential, so it is never stored or printed. */
export interface Outgoing {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/**
 * What became of a request. `not-sent` only where no connection was established in time, so that
 * provably no byte of it left; `lost` whenever it may have left and no complete response came back.
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
   * may be written any more; undefined lets the request go.
   */
  readonly connected?: (() => string | undefined) | undefined;
}

/**
 * Sends one request over a connection of its own, once. No agent, no reuse of connections, no
 * redirect is followed and nothing is tried again, so a request that arrives twice was sent twice
 * by somebody else.
 */
export async function exchange(outgoing: Outgoing, limits: ExchangeLimits): Promise<Exchanged> {
  const deadline = performance.now() + limits.timeoutMs;
  const target: Target = { url: outgoing.url, timeoutMs: limits.timeoutMs, ca: limits.ca };
  const connection = await connect(target);
  if (connection.kind === 'failed') return { kind: 'not-sent', why: connection.why };
  const forbidden = limits.connected?.();
  const leftMs = deadline - performance.now();
  const why =
    forbidden ?? (leftMs <= 0 ? 'the time was up before anything was written' : undefined);
  if (why !== undefined) {
    // A process that slept until now may have been given up on, and nothing of the request has left
    // yet.
    connection.socket.destroy();
    return { kind: 'not-sent', why };
  }
  return await converse(connection.socket, outgoing, {
    timeoutMs: leftMs,
    maxBytes: limits.maxBytes,
  });
}

function converse(
  socket: Socket,
  outgoing: Outgoing,
  { timeoutMs, maxBytes }: { readonly timeoutMs: number; readonly maxBytes: number },
): Promise<Exchanged> {
  const { method, url, headers, body } = outgoing;
  return new Promise((resolve) => {
    const settle = (exchanged: Exchanged) => {
      clearTimeout(timer);
      resolve(exchanged);
      socket.destroy();
    };
    const lose = (why: string) => settle({ kind: 'lost', why });
    const timer = setTimeout(() => lose('there was no complete response in time'), timeoutMs);
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
      if (size > maxBytes)
        return { kind: 'lost', why: `the response is larger than ${maxBytes} bytes` };
      chunks.push(chunk as Buffer);
    }
  } catch (error) {
    return { kind: 'lost', why: `the response broke off (${nameOf(error)})` };
  }
  if (!response.complete) return { kind: 'lost', why: 'the response broke off' };
  const encoding = response.headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity')
    return { kind: 'lost', why: 'the response is encoded in a way that was not asked for' };
  const headers = Object.entries(response.headers).flatMap(([name, value]) =>
    typeof value === 'string' ? [[name, value] as const] : [],
  );
  const status = response.statusCode ?? 0;
  return {
    kind: 'response',
    status,
    headers: Object.fromEntries(headers),
    body: Buffer.concat(chunks),
  };
}

/** The code of a fault. Never its message, which may quote what was sent. */
export function nameOf(error: unknown): string {
  const code = (error as { readonly code?: unknown } | null)?.code;
  return typeof code === 'string' && /^[A-Z0-9_]{1,64}$/.test(code) ? code : 'fault';
}
