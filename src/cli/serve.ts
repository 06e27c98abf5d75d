import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { networkInterfaces, tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { KEEP_ALIVE_MS } from '../access/keep-alive.ts';
import type { CallLog } from '../api/app.ts';
import type { ConsoleOptions } from '../console/app.ts';
import { signerDigest } from '../console/saved-pages.ts';
import { parseIssuerKey } from '../crypto/issuer-key.ts';
import { createKeyring } from '../crypto/keyring.ts';
import { messageOf } from '../errors.ts';
import { EventStream } from '../requests/event-stream.ts';
import type { Requests } from '../requests/requests.ts';
import { policyOf } from '../runtime/policy.ts';
import type { RuntimeConfig } from '../runtime/runtime.ts';
import { CONFIG_FLAG, type Verb } from './command.ts';
import { hasConfig, loadConfig } from './deployment.ts';
import { GuidedError } from './fault.ts';
import type { Output } from './output.ts';
import { catchInterrupt } from './progress.ts';
import { openRequestsOf } from './requests.ts';
import { packageVersion } from './version.ts';

const PORT = 8420;
const MAX_CONNECTIONS = 2048;
const HEADERS_MS = 15_000;
const DEMO_KEY = 'ap-team.key.json';

/** Serves the console to browsers, and the API to programs. */
export const verb: Verb = {
  summary: 'show the inbox of requests in your browser, and serve the HTTP API',
  about: `Serves the console on this machine: what agents ask for as a row diff, what became of it,
and what needs an operator. While it runs, it executes what is approved. It has no key: you sign in
the browser with a passkey or a key that cannot leave it, or with \`effectmatch approve\`. The link
that it prints signs you in once; Enter prints another, and Ctrl-C ends it. For a team, \`console\`
in the configuration says how people sign in. Programs use the HTTP API with a token of
\`effectmatch token\`; /openapi.json describes it. Without a configuration, the inbox is empty and
explains how to begin; its files are in a temporary folder that Ctrl-C removes, as with --demo.`,
  flags: {
    port: {
      value: 'N',
      about: `the port on this machine (default: ${PORT}); browser keys are bound to it`,
    },
    log: { about: 'log one line of JSON per API call to stderr, without values' },
    demo: { about: 'serve a small shop whose agents ask for changes, in a temporary folder' },
    ...CONFIG_FLAG,
  },
  examples: ['', '--port 8080', '--demo'],
  async run(args, output) {
    const isDemo = args.has('demo');
    const flags = {
      port: args.count('port', 0) ?? (isDemo ? 0 : PORT),
      isLogged: args.has('log'),
    };
    if (!isDemo && hasConfig(args)) return await serveAll(await loadConfig(args), flags, output);
    using folder = temporaryFolder();
    if (isDemo) {
      const { createDemoInbox } = await import('./demo/inbox.ts');
      const config = await createDemoInbox(folder.path);
      return await serveAll(config, { ...flags, demoFolder: folder.path }, output);
    }
    const config = createUnconfigured(folder.path);
    await serveAll(config, { ...flags, unconfigured: process.cwd() }, output);
  },
};

function temporaryFolder(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), 'effectmatch-console-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** A deployment without databases, agents and approvers, for a first look at the console. */
function createUnconfigured(folder: string): RuntimeConfig {
  const keyring = join(folder, 'effectmatch.keys.json');
  createKeyring(keyring);
  return {
    store: join(folder, 'effectmatch.db'),
    keyring,
    issuers: {},
    adapters: {},
    requests: { store: join(folder, 'effectmatch.requests.db') },
  };
}

/** The values of the flags. */
interface Serving {
  readonly port: number;
  readonly isLogged: boolean;
  readonly demoFolder?: string;
  /** The folder in which no configuration was found. */
  readonly unconfigured?: string;
}

type Handle = (request: Request) => Response | Promise<Response>;

/** Listens until Ctrl-C. */
async function serveAll(config: RuntimeConfig, flags: Serving, output: Output): Promise<void> {
  const { createAdaptorServer } = await import('@hono/node-server');
  let served: Served | undefined;
  const fetch: Handle = (request) =>
    served?.fetch(request) ?? new Response(null, { status: 503, headers: { 'retry-after': '1' } });
  using interrupt = catchInterrupt();
  using listeners = await listenLocally(() => createAdaptorServer({ fetch }), flags.port);
  const { origin = `http://localhost:${listeners.port}`, people } = config.console ?? {};
  const { demoFolder, isLogged, unconfigured } = flags;
  const options = { origin, isLogged, unconfigured };
  // The demo accepts a key created in its pages, as a restart with the key configured would.
  const acceptKey = async (key: string, to: string): Promise<string> => {
    const earlier = served;
    const { renewDemoInbox, withDemoKey } = await import('./demo/inbox.ts');
    const next = await openServed(withDemoKey(config, key), { ...options, acceptKey });
    await renewDemoInbox(next.requests);
    served = next;
    void earlier?.[Symbol.asyncDispose]();
    return next.createLink(to);
  };
  served = await openServed(config, { ...options, acceptKey: demoFolder ? acceptKey : undefined });
  try {
    const link = people === undefined ? served.createLink() : undefined;
    const local = `http://127.0.0.1:${listeners.port}`;
    const canAsk = link !== undefined && process.stdin.isTTY;
    announce({ origin, link, local, canAsk, ...flags }, output);
    const printLink = () => output.line(`another link: ${served?.createLink()}`);
    if (canAsk) process.stdin.on('data', printLink);
    await interrupt.interrupted;
    process.stdin.off('data', printLink).pause();
  } finally {
    await served[Symbol.asyncDispose]();
  }
}

interface Announced extends Serving {
  readonly origin: string;
  readonly link: string | undefined;
  readonly local: string;
  readonly canAsk: boolean;
}

function announce(announced: Announced, output: Output): void {
  const { origin, link, local, canAsk, demoFolder, unconfigured } = announced;
  const signer = signerDigest();
  const demoKey = demoFolder && join(demoFolder, DEMO_KEY);
  const keys = { demoKey, signerSha256: signer };
  output.document({ origin, link: link ?? null, listening: local, ...keys });
  output.line(`${output.paint('good', 'serving')}  ${origin}`);
  if (unconfigured !== undefined) {
    output.line(`no configuration in ${unconfigured}: the inbox is empty and says how to begin`);
    output.line('nothing was written there; temporary files are removed when this ends');
  }
  if (link !== undefined) output.line(`open this link once to sign in: ${link}`);
  if (demoKey !== undefined) output.line(`the demo's key: ${demoKey}`);
  if (signer !== undefined) output.line(`SHA-256 of /signer.html: ${signer}`);
  output.line(canAsk ? 'Enter prints another link; Ctrl-C ends it' : 'Ctrl-C ends it');
}

/** A deployment with its console and its API. */
interface Served extends AsyncDisposable {
  readonly requests: Requests;
  readonly fetch: Handle;
  createLink(to?: string): string;
}

async function openServed(
  config: RuntimeConfig,
  options: Pick<ConsoleOptions, 'origin' | 'acceptKey' | 'unconfigured'> & {
    readonly isLogged: boolean;
  },
): Promise<Served> {
  const { createConsole } = await import('../console/app.ts');
  const { createApi, isApiPath } = await import('../api/app.ts');
  await using parts = new AsyncDisposableStack();
  const { runtime, requests } = parts.use(await openRequestsOf(config));
  const { origin, acceptKey, isLogged, unconfigured } = options;
  const { stream: events } = parts.use(openEvents(requests));
  const site = parts.use(
    createConsole({
      runtime,
      requests,
      origin,
      events,
      policy: policyOf(config),
      user: userName(),
      adapters: Object.keys(config.adapters),
      agents: Object.keys(config.agents ?? {}),
      issuers: namesOfKeys(config.issuers),
      operators: namesOfKeys(config.operators ?? {}),
      login: config.console?.people && config.console,
      acceptKey,
      unconfigured,
    }),
  );
  const api = parts.use(
    createApi({
      runtime,
      requests,
      config,
      origin,
      events,
      version: packageVersion(),
      log: isLogged ? writeLog : undefined,
    }),
  );
  requests.start();
  const opened = parts.move();
  return {
    requests,
    fetch: (request) => (isApiPath(request) ? api : site).fetch(request),
    createLink: site.createLink,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

function openEvents(requests: Requests): AsyncDisposable & { readonly stream: EventStream } {
  const stream = new EventStream(requests);
  return { stream, [Symbol.asyncDispose]: () => stream.close() };
}

function writeLog(entry: CallLog): void {
  process.stderr.write(`${JSON.stringify(entry)}\n`);
}

type Listener = ReturnType<typeof import('@hono/node-server').createAdaptorServer>;

/**
 * Listens on both addresses that browsers resolve `localhost` to. On an address left free, another
 * program could pose as the console.
 */
async function listenLocally(
  create: () => Listener,
  wished: number,
): Promise<Disposable & { readonly port: number }> {
  const [first, second] = [create(), create()];
  for (const server of [first, second])
    Object.assign(server, {
      maxConnections: MAX_CONNECTIONS,
      headersTimeout: HEADERS_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
    });
  first.listen(wished, '127.0.0.1');
  await listening(first, wished);
  const { port } = first.address() as AddressInfo;
  const close = () => {
    for (const server of [first, second]) {
      server.close();
      if ('closeAllConnections' in server) server.closeAllConnections();
    }
  };
  try {
    if (hasLoopback6()) await listening(second.listen(port, '::1'), port);
  } catch (error) {
    close();
    throw error;
  }
  return { port, [Symbol.dispose]: close };
}

function hasLoopback6(): boolean {
  const addresses = Object.values(networkInterfaces()).flat();
  return addresses.some((found) => found?.address === '::1');
}

/** The owner of each public key. */
function namesOfKeys(
  people: Readonly<Record<string, { readonly key: string | readonly string[] }>>,
): Readonly<Record<string, string>> {
  const entries = Object.entries(people).flatMap(([name, { key }]) =>
    [key].flat().map((text) => [parseIssuerKey(text).text, name] as const),
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
    const why = messageOf(cause);
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
