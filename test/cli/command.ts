import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { sqlite } from '../../src/adapters/sqlite/index.ts';
import { type Approver, approver, generateApprover, type RuntimeConfig } from '../../src/index.ts';

const root = new URL('../../', import.meta.url);
export const MAIN = fileURLToPath(new URL('src/cli/main.ts', root));

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CallOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Starts the command as a real process; the environment says nothing about colour unless a test
 * does.
 */
export function startCommand(args: readonly string[], options: CallOptions = {}) {
  const { NO_COLOR, EFFECTMATCH_DEBUG, NODE_TEST_CONTEXT, ...inherited } = process.env;
  const child = spawn(process.execPath, [MAIN, ...args], {
    cwd: options.cwd ?? tmpdir(),
    env: { ...inherited, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise<Pick<Ended, 'code' | 'signal'>>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
  return { child, ended };
}

/** Runs the command to its end. */
export async function runCommand(
  args: readonly string[],
  options: CallOptions = {},
): Promise<Ended> {
  const { child, ended } = startCommand(args, options);
  const [stdout, stderr, end] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { ...end, stdout, stderr };
}

/**
 * A folder with a business database and a configuration file, as an application would have them.
 */
export class Office implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'effectmatch-cli-'));
  readonly approver: Approver;
  readonly #publicKey: string;

  constructor() {
    const { issuer, publicKey, privateKey } = generateApprover('ap-team');
    this.approver = approver({ issuer, privateKey });
    this.#publicKey = publicKey;
    this.change(`
      create table invoice (id integer not null primary key, status text not null);
      create table notification (id integer not null primary key, invoice_id integer not null);
      insert into invoice values (1, 'pending'), (2, 'pending'), (3, 'pending');`);
    this.writeConfig();
  }

  /**
   * What the file says, for calls from this process. Paths are absolute here and relative there.
   */
  get config(): RuntimeConfig {
    return {
      store: this.path('effectmatch.db'),
      keyring: this.path('effectmatch.keys.json'),
      issuers: { 'ap-team': { key: this.#publicKey, may: ['books'] } },
      adapters: {
        books: sqlite({ file: this.path('books.db'), relations: ['invoice', 'notification'] }),
      },
      recoverAtStart: false,
    };
  }

  writeConfig(
    changes: { readonly [field: string]: string } = {},
    name = 'effectmatch.config.ts',
  ): void {
    const fields = {
      store: "'effectmatch.db'",
      keyring: "'effectmatch.keys.json'",
      issuers: `{ 'ap-team': { key: '${this.#publicKey}', may: ['books'] } }`,
      adapters: "{ books: sqlite({ file: 'books.db', relations: ['invoice', 'notification'] }) }",
      ...changes,
    };
    const body = Object.entries(fields).map(([field, value]) => `  ${field}: ${value},`);
    const lines = [
      `import { defineConfig } from '${new URL('src/index.ts', root)}';`,
      `import { sqlite } from '${new URL('src/adapters/sqlite/index.ts', root)}';`,
      'export default defineConfig({',
      ...body,
      '});',
    ];
    writeFileSync(this.path(name), `${lines.join('\n')}\n`);
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  subfolder(name: string): string {
    mkdirSync(this.path(name), { recursive: true });
    return this.path(name);
  }

  change(sql: string): void {
    using db = new DatabaseSync(this.path('books.db'));
    db.exec(sql);
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
