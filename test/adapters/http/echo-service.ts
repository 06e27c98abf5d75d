import { type LoopbackServer, startLoopback } from '../../http/loopback.ts';

/** Keeps the text of every body under its key, and gives it back with its numbers respelt. */
export interface EchoService extends LoopbackServer {
  /** Answers to GET, by path. */
  readonly answers: Map<string, string>;
  /** Requests that change something, in the order of their arrival: credential and key. */
  readonly arrivals: { readonly credential: string; readonly key: string }[];
  /** `open`: it needs no credential. `silent`: it closes every connection. */
  trouble: 'none' | 'open' | 'silent';
  /** The statuses of the next answers to requests that change something. */
  readonly statuses: number[];
}

/** Starts it on loopback. The credential is in `x-key`, the idempotency key in `key`. */
export async function startEchoService(
  spell: (number: string) => string = (text) => text,
): Promise<EchoService> {
  const answers = new Map<string, string>();
  const arrivals: { readonly credential: string; readonly key: string }[] = [];
  const statuses: number[] = [];
  const state: Pick<EchoService, 'trouble'> = { trouble: 'none' };
  const server = await startLoopback((request, response, bytes) => {
    const reply = (status: number, text: string) =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(text);
    if (state.trouble === 'silent') return void response.destroy();
    const credential = request.headers['x-key'] ?? (state.trouble === 'open' ? 'none' : undefined);
    if (typeof credential !== 'string') return reply(401, '{}');
    const url = request.url ?? '/';
    if (request.method === 'GET')
      return reply(answers.has(url) ? 200 : 404, answers.get(url) ?? '{}');
    const key = String(request.headers.key);
    arrivals.push({ credential, key });
    const spelt = bytes.toString('utf8').replace(/(?<=[:[,])-?\d[\d.eE+-]*/g, spell);
    answers.set(`/requests/${key}`, spelt);
    return reply(statuses.shift() ?? 201, `{"id":"${key}"}`);
  });
  return {
    ...server,
    answers,
    arrivals,
    statuses,
    get trouble() {
      return state.trouble;
    },
    set trouble(trouble) {
      state.trouble = trouble;
    },
  };
}
