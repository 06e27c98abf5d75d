import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Account, serverAccount } from '../postgres/binaries.ts';
import { findFreePort, refuseClosedParents } from '../postgres/cluster.ts';
import { fromTemplate } from '../postgres/data-template.ts';
import type { KeptServer } from '../postgres/keeper-loop.ts';
import { signal } from '../postgres/processes.ts';
import { findMariadb, MISSING } from './binaries.ts';

/** Which server a keeper creates: options of the program by name. */
export interface MariadbOrder {
  readonly settings: Readonly<Record<string, string>>;
}

/** Small, and as durable as the program is by default: crash tests depend on it. */
const DEFAULTS: MariadbOrder['settings'] = {
  'bind-address': '127.0.0.1',
  'max-connections': '300',
  'innodb-log-file-size': '16M',
  'innodb-buffer-pool-size': '64M',
};

/** The root account has no password and listens to this machine alone; no anonymous account. */
const ACCOUNTS = [
  'create database mysql;',
  'use mysql;',
  'set @auth_root_socket = null;',
  'set @skip_auth_anonymous = 1;',
];
const SYSTEM_TABLES = [
  'mysql_system_tables.sql',
  'mysql_performance_tables.sql',
  'mysql_system_tables_data.sql',
];

/** One private data folder and, most of the time, one server on it. Used by the keeper only. */
export class MariadbCluster implements KeptServer<MariadbOrder> {
  readonly folder = mkdtempSync(join(tmpdir(), 'effectmatch-maria-'));
  readonly socketFolder = this.folder.length < 80 ? this.folder : '';
  port = 0;
  #account: Account = {};
  #settings: MariadbOrder['settings'] = {};
  readonly #log = join(this.folder, 'log');
  readonly #data = join(this.folder, 'data');
  /** A server removes the temporary tables it finds when it starts, those of others too. */
  readonly #temporary = join(this.folder, 'temporary');
  #program: ChildProcess | undefined;
  #removing = false;

  get pid(): number | undefined {
    return this.#program?.pid;
  }

  async create({ settings }: MariadbOrder): Promise<void> {
    const found = findMariadb();
    if (found === undefined) throw new Error(MISSING);
    this.#settings = { ...DEFAULTS, ...settings };
    this.#account = serverAccount();
    if (this.#account.uid !== undefined) {
      refuseClosedParents(this.folder);
      chownSync(this.folder, this.#account.uid, this.#account.gid);
    }
    this.#createFolder(this.#temporary);
    writeFileSync(this.#log, '');
    await fromTemplate('mariadb', this.#data, () => this.#initialise(found.scripts));
    for (let tries = 5; ; tries -= 1) {
      this.port = await findFreePort();
      try {
        return await this.start();
      } catch (error) {
        if (tries === 0 || !/Address already in use/.test(this.#logTail())) throw error;
      }
    }
  }

  async #initialise(scripts: string): Promise<void> {
    this.#createFolder(this.#data);
    const program = this.#spawn(['--bootstrap', '--innodb-log-file-size=16M']);
    const tables = SYSTEM_TABLES.map((file) => readFileSync(join(scripts, file), 'utf8'));
    program.stdin?.end([...ACCOUNTS, ...tables].join('\n'));
    const [status] = await once(program, 'exit');
    if (status !== 0) throw new Error(`the bootstrap ended with ${status}:\n${this.#logTail()}`);
  }

  #createFolder(folder: string): void {
    mkdirSync(folder);
    if (this.#account.uid !== undefined) chownSync(folder, this.#account.uid, this.#account.gid);
  }

  /** Starts on the same folder and port, and returns when clients are let in. */
  async start(): Promise<void> {
    if (this.#program !== undefined) throw new Error('the server is running already');
    const begin = readFileSync(this.#log, 'utf8').length;
    const socket = this.socketFolder === '' ? '' : join(this.socketFolder, 'socket');
    const options = { port: String(this.port), socket, ...this.#settings };
    const program = this.#spawn(
      Object.entries(options).map(([name, value]) => `--${name}=${value}`),
    );
    while (!/ready for connections/.test(readFileSync(this.#log, 'utf8').slice(begin))) {
      if (program.exitCode !== null || program.signalCode !== null)
        throw new Error(`mariadbd ended before it was ready:\n${this.#logTail()}`);
      await sleep(10);
    }
  }

  async shutdown(): Promise<void> {
    await this.#end('SIGTERM');
  }

  /** One process with threads: nothing gets the chance to write anything more. */
  async crash(): Promise<void> {
    await this.#end('SIGKILL');
  }

  async remove(): Promise<void> {
    this.#removing = true;
    await this.#end('SIGKILL');
    await rm(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }

  #spawn(options: readonly string[]): ChildProcess {
    const found = findMariadb();
    if (this.#removing || found === undefined) throw new Error('the server is being removed');
    const log = openSync(this.#log, 'a');
    const fixed = ['--no-defaults', `--datadir=${this.#data}`, `--tmpdir=${this.#temporary}`];
    const program = spawn(found.program, [...fixed, '--skip-name-resolve', ...options], {
      ...this.#account,
      cwd: this.folder,
      env: { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' },
      stdio: ['pipe', log, log],
    });
    closeSync(log);
    program.stdin?.on('error', () => {}); // It ended; its status and its log say why.
    this.#program = program;
    program.once('exit', () => {
      if (this.#program === program) this.#program = undefined;
    });
    return program;
  }

  async #end(name: NodeJS.Signals): Promise<void> {
    const program = this.#program;
    if (program?.pid === undefined) return;
    const ended = once(program, 'exit');
    signal(program.pid, name);
    await ended;
  }

  #logTail(): string {
    return readFileSync(this.#log, 'utf8').split('\n').slice(-25).join('\n').trim();
  }
}
