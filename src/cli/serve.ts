import { mkdtempSync, rmSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { parsePublicKey } from '../crypto/signature.ts';
import { EventStream } from '../requests/event-stream.ts';
import type { Requests } from '../requests/requests.ts';
import type { RuntimeConfig } from '../runtime/runtime.ts';
import { type Arguments, CONFIG_FLAG, EXIT, type Verb } from './command.ts';
import { loadConfig } from './deployment.ts';
import { GuidedError } from './fault.ts';
import type { Output } from './output.ts';
import { catchInterrupt } from './progress.ts';
import { openRequestsOf } from './requests.ts';
import { packageVersion } from './version.ts';

const PORT = 8420;
const MAX_CONNECTIONS = 2048;
const HEADERS_MS = 15_000;

/** Serves the console to browsers, and the API to programs. */
export const serve: Verb = {
  name: 'serve',
  summary: 'show the inbox of requests in your browser, and serve the HTTP API',
  about: `Serves the console on this machine: what agents ask for as a row diff, what became of it, and
what an operator has to look after. It executes what is approved while it runs. It has no key:
you sign in the browser with a key that cannot leave it, or with \`effectmatch approve\`. The link
that it prints signs you in once; Enter prints another, and Ctrl-C ends it. Programs reach the same
over HTTP with a token of \`effectmatch token\`; /openapi.json describes it.`,
  flags: {
    port: {
      value: 'N',
      about: `the port on 127.0.0.1 (default: ${PORT}); keys in browsers belong to it`,
    },
    origin: {
      value: 'URL',
      about: 'behind a proxy: where browsers and programs reach it (default: this port)',
      excludes: ['demo'],
    },
    log: { about: 'write one line of JSON per API call to stderr; without values' },
    demo: { about: 'a small shop with agents that ask, in a temporary folder' },
    ...CONFIG_FLAG,
  },
  examples: ['effectmatch serve', 'effectmatch serve --port 8080', 'effectmatch serve --demo'],
  async run(args, output) {
    const port = args.count('port', 0) ?? (args.has('demo') ? 0 : PORT);
    using demo = args.has('demo') ? temporaryFolder() : undefined;
    const config = demo === undefined ? await loadConfig(args) : await createDemo(demo.path);
    const origin = readOrigin(args);
    const isLogged = args.has('log');
    await serveAll(config, { port, origin, isLogged, demoFolder: demo?.path }, output);
    return EXIT.done;
  },
};

function readOrigin(args: Arguments): string | undefined {
  const given = args.value('origin');
  if (given === undefined) return undefined;
  const { origin, protocol } = URL.canParse(given) ? new URL(given) : {};
  const isWeb = protocol === 'https:' || protocol === 'http:';
  if (isWeb && (given === origin || given === `${origin}/`)) return origin;
  throw args.wrong('--origin is like https://approvals.example, without a path');
}

function temporaryFolder(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), 'effectmatch-console-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

async function createDemo(folder: string): Promise<RuntimeConfig> {
  const { createDemoInbox } = await import('./demo/inbox.ts');
  return await createDemoInbox(folder);
}

/** What the flags say. */
interface Serving {
  readonly port: number;
  readonly origin: string | undefined;
  readonly isLogged: boolean;
  readonly demoFolder: string | undefined;
}

/** Listens until Ctrl-C. */
async function serveAll(config: RuntimeConfig, flags: Serving, output: Output): Promise<void> {
  const { createConsole } = await import('../console/app.ts');
  const { createApi, isApiPath } = await import('../api/app.ts');
  await using opened = await openRequestsOf(config);
  const { runtime, requests } = opened;
  using interrupt = catchInterrupt();
  const listening = await listen(flags.port);
  const { origin = listening.url } = flags;
  await using events = openEvents(requests);
  const { stream } = events;
  await using site = createConsole({
    ...{ runtime, requests, origin, issuers: issuersOf(config), events: stream },
    ...{ adapters: Object.keys(config.adapters), user: userName() },
  });
  await using api = createApi({
    ...{ runtime, requests, config, origin, events: stream, version: packageVersion() },
    ...(flags.isLogged && {
      log: (entry) => void process.stderr.write(`${JSON.stringify(entry)}\n`),
    }),
  });
  listening.serve((request) =>
    isApiPath(new URL(request.url).pathname) ? api.fetch(request) : site.fetch(request),
  );
  requests.start();
  const link = site.createLink();
  output.document({ origin, link, listening: listening.url });
  output.line(`${output.paint('good', 'serving')}  ${origin}`);
  output.line(`open this link once to sign in: ${link}`);
  if (flags.demoFolder !== undefined)
    output.line(`the demo's key: ${join(flags.demoFolder, 'ap-team.key.json')}`);
  output.line('Enter prints another link; Ctrl-C ends it');
  const printLink = () => output.line(`another link: ${site.createLink()}`);
  if (process.stdin.isTTY) process.stdin.on('data', printLink);
  await interrupt.interrupted;
  process.stdin.off('data', printLink).pause();
  listening.close();
}

function openEvents(requests: Requests): AsyncDisposable & { readonly stream: EventStream } {
  const stream = new EventStream(requests);
  return { stream, [Symbol.asyncDispose]: () => stream.close() };
}

type Handle = (request: Request) => Response | Promise<Response>;

/** Takes the port; until something is served, the answer is 503. */
async function listen(port: number) {
  const { createAdaptorServer } = await import('@hono/node-server');
  let handle: Handle = () => new Response(null, { status: 503 });
  const server = createAdaptorServer({ fetch: (request) => handle(request) }) as Server;
  server.maxConnections = MAX_CONNECTIONS;
  server.headersTimeout = HEADERS_MS;
  server.listen(port, '127.0.0.1');
  await listening(server, port);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    serve(handler: Handle) {
      handle = handler;
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Whose each public key is. */
function issuersOf({ issuers }: RuntimeConfig): Readonly<Record<string, string>> {
  const entries = Object.entries(issuers).flatMap(([name, { key }]) =>
    [key].flat().map((text) => [parsePublicKey(text).text, name] as const),
  );
  return Object.fromEntries(entries);
}

async function listening(server: NodeJS.EventEmitter, port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('listening', () => resolve());
  server.once('error', reject);
  try {
    await promise;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const message = `port ${port} cannot be used: ${why}`;
    throw new GuidedError('ERR_EM_USAGE', message, 'choose another with --port N', cause);
  }
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return 'operator';
  }
}
