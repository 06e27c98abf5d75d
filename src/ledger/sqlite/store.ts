import type {
  AttemptName,
  ClaimEntry,
  ClaimRequest,
  ClaimResult,
  JournalEntry,
  JournalVerdict,
  LedgerContext,
  Ledgers,
  PermitState,
  Standing,
} from '../../contract/ledgers.ts';
import type { Sealed } from '../../contract/seal.ts';
import { EffectMatchError } from '../../errors.ts';
import { type Checkpoint, checkpointRecord } from '../../protocol/checkpoint.ts';
import { type Acknowledgement, acknowledgementRecord } from '../../protocol/continuation.ts';
import { type PermitRecord, permitRecord } from '../../protocol/permit.ts';
import type { Digest, ExecutionId, OccurrenceId } from '../../protocol/record.ts';
import { type Resolution, resolutionRecord } from '../../protocol/resolution.ts';
import { type Shadow, shadowRecord } from '../../protocol/shadow.ts';
import { assertAssured, type Terminal, terminalRecord } from '../../protocol/terminal.ts';
import { asFault, openDatabase, retryWhileBusy, setPragma } from '../../sqlite/connection.ts';
import { entryOf, openRow } from '../journal.ts';
import { checkRequest } from '../rules.ts';
import { makeCheckpoint } from './checkpoint.ts';
import {
  claimOccurrence,
  endLease,
  findHolder,
  findStanding,
  listUnsettled,
  raiseRevision,
  renewLease,
} from './claims.ts';
import { findDocument, keepDocument } from './documents.ts';
import { GroupCommit } from './group.ts';
import { type Store, unusable } from './open.ts';
import {
  createSession,
  decideFlushed,
  decideRelaxed,
  lastRows,
  listRows,
  pageRows,
  type Session,
} from './session.ts';
import {
  acknowledgeContinuation,
  consumePermit,
  findPermit,
  findResolution,
  findTerminal,
  listUncompleted,
  recordResolution,
  recordShadow,
  recordTerminal,
  touchStore,
  voidPermit,
} from './verdicts.ts';
import { verifyStore } from './verify.ts';

/**
 * The ledgers of one deployment in one SQLite file. Every decision is one immediate transaction;
 * what the methods do inside it is synchronous and lives in the files beside this one.
 */
export class SqliteLedgers implements Ledgers {
  readonly durable = true;
  readonly shared = true;
  readonly #file: string;
  readonly #context: LedgerContext;
  readonly #session: Session;
  readonly #claims: GroupCommit;

  constructor(context: LedgerContext, store: Store) {
    this.#context = context;
    this.#file = store.file;
    this.#session = createSession(context, store.db, store.patience);
    this.#claims = new GroupCommit(this.#session);
  }

  async announcePlan(task: string, planRevision: number): Promise<number> {
    return await this.#write((session) => raiseRevision(session, task, planRevision));
  }

  async claim(request: ClaimRequest): Promise<ClaimResult> {
    const checked = checkRequest(this.#context, request);
    return await this.#guard(
      this.#claims.run((session) => claimOccurrence(session, checked, request)),
    );
  }

