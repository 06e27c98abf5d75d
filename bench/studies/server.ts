// The cost of the HTTP API and the console: a call over HTTP compared with the same library call,
// an inbox with many requests, a proposal with many changes, the time from an event to a client and
// to a browser's screen, and the size of everything that a browser loads.
import { globSync, readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { createAdaptorServer } from '@hono/node-server';
import { issueToken } from '../../src/access/callers.ts';
import { createApi } from '../../src/api/app.ts';
import { createConsole } from '../../src/console/app.ts';
import { approver } from '../../src/crypto/approver.ts';
import { insert, update } from '../../src/protocol/draft.ts';
import { approveAll } from '../licenses.ts';
import {
  atMost,
  type Cell,
  figure,
  medianCell,
  p95Cell,
  quantile,
  type Study,
  type StudyOptions,
} from '../study.ts';
import { temporaryFolder } from '../temporary.ts';
import { measureScreen } from './server/screen.ts';
import { fillInbox, openSite, paying, type Site } from './server/site.ts';

const CLIENTS = [1, 8, 32];
const TURNS = 8;
const ORIGIN = 'http://127.0.0.1:8420';

/** Times `calls` calls by `clients` concurrent clients, in milliseconds. */
async function timeAll(
  calls: number,
  clients: number,
  call: () => Promise<unknown>,
): Promise<number[]> {
  const times: number[] = [];
  let left = calls;
  const client = async () => {
    for (; left > 0; ) {
      left -= 1;
      const started = performance.now();
      await call();
      times.push(performance.now() - started);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return times;
}

/** Measures one execution through the library and over HTTP, in turn. */
async function measurePath(folder: string, calls: number): Promise<readonly Cell[]> {
  const runs = calls * 2 * (CLIENTS.length + 1);
  await using site = await openSite(folder, runs + 1);
  const { runtime, requests, config, key } = site;
  const licenses = await approveAll(runtime, key, {
    count: runs,
    effects: (id) => [update('invoice', { id }, { status: ['open', 'paid'] })],
  });
  await using api = createApi({ runtime, requests, config, origin: ORIGIN });
  const wish = { kind: 'agent', holder: 'agent', scopes: ['execute'] } as const;
  const { token } = await issueToken(requests.tokens, wish);
  const server = createAdaptorServer({ fetch: api.fetch }) as Server;
  // Connections stay idle during the library's turn, so they must not time out.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/v1/executions`;
  let next = 0;
  const byLibrary = async () => {
    next += 1;
    demandCommitted((await runtime.ensure(licenses[next - 1], paying(next))).kind);
  };
  const byHttp = async () => {
    next += 1;
    const answer = await post(url, token, { license: licenses[next - 1], action: paying(next) });
    demandCommitted(answer.terminal.kind);
  };
  await timeAll(calls, 4, byLibrary);
  await timeAll(calls, 4, byHttp);
  const cells: Cell[] = [];
  for (const clients of CLIENTS) {
    // In turn, so that other load on the machine affects both.
    const [library, http]: [number[], number[]] = [[], []];
    for (let turn = 0; turn < TURNS; turn += 1) {
      library.push(...(await timeAll(calls / TURNS, clients, byLibrary)));
      http.push(...(await timeAll(calls / TURNS, clients, byHttp)));
    }
    const at = `${clients} client${clients === 1 ? '' : 's'}`;
    for (const [name, samples] of Object.entries({ library, http }))
      cells.push(
        medianCell(`${name}, ${at}, p50`, samples, 'ms'),
        p95Cell(`${name}, ${at}, p95`, samples, 'ms'),
      );
    const over = quantile(http, 0.95) / quantile(library, 0.95);
    cells.push(
      atMost(
        `HTTP over library, ${at}, p50`,
        { statistic: 'ratio', of: http, to: library },
        'x',
        2,
      ),
      figure(`HTTP over library, ${at}, p95`, over, 'x'),
    );
  }
  server.close();
  server.closeAllConnections();
  return cells;
}

/** Uses `node:http`, because `fetch` does not allow setting the Host header. */
async function post(url: string, token: string, body: unknown) {
  const { request } = await import('node:http');
  const text = JSON.stringify(body);
  const headers = {
    ...{ host: new URL(ORIGIN).host, authorization: `Bearer ${token}` },
    ...{ 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) },
  };
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const sent = request(url, { method: 'POST', headers, agent: AGENT }, (response) => {
    let answer = '';
    response.setEncoding('utf8').on('data', (chunk) => {
      answer += chunk;
    });
    response.on('end', () => resolve(answer));
  });
  sent.once('error', reject).end(text);
  return JSON.parse(await promise);
}
const { Agent } = await import('node:http');
const AGENT = new Agent({ keepAlive: true, maxSockets: 64 });

function demandCommitted(kind: string): void {
  if (kind !== 'committed') throw new Error(`not committed: ${kind}`);
}

/** Opens the console with one signed-in user. */
async function openBrowser({ runtime, requests }: Site) {
  const app = createConsole({
    ...{ runtime, requests, adapters: ['books'], origin: ORIGIN, issuers: {}, user: 'bench' },
  });
  const headers = { host: new URL(ORIGIN).host, cookie: '' };
  const get = async (path: string) => await app.fetch(new Request(`${ORIGIN}${path}`, { headers }));
  const entered = await get(new URL(app.createLink()).pathname);
  headers.cookie = entered.headers.get('set-cookie')?.split(';')[0] ?? '';
  return {
    /** Milliseconds until the response starts, and until it is complete. */
    async time(path: string) {
      const started = performance.now();
      const answer = await get(path);
      if (answer.status !== 200) throw new Error(`${path}: ${answer.status}`);
      const first = performance.now() - started;
      const { length } = await answer.text();
      return { first, whole: performance.now() - started, length };
    },
    [Symbol.asyncDispose]: () => app[Symbol.asyncDispose](),
  };
}

async function measureInbox(folder: string, pending: number): Promise<readonly Cell[]> {
  await using site = await openSite(folder, 1);
  await fillInbox(site, folder, pending);
  await using browser = await openBrowser(site);
  await browser.time('/');
  const times = await repeat(5, () => browser.time('/'));
  const started = performance.now();
  const { requests } = await site.requests.page({ state: 'pending', limit: 50 });
  const listed = performance.now() - started;
  if (requests.length !== 50) throw new Error(`${requests.length} requests on a page`);
  const of = `inbox of ${pending}`;
  return [
    atMost(
      `${of}: first byte`,
      { statistic: 'median', of: times.map(({ first }) => first) },
      'ms',
      500,
    ),
    medianCell(
      `${of}: rendered`,
      times.map(({ whole }) => whole),
      'ms',
    ),
    figure(`${of}: a page of 50 by the API`, listed, 'ms'),
  ];
}

async function measureProposal(folder: string, changes: number): Promise<readonly Cell[]> {
  await using site = await openSite(folder, 1);
  const { requests, key } = site;
  const effects = Array.from({ length: changes }, (_, index) =>
    insert('payment', { id: index + 1, payee: `payee ${index}`, amount: index }),
  );
  const action = { sql: 'select 1' };
  const manifest = { adapter: 'books', effects };
  const timed = async <T>(work: () => Promise<T> | T) => {
    const started = performance.now();
    const value = await work();
    return { value, ms: performance.now() - started };
  };
  const asked = await timed(() => requests.ask({ by: 'agent', run: 'r', manifest, action }));
  const { id, proposal } = asked.value;
  await using browser = await openBrowser(site);
  const shown = await browser.time(`/requests/${id}`);
  const signed = await timed(() => approver(key).sign(proposal, { expiresIn: '10m' }));
  const text = JSON.stringify(signed.value);
  const answered = await timed(() => requests.answer(id, text));
  const of = `${changes} changes`;
  return [
    figure(`${of}: proposed`, asked.ms, 'ms'),
    figure(`${of}: first page`, shown.whole, 'ms'),
    figure(`${of}: first page`, shown.length / 1024, 'KiB'),
    figure(`${of}: signed`, signed.ms, 'ms'),
    figure(`${of}: license taken`, answered.ms, 'ms'),
    figure(`${of}: license`, text.length / 1024, 'KiB'),
  ].map((cell) => (cell.unit === 'KiB' ? { ...cell, name: `${cell.name}, size` } : cell));
}

/** Measures the time from a question until a client of the stream receives its event. */
async function measureEvents(folder: string, events: number): Promise<readonly Cell[]> {
  await using site = await openSite(folder, 1);
  const { runtime, requests, config } = site;
  await using api = createApi({ runtime, requests, config, origin: ORIGIN });
  const { token } = await issueToken(requests.tokens, { kind: 'operator', holder: 'bench' });
  const ending = new AbortController();
  const { body } = await api.fetch(
    new Request(`${ORIGIN}/v1/events`, {
      headers: { host: new URL(ORIGIN).host, authorization: `Bearer ${token}` },
      signal: ending.signal,
    }),
  );
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  const effects = [update('invoice', { id: 1 }, { status: ['open', 'paid'] })];
  const samples: number[] = [];
  await new Promise((resolve) => setTimeout(resolve, 600));
  for (let index = 0; index < events; index += 1) {
    const manifest = { adapter: 'books', effects };
    const ask = { by: 'agent', run: `${index}`, manifest, action: paying(1) };
    const { id } = await requests.ask(ask);
    const started = performance.now();
    for (let text = ''; !text.includes(id); ) text += (await reader?.read())?.value ?? '';
    samples.push(performance.now() - started);
  }
  ending.abort();
  return [
    atMost('event to client, p50', { statistic: 'median', of: samples }, 'ms', 100),
    p95Cell('event to client, p95', samples, 'ms'),
  ];
}

function measureAssets(): readonly Cell[] {
  const folder = join(import.meta.dirname, '../../src/console/assets');
  const files = globSync('*', { cwd: folder }).map((name) => readFileSync(join(folder, name)));
  const sum = (sizes: readonly number[]) => sizes.reduce((a, b) => a + b, 0) / 1024;
  const packed = sum(files.map((file) => gzipSync(file).length));
  return [
    figure('assets', sum(files.map(({ length }) => length)), 'KiB'),
    atMost('assets, compressed', packed, 'KiB', 80),
  ];
}

async function repeat<T>(times: number, work: () => Promise<T>): Promise<readonly T[]> {
  const found: T[] = [];
  for (let index = 0; index < times; index += 1) found.push(await work());
  return found;
}

async function run({ quick, progress }: StudyOptions): Promise<readonly Cell[]> {
  const parts: [string, (folder: string) => Promise<readonly Cell[]>][] = [
    ['a call over HTTP and by the library', (folder) => measurePath(folder, quick ? 64 : 640)],
    ['the inbox', (folder) => measureInbox(folder, quick ? 500 : 10_000)],
    ['a large proposal', (folder) => measureProposal(folder, quick ? 2000 : 100_000)],
    ['events', (folder) => measureEvents(folder, quick ? 4 : 40)],
    [
      'a browser',
      (folder) =>
        measureScreen(folder, {
          pending: quick ? 500 : 10_000,
          changes: quick ? 2000 : 100_000,
          events: quick ? 3 : 20,
        }),
    ],
  ];
  const cells: Cell[] = [];
  for (const [what, measure] of parts) {
    progress(what);
    using folder = temporaryFolder();
    cells.push(...(await measure(folder.path)));
  }
  return [...cells, ...measureAssets()];
}

/** The cost of the HTTP API and the console. */
export const serverStudy: Study = {
  name: 'server',
  about:
    'the HTTP API and the console: calls over HTTP, a full inbox, a large proposal, events, assets',
  run,
};
