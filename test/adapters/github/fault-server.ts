import {
  createServer,
  type IncomingMessage,
  request as openRequest,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

/** What the next write through the server meets. */
export type Trouble =
  | 'none'
  /** Somebody else changes the title right after the write, before its answer is given back. */
  | 'out-of-band'
  /** From the write on, nothing can be read until {@link FaultServer.heal}. */
  | 'no-read-back'
  /** The write never reaches GitHub, and its connection is cut. */
  | 'lost-before'
  /** The write is done, and its connection is cut. */
  | 'lost-after';

/** Stands before the emulator, passes everything on, and makes one kind of trouble with writes. */
export interface FaultServer extends AsyncDisposable {
  readonly origin: string;
  trouble: Trouble;
  /** Writes that arrived here. */
  readonly writes: number;
  heal(): void;
}

export async function startFaultServer(
  upstream: string,
  changeTitle: (issuePath: string) => Promise<void>,
): Promise<FaultServer> {
  let readable = true;
  let writes = 0;
  const state: { trouble: Trouble } = { trouble: 'none' };
  const server = createServer(
    (request, response) => void handle(request, response).catch(() => response.destroy()),
  );
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await bytesOf(request);
    const isWrite = request.method !== 'GET';
    if (!isWrite && !readable) return void response.writeHead(503).end('{}');
    if (isWrite) writes += 1;
    if (isWrite && state.trouble === 'lost-before') return void response.destroy();
    const { status, answer } = await forward(upstream, request, body);
    if (isWrite && state.trouble === 'no-read-back') readable = false;
    if (isWrite && state.trouble === 'lost-after') return void response.destroy();
    if (isWrite && state.trouble === 'out-of-band') {
      const { number } = JSON.parse(answer.toString()) as { number: number };
      await changeTitle(`${(request.url ?? '').replace(/\/issues.*$/, '/issues')}/${number}`);
    }
    response.writeHead(status, { 'content-type': 'application/json' }).end(answer);
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get trouble() {
      return state.trouble;
    },
    set trouble(trouble: Trouble) {
      state.trouble = trouble;
    },
    get writes() {
      return writes;
    },
    heal() {
      readable = true;
      state.trouble = 'none';
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function forward(upstream: string, inbound: IncomingMessage, body: Buffer) {
  return new Promise<{ status: number; answer: Buffer }>((resolve, reject) => {
    const url = new URL(inbound.url ?? '/', upstream);
    const headers = { ...inbound.headers, host: url.host };
    const outgoing = openRequest(
      url,
      { method: inbound.method, headers, agent: false },
      async (response) => {
        resolve({ status: response.statusCode ?? 500, answer: await bytesOf(response) });
      },
    );
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

async function bytesOf(stream: AsyncIterable<unknown>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
