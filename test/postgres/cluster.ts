import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chownSync,
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  statSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Account,
  CLEAN_ENVIRONMENT,
  runnableBinaries,
  serverAccount,
  type Version,
} from './binaries.ts';
import { fromTemplate } from './data-template.ts';
import { descendantsOf, signal, stillRunning } from './processes.ts';

/** Settings of postgresql.conf by name. */
export type Settings = Readonly<Record<string, string>>;

/** Which server a keeper creates. */
export interface ClusterOrder {
  readonly version: Version;
  readonly settings: Settings;
  /** The folder of another installation's programs. */
  readonly bin?: string;
}

/**
 * What tests may count on. `fsync` stays on as PostgreSQL has it: crash tests depend on it. PREPARE
 * TRANSACTION is possible, so a test that sees it refused saw our refusal. Shared memory lives in
 * files of the data folder, so a killed server leaves none in the system.
 */
const DEFAULTS: Settings = {
  listen_addresses: '127.0.0.1',
  max_connections: '400',
  max_prepared_transactions: '10',
  dynamic_shared_memory_type: 'mmap',
  timezone: 'UTC',
  log_timezone: 'UTC',
};

/**
 * Below the range from which systems take ports for outgoing connections, so a restart finds its
 * port free.
 */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    const probe = createServer().unref();
    const free = await new Promise<boolean>((settle) => {
      probe.once('error', () => settle(false));
      probe.listen(port, '127.0.0.1', () => settle(true));
    });
    if (!free) continue;
    probe.close();
    await once(probe, 'close');
    return port;
  }
}

/** Says early, and with a remedy, that another account cannot reach the folder. */
export function refuseClosedParents(folder: string): void {
  for (let at = dirname(folder); at !== dirname(at); at = dirname(at))
    if ((statSync(at).mode & 0o001) === 0)
      throw new Error(
        `The server cannot run as root, and other accounts cannot enter ${at}. Set TMPDIR elsewhere.`,
      );
}

/**
 * One data folder and, most of the time, one running postmaster on it. Used by the keeper process
 * only.
 */
export class Cluster {
  readonly folder = mkdtempSync(join(tmpdir(), 'effectmatch-pg-'));
  /**
   * Where the unix socket is; empty, and no socket, where the path would be longer than the system
   * takes.
   */
  readonly socketFolder = this.folder.length < 80 ? this.folder : '';
  port = 0;
  #account: Account = {};
  readonly #data = join(this.folder, 'data');
  readonly #log = join(this.folder, 'log');
  #bin = '';
  #program: ChildProcess | undefined;
  #removing = false;

  /** The process id of the postmaster, while it runs. */
  get pid(): number | undefined {
    return this.#program?.pid;
  }

  /**
   * Creates the data folder and starts on a free port; a port that another process took meanwhile
   * is left to it.
   */
  async create({ version, settings, bin }: ClusterOrder): Promise<void> {
    this.#account = serverAccount();
    if (this.#account.uid !== undefined) {
      refuseClosedParents(this.folder);
      chownSync(this.folder, this.#account.uid, this.#account.gid);
    }
    this.#bin = runnableBinaries(version, this.#account, this.folder, bin);
    const name = bin === undefined ? `postgres-${version}` : undefined;
    await fromTemplate(name, this.#data, () => this.#initialise());
    const socket = { unix_socket_directories: this.socketFolder };
    const lines = Object.entries({ ...DEFAULTS, ...socket, ...settings }).map(
      ([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`,
    );
    appendFileSync(join(this.#data, 'postgresql.conf'), lines.join(''));
    for (let tries = 5; ; tries -= 1) {
      this.port = await findFreePort();
      try {
        return await this.start();
      } catch (error) {
        if (tries === 0 || !/Address already in use/.test(this.#logTail())) throw error;
      }
    }
  }

  async #initialise(): Promise<void> {
    const options = [
      '--no-sync',
      '--no-instructions',
      '--auth=trust',
      '--encoding=UTF8',
      '--locale=C',
    ];
    const program = this.#spawn('initdb', ['-D', this.#data, '-U', 'postgres', ...options]);
    const [status] = await once(program, 'exit');
    if (status !== 0) throw new Error(`initdb ended with ${status}:\n${this.#logTail()}`);
  }

  /**
   * Starts on the same folder and port, and returns when clients are let in (after crash recovery,
   * if any).
   */
  async start(): Promise<void> {
    if (this.#program !== undefined) throw new Error('the server is running already');
    const program = this.#spawn('postgres', ['-D', this.#data, '-p', String(this.port)]);
    while (!this.#isReady(program)) {
      if (program.exitCode !== null || program.signalCode !== null)
        throw new Error(`postgres ended before it was ready:\n${this.#logTail()}`);
      await sleep(10);
    }
  }

  /**
   * Ends the server in order: open transactions are rolled back, committed ones are checkpointed.
   */
  async shutdown(): Promise<void> {
    await this.#end('SIGINT');
  }

  /**
   * Kills every process of the server at once, as a crash would. Nothing gets the chance to write
   * anything more.
   */
  async crash(): Promise<void> {
    const program = this.#program;
    if (program?.pid === undefined) return;
    const ended = once(program, 'exit');
    signal(program.pid, 'SIGSTOP'); // It cannot start another backend while we look.
    const children = descendantsOf(program.pid);
    for (const pid of [...children, program.pid]) signal(pid, 'SIGKILL');
    await ended;
    while (stillRunning(children).length > 0) await sleep(5);
    // The one thing in the system that a killed server leaves: a segment of a few bytes that guards
    // the data folder.
    const segment = this.#statusLines()[6]?.trim().split(/\s+/)[1];
    if (segment !== undefined) spawnSync('ipcrm', ['-m', segment], { stdio: 'ignore' });
  }

  /** Ends whatever runs and removes the folder. */
  async remove(): Promise<void> {
    this.#removing = true;
    const patience = setTimeout(() => void this.crash(), 10_000);
    if (this.port === 0)
      await this.crash(); // initdb would end before the server that it drives.
    else await this.#end('SIGQUIT');
    clearTimeout(patience);
    await rm(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }

  #spawn(name: 'initdb' | 'postgres', args: readonly string[]): ChildProcess {
    if (this.#removing) throw new Error('the server is being removed');
    const log = openSync(this.#log, 'a');
    const program = spawn(join(this.#bin, name), args, {
      ...this.#account,
      cwd: this.folder,
      env: CLEAN_ENVIRONMENT,
      stdio: ['ignore', log, log],
    });
    closeSync(log);
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

  /**
   * The postmaster writes its state into this file; line 1 tells it from the file of a server that
   * was killed.
   */
  #statusLines(): readonly string[] {
    try {
      return readFileSync(join(this.#data, 'postmaster.pid'), 'utf8').split('\n');
    } catch {
      return [];
    }
  }

  #isReady(program: ChildProcess): boolean {
    const lines = this.#statusLines();
    return lines[0] === String(program.pid) && lines[7]?.trim() === 'ready';
  }

  #logTail(): string {
    return readFileSync(this.#log, 'utf8').split('\n').slice(-25).join('\n').trim();
  }
}
