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
 * Where a ledger is kept. Everything that is decided is decided by the same code over
 * {@link LedgerTables}; a store says how that code gets one transaction.
 */
export interface TableStore {
  readonly context: LedgerContext;
  /**
   * One transaction in which `decide` reads and writes, alone: no other decision of any process is
   * made meanwhile. Returns once the transaction is as durable as asked. `decide` may run again
   * where the transaction did not happen, and must not wait for anything. A store that writes to
   * `log` tells it of the transaction.
   */
  decide<T>(
    about: About,
    durability: Durability,
    decide: (tables: LedgerTables) => T,
    log?: CommitLog,
  ): Promise<T>;
  /**
   * Where a store can: one transaction in which `work` writes what it likes, and `decide` whether it
   * is committed. `work` runs before the store is locked. `isOurs` is asked in a later transaction
   * if COMMIT was not answered.
   */
  decideWith?<T>(
    about: About,
    work: (transaction: LedgerTransaction) => T | Promise<T>,
    decide: (tables: LedgerTables) => boolean,
    isOurs: (tables: LedgerTables) => boolean,
  ): Promise<{ readonly released: true; readonly value: T } | { readonly released: false }>;
  /** One look at what is committed, flushed or not. */
  read<T>(about: About, look: (tables: LedgerTables) => T): Promise<T>;
  /** The same for `verify`, which makes many looks: they must not hold up decisions. */
  openSnapshot(): Promise<LedgerSnapshot>;
  readonly changed?: NonNullable<Ledgers['changed']>;
  close(): Promise<void>;
}

/** Looks for `verify`. Each sees one moment, and none an earlier moment than the one before. */
export interface LedgerSnapshot extends AsyncDisposable {
  read<T>(about: About, look: (tables: LedgerTables) => T): Promise<T>;
  /** What is wrong with the tables themselves, if anything is. */
  findStructureFault(): Promise<string | undefined>;
}

/**
 * When a transaction counts: once it is flushed; the same for a claim, which may be flushed with
 * others, or at once where the store writes to the log of its effects; or at once, because recovery
 * would rebuild it.
 */
export type Durability = 'flushed' | 'claim' | 'relaxed';

/**
 * What a decision or a look is about. A store that is reached over a network fetches this, and no
 * more, before the code runs; a local one has everything at hand.
 */
export interface About {
  /** All rows of these occurrences, with the entries of their claims. */
  readonly occurrences?: readonly OccurrenceId[];
  /** Also what the claims among those rows were made under. */
  readonly issuances?: boolean;
  /** What was claimed under a binding: its issuance, the last occurrence claimed and the next. */
  readonly binding?: Binding;
  /** The plan revision announced for a task. */
  readonly task?: string;
  /** The same, where all that matters is whether it is higher than this. */
  readonly plan?: { readonly task: string; readonly revision: number };
  /** Whether an attempt still holds its claim, and what is announced for its task. */
  readonly standing?: { readonly task: string; readonly attempt: AttemptName };
  /** Claims that have not ended: all, or those whose lease has. */
  readonly unsettled?: 'all' | 'expired';
  readonly document?: Digest;
  /** The newest checkpoint, and those that cover more than the rows up to a position. */
  readonly checkpointsAfter?: number;
  /** Rows by position. */
  readonly page?: Page;
  /** Whatever the rows of the page depend on. */
  readonly neighbours?: boolean;
  /** Releases that no completion followed. */
  readonly uncompleted?: boolean;
  readonly search?: string;
  readonly documentsAfter?: string;
  /** What {@link LedgerTables.totals} needs. */
  readonly totals?: boolean;
}

/** Which rows of the journal: after a position, at most so many, of one occurrence if it is named. */
export interface Page {
  readonly afterSeq: number;
  readonly limit: number;
  readonly last?: boolean;
  readonly occurrence?: OccurrenceId | undefined;
}

/** What is kept of a claim until it is settled. */
export interface UnsettledEntry {
  readonly claim: number;
  readonly execution: string;
  readonly leaseUntilMs: number;
  readonly occurrence: string | null;
}

/** What was signed, and how many of its occurrences were claimed. */
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

/** What a new claim under a license depends on besides its occurrence. */
export interface IssuedBefore {
  /** The highest plan revision announced for the task. */
  readonly announced: number | undefined;
  /** How many rows the journal has of the first occurrence that the license buys. */
  readonly traces: number;
  /** The nonce of the license, where it was used before. */
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

/** Sums over whole tables, which `verify` compares with the rows that it went through. */
export interface LedgerTotals {
  /** The position of an unsettled claim that the journal does not have. */
  readonly stray: number | undefined;
  /** How many claims the issuances count. */
  readonly counted: number;
}

/**
 * The tables of a ledger inside one transaction. What is found in the journal has been checked,
 * except for {@link LedgerTables.page}; every other row is checked by the code that asks for it.
 */
export interface LedgerTables {
  readonly context: LedgerContext;
  /** Milliseconds since the epoch on the store's clock. */
  now(): number;

  /** The last position that was ever given away, whether or not its row is still there. */
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
  /** How many rows the journal has of an occurrence. */
  count(occurrence: string): number;
  /** A row of an occurrence that can only be there once it was claimed. */
  findClaimedTrace(occurrence: OccurrenceId): number | undefined;
  /** Appends to the journal. Returns the position. A claim names its issuance. */
  append(
    kind: JournalEntry['kind'],
    slot: string,
    sealed: Sealed<{ readonly occurrence: OccurrenceId }>,
    issuance?: number,
  ): number;

  /** Raises the announced revision; a lower one changes nothing. */
  announce(task: string, revision: number): number;
  issuedBefore(checked: CheckedRequest): IssuedBefore;
  /** Keeps what was signed, for its first claim. Returns the id. */
  issue(row: IssuanceRow): number;
  /** Counts one claim more. */
  countClaim(issuance: number): void;
  issuance(id: number): IssuanceRow | undefined;
  issuanceOf(claim: number): IssuanceRow | undefined;

  enter(claim: number, execution: string, leaseUntilMs: number): void;
  /** Takes the entry of a claim away; false when it has none. */
  settle(occurrence: string): boolean;
  /** Both are false where the claim has no entry of this execution. */
  extendLease(attempt: AttemptName, untilMs: number): boolean;
  endLease(attempt: AttemptName, atMs: number): boolean;
  /** What is announced for a task, and whether the attempt has an entry. */
  standing(
    task: string,
    attempt: AttemptName,
  ): { readonly announced: number | undefined; readonly open: boolean };
  entry(claim: number): UnsettledEntry | undefined;
  /** Entries, oldest first: all, or those whose lease has ended. */
  unsettled(which: 'all' | 'expired'): readonly UnsettledEntry[];

  document(digest: Digest): DocumentRow | undefined;
  keep(row: DocumentRow): void;
  documentsAfter(digest: string, limit: number): readonly DocumentRow[];
  newestCheckpoint(): CheckpointRow | undefined;
  /** The first checkpoint that covers more than the rows up to a position. */
  checkpointAfter(seq: number): CheckpointRow | undefined;
  addCheckpoint(row: CheckpointRow): void;

  /** Rows by position, not checked: the caller opens them, and can say which one is wrong. */
  page(page: Page): readonly JournalRow[];
  search(prefix: string): readonly OccurrenceId[];
  uncompleted(): readonly OpenedRow[];
  totals(): LedgerTotals;
  /** Gives a commit something to flush where nothing else is written. */
  touch(): void;
}