  /**
   * Not flushed: a lease that a power cut takes back belonged to a process that the power cut
   * ended.
   */
  async renew(occurrence: OccurrenceId, execution: ExecutionId, leaseMs: number): Promise<boolean> {
    return await this.#writeRelaxed((session) =>
      renewLease(session, occurrence, execution, leaseMs),
    );
  }

  /** Not flushed either: a power cut leaves a lease that runs out. */
  async abandon(occurrence: OccurrenceId, execution: ExecutionId): Promise<void> {
    await this.#writeRelaxed((session) => endLease(session, occurrence, execution));
  }

  async standing(task: string, attempt: AttemptName): Promise<Standing> {
    return await this.#read((session) => findStanding(session, task, attempt));
  }

  async holder(occurrence: OccurrenceId): Promise<ClaimEntry | undefined> {
    return await this.#read((session) => findHolder(session, occurrence));
  }

  async unsettled({ includeLeased = false } = {}): Promise<readonly ClaimEntry[]> {
    return await this.#read((session) => listUnsettled(session, includeLeased));
  }

  async consumePermit(
    permit: Sealed<PermitRecord>,
  ): Promise<{ readonly kind: 'consumed' } | { readonly kind: 'void' | 'spent' }> {
    const sealed = this.#context.sealer.check(permitRecord, permit);
    return await this.#write((session) => consumePermit(session, sealed));
  }

  async voidPermit(occurrence: OccurrenceId, execution: ExecutionId): Promise<PermitState> {
    return await this.#write((session) => voidPermit(session, occurrence, execution));
  }

  async permit(occurrence: OccurrenceId): Promise<PermitState | undefined> {
    return await this.#read((session) => findPermit(session, occurrence));
  }

  async record(terminal: Sealed<Terminal>, durability: 'flushed' | 'relaxed'): Promise<Terminal> {
    const sealed = this.#context.sealer.check(terminalRecord, terminal);
    assertAssured(sealed.record);
    if (durability === 'relaxed') {
      return await this.#writeRelaxed((session) => recordTerminal(session, sealed).terminal);
    }
    return await this.#write((session) => {
      const recorded = recordTerminal(session, sealed);
      if (!recorded.inserted) touchStore(session);
      return recorded.terminal;
    });
  }

  async terminal(occurrence: OccurrenceId): Promise<Terminal | undefined> {
    return await this.#read((session) => findTerminal(session, occurrence));
  }

  async attempts(occurrence: OccurrenceId): Promise<readonly Terminal[]> {
    const rows = await this.#read((session) => listRows(session, occurrence, 'terminal'));
    return rows.filter((row) => row.kind === 'terminal').map((row) => row.sealed.record);
  }

  async resolve(resolution: Sealed<Resolution>): Promise<Resolution> {
    const sealed = this.#context.sealer.open(resolutionRecord, resolution.text, resolution.seal);
    return await this.#write((session) => recordResolution(session, sealed));
  }

  async resolution(occurrence: OccurrenceId): Promise<Resolution | undefined> {
    return (await this.#read((session) => findResolution(session, occurrence)))?.record;
  }

  /** Not flushed: nothing depends on it. */
  async recordShadow(shadow: Sealed<Shadow>): Promise<void> {
    const sealed = this.#context.sealer.check(shadowRecord, shadow);
    await this.#writeRelaxed((session) => recordShadow(session, sealed));
  }

  async acknowledge(acknowledgement: Sealed<Acknowledgement>): Promise<boolean> {
    const sealed = this.#context.sealer.check(acknowledgementRecord, acknowledgement);
    return await this.#write((session) => acknowledgeContinuation(session, sealed));
  }

  async acknowledgements(occurrence: OccurrenceId): Promise<readonly Acknowledgement[]> {
    const rows = await this.#read((session) => listRows(session, occurrence, 'acknowledgement'));
    return rows.filter((row) => row.kind === 'acknowledgement').map((row) => row.sealed.record);
  }

  async uncompleted(): Promise<readonly Acknowledgement[]> {
    return await this.#read(listUncompleted);
  }

  async journal(options: Parameters<Ledgers['journal']>[0] = {}): Promise<readonly JournalEntry[]> {
    const { afterSeq = 0, limit = 100, last = false, occurrence } = options;
    const page = { afterSeq, limit: Math.max(0, limit), occurrence };
    const rows = await this.#read((session) =>
      last ? lastRows(session, page) : pageRows(session, page),
    );
    return rows.map((row) => entryOf(openRow(this.#context, row)));
  }

  async search(prefix: string): Promise<readonly OccurrenceId[]> {
    const rows = await this.#read((session) =>
      session
        .sql(
          'select distinct occurrence from journal where occurrence >= ? and occurrence < ? order by occurrence limit 10',
        )
        .all(prefix, `${prefix}\u{10ffff}`),
    );
    return rows.map(({ occurrence }) => occurrence as OccurrenceId);
  }

  async checkpoint(): Promise<Sealed<Checkpoint> | undefined> {
    return await this.#guard(makeCheckpoint(this.#session));
  }

  async verify(exported?: Sealed<Checkpoint>): Promise<JournalVerdict> {
    const known =
      exported && this.#context.sealer.open(checkpointRecord, exported.text, exported.seal).record;
    return await this.#guard(this.#verifyApart(known));
  }

  async keep(digest: Digest, text: string): Promise<void> {
    if ((await this.document(digest)) === text) return;
    await this.#write((session) => keepDocument(session, digest, text));
  }

  async document(digest: Digest): Promise<string | undefined> {
    return await this.#read((session) => findDocument(session, digest));
  }

  async close(): Promise<void> {
    if (this.#session.db.isOpen) this.#session.db.close();
  }

  /**
   * On a connection of its own that only reads. Opened as read-only, SQLite would not look at CHECK
   * constraints.
   */
  async #verifyApart(exported: Checkpoint | undefined): Promise<JournalVerdict> {
    const db = openDatabase(this.#file);
    try {
      setPragma(db, { name: 'query_only', value: 'on', reads: 1 });
      return await verifyStore(createSession(this.#context, db, this.#session.patience), exported);
    } finally {
      db.close();
    }
  }

  #write<T>(body: (session: Session) => T): Promise<T> {
    return this.#guard(decideFlushed(this.#session, () => body(this.#session)));
  }

  #writeRelaxed<T>(body: (session: Session) => T): Promise<T> {
    return this.#guard(decideRelaxed(this.#session, () => body(this.#session)));
  }

  /** Reads see what is committed, relaxed or not, as other processes do. */
  #read<T>(body: (session: Session) => T): Promise<T> {
    return this.#guard(retryWhileBusy(() => body(this.#session), this.#session.patience));
  }

  async #guard<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (this.#session.db.isOpen || error instanceof EffectMatchError)
        throw unusable(error, this.#file);
      throw asFault(
        error,
        'ERR_EM_STORE_UNAVAILABLE',
        `the ledger ${this.#file} was closed; open it again`,
      );
    }
  }
}
