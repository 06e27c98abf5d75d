import { spawn } from 'node:child_process';
import { extname } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { EffectMatchError } from '../../errors.ts';
import type { Release } from '../../runtime/continuation.ts';
import type { Recovered } from '../../runtime/recover.ts';
import type { Sandbox } from './sandbox.ts';

/** What a worker can be asked to do, and what it answers. */
export interface Answers {
  /** Is killed between the commit and its verdict. */
  'pay-and-die': undefined;
  /** Asks for the dependent work, recovers, and asks again. */
  recover: {
    readonly before: Release<null>;
    readonly recovered: readonly Recovered[];
    readonly after: Release<null>;
  };
  /** Asks for the dependent work. */
  reconcile: Release<null>;
}
export type Role = keyof Answers;

export interface Answer<R extends Role> {
  readonly pid: number;
  /** Undefined when the process was killed before it could answer. */
  readonly answer: Answers[R] | undefined;
  readonly signal: NodeJS.Signals | null;
}

/** Runs one fresh process to its end. Source and build are both run as they are: the worker lies beside this file. */
export async function askWorker<R extends Role>(sandbox: Sandbox, role: R, folder: string): Promise<Answer<R>> {
  const file = fileURLToPath(new URL(`./worker${extname(import.meta.filename)}`, import.meta.url));
  const child = spawn(process.execPath, [file, role, folder], { stdio: ['ignore', 'pipe', 'pipe'] });
  sandbox.watch(child);
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
  const [said, complained, { code, signal }] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  if (code !== 0 && signal !== 'SIGKILL') {
    throw new EffectMatchError('ERR_EM_INVARIANT', `the demo's worker "${role}" failed: ${complained.trim()}`);
  }
  const answer = said === '' ? undefined : (JSON.parse(said) as Answers[R]);
  return { pid: child.pid ?? 0, answer, signal };
}
