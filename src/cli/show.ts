import type { ClaimEntry, Ledgers } from '../contract/ledgers.ts';
import type { Acknowledgement } from '../protocol/continuation.ts';
import { approvedRecord } from '../protocol/manifest.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import { renderApproved } from '../protocol/render.ts';
import { quote } from '../protocol/render-text.ts';
import type { Resolution } from '../protocol/resolution.ts';
import { renderShadow, type Shadow } from '../protocol/shadow.ts';
import type { Terminal } from '../protocol/terminal.ts';
import { shadowEntries } from '../runtime/receipt.ts';
import { CONFIG_FLAG } from './arguments.ts';
import { EXIT, type ExitCode, exitCodeOf } from './exit-code.ts';
import { findOccurrence, readPrefix } from './find-occurrence.ts';
import { toneOf } from './journal-entries.ts';
import { loadConfig } from './load-config.ts';
import { openStore } from './open-store.ts';
import { indent, type Output } from './output.ts';
import { shadowTone } from './shadow.ts';
import { describeAttempt } from './show-attempt.ts';
import type { Verb } from './verb.ts';

/**
 * Everything that is recorded about one occurrence. It opens keyring and store only, never a
 * backend.
 */
export const show: Verb = {
  name: 'show',
  summary: 'show one occurrence: what was approved, what came of it, and why',
  about: `An occurrence is the right to make one approved change once. This prints who spent it, what was approved,
how every attempt at it ended with its differences, and which dependent work was released. The exit code is
that of the verdict, and ${EXIT.halted} when it was claimed and has none. Any unique beginning of the id will do.`,
  positionals: ['occurrence'],
  flags: CONFIG_FLAG,
  examples: ['effectmatch show occ_1f3a', 'effectmatch show 1f3a --json'],
  async run(args, output) {
    const prefix = readPrefix(args.positionals[0] ?? '', 'show');
    const config = await loadConfig(args);
    await using store = await openStore(config);
    const occurrence = await findOccurrence(store.ledgers, prefix);
    const found = await readOccurrence(store.ledgers, occurrence);
    output.document(documentOf(found));
    if (found.shadow !== undefined) {
      printShadow(found.shadow, output);
      return EXIT.done;
    }
    print(found, output);
    return verdictCode(found);
  },
};

interface Found {
  readonly occurrence: OccurrenceId;
  /** Undefined when every attempt was refused before it could claim. */
  readonly holder: ClaimEntry | undefined;
  /** The verdict of the attempt that holds the claim. */
  readonly terminal: Terminal | undefined;
  readonly attempts: readonly Terminal[];
  readonly acknowledgements: readonly Acknowledgement[];
  /** What an operator decided, where nothing could be established. */
  readonly resolution: Resolution | undefined;
  /** What would have been decided, where this is a shadow; then there is nothing else. */
  readonly shadow: Shadow | undefined;
}

async function readOccurrence(ledgers: Ledgers, occurrence: OccurrenceId): Promise<Found> {
  return {
    occurrence,
    holder: await ledgers.holder(occurrence),
    terminal: await ledgers.terminal(occurrence),
    attempts: await ledgers.attempts(occurrence),
    acknowledgements: await ledgers.acknowledgements(occurrence),
    resolution: await ledgers.resolution(occurrence),
    shadow: await findShadow(ledgers, occurrence),
  };
}

async function findShadow(ledgers: Ledgers, occurrence: OccurrenceId): Promise<Shadow | undefined> {
  for await (const { record } of shadowEntries(ledgers, { occurrence })) return record;
  return undefined;
}

/**
 * A claim without a verdict halts. Attempts that never claimed were all refused, which is a verdict
 * about them.
 */
function verdictCode({ holder, terminal, attempts }: Found): ExitCode {
  if (holder === undefined && attempts.length > 0) return EXIT.rejected;
  return exitCodeOf(terminal);
}

function documentOf({
  occurrence,
  holder,
  terminal,
  attempts,
  acknowledgements,
  resolution,
  shadow,
}: Found) {
  const claimed = holder && {
    claim: holder.claim.record,
    license: holder.license,
    approved: approvedRecord.parseText(holder.approvedText),
    leaseExpired: holder.leaseExpired,
  };
  return {
    occurrence,
    verdict: terminal ?? null,
    claimed: claimed ?? null,
    attempts,
    acknowledgements,
    ...(resolution && { resolution }),
    ...(shadow && { shadow }),
  };
}

function print(found: Found, output: Output): void {
  const { line, paint } = output;
  const heading = (text: string) => {
    line();
    line(paint('strong', text));
  };
  line(`${paint('strong', found.occurrence)}  ${describeVerdict(found, output)}`);
  if (found.holder !== undefined) {
    line();
    printClaim(found.holder, output);
    heading('Approved');
    line(indent(renderApproved(approvedRecord.parseText(found.holder.approvedText)), 2));
  }
  heading('Attempts');
  if (found.attempts.length === 0) line('  none has ended');
  for (const attempt of found.attempts) {
    const replay =
      found.holder !== undefined && attempt.execution !== found.holder.claim.record.execution;
    line(indent(describeAttempt(attempt, replay, output), 2));
  }
  if (found.resolution !== undefined) {
    const { at, finding, operator, evidence } = found.resolution;
    heading('Resolution');
    line(`  ${at}  ${finding}, says ${operator}; evidence ${evidence}`);
    line('  It releases nothing: what has to be done next needs a new license.');
  }
  heading('Dependent work');
  for (const { at, state, continuation } of found.acknowledgements) {
    const isOpen = !found.acknowledgements.some(
      (done) => done.state === 'completed' && done.continuation === continuation,
    );
    line(`  ${at}  ${state}  ${continuation}${isOpen ? '  (not completed)' : ''}`);
  }
  const released = found.acknowledgements.map(({ continuation }) => continuation);
  const waiting = (found.holder?.claim.record.continuations ?? []).filter(
    (name) => !released.includes(name),
  );
  for (const name of waiting) line(`  not released  ${name}`);
  if (released.length + waiting.length === 0) line('  none is registered');
}

function describeVerdict({ holder, terminal }: Found, { paint }: Output): string {
  if (terminal !== undefined) return paint(toneOf(terminal.kind), terminal.kind);
  if (holder === undefined)
    return paint('bad', 'never claimed: every attempt was refused before it could begin');
  const next = holder.leaseExpired ? 'run `effectmatch recover`' : 'it may still be running';
  return paint('caution', `no verdict, so dependent work is halted; ${next}`);
}

function printClaim({ claim, license }: ClaimEntry, { line }: Output): void {
  const { task, adapter, claimedAt, execution, license: digest } = claim.record;
  line(`  task      ${quote(task)}, plan revision ${license.planRevision}, on ${adapter}`);
  line(`  claimed   ${claimedAt} by ${execution}`);
  line(`  license   ${digest}`);
  line(
    `            signed by ${license.issuer} (${license.source}), valid ${license.notBefore} to ${license.expiresAt}`,
  );
}

function printShadow(shadow: Shadow, { line, paint }: Output): void {
  const { occurrence, task, adapter, basis, license, recordedAt } = shadow;
  line(
    `${paint('strong', occurrence)}  shadow: no verdict, nothing was spent, and nothing is released by it`,
  );
  line();
  line(`  task      ${quote(task)}, on ${adapter}`);
  line(`  recorded  ${recordedAt}`);
  line(
    `  compared  with ${license === undefined ? basis : `license ${license}, which it did not spend`}`,
  );
  line();
  line(indent(paint(shadowTone(shadow), renderShadow(shadow)), 2));
}
