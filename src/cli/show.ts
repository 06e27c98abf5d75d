import type { ClaimEntry, Ledgers } from '../contract/ledgers.ts';
import { approvedRecord } from '../protocol/manifest.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import { renderApproved } from '../protocol/render.ts';
import { renderTerminal } from '../protocol/render-terminal.ts';
import { quote } from '../protocol/render-text.ts';
import { renderShadow, type Shadow } from '../protocol/shadow.ts';
import type { Terminal } from '../protocol/terminal.ts';
import { shadowEntries } from '../runtime/receipt.ts';
import { CONFIG_FLAG, EXIT, type ExitCode, exitCodeOf, type Verb } from './command.ts';
import { findOccurrence, openRecords, readPrefix } from './deployment.ts';
import { indent, type Output, toneOf, wrap } from './output.ts';
import { shadowTone } from './shadow.ts';

/** Shows all records of one occurrence. It never opens a backend. */
export const verb: Verb = {
  summary: 'show one occurrence: what was approved and what happened',
  about: `An occurrence is the right to make one approved change once. This prints who used it,
what was approved, how every attempt at it ended with its differences, and which dependent work
was released. The exit code is that of the verdict, and ${EXIT.halted} if it was claimed and has
none. Any unique beginning of the id will do.`,
  positionals: ['occurrence'],
  flags: CONFIG_FLAG,
  examples: ['occ_1f3a'],
  async run(args, output) {
    const prefix = readPrefix(args.first);
    await using records = await openRecords(args);
    const occurrence = await findOccurrence(records.ledgers, prefix);
    const history = await readHistory(records.ledgers, occurrence);
    output.document(documentOf(history));
    if (history.shadow !== undefined) {
      printShadow(history.shadow, output);
      return EXIT.done;
    }
    printHistory(history, output);
    if (history.holder !== undefined && history.terminal === undefined)
      output.line(`\nnext: ${adviseOpen(history.holder)}`);
    return verdictCode(history);
  },
};

/**
 * The records of one occurrence. Without a holder, every attempt was refused before it could claim.
 * A shadow has no other records.
 */
type History = Awaited<ReturnType<typeof readHistory>>;

async function readHistory(ledgers: Ledgers, occurrence: OccurrenceId) {
  const [shadow] = await Array.fromAsync(shadowEntries(ledgers, { occurrence }));
  return {
    occurrence,
    holder: await ledgers.holder(occurrence),
    /** The verdict of the attempt that holds the claim. */
    terminal: await ledgers.terminal(occurrence),
    attempts: await ledgers.attempts(occurrence),
    acknowledgements: await ledgers.acknowledgements(occurrence),
    resolution: await ledgers.resolution(occurrence),
    shadow: shadow?.record,
  };
}

/**
 * A claim without a verdict exits with `halted`. If no attempt made a claim, all of them were
 * rejected.
 */
function verdictCode({ holder, terminal, attempts }: History): ExitCode {
  if (holder === undefined && attempts.length > 0) return EXIT.rejected;
  return exitCodeOf(terminal);
}

function documentOf({ holder, terminal, resolution, shadow, ...records }: History) {
  const claimed = holder && {
    claim: holder.claim.record,
    license: holder.license,
    approved: approvedRecord.parseText(holder.approvedText),
    leaseExpired: holder.leaseExpired,
  };
  const found = { ...(resolution && { resolution }), ...(shadow && { shadow }) };
  return { verdict: terminal ?? null, claimed: claimed ?? null, ...records, ...found };
}

