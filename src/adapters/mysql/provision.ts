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

/**
 * A new session takes these from the server, where an administrator may have changed them. Without
 * autocommit, a session that only reads would hold up every DDL statement. A server that ignores
 * the handshake (`skip-character-set-client-handshake`) would read our UTF-8 as something else.
 */
export const SESSION_BASICS =
  'autocommit = 1, tx_read_only = 0, sql_select_limit = 18446744073709551615, ' +
  'sql_quote_show_create = 1, max_statement_time = 0, character_set_client = utf8mb4, ' +
  'character_set_results = utf8mb4, collation_connection = utf8mb4_bin';

/** Procedures and recorders keep the mode of the session that creates them. */
const SET_MODE = `set session sql_mode = '${SQL_MODE}', time_zone = '+00:00', ${SESSION_BASICS}`;

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
  const parts =
    what === 'provision'
      ? await provisionParts(connection, options, settings)
      : await removalParts(connection, settings, what);
  return {
    print: () => [`${SET_MODE};`, ...parts.map(printPart)].join('\n\n'),
    apply: async (report) => {
      await using applying = await openAdmin(admin);
      if (what === 'provision') await demandDefiner(applying);
      for (const step of parts.flatMap(({ steps }) => steps)) {
        await applyStep(applying, step);
        report?.(printable(step));
      }
      return [];
    },
    ...(what === 'remove' && { keepsMarkers: true }),
  };
}

/** Statements that belong together, and the rights that the administrator needs for them. */
interface Part {
  readonly what: string;
  readonly needs: string;
  readonly steps: readonly string[];
}

/** The client `mariadb` needs another delimiter around code that contains semicolons. */
function printPart({ what, needs, steps }: Part): string {
  const printed = steps.map((step) => {
    const sql = printable(step);
    return sql.includes(';') ? `delimiter //\n${sql} //\ndelimiter ;` : `${sql};`;
  });
  return [`-- ${what}; needs ${needs}`, ...printed].join('\n\n');
}

/** Checked before the first statement, because there is no rollback. */
async function demandDefiner(connection: MysqlConnection): Promise<void> {
  const [row] = await connection.texts(
    `select current_role() is not null or exists (
      select 1 from information_schema.user_privileges where privilege_type in ('SUPER', 'SET USER')
        and grantee = concat('''', regexp_replace(current_user(), '@([^@]*)$', '''@''\\1'), ''''))`,
  );
  if (row?.[0] === '1') return;
  const lacks = 'the administrator has neither SUPER nor SET USER on *.*, and nothing was changed';
  throw refused(`${lacks}; recorders and procedures must belong to a locked account`);
}

async function openAdmin(admin: MysqlConnectionOptions): Promise<MysqlConnection> {
  try {
    const connection = await MysqlConnection.open(admin, ADMIN_DEADLINE_MS);
    await connection.query(SET_MODE);
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
    .replace(
      /(insert ignore into \S+deployment ).*$/s,
      `$1values (${VERSION}, uuid(), random_bytes(64), random_bytes(64))`,
    );
}

/** A script that can be reviewed and repeated. */
async function provisionParts(
  connection: MysqlConnection,
  options: MysqlOptions,
  settings: MysqlSettings,
): Promise<readonly Part[]> {
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
  const each = (list: readonly string[]) => list.map((name) => SQL.get(name, names));
  return [
    {
      what: 'the accounts (passwords are not printed)',
      needs: 'CREATE USER',
      steps: [SQL.get('create_owner', names), ...logins],
    },
    {
      what: 'the control database',
      needs: 'CREATE, INSERT, CREATE ROUTINE, ALTER ROUTINE, and SET USER or SUPER',
      steps: [...each(CONTROL_OBJECTS), insertDeployment(database)],
    },
    {
      what: 'rights of the accounts',
      needs: 'these rights WITH GRANT OPTION',
      steps: [...each(GRANTS), ...reads],
    },
    {
      what: 'recorders, and rights on the registered tables',
      needs: 'TRIGGER, SET USER or SUPER, and these rights WITH GRANT OPTION',
      steps: [
        ...written.flatMap((relation) => protectRelation(settings, relation, triggers)),
        ...createRecorders(settings, database, PROBE_RELATION, []),
      ],
    },
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

/**
 * Removes what provisioning added. Markers stay unless asked for, with the identity of the database
 * they belong to: they say what was committed.
 */
async function removalParts(
  connection: MysqlConnection,
  settings: MysqlSettings,
  what: ProvisioningKind,
): Promise<readonly Part[]> {
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
    {
      what: 'recorders',
      needs: 'TRIGGER',
      steps: installed.map(([, trigger]) =>
        SQL.get('drop_recorder', { business, trigger: String(trigger) }),
      ),
    },
    what === 'remove-markers'
      ? {
          what: 'the control database with its markers',
          needs: 'DROP',
          steps: [SQL.get('drop_database', { database })],
        }
      : {
          what: 'the control database except its markers and identity',
          needs: 'DROP and ALTER ROUTINE',
          steps: await dropAllButMarkers(connection, database),
        },
    {
      what: 'the accounts: two stay, without rights',
      needs: 'CREATE USER',
      steps: [
        SQL.get('drop_owner', { owner }),
        ...accounts.map(([login]) => SQL.get('revoke_login', { login: String(login) })),
      ],
    },
  ];
}

/** A row of `stage` and its records are the only trace of a commit without a marker: they stay. */
async function dropAllButMarkers(
  connection: MysqlConnection,
  database: string,
): Promise<readonly string[]> {
  const found = await connection.texts(
    `select table_name from information_schema.tables where table_schema = ${quoteText(database)}`,
  );
  const tables = found.map(([name]) => String(name));
  const hasUnmarked =
    tables.includes('stage') &&
    (await connection.query(`select 1 from ${quoteName(database)}.stage limit 1`)).length > 0;
  const dropped = hasUnmarked ? ['probe'] : ['probe', 'stage', 'record'];
  return [
    ...PROCEDURES.map((procedure) => SQL.get('drop_procedure', { database, procedure })),
    ...dropped.map((table) => SQL.get('drop_table', { database, table })),
  ];
}
