import type { CommitLog } from '../contract/adapter.ts';
import type {
  AttemptName,
  JournalEntry,
  LedgerContext,
  Ledgers,
  LedgerTransaction,
} from '../contract/ledgers.ts';
import type { Sealed } from '../contract/seal.ts';
import type { Binding } from '../protocol/binding.ts';
import type { Digest, OccurrenceId } from '../protocol/record.ts';
import type { JournalRow, OpenedRow } from './journal.ts';
import type { CheckedRequest } from './rules.ts';

/**
 * Where a ledger is kept. The same code over {@link LedgerTables} makes every decision; a store
 * provides the transaction it runs in.
 */
export interface TableStore {
  readonly context: LedgerContext;
  /**
   * Runs `decide` in one transaction. No process makes another decision meanwhile. Returns once the
   * transaction is as durable as requested. `decide` may run again if the transaction did not
   * commit, and must be synchronous. A store that writes to `log` reports the transaction to it.
   */
  decide<T>(
    about: About,
    durability: Durability,
    decide: (tables: LedgerTables) => T,
    log?: CommitLog,
  ): Promise<T>;
  /**
   * Runs `work`, which may write anything, in one transaction; `decide` says whether to commit it.
   * `work` runs before the store is locked. If COMMIT was not answered, `isOurs` is called in a
   * later transaction. Not every store supports this.
   */
  decideWith?<T>(
    about: About,
    work: (transaction: LedgerTransaction) => T | Promise<T>,
    decide: (tables: LedgerTables) => boolean,
    isOurs: (tables: LedgerTables) => boolean,
  ): Promise<{ readonly released: true; readonly value: T } | { readonly released: false }>;
  /** Reads what is committed, flushed or not. */
  read<T>(about: About, look: (tables: LedgerTables) => T): Promise<T>;
  /** The same for `verify`, whose many reads must not hold up decisions. */
  openSnapshot(): Promise<LedgerSnapshot>;
  readonly changed?: NonNullable<Ledgers['changed']>;
  close(): Promise<void>;
}

/** Reads for `verify`. Each sees one moment, never an earlier one than the read before. */
export interface LedgerSnapshot extends AsyncDisposable {
  read<T>(about: About, look: (tables: LedgerTables) => T): Promise<T>;
  /** What is wrong with the tables themselves, if anything. */
  findStructureFault(): Promise<string | undefined>;
}

/**
 * When a transaction counts. `flushed`: once it is on disk. `claim`: the same, but it may share a
 * flush, or need none if the store writes to the same log as the effects. `relaxed`: at once,
 * because recovery would rebuild it.
 */
export type Durability = 'flushed' | 'claim' | 'relaxed';

/**
 * What a decision or a read is about. A store across a network fetches exactly this before the code
 * runs; a local store ignores it.
 */
export interface About {
  /** All rows of these occurrences, with the entries of their claims. */
  readonly occurrences?: readonly OccurrenceId[];
  /** Also the issuances that these occurrences were claimed under. */
  readonly issuances?: boolean;
  /** The issuance of a binding, and the rows of its first occurrence. */
  readonly binding?: Binding;
  /** The plan revision announced for a task. */
  readonly task?: string;
  /** The same, if all that matters is whether it is higher than `revision`. */
  readonly plan?: { readonly task: string; readonly revision: number };
  /** Whether an attempt still holds its claim, and which revision is announced for its task. */
  readonly standing?: { readonly task: string; readonly attempt: AttemptName };
  /** Claims that have not ended: all of them, or only those whose lease has expired. */
  readonly unsettled?: 'all' | 'expired';
  readonly document?: Digest;
  /** The newest checkpoint, and the checkpoints that reach beyond a position. */
  readonly checkpointsAfter?: number;
  /** Rows by position. */
  readonly page?: Page;
  /** Also everything that the rows of the page depend on. */
  readonly neighbours?: boolean;
  /** Releases without a completion. */
  readonly uncompleted?: boolean;
  readonly search?: string;
  readonly documentsAfter?: string;
  /** What {@link LedgerTables.totals} needs. */
  readonly totals?: boolean;
}

/** Which journal rows: at most `limit` after a position, of one occurrence if it is given. */
export interface Page {
  readonly afterSeq: number;
  readonly limit: number;
  readonly last?: boolean;
  readonly occurrence?: OccurrenceId | undefined;
}

/** The entry of a claim until it is settled. */
export interface UnsettledEntry {
  readonly claim: number;
  readonly execution: string;
  readonly leaseUntilMs: number;
  readonly occurrence: string | null;
}

