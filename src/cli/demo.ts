import { mkdtempSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Verb } from './command.ts';
import { payInvoice } from './demo/invoice.ts';
import { Scene } from './demo/scene.ts';
import { GuidedError } from './fault.ts';

const OPENING = `\
Paying invoice 4711 on a real SQLite database in a temporary folder. A person approves an outcome,
and an agent runs SQL. EffectMatch holds the change, compares what it really did with the approval,
and commits it only if the two are equal. Shipping the goods waits for that verdict.`;

/** Demonstrates the verdicts with real executions. */
export const verb: Verb = {
  summary: 'run five real executions in seconds; needs no set-up',
  about: `Pays invoice 4711 on a real SQLite database in a temporary folder, five times: as
approved, with a trigger that writes more than was approved, with a stale approval, with an
approval used twice, and with a process that is killed right after the commit. The demo fails if
anything ends differently than it says, and it leaves nothing behind.`,
  examples: [''],
  async run(_args, output) {
    const startedAt = performance.now();
    using folder = openTemporaryFolder();
    output.line(OPENING);
    const scene = new Scene(folder.path, output);
    await payInvoice(scene);
    const seconds = Number(((performance.now() - startedAt) / 1000).toFixed(1));
    output.document({ acts: scene.acts, seconds });
    output.line(
      `\nAll ${scene.acts.length} ended as they should, in ${seconds} s. The temporary folder was removed.`,
    );
    output.line('Next: README.md shows the code, and `effectmatch help` lists the other commands.');
  },
};

/** A folder that is removed when the demo ends, even by Ctrl-C or a closed pipe. */
function openTemporaryFolder(): { readonly path: string } & Disposable {
  const path = createFolder();
  const remove = () =>
    rmSync(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  process.on('exit', remove);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => process.exit(128 + constants.signals[signal]));
  }
  return { path, [Symbol.dispose]: remove };
}

function createFolder(): string {
  try {
    return mkdtempSync(join(tmpdir(), 'effectmatch-demo-'));
  } catch (cause) {
    const next = 'set TMPDIR to a folder that this user may write to';
    throw new GuidedError('ERR_EM_USAGE', `cannot create a folder in ${tmpdir()}`, next, cause);
  }
}
