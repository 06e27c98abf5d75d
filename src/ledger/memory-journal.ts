import type { JournalVerdict, LedgerContext, PermitState } from '../contract/ledgers.ts';
import type { Sealed } from '../contract/seal.ts';
import { invariant } from '../errors.ts';
import type { ClaimRecord } from '../protocol/binding.ts';
import type { Checkpoint } from '../protocol/checkpoint.ts';
import type { Acknowledgement } from '../protocol/continuation.ts';
import type { Digest, ExecutionId, OccurrenceId } from '../protocol/record.ts';
import type { Terminal } from '../protocol/terminal.ts';
import {
  acknowledgementSlot,
  CHAIN_START,
  CLAIM_SLOT,
  extendChain,
  type JournalRow,
  type OpenedRow,
  openRow,
  PERMIT_SLOT,
  RESOLUTION_SLOT,
  rowDigest,
  settlementSlot,
  terminalSlot,
} from './journal.ts';
import type { Known } from './rules.ts';

/**
 * A journal that is an array. Everything it answers is found by looking through all rows, and
 * checked.
 */
export class MemoryJournal {
  readonly #context: LedgerContext;
  readonly #rows: JournalRow[];

  constructor(context: LedgerContext, rows: JournalRow[]) {
    this.#context = context;
    this.#rows = rows;
  }

  get length(): number {
    return this.#rows.length;
  }

  append(
    kind: JournalRow['kind'],
    slot: string,
    sealed: Sealed<{ readonly occurrence: OccurrenceId }>,
  ): void {
    const { record, text, seal } = sealed;
    invariant(
      this.find(record.occurrence, slot) === undefined,
      'a slot of the journal is filled once',
    );
    const place = { seq: this.#rows.length + 1, kind, slot, sealKey: seal.key, sealMac: seal.mac };
    const digest = rowDigest(this.#context, place);
    this.#rows.push({ ...place, occurrence: record.occurrence, text, digest });
  }

  opened(): readonly OpenedRow[] {
    return this.#rows.map((row) => openRow(this.#context, row));
  }

  chainThrough(seq: number): Digest {
    const rows = this.opened().slice(0, seq);
    return rows.reduce((chain, row) => extendChain(this.#context, chain, row.digest), CHAIN_START);
  }

  /** What is missing or another than when the checkpoint was made. */
  differenceFrom({ throughSeq, chain }: Checkpoint): JournalVerdict | undefined {
    const { length } = this.#rows;
    if (throughSeq > length)
      return { kind: 'tampered', seq: length + 1, what: 'the end of the journal is missing' };
    if (this.chainThrough(throughSeq) === chain) return undefined;
    return {
      kind: 'tampered',
      seq: throughSeq,
      what: 'these are not the rows the checkpoint was made from',
    };
  }

  find(occurrence: OccurrenceId, slot: string): OpenedRow | undefined {
    const row = this.#rows.find(
      (candidate) => candidate.occurrence === occurrence && candidate.slot === slot,
    );
    return row && openRow(this.#context, row);
  }

  occurs(occurrence: OccurrenceId): boolean {
    return this.#rows.some((row) => row.occurrence === occurrence);
  }

  claimOf(occurrence: OccurrenceId): Sealed<ClaimRecord> | undefined {
    const row = this.find(occurrence, CLAIM_SLOT);
    return row?.kind === 'claim' ? row.sealed : undefined;
  }

  permitOf(occurrence: OccurrenceId): PermitState | undefined {
    const row = this.find(occurrence, PERMIT_SLOT);
    if (row === undefined) return undefined;
    return row.kind === 'permit' ? { kind: 'consumed', permit: row.sealed } : { kind: 'void' };
  }

  /** The terminal of whoever holds the claim, the settlement first. */
  terminalOf(occurrence: OccurrenceId): Terminal | undefined {
    const execution = this.claimOf(occurrence)?.record.execution;
    if (execution === undefined) return undefined;
    const { first, settlement } = this.known(occurrence, execution);
    return settlement ?? first;
  }

  /** Whether something conclusive is recorded about whoever holds the claim. */
  isSettled(occurrence: OccurrenceId): boolean {
    const terminal = this.terminalOf(occurrence);
    const ended = terminal !== undefined && terminal.kind !== 'indeterminate';
    return ended || this.find(occurrence, RESOLUTION_SLOT) !== undefined;
  }

  acknowledgements(): readonly Acknowledgement[] {
    const rows = this.opened().filter((row) => row.kind === 'acknowledgement');
    return rows.map((row) => row.sealed.record);
  }

  /** Whether the work of a continuation was completed. */
  isCompleted({ occurrence, continuation }: Acknowledgement): boolean {
    return (
      this.find(occurrence, acknowledgementSlot({ state: 'completed', continuation })) !== undefined
    );
  }

  /** Everything that a verdict about one attempt depends on. */
  known(occurrence: OccurrenceId, execution: ExecutionId): Known {
    const terminalIn = (slot: string): Terminal | undefined => {
      const row = this.find(occurrence, slot);
      return row?.kind === 'terminal' ? row.sealed.record : undefined;
    };
    return {
      claim: this.claimOf(occurrence),
      permit: this.permitOf(occurrence),
      first: terminalIn(terminalSlot(execution)),
      settlement: terminalIn(settlementSlot(execution)),
    };
  }
}
