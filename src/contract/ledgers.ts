import type { Binding, ClaimRecord } from '../protocol/binding.ts';
import type { Checkpoint } from '../protocol/checkpoint.ts';
import type { Acknowledgement } from '../protocol/continuation.ts';
import type { License } from '../protocol/license.ts';
import type { VoidMarker } from '../protocol/marker.ts';
import type { PermitRecord } from '../protocol/permit.ts';
import type { Digest, ExecutionId, OccurrenceId } from '../protocol/record.ts';
import type { Resolution } from '../protocol/resolution.ts';
import type { Shadow } from '../protocol/shadow.ts';
import type { Terminal } from '../protocol/terminal.ts';
import type { CommitLog, Provisioning, ProvisioningKind } from './adapter.ts';
import type { Sealed, Sealer } from './seal.ts';

/** What a ledger needs to check its records: seals before insert and after select. */
export interface LedgerContext {
  readonly sealer: Sealer;
  /** Content address of a record's canonical text under its domain. */
  digest(domain: string, text: string): Digest;
}

/** A ledger that is not open yet. A {@link LedgerContext} opens it. */
export interface LedgersFactory {
  /**
   * The ledger's file, if it is stored in one. Read-only callers check first that it exists,
   * because opening it would create it.
   */
  readonly file?: string;
  /** What an administrator must prepare in a database before the ledger opens. */
  readonly provisioning?: (admin: string, what: ProvisioningKind) => Promise<Provisioning>;
  /**
   * Copies a whole SQLite ledger into this one, which must be empty. Verifies both; refuses while
   * attempts are open. The file cannot be used afterwards.
   */
  readonly copyFrom?: (context: LedgerContext, file: string) => Promise<{ readonly rows: number }>;
  /**
   * Moves rows that a checkpoint covered before this date to an archive. They are still read and
   * verified, and what they spent stays spent.
   */
  readonly archive?: (admin: string, before: Date) => Promise<{ readonly rows: number }>;
  open(context: LedgerContext): Promise<Ledgers>;
}

/**
 * The durable memory of a deployment. Claims, permit consumption and acknowledgements are single
 * atomic steps decided by unique keys. A result is returned only once it is as durable as its
 * comment says.
 */
export interface Ledgers {
  /**
   * Announces a plan revision for a task, flushed. Licenses of lower revisions can no longer claim.
   * Returns the highest announced revision: a lower one changes nothing.
   */
  announcePlan(task: string, planRevision: number): Promise<number>;
  /**
   * Records the binding if absent (the same content is agreement) and spends its first unspent
   * occurrence, in one transaction. `claim(occurrence)` makes the claim to store for the chosen
   * occurrence. Flushed, unless the ledger writes to the log that the request names.
   */
  claim(request: ClaimRequest): Promise<ClaimResult>;
  /**
   * Extends the lease of a live attempt, by the store's clock. Returns false if this execution does
   * not hold the claim.
   */
  renew(occurrence: OccurrenceId, execution: ExecutionId, leaseMs: number): Promise<boolean>;
  /**
   * Ends the lease of an attempt that this execution gave up, so that recovery need not wait for
   * it.
   */
  abandon(occurrence: OccurrenceId, execution: ExecutionId): Promise<void>;
  /** What the final gate asks, in one read. `holder` says more about the claim and costs more. */
  standing(task: string, attempt: AttemptName): Promise<Standing>;
  /** Who holds the occurrence, whatever its verdict. */
  holder(occurrence: OccurrenceId): Promise<ClaimEntry | undefined>;
  /**
   * Claims whose terminal is missing or `indeterminate` and that have no resolution, oldest first.
   */
  unsettled(options?: { readonly includeLeased?: boolean }): Promise<readonly ClaimEntry[]>;

  /** Remote fence: consuming and voiding compete for one key. Flushed before it returns. */
  consumePermit(
    permit: Sealed<PermitRecord>,
  ): Promise<{ readonly kind: 'consumed' } | { readonly kind: 'void' | 'spent' }>;
  /** Returns the winning permit if it is already consumed. */
  voidPermit(occurrence: OccurrenceId, execution: ExecutionId): Promise<PermitState>;
  permit(occurrence: OccurrenceId): Promise<PermitState | undefined>;

