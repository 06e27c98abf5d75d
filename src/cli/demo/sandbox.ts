import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { GuidedError } from '../guided-error.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * A temporary folder and the processes that work in it. However the demo ends (normally, by a fault, by Ctrl-C, or
 * because nobody reads its output any more), the processes are ended and the folder is removed.
 */
export class Sandbox implements Disposable {
  readonly folder = makeFolder();
  readonly #children = new Set<ChildProcess>();
  readonly #clear = () => {
    for (const child of this.#children) child.kill('SIGKILL');
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  };
  readonly #stop = (signal: NodeJS.Signals) => process.exit(128 + constants.signals[signal]);

  constructor() {
    process.on('exit', this.#clear);
    for (const signal of SIGNALS) process.on(signal, this.#stop);
  }

  /** Has a process ended together with the demo. */
  watch(child: ChildProcess): void {
    this.#children.add(child);
    child.once('exit', () => this.#children.delete(child));
  }

  [Symbol.dispose](): void {
    this.#clear();
    process.off('exit', this.#clear);
    for (const signal of SIGNALS) process.off(signal, this.#stop);
  }
}

function makeFolder(): string {
  try {
    return mkdtempSync(join(tmpdir(), 'effectmatch-demo-'));
  } catch (cause) {
    const next = 'set TMPDIR to a folder that this user may write to';
    throw new GuidedError('ERR_EM_USAGE', `no folder can be made in ${tmpdir()}`, next, { cause });
  }
}
