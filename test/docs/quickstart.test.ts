// Goal: whoever follows the quick start from an empty folder reaches a commit, a refused hidden write and a verified receipt.
// Method: the package is built, packed and unpacked; every line of the page runs in a shell, on SQLite and on a PostgreSQL
// of its own. Only three things differ: npm fetches nothing, the address is the server's, and nobody is asked.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startServer } from '../postgres/server.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'effectmatch-quickstart-'));
const tarball = join(folder, 'effectmatch.tgz');
after(() => rmSync(folder, { recursive: true, force: true }));

before(() => {
  const staging = join(folder, 'staging');
  mkdirSync(staging);
  const PATH = [dirname(process.execPath), process.env.PATH].join(delimiter);
  const call = (command: string, args: readonly string[], cwd = root) =>
    execFileSync(command, args, { cwd, encoding: 'utf8', env: { ...process.env, PATH } });
  call(join(root, 'node_modules/.bin/tsc'), ['-p', 'tsconfig.build.json', '--outDir', join(staging, 'dist')]);
  for (const file of ['package.json', 'README.md', 'CHANGELOG.md', 'LICENSE']) {
    copyFileSync(join(root, file), join(staging, file));
  }
  const packed = call('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], staging).trim();
  copyFileSync(join(folder, packed), tarball);
});

/** What `npm install` would leave behind, from the tarball and from the packages that this project has. */
function install(desk: string, packages = ['zod', 'pg', 'libpg-query']): void {
  const home = join(desk, 'node_modules/effectmatch');
  mkdirSync(home, { recursive: true });
  execFileSync('tar', ['-xzf', tarball, '-C', home, '--strip-components=1']);
  for (const name of packages) {
    symlinkSync(join(root, 'node_modules', name), join(desk, 'node_modules', name));
  }
  mkdirSync(join(desk, 'node_modules/.bin'));
  const { bin } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')) as { bin: { effectmatch: string } };
  chmodSync(join(home, bin.effectmatch), 0o755);
  symlinkSync(join(home, bin.effectmatch), join(desk, 'node_modules/.bin/effectmatch'));
}

interface Block {
  readonly language: string;
  readonly text: string;
}

function blocksOf(section: string): readonly Block[] {
  const page = readFileSync(join(root, 'docs/quickstart.md'), 'utf8');
  const [, text = ''] = page.split(`\n## ${section}\n`);
  const end = text.indexOf('\n## ');
  return [...text.slice(0, end).matchAll(/```(\w+)\n([\s\S]*?)```/g)].map(([, language = '', body = '']) => ({
    language,
    text: body,
  }));
}

class Newcomer {
  readonly desk: string;
  readonly #address: string;

  constructor(name: string, address = '') {
    this.desk = join(folder, name);
    this.#address = address;
    mkdirSync(this.desk);
    install(this.desk);
  }

  /** Runs one block as it stands and returns what it printed. */
  run(block: Block): string {
    const lines = block.text.split('\n').map((line) => {
      if (line.startsWith('npm install')) return '';
      if (line.startsWith('export EFFECTMATCH_ADMIN_URL')) return '';
      return line.startsWith('npx effectmatch approve') ? `${line} --yes` : line;
    });
    const script = `set -eu\nnpx() { "$@"; }\n${lines.join('\n')}`;
    const PATH = [join(this.desk, 'node_modules/.bin'), dirname(process.execPath), process.env.PATH].join(delimiter);
    const env = { ...process.env, PATH, EFFECTMATCH_ADMIN_URL: this.#address };
    const { status, stdout, stderr } = spawnSync('sh', ['-c', script], { cwd: this.desk, encoding: 'utf8', env });
    assert.equal(status, 0, `${block.text}\n${stdout}\n${stderr}`);
    return stdout;
  }
}

test('the quick start on SQLite works as printed', () => {
  const newcomer = new Newcomer('sqlite');
  const printed = blocksOf('SQLite')
    .map((block) => newcomer.run(block))
    .join('\n');
  assert.match(printed, /written {2}effectmatch\.config\.ts: books, 2 tables registered/);
  assert.match(printed, /closed {2}books/);
  assert.match(printed, /\+ notification .*invoice=4711, text="paid"/);
  assert.match(printed, /committed: what became durable is what was approved/);
  assert.match(printed, /rejected at authority \(spent\)[\s\S]*refused: exit code 2/);
  assert.match(
    printed,
    /rejected at comparison \(diverged\)[\s\S]*extra +\+ notification .*"hidden"[\s\S]*refused: exit code 2/,
  );
  assert.match(printed, /verified/);
});

test('the quick start on PostgreSQL works as printed', async () => {
  await using server = await startServer();
  const db = await server.createDatabase('books');
  const newcomer = new Newcomer('postgres', db.url());
  let printed = '';
  for (const block of blocksOf('PostgreSQL')) {
    if (block.language === 'sql') await db.run(block.text);
    else printed += newcomer.run(block);
  }
  assert.match(printed, /written {2}effectmatch\.env: secret/);
  assert.match(printed, /closed {2}books/);
  assert.match(printed, /committed: what became durable is what was approved/);
  assert.match(
    printed,
    /rejected at comparison \(diverged\)[\s\S]*extra +\+ notification .*"hidden"[\s\S]*refused: exit code 2/,
  );
  assert.match(printed, /verified/);
  const rows = await db.run('select id, status from invoice order by id');
  assert.deepEqual(rows, [
    { id: 4711, status: 'paid' },
    { id: 4712, status: 'pending' },
  ]);
  assert.deepEqual(await db.run('select text from notification'), [{ text: 'paid' }]);
});

test('without the packages for PostgreSQL the command says which to install, and everything else works', () => {
  const desk = join(folder, 'bare');
  mkdirSync(desk);
  install(desk, ['zod']);
  const call = (...words: string[]) =>
    spawnSync(process.execPath, [join(desk, 'node_modules/effectmatch/dist/cli/main.js'), ...words], {
      cwd: desk,
      encoding: 'utf8',
    });
  const { status, stderr } = call('init', 'postgres://postgres@127.0.0.1:1/books');
  assert.equal(status, 1);
  assert.match(
    stderr,
    /needs the packages pg and libpg-query\nnext: run `npm install pg libpg-query`.*nothing was written/,
  );
  assert.equal(call('keygen', 'alice').status, 0);
});