  /**
   * Inserts a terminal if absent. The same verdict from a second writer is agreement and returns
   * the stored terminal. A different verdict throws `ERR_EM_TERMINAL_CONFLICT`, except that a
   * conclusive terminal may settle an `indeterminate` one, once. `durability: 'relaxed'` is only
   * for what recovery would rebuild. Throws `ERR_EM_CLAIM_LOST` if the terminal names a claim that
   * its execution does not hold. `log` is told of the transaction, if the ledger writes to it.
   */
  record(
    terminal: Sealed<Terminal>,
    durability: 'flushed' | 'relaxed',
    log?: CommitLog,
  ): Promise<Terminal>;
  /**
   * The terminal of the attempt that holds the claim, or the settlement if an indeterminate one was
   * settled.
   */
  terminal(occurrence: OccurrenceId): Promise<Terminal | undefined>;
  /** Every attempt's terminal for an occurrence, in the order recorded. */
  attempts(occurrence: OccurrenceId): Promise<readonly Terminal[]>;

  /**
   * Records an operator's decision if absent, flushed. The same decision again is agreement. Throws
   * `ERR_EM_RESOLUTION_REFUSED` if another was recorded, or if the attempt that holds the claim has
   * a conclusive terminal or no consumed permit.
   */
  resolve(resolution: Sealed<Resolution>): Promise<Resolution>;
  resolution(occurrence: OccurrenceId): Promise<Resolution | undefined>;

  /**
   * Stores what would have been decided, under an occurrence that no other record uses. It decides
   * nothing, so it need not be flushed. Only the journal returns it.
   */
  recordShadow(shadow: Sealed<Shadow>): Promise<void>;

  /**
   * One release per (occurrence, continuation), flushed. Returns `false` if another worker was
   * first.
   */
  acknowledge(acknowledgement: Sealed<Acknowledgement>): Promise<boolean>;
  /**
   * Records a release together with what `work` writes through the given transaction: both or
   * neither. Only a ledger in PostgreSQL has this method, because the queue must be in the same
   * database. `released: false` means that another worker was first; then `work` left nothing.
   */
  handOver?<T>(
    acknowledgement: Sealed<Acknowledgement>,
    work: (transaction: LedgerTransaction) => T | Promise<T>,
  ): Promise<{ readonly released: true; readonly value: T } | { readonly released: false }>;
  acknowledgements(occurrence: OccurrenceId): Promise<readonly Acknowledgement[]>;
  /** Releases without a completion, oldest first: the work is under way, or it was interrupted. */
  uncompleted(): Promise<readonly Acknowledgement[]>;

  /**
   * Waits, at most `ms`, until a verdict or decision about the occurrence may have been recorded. A
   * ledger without notifications waits that long. Callers must look again afterwards, and later.
   */
  changed?(occurrence: OccurrenceId, ms: number, signal?: AbortSignal): Promise<void>;

  /**
   * Journal rows after `afterSeq` (or, with `last`, the newest), in order, each checked.
   * `occurrence` narrows them. A ledger that cannot do that quickly may ignore it, so callers must
   * filter as well.
   */
  journal(options?: {
    readonly afterSeq?: number;
    readonly limit?: number;
    readonly last?: boolean;
    readonly occurrence?: OccurrenceId;
  }): Promise<readonly JournalEntry[]>;
  /** Finds at most 10 occurrences by a prefix of their id. */
  search(prefix: string): Promise<readonly OccurrenceId[]>;
  /**
   * Seals the rows since the last checkpoint. Returns the newest checkpoint, or undefined if the
   * journal is empty.
   */
  checkpoint(): Promise<Sealed<Checkpoint> | undefined>;
  /**
   * Recomputes every row and checkpoint, and reports the first problem. `exported` is a checkpoint
   * kept elsewhere.
   */
  verify(exported?: Sealed<Checkpoint>): Promise<JournalVerdict>;

