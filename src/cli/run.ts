import type { StatementResult } from '../contract/adapter.ts';
import { parseSignedLicense } from '../crypto/signature.ts';
import type { SignedLicense } from '../protocol/license.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import { renderTerminal } from '../protocol/render-terminal.ts';
import type { Terminal } from '../protocol/terminal.ts';
import { type Ensured, occurrenceOf } from '../runtime/ensure.ts';
import type { Runtime, RuntimeConfig } from '../runtime/runtime.ts';
import { ACTION_FLAGS, actionOf, readActionArgument } from './action.ts';
import { adviseTerminal } from './advice.ts';
import { type Arguments, CONFIG_FLAG, EXIT, exitCodeOf, type Verb } from './command.ts';
import { assertKeyring, loadConfig, openRuntime } from './deployment.ts';
import { GuidedError, withNext } from './fault.ts';
import { readTextFile } from './files.ts';
import { countOf, printable, toneOf } from './output.ts';
import { catchInterrupt, showProgress } from './progress.ts';

/** Executes an action under a license, and prints the recorded verdict. */
export const verb: Verb = {
  summary: 'execute an action; it commits only if the outcome is as approved',
  about: `Uses the license once: the action runs in a held transaction, its actual changes are
compared with the approved ones, and it commits only if they are the same. The verdict is recorded
either way. Running it again executes nothing: it waits for an attempt that is under way, recovers
one that was interrupted, and prints the recorded verdict. A license that came from a rehearsal is
valid only for the action that was planned. The exit code is that of the verdict: ${EXIT.done}
committed, ${EXIT.rejected} rejected and no data changed (sequences that moved are listed),
${EXIT.diverged} diverged, ${EXIT.indeterminate} indeterminate. Ctrl-C discards what is held and
records that.`,
  positionals: ['license'],
  flags: {
    ...ACTION_FLAGS,
    use: {
      value: 'N',
      about: 'which execution, from 1, if the license allows several',
    },
    full: { about: 'show every difference in full' },
    ...CONFIG_FLAG,
  },
  examples: [
    `license.json --sql "update invoice set status = ? where id = ?" --values '["paid", 4711]'`,
    'license.json --file pay-4711.sql',
  ],
  async run(args, output) {
    const argument = readActionArgument(args);
    const license = readLicense(args.first);
    const use = readUse(args, license.license.occurrences);
    const occurrence = occurrenceOf(license.license, use);
    const config = await loadConfig(args);
    assertKeyring(config);
    const request = { license, action: await actionOf(config, argument), use, occurrence };
    const { earlier, results, ...terminal } = await executeInterruptibly(config, request);
    const text = renderTerminal(terminal, { full: args.has('full') });
    const advice = adviseTerminal(terminal, earlier);
    output.document({ terminal, ...(results && { results }), earlier, text, next: advice });
    if (earlier) output.line('the license was already used, and nothing was run now; its verdict:');
    output.line(output.paint(toneOf(terminal.kind), printable(text)));
    for (const line of renderResults(results ?? [])) output.line(printable(line));
    output.line(`next: ${advice}`);
    return exitCodeOf(terminal);
  },
};

/** Returns without the text, which may be long. */
function readLicense(file: string): SignedLicense {
  const wanted = 'name the file that `effectmatch approve --out` wrote';
  const text = readTextFile(file, wanted);
  const next = () =>
    isProposal(text)
      ? 'this is a proposal, not a license: sign it with `effectmatch approve` first'
      : `${wanted}; nothing was done`;
  return withNext('ERR_EM_RECORD_INVALID', next, () => parseSignedLicense(text));
}

function isProposal(text: string): boolean {
  try {
    return Object.hasOwn(JSON.parse(text), 'draft');
  } catch {
    return false;
  }
}

