import { type RelationInspection, readRelations } from '../../adapters/postgres/catalog.ts';
import { EffectMatchError } from '../../errors.ts';
import { Connection, describeError } from '../../postgres/connection.ts';
import { nameTarget, parseTarget, sqlName } from '../../postgres/identifier.ts';
import { columnsSetToNow, type DatabaseSchema, namesWritten, type TableSchema } from './schema.ts';

/** Reads the schema of a PostgreSQL database in one read-only transaction. */
export async function inspectPostgres(url: string): Promise<DatabaseSchema> {
  const connection = await Connection.open(url, 'effectmatch init').catch((cause: unknown) => {
    const message = `the database could not be reached: ${describeError(cause)}; nothing was written`;
    throw new EffectMatchError('ERR_EM_ADAPTER_UNAVAILABLE', message, { cause });
  });
  await using _ = connection;
  const rowsOf = async (sql: string) => (await connection.query(sql)).rows;
  await connection.query('begin transaction read only');
  const [[database = ''] = []] = await rowsOf('select pg_catalog.current_database()');
  const [[isSuper, major] = []] = await rowsOf(LOGIN);
  const server = { isSuperuser: isSuper === 't', major: String(major) };
  const rows = (await rowsOf(TABLES)).map(([text]) => JSON.parse(text ?? 'null') as TableRow);
  const inspections = await readRelations(connection, rows);
  const tables = rows.map((row, index) => describeTable(row, inspections[index]));
  const functions = (await rowsOf(FUNCTIONS)).map(([schema, name, types]) => {
    const parameters = types === null ? '' : `(${types})`;
    return sqlName({ schema: schema ?? '', name: name ?? '' }) + parameters;
  });
  const views = (await rowsOf(VIEWS)).map(([schema, name]) =>
    nameTarget({ schema: schema ?? '', name: name ?? '' }),
  );
  const isTaken = (await rowsOf(ROLES)).length > 0;
  await connection.query('rollback');
  const suggestedName = String(database);
  const roleSuffix = isTaken ? suffixOf(suggestedName) : '';
  return { kind: 'postgres', suggestedName, tables, functions, views, roleSuffix, server };
}

const suffixOf = (database: string) =>
  `_${database.toLowerCase().replace(/[^a-z0-9_]/g, '_')}`.slice(0, 40);

function describeTable(row: TableRow, inspection: RelationInspection | undefined): TableSchema {
  const relation = inspection?.kind === 'usable' ? inspection.relation : undefined;
  const unusable =
    row.stranger === null
      ? inspection?.kind === 'unusable' && inspection.why
      : `it belongs to ${row.stranger}, and only its owner or a superuser can provision it`;
  const { key = [], columns = [] } = relation ?? {};
  // A table without a key is compared by whole rows, so none of its columns can be left out.
  const others = key.length === 0 ? [] : columns.filter(({ name }) => !key.includes(name));
  const names = others.map(({ name }) => name);
  return {
    name: relation?.target ?? nameTarget(row),
    key,
    columns: columns.map(({ name, type, notNull }) => {
      const isBuiltIn = type.kind === 'b' && type.baseSchema === 'pg_catalog';
      const known = isBuiltIn ? TYPES[type.base] : type.kind === 'e' ? 'string' : undefined;
      return { name, type: known ?? ANY, nullable: !notNull };
    }),
    ...(unusable && { unusable }),
    volatile: columnsSetToNow(names, row.triggers, setsToNow),
    triggers: row.triggers.map(({ name, source }) => ({ name, writes: writesOf(source) })),
    cascadesFrom: row.cascades.map(nameTarget),
  };
}

const NUMBER = 'number | bigint | string';
const ANY = 'string | number | bigint | boolean | readonly string[]';
/** The types that a manifest may use for a server type. Other types take any plain value. */
const TYPES: Readonly<Record<string, string>> = {
  int2: 'number | bigint',
  int4: 'number | bigint',
  int8: NUMBER,
  numeric: NUMBER,
  float4: 'number',
  float8: 'number',
  text: 'string',
  varchar: 'string',
  bpchar: 'string',
  name: 'string',
  uuid: 'string',
  date: 'string',
  time: 'string',
  timetz: 'string',
  timestamp: 'string',
  timestamptz: 'string',
  interval: 'string',
  bool: 'boolean',
  bytea: 'Uint8Array',
};

