import type { TextRow, WireStatement } from '../../postgres/connection.ts';
import { nameTarget, type QualifiedName } from '../../postgres/identifier.ts';
import type { Drawn } from '../../protocol/drawn.ts';
import type { Residue } from '../../protocol/residue.ts';
import { readRows, type TextReader } from './certify/catalog.ts';
import type { PostgresRelation } from './relation.ts';
import { SQL } from './sql.ts';

/** A sequence whose position the trusted functions can read. */
export interface ReadableSequence {
  readonly oid: number;
  readonly name: string;
}

/**
 * Every sequence that the owner of our functions may read: those of registered columns, which
 * provisioning grants, and any others that an administrator granted.
 */
export async function listSequences(
  control: TextReader,
  owner: string,
): Promise<readonly ReadableSequence[]> {
  const query = SQL.registered.get('sequences');
  const rows = await readRows<QualifiedName & { oid: number }>(control, query, [owner]);
  return rows.map((row) => ({ oid: row.oid, name: nameTarget(row) }));
}

/**
 * Positions of sequences before and after, by object id. A position is '' until the first value is
 * drawn. `times` is how often the transaction accessed the sequence, or 0 if that is not known.
 */
export type Moved = ReadonlyMap<
  number,
  { readonly from: string; readonly to: string; readonly times: number }
>;

/**
 * Compares two lists of positions. Entries are `oid:position`, with `:times` added by an
 * observation. The second list may leave out sequences that were not touched.
 */
export function comparePositions(before: string, after: string): Moved {
  const read = (text: string) => text.split(' ').map((entry) => entry.split(':'));
  const stood = new Map(read(before).map(([oid, position]) => [oid, position]));
  const moved = new Map<number, { from: string; to: string; times: number }>();
  for (const [oid, to = '', times = '0'] of read(after)) {
    const from = stood.get(oid) ?? '';
    if (from !== to || times !== '0') moved.set(Number(oid), { from, to, times: Number(times) });
  }
  return moved;
}

/** A sequence's position as a number of steps: 1 is its start value. */
export function stepsOf({ start, increment }: Steps, position: string): bigint {
  return position === '' ? 0n : (BigInt(position) - start) / increment + 1n;
}

/** How a sequence counts. */
interface Steps {
  readonly start: bigint;
  readonly increment: bigint;
}

/** A registered sequence: one that belongs to columns of registered relations. */
export interface DrawableSequence extends Steps, ReadableSequence {
  readonly cache: number;
  readonly columns: Drawn['columns'];
}

/** The sequences of these relations whose position can be read, each once, with all its columns. */
export function drawableSequences(
  relations: readonly PostgresRelation[],
  readable: readonly ReadableSequence[],
): readonly DrawableSequence[] {
  const uses = relations.flatMap(({ target, columns }) =>
    columns.flatMap(({ name, draws }) =>
      draws.map((sequence) => ({ sequence, place: { target, column: name } })),
    ),
  );
  return readable.flatMap(({ oid, name }) => {
    const own = uses.filter(({ sequence }) => sequence.oid === oid);
    const [first] = own;
    if (first === undefined) return [];
    const { start, increment, cache } = first.sequence;
    const steps = { start: BigInt(start), increment: BigInt(increment), cache: Number(cache) };
    return [{ oid, name, ...steps, columns: own.map(({ place }) => place) }];
  });
}

/** What the transaction drew from registered sequences. */
export function describeDrawn(
  sequences: readonly DrawableSequence[],
  moved: Moved,
): readonly Drawn[] {
  return sequences.flatMap((sequence) => {
    const found = moved.get(sequence.oid);
    if (found === undefined || found.times === 0) return [];
    const { name, cache: each, columns } = sequence;
    const went = stepsOf(sequence, found.to) - stepsOf(sequence, found.from);
    return [{ sequence: name, times: found.times, each, moved: went, columns }];
  });
}

/** Reads how often the transaction has accessed each sequence. Reading changes no count. */
export function lookAtDraws(sequenceOids: string): WireStatement {
  const text = `select s, pg_catalog.pg_stat_get_xact_blocks_fetched(s)
    from pg_catalog.unnest($1::pg_catalog.oid[]) as given(s)`;
  return { text, values: [sequenceOids] };
}

/**
 * How often failed calls of a task accessed sequences. What a rollback does not take back is
 * residue, and not part of the result of the calls that were kept.
 */
export class UndoneDraws {
  readonly #times = new Map<number, number>();

  /** Adds a call, from the answers to `lookAtDraws` before the call and after it was undone. */
  add(before: readonly TextRow[], after: readonly TextRow[]): void {
    const had = new Map(before.map(([oid, times]) => [oid, Number(times)]));
    for (const [oid, times] of after) {
      const more = Number(times) - (had.get(oid) ?? 0);
      this.#times.set(Number(oid), (this.#times.get(Number(oid)) ?? 0) + more);
    }
  }

  subtractFrom(moved: Moved): Moved {
    if (this.#times.size === 0) return moved;
    return new Map(
      [...moved].map(([oid, entry]) => {
        return [oid, { ...entry, times: entry.times - (this.#times.get(oid) ?? 0) }];
      }),
    );
  }
}

/** Moved sequences as residue. A rollback does not take the moves back. */
export function describeMoved(
  sequences: readonly ReadableSequence[],
  moved: Moved,
): readonly Residue[] {
  return sequences.flatMap(({ oid, name }) => {
    const { from = '', to = '' } = moved.get(oid) ?? {};
    return to === '' || to === from
      ? []
      : [{ kind: 'sequence' as const, name, from: from === '' ? null : from, to }];
  });
}