/** Which execution of the license to run. Running it again must never start another by mistake. */
function readUse(args: Arguments, occurrences: number): number {
  const use = args.count('use', 1) ?? (occurrences === 1 ? 1 : undefined);
  if (use !== undefined && use <= occurrences) return use;
  throw args.wrong(
    `this license is for ${occurrences} executions: say which one with --use 1 to --use ${occurrences}`,
  );
}

const MAX_ROWS_SHOWN = 20;

/** The rows that statements returned, as JSON, so that no value can look like another line. */
function renderResults(results: readonly StatementResult[]): string[] {
  return results.flatMap(({ rows, omitted }, index) => {
    const total = rows.length + omitted;
    if (total === 0) return [];
    const shown = rows.slice(0, MAX_ROWS_SHOWN);
    const lines = shown.map((row) => `  ${JSON.stringify(row)}`);
    if (total > shown.length)
      lines.push(`  … ${total - shown.length} more; --json shows up to 1000`);
    const which = results.length === 1 ? '' : `statement ${index + 1} `;
    return [`${which}returned ${countOf(total, 'row')}:`, ...lines];
  });
}

interface RunRequest {
  readonly license: SignedLicense;
  readonly action: unknown;
  /** Which execution of the license, counted from 1, and its occurrence. */
  readonly use: number;
  readonly occurrence: OccurrenceId;
}

/**
 * Executes an action, or finds the verdict of an earlier execution. On Ctrl-C, settles the
 * execution as recovery would after a crash, and records the verdict. If the execution ends first,
 * its verdict counts: the first recorded verdict wins. If another process is executing it, Ctrl-C
 * only stops waiting.
 */
async function executeInterruptibly(config: RuntimeConfig, request: RunRequest): Promise<Ensured> {
  const { license, action, use, occurrence } = request;
  using _progress = showProgress('running');
  const runtime = await openRuntime(config);
  using interrupt = catchInterrupt();
  let isWaiting = false;
  const onWait = (why: string) => {
    if (!isWaiting) process.stderr.write(`waiting up to a minute for the verdict: ${why}\n`);
    isWaiting = true;
  };
  const executing = runtime.ensure(license, action, { use, onWait });
  const first = await Promise.race([executing, interrupt.interrupted]).catch(
    async (error: unknown) => {
      await runtime.close();
      throw error;
    },
  );
  if (first !== 'interrupted') {
    await runtime.close();
    return first;
  }
  // Do not close the runtime: that would wait for the backend. The session ends with the process.
  const ended = executing.catch(() => undefined);
  if (isWaiting) return await findVerdict(runtime, occurrence);
  const settled = await Promise.race([settleInterrupted(config, occurrence), ended]);
  if (settled !== undefined) return { earlier: false, ...settled };
  return (await ended) ?? (await findVerdict(runtime, occurrence));
}

/** Settles only this execution, over separate connections; undefined if that fails. */
async function settleInterrupted(
  config: RuntimeConfig,
  occurrence: OccurrenceId,
): Promise<Terminal | undefined> {
  try {
    await using other = await openRuntime({ ...config, recoverAtStart: false });
    const [settled] = await other.recover({ now: true, occurrence });
    if (settled?.kind === 'settled') return settled.terminal;
  } catch {
    // The execution itself continues and reports how it ended.
  }
  return undefined;
}

/** The recorded verdict. Without one, throws an error that says whether anything was claimed. */
async function findVerdict({ ledgers }: Runtime, occurrence: OccurrenceId): Promise<Ensured> {
  const holder = await ledgers.holder(occurrence);
  const terminal = holder && (await ledgers.terminal(occurrence));
  if (terminal !== undefined) return { ...terminal, earlier: true };
  const message =
    holder === undefined
      ? 'interrupted before anything was claimed; nothing was changed'
      : `interrupted, and ${occurrence} has no verdict yet`;
  const next = 'run `effectmatch recover`: it reports the outcome and never runs anything again';
  throw new GuidedError('ERR_EM_ADAPTER_UNAVAILABLE', message, next);
}