  /** Stores a document (a certificate's outlets, a frame) under its digest, once. */
  keep(digest: Digest, text: string): Promise<void>;
  document(digest: Digest): Promise<string | undefined>;
  /**
   * Stores a text under a name that is not its digest, unless one is stored already. Returns the
   * stored text, flushed.
   */
  keepFirst(name: Digest, text: string): Promise<string>;
  close(): Promise<void>;
}

/** A transaction of the ledger's login, for writes that must commit together with a release. */
export interface LedgerTransaction {
  /**
   * Runs one statement. Names must include their schema, because the login has no search path.
   * Values are sent as text, and rows come back as text by column name.
   */
  query(
    text: string,
    values?: readonly (string | number | boolean | null)[],
  ): Promise<readonly Readonly<Record<string, string | null>>[]>;
}

/**
 * What a claim needs: the license, its binding, and how to make the record once an occurrence is
 * chosen.
 */
export interface ClaimRequest {
  readonly license: License;
  /** The sealed claim names its digest. */
  readonly binding: Binding;
  /**
   * The only occurrence that may be spent. Refused as `spent` if it is, and as `out-of-turn` if an
   * earlier one is not.
   */
  readonly only?: OccurrenceId;
  readonly leaseMs: number;
  readonly claim: (occurrence: OccurrenceId) => Sealed<ClaimRecord>;
  /**
   * The approved outcome as it may be stored (plain or with digested values), for people to read
   * later.
   */
  readonly approvedText: string;
  /**
   * The log in which the effects of this claim, and nothing else that depends on it, will be
   * committed.
   */
  readonly log?: CommitLog | undefined;
}

/** One attempt at one occurrence. */
export interface AttemptName {
  readonly occurrence: OccurrenceId;
  readonly execution: ExecutionId;
}

/** The current standing of an attempt at a task. */
export interface Standing {
  /** The highest plan revision announced for the task, or undefined if none was. */
  readonly announced: number | undefined;
  /** Whether the execution holds the occurrence and no operator has decided about it. */
  readonly holds: boolean;
}

/** Either the claim spent an occurrence, or it was refused. */
export type ClaimResult =
  | { readonly kind: 'claimed'; readonly claim: Sealed<ClaimRecord> }
  | {
      readonly kind: 'refused';
      readonly reason: 'spent' | 'out-of-turn' | 'nonce-reused' | 'plan-superseded';
      readonly detail: string;
    };

/** A claim as the ledger stores it, with its lease. */
export interface ClaimEntry {
  readonly claim: Sealed<ClaimRecord>;
  readonly license: License;
  readonly approvedText: string;
  /**
   * Milliseconds since the epoch on the store's clock; 0 once the claim is settled.
   */
  readonly leaseUntilMs: number;
  readonly leaseExpired: boolean;
}

/**
 * Who won the permit of a remote path: the execution, which consumed it, or recovery, which voided
 * it.
 */
export type PermitState =
  | { readonly kind: 'consumed'; readonly permit: Sealed<PermitRecord> }
  | { readonly kind: 'void' };

/** One row of the journal. */
export type JournalEntry = { readonly seq: number } & (
  | { readonly kind: 'claim'; readonly record: ClaimRecord }
  /** Remote fence: a permit was consumed, or voided by recovery. One of the two per occurrence. */
  | { readonly kind: 'permit'; readonly record: PermitRecord }
  | { readonly kind: 'void'; readonly record: VoidMarker }
  | { readonly kind: 'terminal'; readonly record: Terminal }
  | { readonly kind: 'acknowledgement'; readonly record: Acknowledgement }
  | { readonly kind: 'resolution'; readonly record: Resolution }
  | { readonly kind: 'shadow'; readonly record: Shadow }
);

/** Whether the journal is as it was written, and if not, where it first differs. */
export type JournalVerdict =
  | { readonly kind: 'intact'; readonly rows: number; readonly checkpointed: number }
  | { readonly kind: 'tampered'; readonly seq: number; readonly what: string };
