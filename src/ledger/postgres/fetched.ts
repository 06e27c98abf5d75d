import type { AttemptName, JournalEntry, LedgerContext } from '../../contract/ledgers.ts';
import type { Sealed } from '../../contract/seal.ts';
import { invariant } from '../../errors.ts';
import type { Digest, OccurrenceId } from '../../protocol/record.ts';
import { CLAIM_SLOT, type JournalRow, type OpenedRow, openRow, rowDigest } from '../journal.ts';
import type { CheckedRequest } from '../rules.ts';
import type {
  CheckpointRow,
  DocumentRow,
  IssuanceRow,
  IssuedBefore,
  LedgerTables,
  LedgerTotals,
  Page,
  UnsettledEntry,
} from '../store.ts';

/** A journal row, with its issuance if it is a claim. */
export interface FetchedRow extends JournalRow {
  readonly issuance: number | undefined;
}

/** Fetched values that have no key. Undefined means not asked for. */
export interface FetchedLists {
  positions?: number;
  nowMs?: number;
  /** The deciding transaction, and the log it is written to; empty if the log has no name. */
  transaction?: string | undefined;
  log?: string;
  page?: readonly JournalRow[];
  standing?: ReturnType<LedgerTables['standing']>;
  unsettled?: readonly UnsettledEntry[];
  uncompleted?: readonly JournalRow[];
  found?: readonly OccurrenceId[];
  documents?: readonly DocumentRow[];
  totals?: LedgerTotals;
}

/** A decision needs an occurrence that was not fetched. The caller fetches it and decides again. */
export class Unfetched extends Error {
  readonly occurrence: OccurrenceId;

  constructor(occurrence: OccurrenceId) {
    super(`${occurrence} was not fetched`);
    this.occurrence = occurrence;
  }
}

/** Rows that were checked, or made here from a checked record; none of them changes. */
const opened = new WeakMap<JournalRow, OpenedRow>();

/**
 * The fetched part of the tables, plus the decisions made since. If a decision throws, only that
 * decision is undone; the others are written at the end of the transaction.
 */
export class FetchedTables implements LedgerTables {
  readonly context: LedgerContext;
  readonly lists: FetchedLists = {};
  readonly plans = new Map<string, number>();
  readonly issuances = new Map<number, IssuanceRow>();
  readonly kept = new Map<string, DocumentRow>();
  readonly checkpoints: CheckpointRow[] = [];
  readonly #rows = new Map<string, Map<string, FetchedRow>>();
  readonly #entries = new Map<number, UnsettledEntry>();
  readonly #issuanceOf = new Map<number, number>();
  #undo: (() => void)[] = [];
  readonly changes = {
    rows: [] as FetchedRow[],
    plans: new Set<string>(),
    issued: new Set<number>(),
    counted: new Set<number>(),
    entered: new Set<number>(),
    leased: new Set<number>(),
    removed: new Set<number>(),
    documents: new Set<string>(),
    checkpoints: [] as CheckpointRow[],
  };

  constructor(context: LedgerContext) {
    this.context = context;
  }

  /** Declares that all rows of these occurrences are known. `addRow` then adds them. */
  addOccurrences(occurrences: Iterable<string>): void {
    for (const occurrence of occurrences) this.#rows.set(occurrence, new Map());
  }

  addRow(row: FetchedRow, entry: UnsettledEntry | undefined): void {
    this.#rowsOf(row.occurrence).set(row.slot, row);
    if (row.issuance !== undefined) this.#issuanceOf.set(row.seq, row.issuance);
    if (entry !== undefined) this.#entries.set(row.seq, entry);
  }

  has(occurrence: string): boolean {
    return this.#rows.has(occurrence);
  }

