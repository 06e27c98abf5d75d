import type pg from 'pg';
import { nameTarget } from '../../../../src/postgres/identifier.ts';
import type { TableSpec } from './schema.ts';
import type { Reading } from './types.ts';

/** Every row of one table, each as text by column. */
export type Dump = ReadonlyMap<string, readonly DumpedRow[]>;
export type DumpedRow = Readonly<Record<string, unknown>>;

const FORMATS =
  "set datestyle = 'ISO, YMD'; set timezone = 'UTC'; set intervalstyle = 'postgres'; set bytea_output = 'hex'; set stats_fetch_consistency = 'none'";

/**
 * Prepares a superuser's session: the oracle reads the tables themselves and nothing that
 * EffectMatch made.
 */
export async function prepareOracle(client: pg.Client): Promise<void> {
  await client.query(FORMATS);
}

/**
 * Reads all rows of all tables with a query of its own. `concat` prints by the type's output
 * function.
 */
export async function dump(client: pg.Client, tables: readonly TableSpec[]): Promise<Dump> {
  const selects = tables.map(({ sql, columns }, index) => {
    const cells = columns.map((column) => {
      const printed =
        column.reads === 'decimal' ? `trim_scale(${column.sql}::numeric)` : column.sql;
      return `case when num_nulls(${column.sql}) = 0 then concat(${printed}) end`;
    });
    return `select ${index} as place, array[${cells.join(', ')}] as cells from ${sql}`;
  });
  const { rows } = await client.query<{ place: number; cells: (string | null)[] }>(
    selects.join(' union all '),
  );
  const all = new Map<string, DumpedRow[]>(tables.map(({ target }) => [target, []]));
  for (const { place, cells } of rows) {
    const table = tables[place];
    if (table === undefined) throw new Error('a row of no table');
    const row = Object.fromEntries(
      table.columns.map(({ name, reads }, index) => {
        const text = cells[index] ?? null;
        return [name, text === null ? null : readText(reads, text)];
      }),
    );
    all.get(table.target)?.push(row);
  }
  return all;
}

/** What the documentation of values says, written once more and apart from the adapter. */
function readText(reads: Reading, text: string): unknown {
  switch (reads) {
    case 'integer':
      return Math.abs(Number(text)) <= Number.MAX_SAFE_INTEGER ? Number(text) : { $int: text };
    case 'decimal':
      return /[Ny]/.test(text) ? text : { $dec: text };
    case 'real':
      return text === 'NaN' ? text : { $real: text === '-0' ? '-0.0' : String(Number(text)) };
    case 'boolean':
      return text === 't';
    case 'bytes':
      return { $bytes: text.slice(2) };
    case 'instant':
      return /^\d{4}-\S+ \S+\+00$/.test(text) ? `${text.replace(' ', 'T')}:00` : text;
    case 'time':
      return /^\d{4}-\S+ \S+$/.test(text) ? text.replace(' ', 'T') : text;
    case 'text':
      return text;
    default:
      throw new Error(`no reading for ${String(reads)}`);
  }
}

/** A text that is the same for equal data, whatever the order of its keys. */
export function textOf(data: unknown): string {
  return JSON.stringify(data, (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}

/**
 * How often each text occurs, less how often it occurs on the other side; what is equal is left
 * out.
 */
export function surplus(
  before: readonly string[],
  after: readonly string[],
): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const text of before) counts.set(text, (counts.get(text) ?? 0) - 1);
  for (const text of after) counts.set(text, (counts.get(text) ?? 0) + 1);
  return new Map([...counts].filter(([, count]) => count !== 0));
}

/** The net effects that lead from one dump to the other, as sorted texts. */
export function netEffects(
  tables: readonly TableSpec[],
  before: Dump,
  after: Dump,
): readonly string[] {
  return tables
    .flatMap((table) =>
      differencesOf(table, before.get(table.target) ?? [], after.get(table.target) ?? []),
    )
    .map(textOf)
    .sort();
}

