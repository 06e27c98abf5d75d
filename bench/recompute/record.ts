// What a script that checks the figures knows of raw records: their fields by name, nothing else.

/** One raw record as it is read from its file. */
export interface ReadRecord {
  readonly run: string;
  readonly [fact: string]: unknown;
}

/** Figures by name. */
export type Figures = ReadonlyMap<string, number>;

/** Counts by name; a name that is only touched has the count 0. */
export class FigureTally {
  readonly #counts = new Map<string, number>();

  /** Counts the record under this name if it holds, and has the name exist in any case. */
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

/** The parts of a run's name. */
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

/** By the digests of the states: whether the durable one is the approved one, and the initial one. */
export function judgeStates(record: ReadRecord) {
  const { initial, approved, durable } = record.states as States;
  const committed = record.committed === true;
  const isRight = durable === approved;
  const isInitial = durable === initial;
  return {
    isRight,
    /** Something that was not approved is durable, or is said to be committed. */
    isWrong: !isRight && (committed || !isInitial),
    isSaved: isRight && committed,
    isKept: !committed && isInitial,
    isSpoilt: !committed && !isInitial,
  };
}

/** The verdicts that were kept with the run, in order. */
export function verdictsIn(record: ReadRecord): readonly { readonly kind: string }[] {
  return listIn<{ readonly verdict?: { readonly kind: string } }>(record, 'kept').flatMap(
    ({ verdict }) => verdict ?? [],
  );
}
