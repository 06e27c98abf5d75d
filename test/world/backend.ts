import type { MarkerText } from '../../src/contract/proof.ts';
import { canonical } from '../../src/protocol/canon.ts';
import type { ChangeRecord, Op } from '../../src/protocol/effect.ts';
import type { Target } from '../../src/protocol/registration.ts';
import type { Row } from '../../src/protocol/value.ts';

/**
 * One write as an operation asks for it. A row that is or is not there as the write supposes fails
 * it.
 */
export type Write =
  | { readonly op: 'insert'; readonly target: string; readonly row: Row }
  | { readonly op: 'update'; readonly target: string; readonly key: Row; readonly set: Row }
  | { readonly op: 'delete'; readonly target: string; readonly key: Row };

/**
 * What the backend makes of one write: itself, nothing, something else, or more. Triggers and
 * server logic.
 */
export type Logic = (write: Write) => readonly Write[];

type Table = Map<string, Row>;

/**
 * The durable side of a deployment in memory: tables and markers, one writer at a time. It outlives
 * the processes that use it, which is what makes a crash worth testing.
 */
export class MemoryBackend {
  readonly id: string;
  readonly targets: readonly Target[];
  /** Server logic that runs with every write of an operation. */
  logic: Logic = (write) => [write];
  /** Counts up when somebody changes the schema; part of the boundary. */
  schema = 1;
  /** A route that nothing observes or denies, when there is one. */
  unclassified: string | undefined;
  readonly markers = new Map<string, MarkerText>();
  readonly #tables: Map<string, Table>;
  #writer: MemoryCandidate | undefined;
  #candidates = 0;

  constructor(
    id: string,
    targets: readonly Target[],
    rows: Readonly<Record<string, readonly Row[]>> = {},
  ) {
    this.id = id;
    this.targets = targets;
    this.#tables = new Map(targets.map(({ name }) => [name, new Map()]));
    for (const [target, list] of Object.entries(rows))
      for (const row of list) this.write({ op: 'insert', target, row });
  }

  /** Everything durable, in a form that two states can be compared by. */
  rows(): Readonly<Record<string, readonly Row[]>> {
    const entries = [...this.#tables].map(([name, table]) => {
      const rows = [...table].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
      return [name, rows] as const;
    });
    return Object.fromEntries(entries);
  }

  find(target: string, key: Row): Row | undefined {
    return this.#tables.get(target)?.get(canonical(key));
  }

  /**
   * A change from outside any candidate, past every lock: an administrator, or an adapter that
   * protects nothing.
   */
  write(write: Write): void {
    const change = changeOf(this.targets, write, (target, key) => this.find(target, key));
    this.#apply(change);
  }

  /** The one writer's candidate; undefined while another is held. */
  open(): MemoryCandidate | undefined {
    if (this.#writer !== undefined) return undefined;
    this.#candidates += 1;
    this.#writer = new MemoryCandidate(this, `candidate-${this.#candidates}`);
    return this.#writer;
  }

  /** The candidate that is held now. */
  get writer(): MemoryCandidate | undefined {
    return this.#writer;
  }

  /** Ends a candidate without a trace. */
  drop(candidate: MemoryCandidate): void {
    if (this.#writer === candidate) this.#writer = undefined;
  }

  /**
   * State and marker, if any, become durable in one step, or, where the occurrence is already
   * decided, neither.
   */
  commit(candidate: MemoryCandidate, marker?: MarkerText): boolean {
    if (this.#writer !== candidate) return false;
    this.#writer = undefined;
    if (marker !== undefined && this.markers.has(marker.occurrence)) return false;
    for (const change of candidate.log) this.#apply(change);
    if (marker !== undefined) this.markers.set(marker.occurrence, marker);
    return true;
  }

  #apply({ target, key, before, after }: ChangeRecord): void {
    const table = this.#tables.get(target);
    if (table === undefined) throw new Error(`no table ${target}`);
    if (before !== null) table.delete(canonical(key));
    if (after !== null) table.set(canonical(key), after);
  }
}

/**
 * Writes that nobody outside sees. `log` is the recorder of events; `tally` and `touched` are kept
 * apart from it.
 */
export class MemoryCandidate {
  readonly id: string;
  readonly log: ChangeRecord[] = [];
  readonly tally = new Map<string, { readonly target: string; readonly op: Op; count: number }>();
  readonly touched = new Set<string>();
  readonly schemaBefore: number;
  readonly #backend: MemoryBackend;
  readonly #rows = new Map<string, Row | undefined>();

  constructor(backend: MemoryBackend, id: string) {
    this.#backend = backend;
    this.id = id;
    this.schemaBefore = backend.schema;
  }

  /** Runs one write of the operation with whatever the backend makes of it. */
  run(write: Write): void {
    for (const effective of this.#backend.logic(write)) this.write(effective);
  }

  write(write: Write): void {
    const change = changeOf(this.#backend.targets, write, (target, key) => this.#find(target, key));
    const { op, target, key, after } = change;
    this.#rows.set(slotOf(target, key), after ?? undefined);
    this.log.push(change);
    this.touched.add(target);
    const counted = `${op} ${target}`;
    this.tally.set(counted, { target, op, count: (this.tally.get(counted)?.count ?? 0) + 1 });
  }

  #find(target: string, key: Row): Row | undefined {
    const slot = slotOf(target, key);
    return this.#rows.has(slot) ? this.#rows.get(slot) : this.#backend.find(target, key);
  }
}

const slotOf = (target: string, key: Row | null): string => canonical([target, key]);

/** The key columns of a row. */
export function keyOf(target: Target, row: Row): Row {
  return Object.fromEntries(Object.entries(row).filter(([column]) => target.key.includes(column)));
}

function changeOf(
  targets: readonly Target[],
  write: Write,
  find: (target: string, key: Row) => Row | undefined,
): ChangeRecord {
  const target = targets.find(({ name }) => name === write.target);
  if (target === undefined) throw new Error(`no table ${write.target}`);
  const key = write.op === 'insert' ? keyOf(target, write.row) : write.key;
  const before = find(target.name, key) ?? null;
  if (write.op === 'insert') {
    if (before !== null) throw new Error(`${target.name} ${canonical(key)} exists`);
    const blank = Object.fromEntries(target.columns.map((column) => [column, null]));
    return { op: 'insert', target: target.name, key, before, after: { ...blank, ...write.row } };
  }
  if (before === null) throw new Error(`${target.name} ${canonical(key)} does not exist`);
  const after = write.op === 'update' ? { ...before, ...write.set } : null;
  return { op: write.op, target: target.name, key, before, after };
}