/** What was signed, and how many of its occurrences have been claimed. */
export interface IssuanceRow {
  readonly issuer: string;
  readonly nonce: string;
  readonly claimed: number;
  readonly license: string;
  readonly approved: string;
  readonly binding: string;
  readonly sealKey: string;
  readonly mac: string;
}

/** What a new claim under a license depends on, besides its occurrence. */
export interface IssuedBefore {
  /** The highest plan revision announced for the task. */
  readonly announced: number | undefined;
  /** How many journal rows the license's first occurrence has. */
  readonly traces: number;
  /** The issuance that used the license's nonce before, if any. */
  readonly issued:
    | { readonly id: number; readonly claimed: number; readonly binding: string }
    | undefined;
}

/** A checkpoint or document as it is stored. */
export interface SealedRow {
  readonly text: string;
  readonly sealKey: string;
  readonly sealMac: string;
}
export interface CheckpointRow extends SealedRow {
  readonly throughSeq: number;
}
export interface DocumentRow extends SealedRow {
  readonly digest: Digest;
}

/** Sums over whole tables. `verify` compares them with the rows it read. */
export interface LedgerTotals {
  /** The position of an unsettled claim that is not in the journal. */
  readonly stray: number | undefined;
  /** The number of claims that the issuances count. */
  readonly counted: number;
}

/**
 * The tables of a ledger inside one transaction. Journal rows are already checked, except those
 * from {@link LedgerTables.page}. The caller checks every other row.
 */
export interface LedgerTables {
  readonly context: LedgerContext;
  /** Milliseconds since the epoch on the store's clock. */
  now(): number;

  /** The last position ever assigned, whether or not its row still exists. */
  lastSeq(): number;
  /** The row in one slot of an occurrence. */
  find(occurrence: string, slot: string): OpenedRow | undefined;
  /** The rows in four slots of an occurrence, by slot. */
  findAll(
    occurrence: string,
    slots: readonly [string, string, string, string],
  ): ReadonlyMap<string, OpenedRow>;
  /** All rows of one kind for an occurrence, in order. */
  list<K extends JournalEntry['kind']>(
    occurrence: string,
    kind: K,
  ): readonly Extract<OpenedRow, { kind: K }>[];
  /** How many journal rows an occurrence has. */
  count(occurrence: string): number;
  /** The position of a row that can exist only after the occurrence was claimed. */
  findClaimedTrace(occurrence: OccurrenceId): number | undefined;
  /** Appends to the journal and returns the position. A claim needs its issuance. */
  append(
    kind: JournalEntry['kind'],
    slot: string,
    sealed: Sealed<{ readonly occurrence: OccurrenceId }>,
    issuance?: number,
  ): number;

  /** Raises the announced revision and returns it; a lower one changes nothing. */
  announce(task: string, revision: number): number;
  issuedBefore(checked: CheckedRequest): IssuedBefore;
  /** Stores what was signed, for its first claim. Returns the id. */
  issue(row: IssuanceRow): number;
  /** Adds one to the issuance's count of claims. */
  countClaim(issuance: number): void;
  issuance(id: number): IssuanceRow | undefined;
  issuanceOf(claim: number): IssuanceRow | undefined;

  enter(claim: number, execution: string, leaseUntilMs: number): void;
  /** Removes the entry of a claim; false if it has none. */
  settle(occurrence: string): boolean;
  /** `extendLease` and `endLease` return false if the execution has no entry. */
  extendLease(attempt: AttemptName, untilMs: number): boolean;
  endLease(attempt: AttemptName, atMs: number): boolean;
  /** The revision announced for a task, and whether the attempt has an entry. */
  standing(
    task: string,
    attempt: AttemptName,
  ): { readonly announced: number | undefined; readonly open: boolean };
  entry(claim: number): UnsettledEntry | undefined;
  /** Entries, oldest first: all of them, or only those whose lease has expired. */
  unsettled(which: 'all' | 'expired'): readonly UnsettledEntry[];

  document(digest: Digest): DocumentRow | undefined;
  keep(row: DocumentRow): void;
  documentsAfter(digest: string, limit: number): readonly DocumentRow[];
  newestCheckpoint(): CheckpointRow | undefined;
  /** The first checkpoint that reaches beyond a position. */
  checkpointAfter(seq: number): CheckpointRow | undefined;
  addCheckpoint(row: CheckpointRow): void;

  /** Rows by position, unchecked: the caller opens them, and can report which one is wrong. */
  page(page: Page): readonly JournalRow[];
  search(prefix: string): readonly OccurrenceId[];
  uncompleted(): readonly OpenedRow[];
  totals(): LedgerTotals;
  /** Gives the commit something to flush if nothing else is written. */
  touch(): void;
}
