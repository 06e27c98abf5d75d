import type { Random } from '../../../random.ts';
import { shuffle, type TableSpec } from './schema.ts';
import type { ColumnSpec } from './types.ts';

const chance = (from: Random, share: number) => from.fraction() < share;

/** One random statement that writes one or several of the tables. */
export function randomStatement(from: Random, tables: readonly TableSpec[]): string {
  const table = from.pick(tables);
  const draw = from.fraction();
  if (draw < 0.28) return insertInto(from, table);
  if (draw < 0.58) return update(from, table);
  if (draw < 0.72) return `delete from ${table.sql} where ${condition(from, table)}`;
  if (draw < 0.84) return merge(from, table);
  return writableCte(from, table, from.pick(tables));
}

function stated(from: Random, table: TableSpec): readonly ColumnSpec[] {
  const { id, n, label, place, parent, extras, key } = table;
  const optional = [
    ...(parent ? [parent.column] : []),
    ...extras,
    ...(key.includes('label') ? [] : [label]),
  ];
  const named = optional.filter(() => chance(from, 0.7));
  const wantsId = !table.drawn || chance(from, 0.2);
  return [
    ...(wantsId ? [id] : []),
    n,
    ...(place ? [place] : []),
    ...(key.includes('label') ? [label] : []),
    ...named,
  ];
}

function valueFor(from: Random, table: TableSpec, column: ColumnSpec): string {
  if (column === table.parent?.column) return pointer(from, table);
  if (column === table.id && chance(from, 0.5)) {
    return `(select coalesce(max(x.${column.sql}), 0) + ${1 + from.below(3)} from ${table.sql} as x)`;
  }
  if (column === table.label && table.key.includes('label')) return `'k${from.below(4)}'`;
  return column.literal(from);
}

/** Mostly a row that exists; sometimes one that does not. */
function pointer(from: Random, table: TableSpec): string {
  const { parent } = table;
  if (parent === undefined || chance(from, 0.2)) return 'null';
  if (chance(from, 0.08)) return '999';
  return `(select min(x.${parent.table.id.sql}) from ${parent.table.sql} as x where x.${parent.table.id.sql} >= ${from.below(8)})`;
}

function insertInto(from: Random, table: TableSpec): string {
  const columns = stated(from, table);
  const rows = Array.from(
    { length: 1 + from.below(3) },
    () => `(${columns.map((column) => valueFor(from, table, column)).join(', ')})`,
  );
  const insert = `insert into ${table.sql} (${columns.map(({ sql }) => sql).join(', ')}) values ${rows.join(', ')}`;
  if (table.key.length === 0 || table.deferrableKey || chance(from, 0.35)) return insert;
  const arbiter = `(${table.key.map((name) => `"${name}"`).join(', ')})`;
  if (chance(from, 0.4)) return `${insert} on conflict do nothing`;
  return `${insert} on conflict ${arbiter} do update set ${assignments(from, table, 'ordinary')}`;
}

function assignments(from: Random, table: TableSpec, what: 'ordinary' | 'any'): string {
  const { n, label, extras, parent, place, id, key } = table;
  const free = [...extras, ...(key.includes('label') ? [] : [label])];
  const parts = new Map<string, string>([
    [n.sql, from.pick([`${table.sql}.${n.sql} + 1`, n.literal(from)])],
  ]);
  if (chance(from, 0.6)) {
    const column = from.pick(free);
    parts.set(column.sql, column.literal(from));
  }
  if (parent !== undefined && chance(from, 0.3)) parts.set(parent.column.sql, pointer(from, table));
  if (what === 'any' && place !== undefined && chance(from, 0.5)) {
    parts.set(place.sql, from.pick([place.literal(from), `${table.sql}.${place.sql} + 5`]));
  }
  if (what === 'any' && chance(from, 0.25))
    parts.set(id.sql, `${table.sql}.${id.sql} + ${from.pick([1, 3, 40, -40])}`);
  return shuffle(from, [...parts])
    .map(([column, value]) => `${column} = ${value}`)
    .join(', ');
}

function update(from: Random, table: TableSpec): string {
  if (table.deferrableKey && chance(from, 0.6)) {
    const [one, two] = [1 + from.below(8), 1 + from.below(8)];
    const { sql } = table.id;
    return `update ${table.sql} set ${sql} = case ${sql} when ${one} then ${two} else ${one} end where ${sql} in (${one}, ${two})`;
  }
  return `update ${table.sql} set ${assignments(from, table, 'any')} where ${condition(from, table)}`;
}

function condition(from: Random, table: TableSpec): string {
  const [id, n] = [`${table.sql}.${table.id.sql}`, `${table.sql}.${table.n.sql}`];
  const point = 1 + from.below(9);
  return from.pick([
    `${id} = ${point}`,
    `${id} = ${point}`,
    `${id} in (${point}, ${point + 1}, ${point + 5})`,
    `${id} between ${point} and ${point + 2}`,
    `${n} % 4 = ${from.below(4)}`,
    `${n} is not null`,
    'false',
  ]);
}

function merge(from: Random, table: TableSpec): string {
  const { id, n, place, key } = table;
  const source = Array.from(
    { length: 1 + from.below(4) },
    (_, at) => `(${at * 3 + from.below(3)}, ${from.below(12)})`,
  );
  const columns = [
    id,
    n,
    ...(place ? [place] : []),
    ...(key.includes('label') ? [table.label] : []),
  ];
  const values = columns.map((column) =>
    column === id ? 's.id' : column === n ? 's.v' : valueFor(from, table, column),
  );
  const matched = [
    `when matched and s.v % 3 = ${from.below(3)} then delete`,
    `when matched then update set ${n.sql} = s.v${chance(from, 0.5) ? `, ${from.pick(table.extras).sql} = null` : ''}`,
  ];
  return (
    `merge into ${table.sql} as t using (values ${source.join(', ')}) as s (id, v) on t.${id.sql} = s.id ` +
    `${shuffle(from, matched)
      .slice(0, 1 + from.below(2))
      .join(' ')}` +
    (chance(from, 0.7)
      ? ` when not matched then insert (${columns.map(({ sql }) => sql).join(', ')}) values (${values.join(', ')})`
      : '')
  );
}

function writableCte(from: Random, one: TableSpec, two: TableSpec): string {
  const inner = from.pick([
    `delete from ${one.sql} where ${condition(from, one)}`,
    `update ${one.sql} set ${assignments(from, one, 'ordinary')} where ${condition(from, one)}`,
  ]);
  const cte = `with w as (${inner} returning ${one.sql}.${one.n.sql} as v)`;
  const second = chance(from, 0.3) ? `, w2 as (${insertInto(from, from.pick([one, two]))})` : '';
  if (chance(from, 0.5)) {
    return `${cte}${second} update ${two.sql} set ${two.n.sql} = (select count(*) from w) where ${condition(from, two)}`;
  }
  const { id, n, place, key, label } = two;
  const rest = [...(place ? [place] : []), ...(key.includes('label') ? [label] : [])];
  return (
    `${cte}${second} insert into ${two.sql} (${[id, n, ...rest].map(({ sql }) => sql).join(', ')}) ` +
    `select (select coalesce(max(x.${id.sql}), 0) from ${two.sql} as x) + row_number() over (), w.v` +
    `${rest.map((column) => `, ${valueFor(from, two, column)}`).join('')} from w`
  );
}
