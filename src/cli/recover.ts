import type { Terminal } from '../protocol/terminal.ts';
import type { Recovered, RecoverOptions } from '../runtime/recover.ts';
import { createRuntime, type RuntimeConfig } from '../runtime/runtime.ts';
import { CONFIG_FLAG } from './arguments.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { loadConfig } from './load-config.ts';
import { assertPresent } from './open-store.ts';
import { type Output, printableLine } from './output.ts';
import { showProgress } from './progress.ts';
import type { Verb } from './verb.ts';

/** Settles what interrupted processes left behind. */
export const recover: Verb = {
  name: 'recover',
  summary: 'settle attempts that ended without a verdict',
  about: `Finds every claimed occurrence without a conclusive verdict and asks the backend what became of it: the
marker that travels in the business transaction says so. Nothing is ever run or sent again. Attempts that may
still be alive are left alone until their lease has run out. It is safe to run this as often as you like and
from several processes at once.`,
  positionals: [],
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
    case 'settled': {
      const { terminal } = result;
      return `${paint('good', 'settled')}     ${about}  ${terminal.kind}${explain(terminal)}`;
    }
    case 'running':
      return `${paint('caution', 'running')}     ${about}  ${printableLine(result.why)}`;
    case 'unresolved':
      return `${paint('bad', 'unresolved')}  ${about}  ${printableLine(result.why)}`;
  }
}

/**
 * Only an interrupted attempt is proof for the occurrence: what another attempt did may be durable.
 */
function explain(terminal: Terminal): string {
  if (terminal.kind !== 'rejected') return '';
  const { reason, detail } = terminal;
  return ` (${reason}: ${reason === 'interrupted' ? 'nothing became durable' : printableLine(detail)})`;
}

function exitCodeOfAll(results: readonly Recovered[]): ExitCode {
  if (results.some(({ kind }) => kind === 'unresolved')) return EXIT.indeterminate;
  return results.some(({ kind }) => kind === 'running') ? EXIT.halted : EXIT.done;
}
