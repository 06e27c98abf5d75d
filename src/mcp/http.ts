import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import {
  createMcpHandler,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  type McpHttpHandler,
  validateHostHeader,
  validateOriginHeader,
} from '@modelcontextprotocol/server';
import type { Callers } from '../access/callers.ts';
import { KEEP_ALIVE_MS } from '../access/keep-alive.ts';
import { EffectMatchError, type ErrorCode } from '../errors.ts';
import type { AgentServers } from './server.ts';

/** A listening server, and how to stop it. */
export interface Listening {
  readonly url: string;
  close(): Promise<void>;
}

/** The longest message accepted over HTTP and stdio, in bytes. */
export const MAX_MESSAGE = 1024 * 1024;
const PATH = '/mcp';
const MAX_CONNECTIONS = 512;
const MAX_SUBSCRIPTIONS = 64;
const RECEIVE_MS = 30_000;
const GRACE_MS = 5_000;

/** Why an HTTP request is refused. */
class Refusal extends Error {
  readonly status: number;
  readonly code: ErrorCode;
  readonly rpcCode: number;

  constructor(status: number, code: ErrorCode, message: string, rpcCode = -32_000) {
    super(message);
    this.status = status;
    this.code = code;
    this.rpcCode = rpcCode;
  }
}

/** Serves all agents with a token on 127.0.0.1. The token alone identifies the caller. */
export async function listenHttp(
  servers: AgentServers,
  { port, onError }: { readonly port: number; readonly onError: (error: Error) => void },
): Promise<Listening> {
  const { callers } = servers;
  const handler = createMcpHandler(
    ({ authInfo }) => servers.open(String(authInfo?.clientId), String(authInfo?.extra?.caller)),
    { maxSubscriptions: MAX_SUBSCRIPTIONS, onerror: onError },
  );
  const server = createServer((request, response) => {
    answer(handler, callers, request, response).catch((error) => refuse(response, error));
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.requestTimeout = RECEIVE_MS;
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => reject(cannotListen(port, cause)));
    server.listen(port, '127.0.0.1', resolve);
  });
  server.on('error', onError);
  const { port: taken } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${taken}${PATH}`,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      setTimeout(() => server.closeAllConnections(), GRACE_MS).unref();
      await closed;
      await handler.close();
    },
  };
}

/** Makes every check before it reads the body, then passes the request to the SDK. */
async function answer(
  handler: McpHttpHandler,
  callers: Callers,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method = '', url = '' } = incoming;
  const headers = plainHeaders(incoming);
  checkSource(headers);
  if (url !== PATH) throw new Refusal(404, 'ERR_EM_NOT_FOUND', `the only path is ${PATH}`);
  const caller = await callers.find(headers.get('authorization') ?? undefined);
  const agent = caller?.agent;
  if (agent === undefined || caller?.scopes.has('ask') !== true)
    throw new Refusal(401, 'ERR_EM_ACCESS_REFUSED', 'the bearer token is missing or unknown');
  if (!agent.pace.take())
    throw new Refusal(429, 'ERR_EM_RATE_LIMITED', 'too many calls in a minute; call later');
  headers.delete('authorization');
  const read = method === 'POST' ? await readBody(incoming) : {};
  const leaving = new AbortController();
  response.once('close', () => leaving.abort());
  const { signal } = leaving;
  const request = new Request(`http://127.0.0.1${PATH}`, { method, headers, signal, ...read });
  const extra = { caller: caller.token };
  const authInfo = { token: '', clientId: agent.name, scopes: [], extra };
  const served = await handler.fetch(request, { authInfo, ...read });
  response.writeHead(served.status, Object.fromEntries(served.headers));
  if (served.body === null) response.end();
  else await pipeline(Readable.fromWeb(served.body), response).catch(() => {});
}

/** Keeps web pages from reaching this server through the browser of a local user. */
function checkSource(headers: Headers): void {
  const host = validateHostHeader(headers.get('host'), localhostAllowedHostnames());
  const origin = validateOriginHeader(headers.get('origin'), localhostAllowedOrigins());
  if (host.ok && origin.ok) return;
  const what = host.ok ? 'Origin' : 'Host';
  throw new Refusal(403, 'ERR_EM_ACCESS_REFUSED', `the header ${what} does not name this machine`);
}

/** Rejects invalid UTF-8: an approver must read exactly what was sent. */
async function readBody(incoming: IncomingMessage) {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_MESSAGE)
      throw new Refusal(413, 'ERR_EM_INPUT_INVALID', `a message has at most ${MAX_MESSAGE} bytes`);
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks);
  const parsedBody = parseBody(body);
  // A batch would count as one call.
  if (Array.isArray(parsedBody))
    throw new Refusal(400, 'ERR_EM_INPUT_INVALID', 'batches are not served', -32_600);
  return { body, parsedBody };
}

function parseBody(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw new Refusal(400, 'ERR_EM_INPUT_INVALID', 'the body is not JSON in UTF-8', -32_700);
  }
}

function plainHeaders({ headersDistinct }: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(headersDistinct))
    for (const value of values) headers.append(name, value);
  return headers;
}

function refuse(response: ServerResponse, error: unknown): void {
  const refusal =
    error instanceof Refusal ? error : new Refusal(500, 'ERR_EM_INVARIANT', 'unexpected fault');
  const { status, code, rpcCode, message } = refusal;
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const described = { code: rpcCode, message: `${code}: ${message}`, data: { code } };
  response.writeHead(status, {
    'content-type': 'application/json',
    connection: 'close',
    ...(status === 401 && { 'www-authenticate': 'Bearer' }),
    ...(status === 429 && { 'retry-after': '10' }),
  });
  response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: described }));
}

function cannotListen(port: number, cause: Error): EffectMatchError<'ERR_EM_USAGE'> {
  const message = `cannot listen on 127.0.0.1:${port}: ${cause.message}`;
  return new EffectMatchError('ERR_EM_USAGE', message, { cause });
}
