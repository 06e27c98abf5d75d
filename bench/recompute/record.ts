// Reads raw records by field name. The recomputation knows nothing else about them.

/** One raw record, as read from its file. */
export interface ReadRecord {
  readonly run: string;
  readonly [fact: string]: unknown;
}

/** Figures by name. */
export type Figures = ReadonlyMap<string, number>;

/** Counts by name. A name that is mentioned but never counted has the count 0. */
export class FigureTally {
  readonly #counts = new Map<string, number>();

  /** Adds one to this name if `holds`. Creates the name in any case. */
  count(name: string, holds: boolean): void {
    this.add(name, Number(holds));
  }

  add(name: string, value: number): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + value);
  }

  get figures(): Figures {
    return this.#counts;
  }
}

/** Splits a run's name into its parts. */
export function partsOf({ run }: ReadRecord): readonly string[] {
  return run.split('|').map((part) => part.trim());
}

export function textIn(record: ReadRecord, field: string): string {
  return String(record[field] ?? '');
}

export function numberIn(record: ReadRecord, field: string): number {
  return Number(record[field]);
}

export function listIn<T>(record: ReadRecord, field: string): readonly T[] {
  const found = record[field];
  return Array.isArray(found) ? found : [];
}

interface States {
  readonly initial: string;
  readonly approved: string;
  readonly durable: string;
}

/** Compares the digest of the durable state with those of the approved and the initial state. */
export function judgeStates(record: ReadRecord) {
  const { initial, approved, durable } = record.states as States;
  const committed = record.committed === true;
  const isRight = durable === approved;
  const isInitial = durable === initial;
  return {
    isRight,
    /** An unapproved state is durable or was reported as committed. */
    isWrong: !isRight && (committed || !isInitial),
    isSaved: isRight && committed,
    isKept: !committed && isInitial,
    isSpoilt: !committed && !isInitial,
  };
}

interface KeptVerdict {
  readonly kind: string;
  readonly reason?: string;
}

/** The verdicts kept with the run, in order. */
export function verdictsIn(record: ReadRecord): readonly KeptVerdict[] {
  const kept = listIn<{ readonly verdict?: KeptVerdict }>(record, 'kept');
  return kept.flatMap(({ verdict }) => (typeof verdict === 'object' ? verdict : []));
}

/** All facts of the run together. Of several with one name the last one counts. */
export function keptIn<T extends object>(record: ReadRecord): Partial<T> {
  return Object.assign({}, ...listIn<T>(record, 'kept'));
}

/** Compares the digest of what was durable in the end with those kept beside it. */
export function statesIn(record: ReadRecord) {
  const { states } = keptIn<{ readonly states: Partial<States & { takenOver: string }> }>(record);
  return {
    isApproved: states !== undefined && states.durable === states.approved,
    isInitial: states !== undefined && states.durable === states.initial,
    /** Somebody else's change is in it, and nothing besides. */
    isTakenOver: states !== undefined && states.durable === states.takenOver,
  };
}
