import { readRelations } from '../../adapters/postgres/catalog.ts';
import { EffectMatchError } from '../../errors.ts';
import { Connection, describeError } from '../../postgres/connection.ts';
import { nameTarget, parseTarget } from '../../postgres/identifier.ts';
import { type FoundDatabase, type FoundTable, namesWritten } from './found.ts';

/** What is needed to reach a PostgreSQL database besides its shape. */
export interface FoundServer extends FoundDatabase {
  /** Ends the three role names of this database; empty where the usual names are free. */
  readonly roleSuffix: string;
}

/** Reads the schema of a PostgreSQL database in one read-only transaction. */
export async function inspectPostgres(url: string): Promise<FoundServer> {
  const connection = await Connection.open(url, 'effectmatch init').catch((cause: unknown) => {
    const message = `the database could not be reached: ${describeError(cause)}; nothing was written`;
    throw new EffectMatchError('ERR_EM_ADAPTER_UNAVAILABLE', message, { cause });
  });
  await using _ = connection;
  await connection.query('begin transaction read only');
  const database = String(
    (await connection.query('select pg_catalog.current_database()')).rows[0]?.[0],
  );
  const found = (await connection.query(TABLES)).rows.map(
    ([text]) => JSON.parse(text ?? 'null') as TableRow,
  );
  const inspections = await readRelations(connection, found);
  const tables = found.map((row, index): FoundTable => {
    const inspection = inspections[index];
    const target = nameTarget(row);
    const key = inspection?.kind === 'usable' ? inspection.relation.key : [];
    const columns =
      inspection?.kind === 'usable' ? inspection.relation.columns.map(({ name }) => name) : [];
    return {
      name: target,
      key,
      columns:
        inspection?.kind === 'usable'
          ? inspection.relation.columns.map(({ name, type, notNull }) => ({
              name,
              type:
                type.kind === 'b' && type.baseSchema === 'pg_catalog'
                  ? (TYPES[type.base] ?? ANY)
                  : (OTHERS[type.kind] ?? ANY),
              nullable: !notNull,
            }))
          : [],
      ...(inspection?.kind === 'unusable' && { unusable: inspection.why }),
      // A table without a key compares whole rows, so nothing of it can be left out.
      volatile: columns
        .filter((column) => key.length > 0 && !key.includes(column))
        .flatMap((column) => {
          const by = row.triggers.find(({ source, before }) => before && setsToNow(source, column));
          return by === undefined ? [] : [{ column, by: by.name }];
        }),
      triggers: row.triggers.map(({ name, source }) => ({ name, writes: writesOf(source) })),
      cascadesFrom: row.cascades.map(nameTarget),
    };
  });
  const nameOf = (schema?: string | null, name?: string | null) =>
    nameTarget({ schema: schema ?? '', name: name ?? '' });
  const functions = (await connection.query(FUNCTIONS)).rows.map(
    ([schema, name, types]) => nameOf(schema, name) + (types === null ? '' : `(${types})`),
  );
  const views = (await connection.query(VIEWS)).rows.map(([schema, name]) => nameOf(schema, name));
  const taken = (await connection.query(ROLES)).rows.length > 0;
  await connection.query('rollback');
  const suffix = taken ? `_${database.toLowerCase().replace(/[^a-z0-9_]/g, '_')}`.slice(0, 40) : '';
  return {
    kind: 'postgres',
    suggestedName: database,
    tables,
    functions,
    views,
    roleSuffix: suffix,
  };
}

const NUMBER = 'number | bigint | string';
const ANY = 'string | number | bigint | boolean | readonly string[]';
const OTHERS: Readonly<Record<string, string>> = { e: 'string' };
/** What a manifest may say for a type of the server; what is not here takes any plain value. */
const TYPES: Readonly<Record<string, string>> = {
  ...Object.fromEntries(['int2', 'int4'].map((type) => [type, 'number | bigint'])),
  ...Object.fromEntries(['int8', 'numeric'].map((type) => [type, NUMBER])),
  ...Object.fromEntries(['float4', 'float8'].map((type) => [type, 'number'])),
  ...Object.fromEntries(
    ['text', 'varchar', 'bpchar', 'name', 'uuid'].map((type) => [type, 'string']),
  ),
  ...Object.fromEntries(
    ['date', 'time', 'timetz', 'timestamp', 'timestamptz', 'interval'].map((type) => [
      type,
      'string',
    ]),
  ),
  bool: 'boolean',
  bytea: 'Uint8Array',
};

interface TableRow {
  readonly schema: string;
  readonly name: string;
  readonly triggers: readonly {
    readonly name: string;
    readonly before: boolean;
    readonly source: string;
  }[];
  readonly cascades: readonly { readonly schema: string; readonly name: string }[];
}

function writesOf(source: string): readonly string[] {
  return namesWritten(source).flatMap((name) => {
    const target = parseTarget(name);
    return target === undefined ? [] : [nameTarget(target)];
  });
}

/**
 * Whether a function that runs before the row is written gives the column the time of the moment.
 */
function setsToNow(source: string, column: string): boolean {
  const now =
    '(?:now\\s*\\(|current_timestamp|localtimestamp|clock_timestamp\\s*\\(|statement_timestamp\\s*\\(|transaction_timestamp\\s*\\()';
  return new RegExp(
    `\\bnew\\s*\\.\\s*"?${RegExp.escape(column)}"?\\s*:?=\\s*(?:pg_catalog\\.)?${now}`,
    'i',
  ).test(source);
}

const OF_APPLICATION = `n.nspname not in ('pg_catalog', 'information_schema', 'effectmatch') and n.nspname !~ '^pg_'`;

const TABLES = `
select pg_catalog.json_build_object('schema', n.nspname, 'name', c.relname,
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

/** With the types of the arguments where several functions have the name. */
const FUNCTIONS = `
select n.nspname, p.proname, case when exists (select from pg_catalog.pg_proc o
    where o.pronamespace = p.pronamespace and o.proname = p.proname and o.oid <> p.oid)
  then pg_catalog.oidvectortypes(p.proargtypes) end
from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
where ${OF_APPLICATION} and p.prokind in ('f', 'p') and p.prorettype <> 'pg_catalog.trigger'::pg_catalog.regtype
  and p.provolatile = 'v'
  and not exists (select from pg_catalog.pg_depend d where d.objid = p.oid and d.deptype = 'e')
order by 1, 2, 3 limit 50`;

/**
 * Views that something can be written through, by the server itself or by an INSTEAD OF trigger.
 */
const VIEWS = `
select n.nspname, c.relname from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where ${OF_APPLICATION} and c.relkind = 'v' and pg_catalog.pg_relation_is_updatable(c.oid, true) <> 0
  and not exists (select from pg_catalog.pg_depend d where d.objid = c.oid and d.deptype = 'e')
order by 1, 2 limit 50`;

const ROLES = `select from pg_catalog.pg_roles where rolname in ('effectmatch_owner', 'effectmatch_control', 'effectmatch_exec')`;
