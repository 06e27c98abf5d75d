// Goal: an outcome is not a disposition, and only a commit carries what releases dependent work.
// Method: compiled only; every line below must fail to compile for the reason beside it.
import type { Outcome } from '../../src/protocol/outcome.ts';
import type { Digest, ExecutionId, OccurrenceId } from '../../src/protocol/record.ts';
import type { RecordedOutcome, Terminal, TerminalOf } from '../../src/protocol/terminal.ts';
import type { Runtime } from '../../src/runtime/runtime.ts';

declare const outcome: Outcome;
declare const recorded: RecordedOutcome;
declare const terminal: Terminal;
declare const rejected: TerminalOf<'rejected'>;
declare const committed: TerminalOf<'committed'>;
declare const runtime: Runtime;
declare const digest: Digest;
declare const occurrence: OccurrenceId;
declare const execution: ExecutionId;

export const works = [
  () => runtime.continuation(terminal, 'reconcile').release(() => 1),
  () => runtime.continuation({ occurrence, lineage: digest }, 'reconcile').release(async () => 1),
  (): Digest => committed.observed,
];

export const confusions = [
  // @ts-expect-error an outcome says whether E matched A, not what became of it
  (): Terminal => outcome,
  // @ts-expect-error what is recorded of an outcome is no terminal either
  (): Terminal => recorded,
  // @ts-expect-error EXACT is not committed
  () => terminal.kind === 'EXACT',
  // @ts-expect-error a terminal of unknown kind has no permit to rely on
  () => terminal.permit,
  // @ts-expect-error a rejection never consumed a permit
  () => rejected.consumedAt,
  // @ts-expect-error work is released by an occurrence with its lineage, not by the occurrence alone
  () => runtime.continuation(occurrence, 'reconcile'),
  // @ts-expect-error an execution is not an occurrence
  () => runtime.terminal(execution),
  // @ts-expect-error any text is not an occurrence
  () => runtime.terminal('occ_1'),
  // @ts-expect-error any text is not a digest
  (): Digest => 'abc',
];
