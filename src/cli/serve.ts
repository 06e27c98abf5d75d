import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import type { ConsoleApp } from '../console/app.ts';
import { parseIssuerKey } from '../crypto/issuer-key.ts';
import type { RuntimeConfig } from '../runtime/runtime.ts';
import { CONFIG_FLAG, EXIT, type Verb } from './command.ts';
import { loadConfig } from './deployment.ts';
import { GuidedError } from './fault.ts';
import type { Output } from './output.ts';
import { catchInterrupt } from './progress.ts';
import { openRequestsOf } from './requests.ts';

const PORT = 8420;

/** Serves the console to the browser of this machine. */
export const serve: Verb = {
  name: 'serve',
  summary: 'show the inbox of requests in your browser',
  about: `Serves the console on this machine: what agents ask for as a row diff, what became of it, and
what an operator has to look after. It executes what is approved while it runs. It has no key:
you sign in the browser with a key that cannot leave it, or with \`effectmatch approve\`. The link
that it prints signs you in once; Enter prints another, and Ctrl-C ends it.`,
  flags: {
    port: {
      value: 'N',
      about: `the port on 127.0.0.1 (default: ${PORT}); keys in browsers belong to it`,
    },
    demo: { about: 'a small shop with agents that ask, in a temporary folder' },
    ...CONFIG_FLAG,
  },
  examples: ['effectmatch serve', 'effectmatch serve --port 8080', 'effectmatch serve --demo'],
  async run(args, output) {
    const port = args.count('port', 0) ?? (args.has('demo') ? 0 : PORT);
    using demo = args.has('demo') ? temporaryFolder() : undefined;
    const config = demo === undefined ? await loadConfig(args) : await createDemo(demo.path);
    await serveConsole(config, { port, demoFolder: demo?.path }, output);
    return EXIT.done;
  },
};

function temporaryFolder(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), 'effectmatch-console-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

async function createDemo(folder: string): Promise<RuntimeConfig> {
  const { createDemoInbox } = await import('./demo/inbox.ts');
  return await createDemoInbox(folder);
}

/** Listens until Ctrl-C. */
async function serveConsole(
  config: RuntimeConfig,
  { port, demoFolder }: { port: number; demoFolder: string | undefined },
  output: Output,
): Promise<void> {
  const { createConsole } = await import('../console/app.ts');
  const { createAdaptorServer } = await import('@hono/node-server');
  await using opened = await openRequestsOf(config);
  const { runtime, requests } = opened;
  let app: ConsoleApp | undefined;
  const server = createAdaptorServer({
    fetch: (request) => app?.fetch(request) ?? new Response(null, { status: 503 }),
  });
  using interrupt = catchInterrupt();
  server.listen(port, '127.0.0.1');
  await listening(server, port);
  const { port: chosen } = server.address() as AddressInfo;
  const origin = `http://127.0.0.1:${chosen}`;
  const adapters = Object.keys(config.adapters);
  await using served = createConsole({
    ...{ runtime, requests, adapters, origin, issuers: issuersOf(config) },
    user: userName(),
  });
  app = served;
  requests.start();
  const link = app.createLink();
  output.document({ origin, link });
  output.line(`${output.paint('good', 'serving')}  ${origin}`);
  output.line(`open this link once to sign in: ${link}`);
  if (demoFolder !== undefined)
    output.line(`the demo's key: ${join(demoFolder, 'ap-team.key.json')}`);
  output.line('Enter prints another link; Ctrl-C ends it');
  const printLink = () => output.line(`another link: ${served.createLink()}`);
  if (process.stdin.isTTY) process.stdin.on('data', printLink);
  await interrupt.interrupted;
  process.stdin.off('data', printLink).pause();
  server.close();
  if ('closeAllConnections' in server) server.closeAllConnections();
}

/** Whose each public key is. */
function issuersOf({ issuers }: RuntimeConfig): Readonly<Record<string, string>> {
  const entries = Object.entries(issuers).flatMap(([name, { key }]) =>
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
