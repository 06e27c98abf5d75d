// A folder in which a reader could follow a page: the built package is installed above it, and
// nothing else is there.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TestDatabase } from '../postgres/server.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** The package as users get it, in a folder that is removed at the end. */
export class Installation implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'effectmatch-docs-'));
  /** The built package. */
  readonly home = join(this.folder, 'node_modules/effectmatch');
  readonly #desks = new Set<string>();

  constructor() {
    mkdirSync(this.home, { recursive: true });
    execFileSync(process.execPath, ['scripts/build.mjs', join(this.home, 'dist')], { cwd: root });
    for (const file of ['package.json', 'README.md', 'CHANGELOG.md', 'LICENSE']) {
      copyFileSync(join(root, file), join(this.home, file));
    }
    linkPackages(this.folder, ['zod', 'pg', 'libpg-query', '@opentelemetry/api', 'typescript']);
    mkdirSync(join(this.folder, 'node_modules/@types'));
    linkPackages(this.folder, ['@types/node', '@types/pg']);
    mkdirSync(join(this.folder, 'node_modules/.bin'));
    const { bin } = JSON.parse(readFileSync(join(this.home, 'package.json'), 'utf8')) as {
      bin: { effectmatch: string };
    };
    chmodSync(join(this.home, bin.effectmatch), 0o755);
    symlinkSync(
      join(this.home, bin.effectmatch),
      join(this.folder, 'node_modules/.bin/effectmatch'),
    );
    writeFileSync(join(this.folder, 'package.json'), '{}\n'); // as `npm install` leaves it in an empty folder
  }

  /** A new, empty folder. */
  desk(name: string, database?: TestDatabase): Desk {
    assert.ok(!this.#desks.has(name), `there are two folders with the name ${name}`);
    this.#desks.add(name);
    return new Desk(this.folder, name, database);
  }

  /** Ends what a page started and did not get round to ending. */
  [Symbol.dispose](): void {
    for (const file of globSync(join(this.folder, '*/*.pid'))) {
      try {
        process.kill(Number(readFileSync(file, 'utf8')));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Makes packages of this project known in a folder. */
export function linkPackages(folder: string, names: readonly string[]): void {
  for (const name of names) {
    const place = join(folder, 'node_modules', name);
    mkdirSync(dirname(place), { recursive: true });
    symlinkSync(join(root, 'node_modules', name), place);
  }
}

/**
 * What differs from a reader's shell: npm installs nothing, runs the project's scripts in the
 * project, and skips the tests, which would start this one again; npx uses only the installed
 * package; the administrator's address is the test server's; the port is replaced; and `approve`
 * does not ask.
 */
const SHELL = `set -eu
[ ! -f .environment ] || . ./.environment
npm() { case "$1" in install|ci|test) ;; *) (cd "$PROJECT" && command npm "$@") ;; esac; }
npx() { "$@"; }
effectmatch() { if [ "$1" = approve ]; then command effectmatch "$@" --yes; else command effectmatch "$@"; fi; }
`;

/** Below the ports that systems give out by themselves, another one for every process. */
const PORT = 12_000 + (process.pid % 18_000);

/** One folder, and what the last block that ran there has printed. */
export class Desk {
  readonly folder: string;
  readonly database: TestDatabase | undefined;
  readonly #PATH: string;
  printed = '';

  constructor(parent: string, name: string, database: TestDatabase | undefined) {
    this.folder = join(parent, name);
    this.database = database;
    mkdirSync(this.folder);
    this.#PATH = [
      join(parent, 'node_modules/.bin'),
      dirname(process.execPath),
      process.env.PATH,
    ].join(delimiter);
  }

  /** Runs the lines of a block as they stand, in order, until one fails. */
  async run(text: string): Promise<void> {
    const lines = this.#withPort(text).replace(/^export EFFECTMATCH_ADMIN_URL=.*$/gm, ':');
    await this.#start('sh', ['-c', `${SHELL}${lines}\nexport -p > .environment`], text);
  }

  /** Runs a program of this folder. */
  async runProgram(file: string): Promise<void> {
    await this.#start(process.execPath, [file], file);
  }

  /** Writes a file of this folder. */
  save(file: string, text: string): void {
    writeFileSync(join(this.folder, file), this.#withPort(text));
  }

  /** Runs SQL in this folder's database; its rows count as printed, one JSON object per line. */
  async runSql(text: string): Promise<void> {
    const rows = (await this.database?.run(text)) ?? [];
    this.printed = rows.map((row) => `${JSON.stringify(row)}\n`).join('');
  }

  /** The one port that pages name may be taken on this machine. */
  #withPort(text: string): string {
    return text.replaceAll('47110', String(PORT));
  }

  async #start(command: string, args: readonly string[], what: string): Promise<void> {
    const env = {
      ...process.env,
      PATH: this.#PATH,
      PROJECT: root,
      EFFECTMATCH_ADMIN_URL: this.database?.url() ?? '',
    };
    const child = spawn(command, args, {
      cwd: this.folder,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    const status = await new Promise((resolve) => child.once('close', resolve));
    this.printed = stdout + stderr;
    assert.equal(status, 0, `${what}\n${stdout}\n${stderr}`);
  }

  /** Each line, with … for anything, is a line of what the last block printed, in this order. */
  assertPrinted(text: string, place: string): void {
    const printed = this.printed.split('\n').map((line) => line.trim().replace(/\s+/g, ' '));
    let from = 0;
    for (const line of text.trimEnd().split('\n')) {
      const wanted = line.trim().replace(/\s+/g, ' ');
      if (wanted === '' || wanted === '…') continue;
      const pattern = new RegExp(`^${wanted.split('…').map(RegExp.escape).join('.*')}$`);
      const found = printed.findIndex(
        (candidate, index) => index >= from && pattern.test(candidate),
      );
      assert.ok(found !== -1, `${place}: nothing printed is\n  ${wanted}\nin\n${this.printed}`);
      from = found + 1;
    }
  }
}
