import { randomBytes, randomUUID } from 'node:crypto';
import type { Provisioning, ProvisioningKind } from '../../contract/adapter.ts';
import { type MysqlRelation, readRelations } from './catalog.ts';
import { asFault, MysqlConnection } from './connection.ts';
import {
  connectionParts,
  type MysqlConnectionOptions,
  type MysqlOptions,
  type MysqlSettings,
  readOptions,
  refused,
} from './options.ts';
import { PROBE_RELATION, type Recorder, recorderNames, recordersOf } from './recorders.ts';
import { quoteName, quoteText, SQL } from './sql.ts';

/** Increased when tables, procedures or recorders become incompatible with older runtimes. */
export const VERSION = 1;

/** Procedures that the execution account may call. */
export const PROCEDURES = ['open', 'observe', 'promote'];

/** The SQL modes of procedures and recorders, whatever modes the caller's session has. */
export const SQL_MODE = 'NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION';

const ADMIN_DEADLINE_MS = 60_000;

/** The tables and procedures of the control database. */
const CONTROL_OBJECTS = [
  ...['create_database', 'create_deployment', 'create_marker', 'create_stage', 'create_record'],
  ...['create_probe', 'create_open', 'create_observe', 'create_promote'],
];
const GRANTS = [
  ...['grant_records', 'grant_control', 'grant_metadata'],
  ...['grant_open', 'grant_observe', 'grant_promote', 'grant_probe'],
];

/**
 * Prepares a database for protected operations, or removes the preparation. `admin` is an account
 * that may create accounts, databases and triggers; it is needed only here. MariaDB commits each of
 * these statements on its own, and all of them can be repeated.
 */
export async function planProvisioning(
  admin: MysqlConnectionOptions,
  options: MysqlOptions,
  what: ProvisioningKind = 'provision',
): Promise<Provisioning> {
  const settings = readOptions(options);
  await using connection = await openAdmin(admin);
  const steps =
    what === 'provision'
      ? await provisionSteps(connection, options, settings)
      : await removalSteps(connection, settings);
  return {
    print: () => steps.map((step) => `${printable(step)};`).join('\n\n'),
    apply: async (report) => {
      await using applying = await openAdmin(admin);
      for (const step of steps) {
        await applyStep(applying, step);
        report?.(printable(step));
      }
      return [];
    },
  };
}

async function openAdmin(admin: MysqlConnectionOptions): Promise<MysqlConnection> {
  try {
    const connection = await MysqlConnection.open(admin, ADMIN_DEADLINE_MS);
    await connection.query(`set session sql_mode = '${SQL_MODE}', time_zone = '+00:00'`);
    return connection;
  } catch (error) {
    throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'the administrator could not connect');
  }
}

async function applyStep(connection: MysqlConnection, step: string): Promise<void> {
  try {
    await connection.query(step);
  } catch (error) {
    const what = `"${printable(step).split('\n')[0]}" failed; the steps before it can be repeated`;
    throw asFault(error, 'ERR_EM_ADAPTER_REFUSED', what);
  }
}

function printable(step: string): string {
  return step
    .replace(/(identified by ).*$/s, "$1'…'")
    .replace(/(insert ignore into \S+deployment ).*$/s, '$1values (…)');
}

/** A script that can be reviewed and repeated. */
async function provisionSteps(
  connection: MysqlConnection,
  options: MysqlOptions,
  settings: MysqlSettings,
): Promise<readonly string[]> {
  const { business, owner, control, execution, controlDatabase: database } = settings;
  const names = { business, database, owner, control, execution };
  const logins = [options.control, options.execution].flatMap((login) => {
    const { user, password } = connectionParts(login, 'login');
    const create = SQL.get('create_login', { login: user });
    if (!password) return [create];
    return [create, SQL.get('set_password', { login: user, password })];
  });
  const written = await demandRelations(connection, settings);
  const triggers = await readTriggers(connection, settings);
  const reads = settings.reads.map((relation) => SQL.get('grant_reading', { ...names, relation }));
  return [
    SQL.get('create_owner', names),
    ...logins,
    ...CONTROL_OBJECTS.map((name) => SQL.get(name, names)),
    insertDeployment(database),
    ...GRANTS.map((name) => SQL.get(name, names)),
    ...written.flatMap((relation) => protectRelation(settings, relation, triggers)),
    ...createRecorders(settings, database, PROBE_RELATION, []),
    ...reads,
  ];
}

