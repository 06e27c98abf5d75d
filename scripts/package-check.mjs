// Checks the package as a user gets it: packed, linted, installed into an empty folder, imported
// and compiled against. Run `npm run build` before. Prints what the package weighs; fails on the
// first thing that is wrong.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { builtinModules } from 'node:module';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '..');
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const folder = mkdtempSync(join(tmpdir(), 'effectmatch-package-'));
// Whatever is started below runs on the Node that runs this, also through a shebang.
const PATH = [dirname(process.execPath), join(root, 'node_modules/.bin'), process.env.PATH].join(
  delimiter,
);

function run(command, args, cwd = root) {
  const result = spawnSync(command, args, {
    cwd,
    encoding: 'utf8',
    env: { ...process.env, PATH, NO_COLOR: '1' },
  });
  if (result.status === 0) return result.stdout;
  throw new Error(
    `${command} ${args.join(' ')} failed\n${result.error ?? ''}${result.stdout}${result.stderr}`,
  );
}

function read(file) {
  return readFileSync(join(root, file), 'utf8');
}

function fail(what) {
  throw new Error(what);
}

/** Whatever npm would publish, and nothing that only this project needs. */
function pack() {
  const [packed] = JSON.parse(
    run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder]),
  );
  const names = packed.files.map(({ path }) => path);
  const wanted = /\.(js|d\.ts|sql)$|^dist\/console\/assets\//;
  const stray = names.find((name) => name.startsWith('dist/') && !wanted.test(name));
  if (stray !== undefined) fail(`${stray} does not belong into the package`);
  for (const file of globSync('src/**/*.sql', { cwd: root })) {
    const name = file.replace(/^src/, 'dist');
    const isCopied = names.includes(name) && read(name) === read(file);
    if (!isCopied) fail(`${name} is not the text of ${file}: run \`npm run build\` first`);
  }
  for (const name of Object.values(manifest.bin)) {
    if (!names.includes(name.replace(/^\.\//, '')))
      fail(`${name} is not in the package: run \`npm run build\` first`);
  }
  for (const [, link] of read('README.md').matchAll(/\]\(([^):#]+)/g)) {
    if (!names.includes(link)) fail(`README.md leads to ${link}, which is not in the package`);
  }
  return { ...packed, tarball: join(folder, packed.filename) };
}

/**
 * Every package that a module or a declaration of dist imports is one that users get by installing
 * this one.
 */
function checkImports() {
  const declared = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies });
  const allowed = new Set([manifest.name, ...declared]);
  const seen = new Set();
  const statement =
    /(?:^|[;\s}])(?:import|export)\b[^'"`;]*?\bfrom\s*["']([^"']+)["']|^\s*import\s*["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']/gm;
  const files = globSync('dist/**/*.{js,d.ts}', { cwd: root });
  for (const file of files) {
    for (const [, ...groups] of readFileSync(join(root, file), 'utf8').matchAll(statement)) {
      const specifier = groups.find((group) => group !== undefined);
      if (specifier.startsWith('.') || specifier.startsWith('node:')) continue;
      const name = specifier
        .split('/')
        .slice(0, specifier.startsWith('@') ? 2 : 1)
        .join('/');
      if (builtinModules.includes(name)) fail(`${file} imports ${name} without node:`);
      if (Object.hasOwn(manifest.devDependencies, name) && !allowed.has(name))
        fail(`${file} imports the development dependency ${name}`);
      if (!allowed.has(name)) fail(`${file} imports ${name}, which is not a dependency`);
      seen.add(name);
    }
  }
  if (files.length < 50 || !seen.has('pg'))
    fail(`only ${files.length} files and ${[...seen]} seen: is dist built?`);
  return files.length;
}

/** Installs the tarball as a user would; returns how many packages came with it. */
function install(tarball, consumer) {
  mkdirSync(consumer);
  writeFileSync(
    join(consumer, 'package.json'),
    '{"name":"consumer","private":true,"type":"module"}\n',
  );
  run(
    'npm',
    ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline', tarball],
    consumer,
  );
  const { packages } = JSON.parse(
    readFileSync(join(consumer, 'node_modules/.package-lock.json'), 'utf8'),
  );
  return Object.keys(packages).length - 1;
}

/** Those that our code imports; the application imports the frameworks itself. */
const peers = Object.keys(manifest.peerDependencies ?? {})
  .filter((name) => Object.hasOwn(manifest.devDependencies, name))
  .map((name) => `${name}@${manifest.devDependencies[name]}`);
/** These need an optional peer, and must say so until it is installed. */
const NEEDS_PEERS = [
  ...['adapters/mysql', 'adapters/postgres', 'ledger/postgres', 'requests/postgres', 'telemetry'],
  ...['workflow/dbos', 'adapters/mcp'],
].map((path) => `${manifest.name}/${path}`);
const subpaths = Object.keys(manifest.exports)
  .filter((path) => path !== './package.json')
  .map((path) => manifest.name + path.slice(1));

function importAll(consumer) {
  for (const name of NEEDS_PEERS) {
    const code = `await import('${name}').then(() => process.exit(1), ({ message }) => { if (!/'pg'|'mysql2'|'@(opentelemetry.api|modelcontextprotocol.client)'/.test(message)) throw new Error(message) })`;
    run(process.execPath, ['--input-type=module', '--eval', code], consumer);
  }
  const without = importThese(
    consumer,
    subpaths.filter((name) => !NEEDS_PEERS.includes(name)),
  );
  run(
    'npm',
    ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline', ...peers],
    consumer,
  );
  return without + importThese(consumer, NEEDS_PEERS);
}

function importThese(consumer, names) {
  const code = `for (const name of ${JSON.stringify(names)}) {
    const names = Object.keys(await import(name));
    console.log(name + ': ' + names.length);
  }
  const { default: own } = await import('${manifest.name}/package.json', { with: { type: 'json' } });
  if (own.version !== '${manifest.version}') throw new Error(own.version);`;
  const printed = run(process.execPath, ['--input-type=module', '--eval', code], consumer);
  const version = run(
    join(consumer, 'node_modules/.bin/effectmatch'),
    ['--version'],
    consumer,
  ).trim();
  if (version !== manifest.version) fail(`effectmatch --version prints ${version}`);
  return printed;
}

const SERVE_MS = 10_000;

/** The inbox as a newcomer meets it: no configuration, no optional peer. Returns the milliseconds to its page. */
async function serveInbox(consumer) {
  const cwd = join(consumer, 'fresh');
  mkdirSync(cwd);
  const started = performance.now();
  const command = join(consumer, 'node_modules/.bin/effectmatch');
  const child = spawn(command, ['serve', '--port', '0', '--json'], {
    cwd,
    env: { ...process.env, PATH },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'close');
  try {
    const [printed] = await once(child.stdout.setEncoding('utf8'), 'data');
    const { link } = JSON.parse(printed);
    const entered = await fetch(link);
    const headers = { cookie: entered.headers.get('set-cookie')?.split(';')[0] ?? '' };
    const inbox = await (await fetch(new URL('/', link), { headers })).text();
    if (!inbox.includes('<h1>Inbox</h1>')) fail(`no inbox at ${link}: ${inbox}`);
    const script = await (await fetch(new URL('/assets/signer.js', link))).text();
    if (script === '') fail('the page has no script that signs');
    const ms = performance.now() - started;
    if (ms > SERVE_MS) fail(`the inbox took ${ms.toFixed(0)} ms`);
    return ms;
  } finally {
    child.kill('SIGINT');
    await ended;
    if (readdirSync(cwd).length > 0) fail(`serve left ${readdirSync(cwd)} behind`);
  }
}

/** Types as a user meets them: our declarations are checked too, and a wrong use has to be an error. */
function compile(consumer) {
  const types = join(consumer, 'node_modules/@types');
  mkdirSync(types, { recursive: true });
  // A driver may have brought another version.
  rmSync(join(types, 'node'), { recursive: true, force: true });
  symlinkSync(join(root, 'node_modules/@types/node'), join(types, 'node'));
  const imports = subpaths.map(
    (name, index) => `import * as part${index} from '${name}';\nvoid part${index};`,
  );
  writeFileSync(
    join(consumer, 'use.ts'),
    `${imports.join('\n')}
import { createRuntime, defineConfig, type Envelope, type Terminal, update, verifyReceipt } from 'effectmatch';
import { sqlite } from 'effectmatch/adapters/sqlite';

const config = defineConfig({
  store: 'effectmatch.db',
  keyring: 'effectmatch.keys.json',
  issuers: { 'ap-team': { key: 'ed25519:', may: ['books'] } },
  adapters: { books: sqlite({ file: 'books.db', relations: ['invoice'] }) },
});
export async function pay(license: unknown): Promise<Envelope | undefined> {
  await using runtime = await createRuntime(config);
  await runtime.prepare({
    adapter: 'books',
    task: 'invoice',
    planRevision: 1,
    effects: [update('invoice', { id: 1 }, { status: ['pending', 'paid'] })],
  });
  const terminal: Terminal = await runtime.execute(license, { sql: 'select 1' });
  // @ts-expect-error a terminal has no such kind, so the declarations are more than any
  if (terminal.kind === 'accepted') return undefined;
  return await runtime.receipt(terminal.occurrence);
}
export function believe(envelope: unknown): string {
  const verified = verifyReceipt(['ed25519:'], envelope);
  if (verified.kind === 'shadow') return verified.shadow.would;
  if (verified.kind === 'receipt') return verified.receipt.terminal.kind;
  return verified.kind === 'checkpoint' ? verified.checkpoint.chain : verified.completion.state;
}
`,
  );
  const base = {
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    skipLibCheck: false,
    types: ['node'],
  };
  for (const [module, moduleResolution] of [
    ['nodenext', 'nodenext'],
    ['esnext', 'bundler'],
  ]) {
    const compilerOptions = {
      ...base,
      target: 'esnext',
      lib: ['esnext'],
      module,
      moduleResolution,
    };
    const file = join(consumer, `tsconfig.${module}.json`);
    writeFileSync(file, JSON.stringify({ compilerOptions, files: ['use.ts'] }));
    run('tsc', ['-p', file], consumer);
  }
}

try {
  const packed = pack();
  const modules = checkImports();
  run('publint', ['run', packed.tarball, '--strict']);
  run('attw', [
    packed.tarball,
    '--profile',
    'esm-only',
    '--no-definitely-typed',
    '--no-color',
    '--no-emoji',
  ]);
  const consumer = join(folder, 'consumer');
  const installed = install(packed.tarball, consumer);
  const inboxMs = await serveInbox(consumer);
  const imported = importAll(consumer);
  compile(consumer);
  const kilobytes = (bytes) => `${(bytes / 1024).toFixed(0)} kB`;
  process.stdout.write(imported);
  console.log(
    `tarball: ${kilobytes(packed.size)}, unpacked ${kilobytes(packed.unpackedSize)}, ${modules} files in dist`,
  );
  console.log(`effectmatch serve: an inbox after ${(inboxMs / 1000).toFixed(1)} s`);
  console.log(
    `dependencies: ${Object.keys(manifest.dependencies ?? {}).length} direct, ${installed} installed with it`,
  );
} catch (error) {
  console.error(`package check: ${error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
