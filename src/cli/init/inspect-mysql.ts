import {
  type MysqlColumn,
  type RelationReport,
  readRelations,
} from '../../adapters/mysql/catalog.ts';
import { asFault, MysqlConnection, type TextCells } from '../../adapters/mysql/connection.ts';
import { connectionParts } from '../../adapters/mysql/options.ts';
import { columnsSetToNow, type DatabaseSchema, namesWritten, type TableSchema } from './schema.ts';

const DEADLINE_MS = 30_000;

/** Reads the schema of a MariaDB database. */
export async function inspectMysql(url: string): Promise<DatabaseSchema> {
  const { database } = connectionParts(url, 'the address');
  await using connection = await open(url);
  const rows = await connection.texts(
    "select table_name from information_schema.tables where table_schema = database() and table_type <> 'VIEW' limit 1000",
  );
  const names = rows.map(([name]) => String(name));
  const reports = names.length === 0 ? [] : await readRelations(connection, database, names);
  const triggers = await connection.texts(TRIGGERS);
  const keys = await connection.texts(CASCADES);
  const tables = reports.map((report) => describeTable(report, triggers, keys));
  const taken = await connection.texts(
    "select schema_name from information_schema.schemata where schema_name = 'effectmatch'",
  );
  const roleSuffix = taken.length === 0 ? '' : `_${database.toLowerCase().replace(/\W/g, '_')}`;
  return {
    kind: 'mysql',
    suggestedName: database,
    tables,
    functions: [],
    views: [],
    roleSuffix: roleSuffix.slice(0, 40),
  };
}

async function open(url: string): Promise<MysqlConnection> {
  try {
    return await MysqlConnection.open(url, DEADLINE_MS);
  } catch (error) {
    const what = 'the database could not be reached, and nothing was written';
    throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', what);
  }
}

const TRIGGERS = `select event_object_table, trigger_name, action_timing, action_statement
  from information_schema.triggers
  where trigger_schema = database() and left(trigger_name, 12) <> 'effectmatch_' order by trigger_name`;

const CASCADES = `select distinct table_name, referenced_table_name
  from information_schema.referential_constraints where constraint_schema = database()
    and not (update_rule in ('RESTRICT', 'NO ACTION') and delete_rule in ('RESTRICT', 'NO ACTION'))`;

function describeTable(
  report: RelationReport,
  triggers: readonly TextCells[],
  cascades: readonly TextCells[],
): TableSchema {
  const relation = report.kind === 'usable' ? report.relation : undefined;
  const name = report.kind === 'usable' ? report.relation.target : report.name;
  const { key = [], columns = [] } = relation ?? {};
  const own = triggers
    .filter(([table]) => table === name)
    .map(([, trigger, timing, source]) => ({
      name: String(trigger),
      isBefore: timing === 'BEFORE',
      source: String(source),
    }));
  const others = columns.filter((column) => !key.includes(column.name));
  return {
    name,
    key,
    columns: columns.map((column) => ({
      name: column.name,
      type: TYPES[column.kind],
      nullable: column.isNullable,
    })),
    ...(report.kind === 'unusable' && { unusable: report.why }),
    volatile: columnsSetToNow(
      others.map((column) => column.name),
      own,
      setsToNow,
    ),
    triggers: own.map((trigger) => ({ name: trigger.name, writes: namesWritten(trigger.source) })),
    cascadesFrom: cascades.filter(([child]) => child === name).map(([, parent]) => String(parent)),
  };
}

/** The types that a manifest may use for a column. */
const TYPES: Readonly<Record<MysqlColumn['kind'], string>> = {
  integer: 'number | bigint',
  bit: 'number | bigint | boolean',
  decimal: 'number | bigint | string',
  real: 'number',
  text: 'string',
  bytes: 'Uint8Array',
  datetime: 'string',
  timestamp: 'string',
  name: 'string',
};

/** Whether a BEFORE trigger sets the column to the current time. */
function setsToNow(trigger: { isBefore: boolean; source: string }, column: string): boolean {
  const target = `\\bnew\\s*\\.\\s*\`?${RegExp.escape(column)}\`?`;
  const clock = '(?:now|sysdate|current_timestamp|localtimestamp|utc_timestamp)\\b';
  return trigger.isBefore && new RegExp(`${target}\\s*:?=\\s*${clock}`, 'i').test(trigger.source);
}
