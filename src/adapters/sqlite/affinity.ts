import type { StatementSync } from 'node:sqlite';
import { invariant } from '../../errors.ts';
import type { Value } from '../../protocol/value.ts';
import { quoteName } from '../../sqlite/connection.ts';
import { DatabaseSync } from '../../sqlite/engine.ts';
import type { SqliteColumn, SqliteRelation } from './catalog.ts';
import { bindValue, decodeCell, selectExact } from './value.ts';

/** What a column would store for a value, or why it cannot store it. */
export type Cast =
  | { readonly kind: 'stored'; readonly value: Value }
  | { readonly kind: 'unstorable'; readonly why: string };

/**
 * Uses SQLite's own type system instead of imitating it: a private in-memory database with one
 * single-column table for each declared type. The tables have no constraints, defaults, triggers or
 * collations, so no application code runs here.
 */
export class Affinity {
  readonly #db = new DatabaseSync(':memory:', { allowExtension: false });
  readonly #columns = new Map<
    string,
    { readonly write: StatementSync; readonly read: StatementSync }
  >();

  /** Stores the value in a column of this type and reads it back. */
  cast(relation: SqliteRelation, column: SqliteColumn, value: Value): Cast {
    const bound = bindValue(value);
    if (bound === undefined) return { kind: 'unstorable', why: describeUnbound(value) };
    const { write, read } = this.#column(relation.strict, column.type);
    try {
      write.run(bound.parameter, bound.isText ? 1n : 0n);
    } catch (error) {
      const why = `a ${column.type} column of a STRICT table does not take it (${String(error)})`;
      return { kind: 'unstorable', why };
    }
    const row: unknown = read.get();
    invariant(Array.isArray(row), 'what was stored can be read back');
    const stored = decodeCell(row[0], row[1]);
    if (column.name === relation.rowidAlias && row[0] !== 'integer') {
      return { kind: 'unstorable', why: 'an INTEGER PRIMARY KEY holds integers only' };
    }
    return { kind: 'stored', value: stored };
  }

  /** Returns the value of an SQL literal. The caller must make sure that the text is a literal. */
  literal(text: string): Value {
    const read = this.#db.prepare(`select ${selectExact('x')} from (select ${text} as x)`);
    read.setReadBigInts(true);
    read.setReturnArrays(true);
    const row: unknown = read.get();
    invariant(Array.isArray(row), 'a literal has a value');
    return decodeCell(row[0], row[1]);
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close();
  }

  #column(
    strict: boolean,
    type: string,
  ): { readonly write: StatementSync; readonly read: StatementSync } {
    const id = `${strict ? 'strict' : 'plain'} ${type}`;
    const known = this.#columns.get(id);
    if (known !== undefined) return known;
    const table = `t${this.#columns.size}`;
    // A type name can be any text, and affinity depends on the words in it. STRICT allows six plain
    // words.
    const declared = strict ? type : type === '' ? '' : quoteName(type);
    invariant(!strict || /^[A-Za-z]+$/.test(type), 'the types of a STRICT table are plain words');
    this.#db.exec(`create table ${table} (c ${declared}) ${strict ? 'strict' : ''}`);
    const write = this.#db.prepare(
      `insert or replace into ${table} (rowid, c) values (1, case ?2 when 1 then cast(?1 as text) else ?1 end)`,
    );
    const read = this.#db.prepare(`select ${selectExact('c')} from ${table}`);
    read.setReadBigInts(true);
    read.setReturnArrays(true);
    const statements = { write, read };
    this.#columns.set(id, statements);
    return statements;
  }
}

function describeUnbound(value: Value): string {
  if (typeof value !== 'object') return 'SQLite cannot store it';
  return 'SQLite stores null, numbers, text and bytes; write JSON as the text that the column holds';
}