function printHistory(history: History, output: Output): void {
  const { line, paint } = output;
  const { occurrence, holder, attempts, resolution } = history;
  const heading = (text: string) => {
    line();
    line(paint('strong', text));
  };
  line(`${paint('strong', occurrence)}  ${describeVerdict(history, output)}`);
  if (holder !== undefined) {
    line();
    printClaim(holder, output);
    heading('Approved');
    line(indented(renderApproved(approvedRecord.parseText(holder.approvedText)), 2, output));
  }
  heading('Attempts');
  if (attempts.length === 0) line('  none has ended');
  for (const attempt of attempts) printAttempt(attempt, holder, output);
  if (resolution !== undefined) {
    const { at, finding, operator, evidence } = resolution;
    heading('Resolution');
    line(`  ${at}  ${finding}, says ${operator}; evidence ${evidence}`);
    line('  It releases nothing: what has to be done next needs a new license.');
  }
  heading('Dependent work');
  printDependentWork(history, output);
}

/** Prints how one attempt ended: time, execution, verdict with differences, and certificate. */
function printAttempt(attempt: Terminal, holder: ClaimEntry | undefined, output: Output): void {
  const { line, paint } = output;
  const { kind, execution, recordedAt } = attempt;
  const isReplay = holder !== undefined && execution !== holder.claim.record.execution;
  line(`  ${recordedAt}  ${execution}`);
  if (isReplay) line('    (another attempt holds the claim)');
  line(paint(toneOf(kind), indented(renderTerminal(attempt), 4, output)));
  if ('certificate' in attempt && attempt.certificate !== undefined)
    line(`    certificate ${attempt.certificate}`);
}

function printDependentWork({ holder, acknowledgements }: History, { line }: Output): void {
  const released = acknowledgements.map(({ continuation }) => continuation);
  for (const { at, state, continuation, decision } of acknowledgements) {
    const isOpen = !acknowledgements.some(
      (other) => other.state === 'completed' && other.continuation === continuation,
    );
    const by = decision === undefined ? '' : `, says ${decision.operator}`;
    line(`  ${at}  ${state}  ${continuation}${by}${isOpen ? '  (not completed)' : ''}`);
  }
  const registered = holder?.claim.record.continuations ?? [];
  const waiting = registered.filter((name) => !released.includes(name));
  for (const name of waiting) line(`  not released  ${name}`);
  if (released.length + waiting.length === 0) line('  none is registered');
}

function describeVerdict({ holder, terminal }: History, { paint }: Output): string {
  if (terminal !== undefined) return paint(toneOf(terminal.kind), terminal.kind);
  if (holder === undefined)
    return paint('bad', 'never claimed: every attempt was refused before it could begin');
  return paint('caution', 'no verdict, so dependent work is halted');
}

/** Wraps text to the terminal and indents it. */
function indented(text: string, by: number, { width }: Output): string {
  return indent(wrap(text, width - by).join('\n'), by);
}

/** What to do about a claim without a verdict. */
function adviseOpen({ leaseExpired, leaseUntilMs }: ClaimEntry): string {
  if (leaseExpired) return 'run `effectmatch recover`';
  const until = new Date(leaseUntilMs).toISOString();
  return `it may be running: its lease ends at ${until}\n      if it has no verdict then, run \`effectmatch recover\``;
}

function printClaim({ claim, license }: ClaimEntry, { line }: Output): void {
  const { task, adapter, claimedAt, execution, license: digest } = claim.record;
  const { planRevision, issuer, source, notBefore, expiresAt } = license;
  line(`  task      ${quote(task)}, plan revision ${planRevision}, on ${adapter}`);
  line(`  claimed   ${claimedAt} by ${execution}`);
  line(`  license   ${digest}`);
  line(`            signed by ${issuer} (${source})`);
  line(`            valid ${notBefore} to ${expiresAt}`);
}

function printShadow(shadow: Shadow, { line, paint }: Output): void {
  const { occurrence, task, adapter, basis, license, recordedAt } = shadow;
  const compared = license === undefined ? basis : `license ${license}, which it did not spend`;
  line(
    `${paint('strong', occurrence)}  shadow: no verdict, nothing was spent, and nothing is released by it`,
  );
  line();
  line(`  task      ${quote(task)}, on ${adapter}`);
  line(`  recorded  ${recordedAt}`);
  line(`  compared  with ${compared}`);
  line();
  line(indent(paint(shadowTone(shadow), renderShadow(shadow)), 2));
}
