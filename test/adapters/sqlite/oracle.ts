import assert from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';
import type { ChangeRecord } from '../../../src/protocol/effect.ts';
import { type Row, readTag, type Value } from '../../../src/protocol/value.ts';

/** Columns and key of each table, as the test declares them. */
export type Tables = {
  readonly [table: string]: {
    readonly columns: readonly string[];
    readonly key: readonly string[];
  };
};

/**
 * Rows by table and key; each cell as SQLite describes it with typeof() and hex(), REAL by its
 * bits.
 */
export type Photo = ReadonlyMap<
  string,
  { readonly table: string; readonly cells: ReadonlyMap<string, string> }
>;

export function photograph(db: DatabaseSync, tables: Tables): Photo {
  const rows = new Map<string, { table: string; cells: Map<string, string> }>();
  for (const [table, { columns, key }] of Object.entries(tables)) {
    const parts = columns.flatMap((name) => [
      `typeof(${name})`,
      `hex(cast(${name} as blob))`,
      `case typeof(${name}) when 'real' then ${name} end`,
    ]);
    const select = db.prepare(
      `select ${parts.map((part, index) => `${part} as c${index}`)} from ${table}`,
    );
    for (const found of select.all()) {
      const cell = (at: number) => {
        const real = found[`c${3 * at + 2}`];
        return `${found[`c${3 * at}`]} ${typeof real === 'number' ? bits(real) : found[`c${3 * at + 1}`]}`;
      };
      const cells = new Map(columns.map((name, at) => [name, cell(at)]));
      rows.set(`${table} ${key.map((name) => cells.get(name)).join('|')}`, { table, cells });
    }
  }
  return rows;
}

/**
 * One line per row that differs: operation, row, and the columns that changed (all of them where it
 * came or went).
 */
export function difference(tables: Tables, before: Photo, after: Photo): string[] {
  const lines: string[] = [];
  for (const id of new Set([...before.keys(), ...after.keys()])) {
    const old = before.get(id);
    const now = after.get(id);
    const { columns, key } = tables[(old ?? now)?.table ?? ''] ?? assert.fail(id);
    const op = old === undefined ? 'insert' : now === undefined ? 'delete' : 'update';
    const names = columns
      .filter((name) => !key.includes(name))
      .filter((name) => op !== 'update' || old?.cells.get(name) !== now?.cells.get(name));
    if (op === 'update' && names.length === 0) continue;
    const side = (row: typeof old) =>
      row && names.toSorted().map((name) => [name, row.cells.get(name)]);
    lines.push(JSON.stringify([op, id, side(old) ?? null, side(now) ?? null]));
  }
  return lines.sort();
}

/** Records in the same words. */
export function describe(tables: Tables, records: readonly ChangeRecord[]): string[] {
  const side = (row: Row | null) =>
    row &&
    Object.keys(row)
      .toSorted()
      .map((name) => [name, cellText(row[name] ?? null)]);
  return records
    .map(({ op, target, key, before, after }) => {
      const id = tables[target]?.key.map((name) => cellText(key?.[name] ?? null)).join('|');
      return JSON.stringify([op, `${target} ${id}`, side(before), side(after)]);
    })
    .sort();
}

/** A value in the words of typeof() and hex(). */
export function cellText(value: Value): string {
  const hex = (text: string) => Buffer.from(text).toString('hex').toUpperCase();
  if (value === null) return 'null ';
  if (typeof value === 'string') return `text ${hex(value)}`;
  if (typeof value === 'number') return `integer ${hex(String(value))}`;
  const tag = readTag(value) ?? assert.fail(`not a tag: ${JSON.stringify(value)}`);
  if (tag.tag === '$int') return `integer ${hex(tag.text)}`;
  if (tag.tag === '$real') {
    assert.match(tag.text, /[.e]|Infinity/, 'a REAL never reads as an integer');
    return `real ${bits(Number(tag.text))}`;
  }
  return `${tag.tag === '$text' ? 'text' : 'blob'} ${tag.text.toUpperCase()}`;
}

function bits(real: number): string {
  const buffer = Buffer.alloc(8);
  buffer.writeDoubleBE(real);
  return buffer.toString('hex');
}
