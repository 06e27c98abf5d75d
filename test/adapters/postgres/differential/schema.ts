import type { Random } from '../../../random.ts';
import { AWKWARD_TEXTS, type ColumnSpec, quoted, randomColumn, TYPE_DEFINITIONS } from './types.ts';

/** A generated table. Logical columns are there under names that may need quotes. */
export interface TableSpec {
  /** As EffectMatch options and effects name it. */
  readonly target: string;
  readonly sql: string;
  readonly key: readonly string[];
  /** Everything that is stored, generated columns included. */
  readonly columns: readonly ColumnSpec[];
  readonly id: ColumnSpec;
  readonly n: ColumnSpec;
  readonly label: ColumnSpec;
  /** The column that partitions, where it is not the id. */
  readonly place: ColumnSpec | undefined;
  readonly extras: readonly ColumnSpec[];
  /** Where rows point to, and by which column. */
  readonly parent:
    | { readonly column: ColumnSpec; readonly table: Pick<TableSpec, 'sql' | 'id'> }
    | undefined;
  readonly bulk: boolean;
  readonly partitioned: boolean;
  readonly deferrableKey: boolean;
  /** Whether the id is drawn from a sequence where an insert does not state it. */
  readonly drawn: boolean;
  /** Whether a foreign key may point here. */
  readonly referable: boolean;
}

const NAMES: readonly (readonly [target: string, sql: string])[] = [
  ['Order', '"Order"'],
  ['select', '"select"'],
  ['two words', '"two words"'],
  ['"say ""hi"""', '"say ""hi"""'],
  ['other.item', 'other.item'],
  ['item', 'public.item'],
  ['Ünïcode', '"Ünïcode"'],
  ['L'.repeat(63), `"${'L'.repeat(63)}"`],
  ['"dotted.name"', '"dotted.name"'],
  ['"quote\'d"', '"quote\'d"'],
  ['"back\\slash"', '"back\\slash"'],
  ['plain_one', 'plain_one'],
  ['plain_two', 'plain_two'],
  ['plain_three', 'plain_three'],
];
const EXTRA_NAMES = [
  'amount',
  'Mixed',
  'from',
  'a "b"',
  'constructor',
  'ünï',
  'a,b',
  '(c)',
  'toString',
  "q'q",
];
const ACTIONS = ['cascade', 'set null', 'set default', 'restrict', 'no action'];

const quoteSql = (name: string) => `"${name.replaceAll('"', '""')}"`;
const chance = (from: Random, share: number) => from.fraction() < share;

function integerColumn(name: string, limit: number): ColumnSpec {
  return {
    name,
    sql: quoteSql(name),
    type: 'integer',
    reads: 'integer',
    literal: (from) => String(from.below(limit)),
  };
}

/** Tables in an order in which they can be created, with their definitions. */
export interface Tables {
  readonly tables: readonly TableSpec[];
  readonly ddl: string;
}

/** Three to six tables of every kind, with foreign keys between them, and rows in them. */
export function randomTables(from: Random): Tables {
  const names = shuffle(from, NAMES).slice(0, 3 + from.below(4));
  const tables: TableSpec[] = [];
  const ddl = ['create schema other;', TYPE_DEFINITIONS];
  for (const [target, sql] of names) {
    const made = randomTable(from, { target, sql }, tables);
    tables.push(made.table);
    ddl.push(made.ddl);
  }
  return { tables, ddl: ddl.join('\n') };
}

export function shuffle<T>(from: Random, list: readonly T[]): readonly T[] {
  return list
    .map((item) => ({ item, rank: from.fraction() }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ item }) => item);
}

type Partitioning = 'none' | 'by id' | 'by place' | 'by place, keyless';

function randomTable(
  from: Random,
  name: { readonly target: string; readonly sql: string },
  others: readonly TableSpec[],
): { readonly table: TableSpec; readonly ddl: string } {
  const partitioning: Partitioning = chance(from, 0.35)
    ? from.pick(['by id', 'by place', 'by place, keyless'])
    : 'none';
  const partitioned = partitioning !== 'none';
  const keyKind = partitioned
    ? from.pick(['id'])
    : from.pick(['id', 'id', 'composite', 'composite', 'none', 'deferrable'] as const);
  const id = integerColumn(chance(from, 0.3) ? 'Id' : 'id', 14);
  const place =
    partitioning === 'by place' || partitioning === 'by place, keyless'
      ? integerColumn('place', 30)
      : undefined;
  const n = integerColumn('n', 12);
  const label: ColumnSpec = {
    ...{ name: 'label', sql: '"label"', type: 'text', reads: 'text' },
    literal: (draw) => (chance(draw, 0.1) ? 'null' : quoted(draw.pick(AWKWARD_TEXTS))),
  };
  const extras = shuffle(from, EXTRA_NAMES)
    .slice(0, 1 + from.below(4))
    .map((column) => randomColumn(from, column, quoteSql(column)));
  const generated: ColumnSpec[] = chance(from, 0.4)
    ? [{ ...integerColumn('twice', 1), literal: () => 'default' }]
    : [];
  const keyColumns =
    partitioning === 'by place, keyless' || keyKind === 'none'
      ? []
      : keyKind === 'composite'
        ? ['label', id.name]
        : partitioning === 'by place'
          ? [id.name, 'place']
          : [id.name];
  const referable = keyColumns.length === 1 && keyKind !== 'deferrable';
  const own = { sql: name.sql, id };
  const candidates = [
    ...others.filter((other) => other.referable),
    ...(referable && !partitioned ? [own] : []),
  ];
  const parent =
    candidates.length > 0 && chance(from, 0.7)
      ? {
          column: { ...integerColumn('ref', 9), literal: () => 'null' },
          table: from.pick(candidates),
        }
      : undefined;
  const drawn = !partitioned && keyKind === 'id' && chance(from, 0.35);
  const columns = shuffle(from, [
    id,
    n,
    label,
    ...(place ? [place] : []),
    ...(parent ? [parent.column] : []),
    ...extras,
    ...generated,
  ]);
  const table: TableSpec = {
    ...name,
    ...{
      key: keyColumns,
      columns,
      id,
      n,
      label,
      place,
      extras,
      parent,
      partitioned,
      drawn,
      referable,
    },
    bulk: !partitioned && chance(from, 0.3),
    deferrableKey: keyKind === 'deferrable',
  };
  return { table, ddl: defineTable(from, table) };
}