function differencesOf(
  { target, key }: TableSpec,
  before: readonly DumpedRow[],
  after: readonly DumpedRow[],
): object[] {
  if (key.length === 0) {
    return [...surplus(before.map(textOf), after.map(textOf))].flatMap(([text, count]) =>
      Array.from({ length: Math.abs(count) }, () =>
        count > 0
          ? { op: 'insert', target, after: JSON.parse(text) }
          : { op: 'delete', target, before: JSON.parse(text) },
      ),
    );
  }
  const keyOf = (row: DumpedRow) => Object.fromEntries(key.map((name) => [name, row[name]]));
  const restOf = (row: DumpedRow) =>
    Object.fromEntries(Object.entries(row).filter(([name]) => !key.includes(name)));
  const [was, is] = [before, after].map(
    (rows) => new Map(rows.map((row) => [textOf(keyOf(row)), row])),
  );
  const effects: object[] = [];
  for (const [id, old] of was ?? []) {
    const now = is?.get(id);
    if (now === undefined) {
      effects.push({ op: 'delete', target, key: keyOf(old), before: restOf(old) });
      continue;
    }
    const changed = Object.keys(old).filter((name) => textOf(old[name]) !== textOf(now[name]));
    if (changed.length === 0) continue;
    const only = (row: DumpedRow) => Object.fromEntries(changed.map((name) => [name, row[name]]));
    effects.push({ op: 'update', target, key: keyOf(old), before: only(old), after: only(now) });
  }
  for (const [id, row] of is ?? []) {
    if (!was?.has(id)) effects.push({ op: 'insert', target, key: keyOf(row), after: restOf(row) });
  }
  return effects;
}

/** Where the sequence stands that a table draws its ids from, by the target of the table. */
export type Positions = ReadonlyMap<string, { readonly sequence: string; readonly at: number }>;

export async function readPositions(
  client: pg.Client,
  tables: readonly TableSpec[],
): Promise<Positions> {
  const drawn = tables.filter((table) => table.drawn);
  const { rows } = await client.query<{ schema: string; name: string; at: string }>(
    `select c.relnamespace::regnamespace::text as schema, c.relname as name,
       coalesce(pg_sequence_last_value(s.seqrelid), s.seqstart - s.seqincrement) as at
     from rows from (unnest($1::text[]), unnest($2::text[])) with ordinality as t (sql, id, place)
       join pg_sequence as s on s.seqrelid = pg_get_serial_sequence(t.sql, t.id)::regclass
       join pg_class as c on c.oid = s.seqrelid
     order by t.place`,
    [drawn.map(({ sql }) => sql), drawn.map(({ id }) => id.name)],
  );
  return new Map(
    drawn.map(({ target }, index) => {
      const { schema = '', name = '', at } = rows[index] ?? {};
      return [target, { sequence: nameTarget({ schema, name }), at: Number(at) }];
    }),
  );
}

/**
 * The numbers that were drawn between two readings and that no row of the net effects has, as
 * sorted texts.
 */
export function unusedNumbers(
  tables: readonly TableSpec[],
  before: Positions,
  after: Positions,
  truth: readonly string[],
): readonly string[] {
  const effects = truth.map((text) => JSON.parse(text));
  return tables
    .flatMap(({ target, id }) => {
      const [was, is] = [before.get(target), after.get(target)];
      if (was === undefined || is === undefined) return [];
      const rows = effects.filter((effect) => {
        if (effect.target !== target || effect.op === 'delete') return false;
        const number = { ...effect.after, ...effect.key }[id.name];
        return effect.op === 'update' || (number > was.at && number <= is.at);
      });
      const unused = is.at - was.at - rows.length;
      if (unused <= 0) return [];
      return [{ op: 'update', target: was.sequence, before: { unused: 0 }, after: { unused } }];
    })
    .map(textOf);
}

/** Rows written per physical table since statistics began, by the server's shared statistics. */
export type Written = ReadonlyMap<
  string,
  readonly [insert: number, update: number, remove: number]
>;

/** Waits until the execution login is idle and has handed in its statistics, then reads them. */
export async function readWritten(client: pg.Client, login: string): Promise<Written> {
  for (;;) {
    const { rows } = await client.query(
      `select from pg_stat_activity where usename = $1 and (state <> 'idle' or query not like '%effectmatch.reset()%')`,
      [login],
    );
    if (rows.length === 0) break;
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  const { rows } = await client.query<{ root: string; i: string; u: string; d: string }>(
    `select coalesce((select relid from pg_partition_ancestors(s.relid) as a (relid)
         where not exists (select from pg_inherits where inhrelid = a.relid)), s.relid)::oid::text as root,
       sum(n_tup_ins) as i, sum(n_tup_upd) as u, sum(n_tup_del) as d
     from pg_stat_user_tables as s group by 1`,
  );
  return new Map(rows.map(({ root, i, u, d }) => [root, [Number(i), Number(u), Number(d)]]));
}