  /** Occurrences with new rows or changed leases. */
  touched(): ReadonlySet<string> {
    const { rows, leased } = this.changes;
    const changed = [...rows, ...this.#all().filter(({ seq }) => leased.has(seq))];
    return new Set(changed.map(({ occurrence }) => occurrence));
  }

  /** The rows and the entry of an occurrence whose claim has not ended. */
  held(occurrence: string) {
    const rows = [...this.#rowsOf(occurrence).values()];
    const entry = rows.map(({ seq }) => this.#entries.get(seq)).find((one) => one !== undefined);
    return entry && { rows, entry };
  }

  #all(): readonly FetchedRow[] {
    return [...this.#rows.values()].flatMap((rows) => [...rows.values()]);
  }

  /** Runs one decision, and undoes its changes if it throws. */
  attempt<T>(decide: (tables: LedgerTables) => T): T {
    this.#undo = [];
    try {
      return decide(this);
    } catch (error) {
      for (const undo of this.#undo.reverse()) undo();
      throw error;
    }
  }

  now(): number {
    invariant(this.lists.nowMs !== undefined, 'the time was fetched');
    return this.lists.nowMs;
  }

  lastSeq(): number {
    invariant(this.lists.positions !== undefined, 'the count of positions was fetched');
    return this.lists.positions;
  }

  find(occurrence: string, slot: string): OpenedRow | undefined {
    const row = this.#rowsOf(occurrence).get(slot);
    return row && this.#open(row);
  }

  findAll(
    occurrence: string,
    slots: readonly [string, string, string, string],
  ): ReadonlyMap<string, OpenedRow> {
    const found = new Map<string, OpenedRow>();
    for (const slot of slots) {
      const row = this.find(occurrence, slot);
      if (row !== undefined) found.set(slot, row);
    }
    return found;
  }

  list<K extends JournalEntry['kind']>(
    occurrence: string,
    kind: K,
  ): readonly Extract<OpenedRow, { kind: K }>[] {
    const rows = [...this.#rowsOf(occurrence).values()].filter((row) => row.kind === kind);
    return rows.map((row) => this.#open(row)) as Extract<OpenedRow, { kind: K }>[];
  }

  count(occurrence: string): number {
    return this.#rowsOf(occurrence).size;
  }

  findClaimedTrace(occurrence: OccurrenceId): number | undefined {
    const rows = [...this.#rowsOf(occurrence).values()].map((row) => this.#open(row));
    const isRefusal = (row: OpenedRow) =>
      row.kind === 'terminal' && row.sealed.record.claim === undefined;
    return rows.find((row) => !isRefusal(row))?.seq;
  }

  append(
    kind: JournalEntry['kind'],
    slot: string,
    sealed: Sealed<{ readonly occurrence: OccurrenceId }>,
    issuance?: number,
  ): number {
    const { record, text, seal } = sealed;
    const seq = this.lastSeq() + 1;
    const { occurrence } = record;
    const place = { seq, kind, slot, sealKey: seal.key, sealMac: seal.mac };
    const digest = rowDigest(this.context, place);
    const row: FetchedRow = { ...place, occurrence, text, digest, issuance };
    const rows = this.#rowsOf(occurrence);
    invariant(!rows.has(slot), 'a slot of the journal is filled once');
    this.addRow(row, undefined);
    opened.set(row, { seq, slot, digest, kind, sealed } as OpenedRow);
    this.lists.positions = seq;
    this.changes.rows.push(row);
    this.#undo.push(() => {
      rows.delete(slot);
      this.#issuanceOf.delete(seq);
      this.lists.positions = seq - 1;
      this.changes.rows.pop();
    });
    return seq;
  }

  announce(task: string, revision: number): number {
    const before = this.plans.get(task);
    if (before !== undefined && before >= revision) return before;
    this.#set(this.plans, task, revision);
    this.#mark(this.changes.plans, task);
    return revision;
  }

  issuedBefore({ license, binding }: CheckedRequest): IssuedBefore {
    const [first] = binding.occurrences;
    const traces = first === undefined ? 0 : this.count(first);
    const announced = this.plans.get(license.task);
    for (const [id, row] of this.issuances) {
      if (row.issuer === license.issuer && row.nonce === license.nonce)
        return { announced, traces, issued: { id, claimed: row.claimed, binding: row.binding } };
    }
    return { announced, traces, issued: undefined };
  }

  /** The id is the position that the claim will get. */
  issue(row: IssuanceRow): number {
    const id = this.lastSeq() + 1;
    this.#set(this.issuances, id, row);
    this.#mark(this.changes.issued, id);
    return id;
  }

  countClaim(id: number): void {
    const row = this.issuances.get(id);
    invariant(row !== undefined, 'an issuance that was found is there');
    this.#set(this.issuances, id, { ...row, claimed: row.claimed + 1 });
    if (!this.changes.issued.has(id)) this.#mark(this.changes.counted, id);
  }

  issuance(id: number): IssuanceRow | undefined {
    return this.issuances.get(id);
  }

  issuanceOf(claim: number): IssuanceRow | undefined {
    const id = this.#issuanceOf.get(claim);
    return id === undefined ? undefined : this.issuances.get(id);
  }

  enter(claim: number, execution: string, leaseUntilMs: number): void {
    this.#set(this.#entries, claim, { claim, execution, leaseUntilMs, occurrence: null });
    this.#mark(this.changes.entered, claim);
  }

  settle(occurrence: string): boolean {
    const claim = this.#rowsOf(occurrence).get(CLAIM_SLOT)?.seq;
    const entry = claim === undefined ? undefined : this.#entries.get(claim);
    if (claim === undefined || entry === undefined) return false;
    this.#entries.delete(claim);
    this.#undo.push(() => this.#entries.set(claim, entry));
    if (this.changes.entered.has(claim)) this.#unmark(this.changes.entered, claim);
    else this.#mark(this.changes.removed, claim);
    return true;
  }

  extendLease(attempt: AttemptName, untilMs: number): boolean {
    return this.#lease(attempt, (entry) => Math.max(entry.leaseUntilMs, untilMs));
  }

  endLease(attempt: AttemptName, atMs: number): boolean {
    return this.#lease(attempt, (entry) => Math.min(entry.leaseUntilMs, atMs));
  }

  standing() {
    invariant(this.lists.standing !== undefined, 'the standing of the attempt was fetched');
    return this.lists.standing;
  }

  entry(claim: number): UnsettledEntry | undefined {
    return this.#entries.get(claim);
  }

  entries(claims: Iterable<number>): readonly UnsettledEntry[] {
    return [...claims].map((claim) => this.#entries.get(claim)).filter((one) => one !== undefined);
  }

  unsettled(): readonly UnsettledEntry[] {
    invariant(this.lists.unsettled !== undefined, 'the unsettled claims were fetched');
    return this.lists.unsettled;
  }

  document(digest: Digest): DocumentRow | undefined {
    return this.kept.get(digest);
  }

  keep(row: DocumentRow): void {
    this.#set(this.kept, row.digest, row);
    this.#mark(this.changes.documents, row.digest);
  }

  documentsAfter(): readonly DocumentRow[] {
    invariant(this.lists.documents !== undefined, 'the documents were fetched');
    return this.lists.documents;
  }

  newestCheckpoint(): CheckpointRow | undefined {
    return this.checkpoints.at(-1);
  }

  checkpointAfter(seq: number): CheckpointRow | undefined {
    return this.checkpoints.find(({ throughSeq }) => throughSeq > seq);
  }

  addCheckpoint(row: CheckpointRow): void {
    const before = [...this.checkpoints];
    this.checkpoints.push(row);
    this.checkpoints.sort((one, other) => one.throughSeq - other.throughSeq);
    this.changes.checkpoints.push(row);
    this.#undo.push(() => {
      this.checkpoints.splice(0, Number.POSITIVE_INFINITY, ...before);
      this.changes.checkpoints.pop();
    });
  }

  page({ occurrence, afterSeq, limit, last = false }: Page): readonly JournalRow[] {
    if (occurrence !== undefined) {
      const rows = [...this.#rowsOf(occurrence).values()].filter(({ seq }) => seq > afterSeq);
      return (last ? rows.reverse() : rows).slice(0, limit);
    }
    invariant(this.lists.page !== undefined, 'the page was fetched');
    return this.lists.page;
  }

  search(): readonly OccurrenceId[] {
    return this.lists.found ?? [];
  }

  uncompleted(): readonly OpenedRow[] {
    return (this.lists.uncompleted ?? []).map((row) => openRow(this.context, row));
  }

  totals(): LedgerTotals {
    invariant(this.lists.totals !== undefined, 'the sums were fetched');
    return this.lists.totals;
  }

  /** Locking a row is a write, so the commit already has something to flush. */
  touch(): void {}

  #rowsOf(occurrence: string): Map<string, FetchedRow> {
    const rows = this.#rows.get(occurrence);
    if (rows === undefined) throw new Unfetched(occurrence as OccurrenceId);
    return rows;
  }

  #open(row: FetchedRow): OpenedRow {
    const known = opened.get(row) ?? openRow(this.context, row);
    opened.set(row, known);
    return known;
  }

  #entryOf({ occurrence, execution }: AttemptName): UnsettledEntry | undefined {
    const claim = this.#rowsOf(occurrence).get(CLAIM_SLOT)?.seq;
    const entry = claim === undefined ? undefined : this.#entries.get(claim);
    return entry?.execution === execution ? entry : undefined;
  }

  #lease(attempt: AttemptName, untilMs: (entry: UnsettledEntry) => number): boolean {
    const entry = this.#entryOf(attempt);
    if (entry === undefined) return false;
    this.#set(this.#entries, entry.claim, { ...entry, leaseUntilMs: untilMs(entry) });
    if (!this.changes.entered.has(entry.claim)) this.#mark(this.changes.leased, entry.claim);
    return true;
  }

  #set<K, V>(map: Map<K, V>, key: K, value: V): void {
    const before = map.get(key);
    map.set(key, value);
    this.#undo.push(() => {
      if (before === undefined) map.delete(key);
      else map.set(key, before);
    });
  }

  #mark<K>(set: Set<K>, key: K): void {
    if (set.has(key)) return;
    set.add(key);
    this.#undo.push(() => set.delete(key));
  }

  #unmark<K>(set: Set<K>, key: K): void {
    set.delete(key);
    this.#undo.push(() => set.add(key));
  }
}