function defineTable(from: Random, table: TableSpec): string {
  const drawnAs = table.drawn
    ? from.pick(['serial', 'integer generated by default as identity (start with 200)'])
    : 'integer';
  const define = (column: ColumnSpec, within: 'table' | 'leaf') => {
    if (column.name === 'twice')
      return `${column.sql} integer generated always as (${table.n.sql} * 2) stored`;
    if (column === table.id) return `${column.sql} ${within === 'table' ? drawnAs : 'integer'}`;
    const initial = column.name === 'ref' ? ' default 1' : '';
    return `${column.sql} ${column.type}${initial}`;
  };
  const key = table.key.length === 0 ? '' : `primary key (${table.key.map(quoteSql).join(', ')})`;
  const keyText =
    key === ''
      ? ''
      : `, ${key}${table.deferrableKey ? ` deferrable initially ${from.pick(['deferred', 'immediate'])}` : ''}`;
  const dropped = chance(from, 0.4);
  const body = `${dropped ? '"gone" integer, ' : ''}${table.columns.map((column) => define(column, 'table')).join(', ')}`;
  const by = table.place ?? table.id;
  const strategy = table.partitioned ? from.pick(['range', 'list', 'hash']) : undefined;
  const lines = [
    `create table ${table.sql} (${body}${keyText})${strategy ? ` partition by ${strategy} (${by.sql})` : ''};`,
    ...(dropped ? [`alter table ${table.sql} drop column "gone";`] : []),
  ];
  for (const [index, bounds] of boundsOf(strategy).entries()) {
    const leaf = `other."leaf ${index} of ${table.target.replaceAll('"', '').slice(0, 40)}"`;
    if (chance(from, 0.5)) {
      lines.push(`create table ${leaf} partition of ${table.sql} ${bounds};`);
      continue;
    }
    // A leaf that was a table before: other columns first, and one that is gone.
    const shuffled = shuffle(from, table.columns).map((column) => define(column, 'leaf'));
    const notNull = table.key.map((name) => `, check (${quoteSql(name)} is not null)`).join('');
    lines.push(`create table ${leaf} (${['"old" text', ...shuffled].join(', ')}${notNull});`);
    for (const name of table.key)
      lines.push(`alter table ${leaf} alter column ${quoteSql(name)} set not null;`);
    lines.push(`alter table ${leaf} drop column "old";`);
    lines.push(`alter table ${table.sql} attach partition ${leaf} ${bounds};`);
  }
  lines.push(...seedRows(from, table));
  if (table.parent !== undefined) {
    const timing = chance(from, 0.4)
      ? ` deferrable initially ${from.pick(['deferred', 'immediate'])}`
      : '';
    lines.push(
      `alter table ${table.sql} add foreign key ("ref") references ${table.parent.table.sql} (${table.parent.table.id.sql})` +
        ` on delete ${from.pick(ACTIONS)} on update ${from.pick(ACTIONS)}${timing};`,
    );
  }
  if (table.key.length === 0 && !table.partitioned && chance(from, 0.3)) {
    lines.push(`create index on ${table.sql} (${table.n.sql});`);
  }
  return lines.join('\n');
}

function boundsOf(strategy: string | undefined): readonly string[] {
  switch (strategy) {
    case 'range':
      return ['for values from (0) to (5)', 'for values from (5) to (10)', 'default'];
    case 'list':
      return [`for values in (0, 1, 2, 3)`, 'for values in (4, 5, 6, 7)', 'default'];
    case 'hash':
      return [
        'for values with (modulus 2, remainder 0)',
        'for values with (modulus 2, remainder 1)',
      ];
    default:
      return [];
  }
}

/** Rows 1 to 8, so that rows which operations name by chance are often there. */
function seedRows(from: Random, table: TableSpec): readonly string[] {
  const rows: string[] = [];
  for (let id = 1; id <= 8; id += 1) {
    const stated = table.columns.filter(({ name }) => name !== 'twice' && name !== 'ref');
    const values = stated.map((column) => {
      if (column === table.id) return String(id);
      if (column === table.label && table.key.includes('label'))
        return quoted(from.pick(AWKWARD_TEXTS));
      return column.literal(from);
    });
    const columns = [...stated.map(({ sql }) => sql), ...(table.parent ? ['"ref"'] : [])];
    const row = [...values, ...(table.parent ? [from.pick(['1', '2', 'null'])] : [])];
    const insert = `insert into ${table.sql} (${columns.join(', ')}) values (${row.join(', ')});`;
    rows.push(insert);
    if (table.key.length === 0 && chance(from, 0.5)) rows.push(insert);
  }
  return rows;
}
