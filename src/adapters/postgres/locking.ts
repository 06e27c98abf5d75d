import { quoteLiteral, quoteName, quoteQualified } from '../../postgres/identifier.ts';
import { canonical } from '../../protocol/canon.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { Row, Value } from '../../protocol/value.ts';
import { parseImage } from './image.ts';
import type { Column, Relation } from './relation.ts';
import { decoderOf, encodeValue } from './value.ts';

/** Reads that lock what they read, and how to understand their answers. */
export interface LockedReads {
  readonly queries: readonly string[];
  decode(images: readonly (string | null)[]): readonly StateReading[];
}

export const NO_READS: LockedReads = { queries: [], decode: () => [] };

/**
 * One query per declared row, for a trusted function: by key, through operators of the system catalogue alone and
 * casts to types beneath domains, so that no application code runs; the row as its output function writes it.
 */
export function lockReads(relations: ReadonlyMap<string, Relation>, reads: readonly StateRead[]): LockedReads {
  const known = reads.map((read) => ({ read, relation: relations.get(read.target) }));
  return {
    queries: known.map(({ read, relation }) =>
      relation === undefined ? 'select null' : lockQuery(relation, read.key),
    ),
    decode: (images) =>
      known.map(({ read, relation }, index) => {
        const { target, key } = read;
        const image = images[index] ?? null;
        const row = relation === undefined || image === null ? null : readImage(relation, image);
        return { target, key, row: row !== null && hasKey(row, key) ? withColumns(row, read) : null };
      }),
  };
}

function lockQuery(relation: Relation, key: Row): string {
  const conditions = relation.key.map((name) => {
    const column = relation.columns.find((candidate) => candidate.name === name);
    return column === undefined
      ? 'false'
      : `t.${quoteName(name)} operator(pg_catalog.=) ${keyLiteral(column, key[name] ?? null)}`;
  });
  return `select pg_catalog.concat(t) from ${quoteQualified(relation)} as t where ${conditions.join(' and ')} for share of t`;
}

function keyLiteral(column: Column, value: Value): string {
  const { baseSchema, base } = column.type;
  const text = encodeValue(column.type, value);
  const literal = typeof text === 'string' ? quoteLiteral(text) : 'null';
  return `${literal}::${quoteName(baseSchema)}.${quoteName(base)}`;
}

function readImage(relation: Relation, image: string): Row {
  const cells = parseImage(image, relation.columns.length);
  return Object.fromEntries(
    relation.columns.map(({ name, type }, index) => {
      const text = cells[index] ?? null;
      return [name, text === null ? null : decoderOf(type)(text)];
    }),
  );
}

/** SQL equality finds the row; it counts only where its key has the same stored representation. */
function hasKey(row: Row, key: Row): boolean {
  return Object.entries(key).every(([name, value]) => canonical(row[name] ?? null) === canonical(value));
}

function withColumns(row: Row, { columns }: StateRead): Row {
  const names = columns ?? Object.keys(row);
  return Object.fromEntries(names.map((name) => [name, row[name] ?? null]));
}