interface TableRow {
  readonly schema: string;
  readonly name: string;
  /** The table's owner, if the login does not have the owner's rights. */
  readonly stranger: string | null;
  readonly triggers: readonly TriggerRow[];
  readonly cascades: readonly { readonly schema: string; readonly name: string }[];
}

interface TriggerRow {
  readonly name: string;
  readonly before: boolean;
  /** The source of the trigger's function. */
  readonly source: string;
}

function writesOf(source: string): readonly string[] {
  return namesWritten(source).flatMap((name) => {
    const target = parseTarget(name);
    return target === undefined ? [] : [nameTarget(target)];
  });
}

const NOW =
  '(?:now\\s*\\(|current_timestamp|localtimestamp|clock_timestamp\\s*\\(|statement_timestamp\\s*\\(|transaction_timestamp\\s*\\()';

/** Whether a BEFORE trigger sets the column to the current time. */
function setsToNow({ before, source }: TriggerRow, column: string): boolean {
  const target = `\\bnew\\s*\\.\\s*"?${RegExp.escape(column)}"?`;
  const assignment = `${target}\\s*:?=\\s*(?:pg_catalog\\.)?${NOW}`;
  return before && new RegExp(assignment, 'i').test(source);
}

const OF_APPLICATION = `n.nspname not in ('pg_catalog', 'information_schema', 'effectmatch') and n.nspname !~ '^pg_'`;

const TABLES = `
select pg_catalog.json_build_object('schema', n.nspname, 'name', c.relname,
  'stranger', case when not pg_catalog.pg_has_role(c.relowner, 'USAGE') then pg_catalog.pg_get_userbyid(c.relowner) end,
  'triggers', coalesce((select pg_catalog.json_agg(pg_catalog.json_build_object('name', t.tgname,
      'before', (t.tgtype & 2) <> 0, 'source', p.prosrc) order by t.tgname)
    from pg_catalog.pg_trigger t join pg_catalog.pg_proc p on p.oid = t.tgfoid
    where t.tgrelid = c.oid and not t.tgisinternal and t.tgname not like 'effectmatch%'), '[]'),
  'cascades', coalesce((select pg_catalog.json_agg(distinct pg_catalog.jsonb_build_object('schema', n2.nspname, 'name', c2.relname))
    from pg_catalog.pg_constraint k join pg_catalog.pg_class c2 on c2.oid = k.confrelid
      join pg_catalog.pg_namespace n2 on n2.oid = c2.relnamespace
    where k.conrelid = c.oid and k.contype = 'f' and (k.confdeltype in ('c', 'n', 'd') or k.confupdtype in ('c', 'n', 'd'))), '[]'))
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'f') and not c.relispartition and c.relpersistence <> 't' and ${OF_APPLICATION}
  and not exists (select from pg_catalog.pg_depend d where d.objid = c.oid and d.deptype = 'e')
order by n.nspname <> 'public', n.nspname, c.relname limit 1000`;

/** Includes the argument types if several functions share the name. */
const FUNCTIONS = `
select n.nspname, p.proname, case when exists (select from pg_catalog.pg_proc o
    where o.pronamespace = p.pronamespace and o.proname = p.proname and o.oid <> p.oid)
  then pg_catalog.oidvectortypes(p.proargtypes) end
from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
where ${OF_APPLICATION} and p.prokind in ('f', 'p') and p.prorettype <> 'pg_catalog.trigger'::pg_catalog.regtype
  and p.provolatile = 'v'
  and not exists (select from pg_catalog.pg_depend d where d.objid = p.oid and d.deptype = 'e')
order by 1, 2, 3 limit 50`;

/** Views that accept writes, directly or through an INSTEAD OF trigger. */
const VIEWS = `
select n.nspname, c.relname from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where ${OF_APPLICATION} and c.relkind = 'v' and pg_catalog.pg_relation_is_updatable(c.oid, true) <> 0
  and not exists (select from pg_catalog.pg_depend d where d.objid = c.oid and d.deptype = 'e')
order by 1, 2 limit 50`;

const LOGIN = `select rolsuper, pg_catalog.current_setting('server_version_num')::integer / 10000
from pg_catalog.pg_roles where rolname = current_user`;

const ROLES = `select from pg_catalog.pg_roles where rolname in ('effectmatch_owner', 'effectmatch_control', 'effectmatch_exec')`;
