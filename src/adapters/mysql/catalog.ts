import type { RelationShape } from '../../backend/manifest-schema.ts';
import { suggest } from '../../protocol/nearest.ts';
import type { MysqlConnection, TextCells } from './connection.ts';
import { quoteName, quoteText } from './sql.ts';
import { type ColumnKind, kindOf } from './value.ts';

/** A column that is compared. */
export interface MysqlColumn {
  readonly name: string;
  readonly kind: ColumnKind;
  /** The type with its character set and collation, as a column definition states it. */
  readonly definition: string;
  readonly isNullable: boolean;
  /** The default as SQL text; null if there is none. */
  readonly defaultText: string | null;
  readonly isAssigned: boolean;
}

/** A table whose writes recorders can report. */
export interface MysqlRelation extends RelationShape<MysqlColumn> {
  readonly computed: readonly string[];
  /** The CREATE TABLE statement, which changes whenever the definition does. */
  readonly text: string;
}

/** A usable relation, or why it cannot be used and how to fix that. */
export type RelationReport =
  | { readonly kind: 'usable'; readonly relation: MysqlRelation }
  | { readonly kind: 'unusable'; readonly name: string; readonly why: string };

/** Reads tables of one database by name, in the given order. */
export async function readRelations(
  connection: MysqlConnection,
  database: string,
  names: readonly string[],
): Promise<readonly RelationReport[]> {
  const schema = quoteText(database);
  const list = names.map(quoteText).join(', ');
  const chosen = `table_schema = ${schema} and binary table_name in (${list})`;
  const tables = await connection.texts(
    `select table_name, table_type, engine from information_schema.tables where ${chosen}`,
  );
  const columns = await connection.texts(
    `select table_name, column_name, data_type, column_type, character_set_name, collation_name,
        column_default, is_nullable, extra, is_generated
      from information_schema.columns where ${chosen} order by table_name, ordinal_position`,
  );
  const indexes = await connection.texts(
    `select table_name, index_name, column_name, sub_part, index_type
      from information_schema.statistics where ${chosen} order by table_name, seq_in_index`,
  );
  const inspections: RelationReport[] = [];
  for (const name of names) {
    const own = (rows: readonly TextCells[]) => rows.filter(([table]) => table === name);
    const [table] = own(tables);
    if (table === undefined) {
      const known = await connection.texts(
        `select table_name from information_schema.tables where table_schema = ${schema}`,
      );
      const hint = suggest(
        name,
        known.map(([known]) => String(known)),
      );
      inspections.push({ kind: 'unusable', name, why: `there is no such table${hint}` });
      continue;
    }
    const facts = { table, columns: own(columns), indexes: own(indexes) };
    inspections.push(await inspect(connection, `${quoteName(database)}.${quoteName(name)}`, facts));
  }
  return inspections;
}

interface TableFacts {
  readonly table: TextCells;
  readonly columns: readonly TextCells[];
  readonly indexes: readonly TextCells[];
}

async function inspect(
  connection: MysqlConnection,
  qualified: string,
  { table, columns: described, indexes }: TableFacts,
): Promise<RelationReport> {
  const [name, type, engine] = table.map(String) as [string, string, string];
  const unusable = (why: string): RelationReport => ({ kind: 'unusable', name, why });
  if (type !== 'BASE TABLE')
    return unusable(`it is a ${type.toLowerCase()}; register plain tables of InnoDB`);
  if (engine !== 'InnoDB')
    return unusable(`its engine ${engine} keeps what a rollback should remove; use InnoDB`);
  const [created] = await connection.texts(`show create table ${qualified}`);
  const text = String(created?.[1]).replace(/ AUTO_INCREMENT=\d+/, '');
  const odd = UNSUPPORTED.find(({ pattern }) => pattern.test(text));
  if (odd !== undefined) return unusable(odd.why);
  const primary = indexes.filter(([, index]) => index === 'PRIMARY');
  const key = primary.map(([, , column]) => String(column));
  if (key.length === 0) return unusable('it has no primary key, so its rows cannot be told apart');
  if (primary.some(([, , , part]) => part !== null))
    return unusable('its primary key covers only a part of a column; let it cover the whole');
  const computed = described.filter((row) => row[9] === 'ALWAYS').map((row) => String(row[1]));
  const columns: MysqlColumn[] = [];
  for (const row of described.filter((row) => row[9] !== 'ALWAYS')) {
    const column = readColumn(row);
    if ('why' in column) return unusable(column.why);
    if (column.kind === 'real' && key.includes(column.name))
      return unusable(`its key column "${column.name}" is a floating-point number`);
    columns.push(column);
  }
  return { kind: 'usable', relation: { target: name, key, columns, computed, text } };
}

/** Kinds of tables that are untested, or whose writes make a different number of undo entries. */
const UNSUPPORTED = [
  {
    pattern: /^\) .*PARTITION BY/ms,
    why: 'it is partitioned: a row that moves is written twice, which the second witness cannot tell',
  },
  { pattern: /WITH SYSTEM VERSIONING/, why: 'it keeps history rows that no recorder sees' },
  { pattern: /^ {2}PERIOD FOR /m, why: 'it has a period, by which one statement splits rows' },
  {
    pattern: /^ {2}(?:FULLTEXT|SPATIAL) KEY /m,
    why: 'its full-text or spatial index was not tried',
  },
] as const;

function readColumn(row: TextCells): MysqlColumn | { readonly why: string } {
  const [, name = '', type = '', columnType = '', characterSet = null, collation] = row;
  const [defaultText = null, isNullable, extra = ''] = row.slice(6);
  const column = String(name);
  if (column === '__proto__') return { why: 'it has a column named __proto__; rename it' };
  const kind = kindOf(String(type), characterSet);
  if (typeof kind === 'object') return { why: `column "${column}": ${kind.why}` };
  if (/^(?:enum|set)\(.*''/.test(String(columnType)))
    return {
      why: `column "${column}": an empty or quoted label cannot be told from an invalid one`,
    };
  const charset =
    characterSet === null ? '' : ` character set ${characterSet} collate ${collation}`;
  return {
    name: column,
    kind,
    definition: `${columnType}${charset}`,
    isNullable: isNullable === 'YES',
    defaultText,
    isAssigned: /auto_increment/.test(String(extra)),
  };
}
