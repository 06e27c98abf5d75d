import { canonical } from '../../protocol/canon.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { Row } from '../../protocol/value.ts';
import type { MysqlRelation } from './catalog.ts';
import type { MysqlConnection } from './connection.ts';
import type { TracedRelation } from './observation.ts';
import { idOf } from './row-image.ts';
import { quoteName } from './sql.ts';
import { imageOf, literalOf, readImage } from './value.ts';

/** From 1000 values on, the server would turn a list of values into a table and join it. */
const BATCH = 900;

/** Where to read rows, and whether to lock them until the transaction ends. */
interface Place {
  readonly connection: MysqlConnection;
  readonly database: string;
  readonly isLocking?: boolean;
}

/** Keys of one relation. */
export interface WantedRows {
  readonly relation: TracedRelation;
  readonly keys: readonly Row[];
}

/**
 * Reads the images of rows by key, each with the index of its relation. Keys that a collation
 * treats as equal are found too.
 */
async function* findImages(
  place: Place,
  wanted: readonly WantedRows[],
): AsyncGenerator<readonly [number, TracedRelation, Buffer]> {
  for (const selects of batchSelects(place, wanted)) {
    const rows = await place.connection.query(selects.join(' union all '));
    for (const [index, image] of rows) {
      const relation = wanted[Number(index)]?.relation;
      if (!image || relation === undefined)
        throw new Error(`a row of "${relation?.target}" is too long to be read`);
      yield [Number(index), relation, image];
    }
  }
}

/** Reads rows by key as images, by the id of the image. */
export async function readImages(
  place: Place,
  wanted: readonly WantedRows[],
): Promise<ReadonlyMap<string, Buffer>> {
  const found = new Map<string, Buffer>();
  for await (const [, relation, image] of findImages(place, wanted))
    found.set(idOf(relation, image), image);
  return found;
}

/**
 * Reads rows by key and returns them for each relation under the text of their key. Keys that a
 * collation treats as equal are different here: a row counts only if its stored key is one of the
 * wanted keys.
 */
async function readRows(
  place: Place,
  wanted: readonly WantedRows[],
): Promise<readonly ReadonlyMap<string, Row>[]> {
  const found = wanted.map(() => new Map<string, Row>());
  for await (const [index, relation, image] of findImages(place, wanted)) {
    const row = readImage(relation.columns, image);
    found[index]?.set(textOfKey(relation, row), row);
  }
  return found;
}

/** Batches of SELECTs with a limited number of keys. Each SELECT names its relation by index. */
function batchSelects(place: Place, wanted: readonly WantedRows[]): readonly (readonly string[])[] {
  const batches: string[][] = [];
  let room = 0;
  for (const [index, { relation, keys }] of wanted.entries()) {
    const parts = partsOf(relation, keys);
    for (let from = 0; from < parts.length; ) {
      if (room === 0) {
        batches.push([]);
        room = BATCH;
      }
      const some = parts.slice(from, from + room);
      batches.at(-1)?.push(selectRows(place, index, relation, some));
      from += some.length;
      room -= some.length;
    }
  }
  return batches;
}

/** One key, or a run of consecutive integers. */
type KeyPart = { readonly kind: 'key' | 'run'; readonly text: string };

/** The keys as parts of a condition. A statement on many rows often has consecutive keys. */
function partsOf({ columns, key }: TracedRelation, keys: readonly Row[]): readonly KeyPart[] {
  const kinds = new Map(columns.map(({ name, kind }) => [name, kind]));
  const tuples = keys.map((row) =>
    key.map((name) => String(literalOf(kinds.get(name) ?? 'text', row[name] ?? null))),
  );
  const isInteger = key.length === 1 && key.every((name) => kinds.get(name) === 'integer');
  if (!isInteger || keys.length < MANY)
    return tuples.map((cells) => ({ kind: 'key', text: `(${cells.join(', ')})` }));
  return runsOf(tuples.map(([cell]) => BigInt(String(cell)))).map(({ first, last }) =>
    first === last
      ? { kind: 'key', text: `(${first})` }
      : { kind: 'run', text: `${first} and ${last}` },
  );
}

/** Fewer keys are listed: then the statement does not depend on what their values are. */
const MANY = 100;

function runsOf(values: readonly bigint[]): readonly { first: bigint; last: bigint }[] {
  const runs: { first: bigint; last: bigint }[] = [];
  for (const value of values.toSorted((a, b) => (a < b ? -1 : 1))) {
    const run = runs.at(-1);
    if (run !== undefined && value <= run.last + 1n) run.last = value;
    else runs.push({ first: value, last: value });
  }
  return runs;
}

function selectRows(
  { database, isLocking = false }: Place,
  index: number,
  { target, columns, key }: TracedRelation,
  parts: readonly KeyPart[],
): string {
  const names = key.map((name) => `r.${quoteName(name)}`).join(', ');
  const listed = parts.filter(({ kind }) => kind === 'key').map(({ text }) => text);
  const conditions = [
    ...(listed.length === 0 ? [] : [`(${names}) in (${listed.join(', ')})`]),
    ...parts.flatMap(({ kind, text }) => (kind === 'run' ? [`${names} between ${text}`] : [])),
  ];
  const table = `${quoteName(database)}.${quoteName(target)}`;
  // A statement that deletes most of a large table makes the server expect that a scan is cheap.
  const select = `(select ${index}, ${imageOf(columns, 'r')} from ${table} r force index (primary)`;
  const lock = isLocking ? ' lock in share mode' : '';
  return `${select} where ${conditions.join(' or ')}${lock})`;
}

/** A key, or the key of a row, as text. */
function textOfKey({ key }: Pick<TracedRelation, 'key'>, row: Row): string {
  return canonical(key.map((name) => row[name] ?? null));
}

/** Reads declared state, in the given order. The keys must be as the columns store them. */
export async function readState(
  place: Place,
  relations: ReadonlyMap<string, MysqlRelation>,
  reads: readonly StateRead[],
): Promise<readonly StateReading[]> {
  const asked = reads.map((read) => {
    const relation = relations.get(read.target);
    if (relation === undefined) throw new Error(`"${read.target}" cannot be read`);
    return { ...read, relation };
  });
  const groups = [...Map.groupBy(asked, ({ relation }) => relation)];
  const found = await readRows(
    place,
    groups.map(([relation, group]) => ({ relation, keys: group.map(({ key }) => key) })),
  );
  const rows = new Map(groups.map(([relation], index) => [relation, found[index]]));
  return asked.map(({ target, key, columns, relation }) => {
    const row = rows.get(relation)?.get(textOfKey(relation, key));
    if (row === undefined) return { target, key, row: null };
    const names = columns ?? relation.columns.map(({ name }) => name);
    return { target, key, row: Object.fromEntries(names.map((name) => [name, row[name] ?? null])) };
  });
}
