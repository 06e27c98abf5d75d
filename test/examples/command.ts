import { spawn } from 'node:child_process';
import {
  chmodSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const RUNNER = fileURLToPath(new URL('../../scripts/example.mjs', import.meta.url));

/** How a run of an example ended. */
export interface Run {
  readonly code: number | null;
  readonly said: string;
  readonly complained: string;
}

/**
 * A folder in which one example runs: it has a temporary folder and a working folder of its own,
 * both empty at first.
 */
export class Site implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'effectmatch-examples-'));
  /** Where a run with `--keep` leaves what it made. */
  readonly kept = join(this.#folder, 'kept');
  readonly #temporary = join(this.#folder, 'temporary');
  readonly #working = join(this.#folder, 'working');

  constructor() {
    mkdirSync(this.#temporary);
    mkdirSync(this.#working);
    // A PostgreSQL that root starts runs as somebody else, who has to get here.
    for (const folder of [this.#folder, this.#temporary]) chmodSync(folder, 0o711);
  }

  /** Runs the command to its end; `stopAt` sends SIGTERM as soon as it has printed that text. */
  async run(
    args: readonly string[],
    more: { env?: NodeJS.ProcessEnv; stopAt?: string } = {},
  ): Promise<Run> {
    const {
      DATABASE_URL: _,
      NODE_TEST_CONTEXT: __,
      EFFECTMATCH_SERVER_TMPDIR: ___,
      ...env
    } = process.env;
    const child = spawn(process.execPath, [RUNNER, ...args], {
      cwd: this.#working,
      env: { ...env, TMPDIR: this.#temporary, ...more.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const { stopAt } = more;
    let seen = '';
    if (stopAt !== undefined) {
      child.stdout.on('data', (chunk: Buffer) => {
        seen += chunk;
        if (seen.includes(stopAt)) child.kill('SIGTERM');
      });
    }
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    const [said, complained, code] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      ended,
    ]);
    return { code, said, complained };
  }

  /**
   * Files that are still there, and processes that still work with them (where the system lists
   * processes).
   */
  get leftBehind(): readonly string[] {
    const processes = globSync('/proc/[0-9]*/cmdline').flatMap((file) => {
      const command = readCommand(file);
      return command.includes(this.#temporary) ? [command] : [];
    });
    return [...readdirSync(this.#temporary), ...readdirSync(this.#working), ...processes];
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function readCommand(file: string): string {
  try {
    return readFileSync(file, 'utf8').replaceAll('\0', ' ');
  } catch {
    return ''; // it has ended meanwhile
  }
}