/** The values are drawn once. Repeating the statement keeps the existing ones. */
function insertDeployment(database: string): string {
  const key = randomBytes(64);
  const [inner, outer] = [0x36, 0x5c].map((pad) =>
    Buffer.from(key.map((byte) => byte ^ pad)).toString('hex'),
  );
  return (
    `insert ignore into ${quoteName(database)}.deployment ` +
    `values (${VERSION}, '${randomUUID()}', x'${inner}', x'${outer}')`
  );
}

async function demandRelations(
  connection: MysqlConnection,
  { business, relations, reads }: MysqlSettings,
): Promise<readonly MysqlRelation[]> {
  const names = [...relations.map(({ name }) => name), ...reads];
  const inspections = await readRelations(connection, business, names);
  const usable = inspections.map((inspection) => {
    if (inspection.kind === 'usable') return inspection.relation;
    throw refused(`relation "${inspection.name}" cannot be registered: ${inspection.why}`);
  });
  return usable.slice(0, relations.length);
}

/** An application trigger. */
interface ForeignTrigger {
  readonly table: string;
  readonly name: string;
  readonly timing: string;
  readonly event: string;
}

async function readTriggers(
  connection: MysqlConnection,
  { business }: MysqlSettings,
): Promise<readonly ForeignTrigger[]> {
  const rows = await connection.texts(
    `select event_object_table, trigger_name, action_timing, event_manipulation
      from information_schema.triggers
      where trigger_schema = ${quoteText(business)}
      order by action_order`,
  );
  return rows
    .map(([table, name, timing, event]) => ({
      ...{ table: String(table), name: String(name), timing: String(timing), event: String(event) },
    }))
    .filter(({ table, name }) => !recorderNames(table).includes(name));
}

function protectRelation(
  settings: MysqlSettings,
  relation: MysqlRelation,
  triggers: readonly ForeignTrigger[],
): readonly string[] {
  const { business, owner, execution } = settings;
  const names = { business, owner, execution, relation: relation.target };
  const own = triggers.filter(({ table }) => table === relation.target);
  return [
    SQL.get('grant_recording', names),
    ...createRecorders(settings, business, relation, own),
    SQL.get('grant_writing', names),
  ];
}

function createRecorders(
  settings: MysqlSettings,
  schema: string,
  relation: Parameters<typeof recordersOf>[1],
  others: readonly ForeignTrigger[],
): readonly string[] {
  const qualified = (name: string) => `${quoteName(schema)}.${quoteName(name)}`;
  return [
    ...recorderNames(relation.target).map((name) => `drop trigger if exists ${qualified(name)}`),
    ...recordersOf(settings, relation).map(
      (recorder) =>
        `create definer = '${settings.owner}'@'localhost' trigger ${qualified(recorder.name)}\n` +
        `${recorder.timing} ${recorder.event} on ${qualified(relation.target)}\n` +
        `for each row${placeOf(recorder, others)}\n${recorder.body}`,
    ),
  ];
}

/** AFTER recorders must run first. A new BEFORE trigger already runs last. */
function placeOf({ timing, event }: Recorder, others: readonly ForeignTrigger[]): string {
  const first = others.find((other) => other.timing === timing && other.event === event);
  return timing === 'AFTER' && first !== undefined ? ` precedes ${quoteName(first.name)}` : '';
}

async function removalSteps(
  connection: MysqlConnection,
  settings: MysqlSettings,
): Promise<readonly string[]> {
  const { business, owner, control, execution, controlDatabase: database } = settings;
  const triggers = await connection.texts(
    `select event_object_table, trigger_name from information_schema.triggers
      where trigger_schema = ${quoteText(business)}`,
  );
  const installed = triggers.filter(([table, name]) =>
    recorderNames(String(table)).includes(String(name)),
  );
  const accounts = await connection.texts(
    `select user from mysql.user where host = '%'
      and user in (${quoteText(control)}, ${quoteText(execution)})`,
  );
  return [
    ...installed.map(([, trigger]) =>
      SQL.get('drop_recorder', { business, trigger: String(trigger) }),
    ),
    SQL.get('drop_database', { database }),
    SQL.get('drop_owner', { owner }),
    ...accounts.map(([login]) => SQL.get('revoke_login', { login: String(login) })),
  ];
}
