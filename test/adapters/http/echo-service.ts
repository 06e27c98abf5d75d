import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Keeps the text of every body under its key, and gives it back with its numbers respelt. */
export interface EchoService extends AsyncDisposable {
  readonly origin: string;
  /** Answers to GET, by path. */
  readonly answers: Map<string, string>;
  /** Requests that change something, in the order of their arrival: credential and key. */
  readonly arrivals: { readonly credential: string; readonly key: string }[];
  /** `open`: it needs no credential. `silent`: it closes every connection. */
  trouble: 'none' | 'open' | 'silent';
}

/** Starts it on loopback. The credential is in `x-key`, the idempotency key in `key`. */
export async function startEchoService(
  spell: (number: string) => string = (text) => text,
): Promise<EchoService> {
  const answers = new Map<string, string>();
  const arrivals: { readonly credential: string; readonly key: string }[] = [];
  const state: Pick<EchoService, 'trouble'> = { trouble: 'none' };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const reply = (status: number, text: string) =>
        void response.writeHead(status, { 'content-type': 'application/json' }).end(text);
      if (state.trouble === 'silent') return void response.destroy();
      const credential =
        request.headers['x-key'] ?? (state.trouble === 'open' ? 'none' : undefined);
      if (typeof credential !== 'string') return reply(401, '{}');
      const url = request.url ?? '/';
      if (request.method === 'GET')
        return reply(answers.has(url) ? 200 : 404, answers.get(url) ?? '{}');
      const key = String(request.headers.key);
      arrivals.push({ credential, key });
      const body = Buffer.concat(chunks).toString('utf8');
      const spelt = body.replace(/(?<=[:[,])-?\d[\d.eE+-]*/g, spell);
      answers.set(`/requests/${key}`, spelt);
      return reply(201, `{"id":"${key}"}`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answers,
    arrivals,
    get trouble() {
      return state.trouble;
    },
    set trouble(trouble) {
      state.trouble = trouble;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
