import { type IncomingMessage, request as openRequest } from 'node:http';
import { bytesOf, type LoopbackServer, startLoopback } from '../../http/loopback.ts';

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
export interface FaultServer extends LoopbackServer {
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
  const server = await startLoopback(async (request, response, body) => {
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
  });
  return {
    ...server,
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
