import type { Terminal } from '../protocol/terminal.ts';
import type { Recovered, RecoverOptions } from '../runtime/recover.ts';
import { createRuntime, type RuntimeConfig } from '../runtime/runtime.ts';
import { CONFIG_FLAG, EXIT, type ExitCode, type Verb } from './command.ts';
import { assertPresent, loadConfig } from './deployment.ts';
import { type Output, printableLine } from './output.ts';
import { showProgress } from './progress.ts';

/** Settles what interrupted processes left behind. */
export const recover: Verb = {
  name: 'recover',
  summary: 'settle attempts that ended without a verdict',
  about: `Finds every claimed occurrence without a conclusive verdict and asks the backend, which
keeps a marker of every commit. It never runs or sends anything again. Attempts that may still be
alive are left alone until their lease has run out. It is safe to run at any time and from several
processes at once.`,
  flags: {
    now: {
      about: 'do not wait for leases; an attempt that is still alive then loses and is refused',
    },
    ...CONFIG_FLAG,
  },
  examples: ['effectmatch recover', 'effectmatch recover --now --json'],
  async run(args, output) {
    const config = await loadConfig(args);
    assertPresent(config);
    const results = await recoverAll(config, { now: args.has('now') });
    output.document({ recovered: results });
    if (results.length === 0)
      output.line('nothing to recover: every claimed occurrence has its verdict');
    for (const result of results) output.line(describe(result, output));
    if (results.some(({ kind }) => kind === 'running'))
      output.line(
        'next: run `effectmatch recover` again later; --now does not wait, and a live attempt then loses',
      );
    return exitCodeOfAll(results);
  },
};

async function recoverAll(
  config: RuntimeConfig,
  options: RecoverOptions,
): Promise<readonly Recovered[]> {
  using _progress = showProgress('recovering');
  await using runtime = await createRuntime({ ...config, recoverAtStart: false });
  return await runtime.recover(options);
}

function describe(result: Recovered, { paint }: Output): string {
  const about = `${result.occurrence}  ${printableLine(result.task)}`;
  switch (result.kind) {
    case 'settled':
      return `${paint('good', 'settled')}     ${about}\n  ${explain(result.terminal)}`;
    case 'running':
      return `${paint('caution', 'running')}     ${about}\n  ${printableLine(result.why)}`;
    case 'unresolved':
      return `${paint('bad', 'unresolved')}  ${about}\n  ${printableLine(result.why)}`;
  }
}

/**
 * Only the reason `interrupted` proves that nothing became durable; otherwise another attempt may
 * have made the change.
 */
function explain(terminal: Terminal): string {
  if (terminal.kind !== 'rejected') return terminal.kind;
  const { kind, reason, detail } = terminal;
  const what = reason === 'interrupted' ? 'nothing became durable' : printableLine(detail);
  return `${kind} (${reason}: ${what})`;
}

function exitCodeOfAll(results: readonly Recovered[]): ExitCode {
  if (results.some(({ kind }) => kind === 'unresolved')) return EXIT.indeterminate;
  return results.some(({ kind }) => kind === 'running') ? EXIT.halted : EXIT.done;
}
