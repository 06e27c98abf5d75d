import { deniedOutlets, fingerprint, openOutlet } from '../../backend/setup.ts';
import type { Outlet, Remedy, Survey } from '../../protocol/boundary.ts';
import type { Registration, Target } from '../../protocol/registration.ts';
import { type MysqlRelation, type RelationReport, readRelations } from './catalog.ts';
import { type CodeFinding, type CodeObject, judgeCode } from './code.ts';
import type { MysqlConnection, TextCells } from './connection.ts';
import type { MysqlSettings } from './options.ts';
import { SQL_MODE } from './provision.ts';
import { PROBE_RELATION, type Recorder, recordersOf } from './recorders.ts';
import { quoteName, quoteText, SQL } from './sql.ts';

/** What a survey found, with the relations as they are now. */
export interface MysqlBoundary {
  readonly survey: Survey;
  /** Registered relations, and those that may be read. */
  readonly relations: ReadonlyMap<string, MysqlRelation>;
}

/** Routes that exist on every server, and what closes them. */
const CLOSED = deniedOutlets({
  'COMMIT, BEGIN, DDL, LOCK TABLES and their disguises':
    'refused in an active XA branch; statements are admitted by the parser of the server',
  'XA END and XA COMMIT': 'statements are admitted by the parser; the name of the branch is random',
  'CALL, DO, HANDLER, LOAD DATA, SET, SET STATEMENT, PREPARE':
    'statements are admitted by the parser of the server',
  'INTO OUTFILE and INTO DUMPFILE': 'the account has no FILE privilege',
  'LOAD DATA LOCAL': 'switched off on the connection',
  'several statements in one': 'switched off on the connection',
  'sequences, other tables, routines and events': 'the account has no rights on them',
  'temporary tables, user variables and user locks': 'a session serves one candidate',
  'control tables of EffectMatch': 'the account has no rights on them',
});

interface Demand {
  readonly must: RegExp;
  readonly remedy: string;
  /** The statement that meets the demand, if the server need not be started again for it. */
  readonly fix?: string;
}

/** Settings of the server on which a commit or the evidence depends. */
const SERVER = {
  innodb_flush_log_at_trx_commit: {
    must: /^1$/,
    remedy: 'set it to 1: a commit must be flushed',
    fix: 'set global innodb_flush_log_at_trx_commit = 1',
  },
  innodb_doublewrite: { must: /^(?:1|ON)$/, remedy: 'switch it on: a torn page loses commits' },
  innodb_flush_method: { must: /^(?!.*nosync)/i, remedy: 'choose a method that flushes' },
  innodb_force_recovery: { must: /^0$/, remedy: 'set it to 0' },
  wsrep_on: { must: /^0$/, remedy: 'Galera has no XA; use a server without it' },
  init_connect: {
    must: /^$/,
    remedy: 'empty it: it runs SQL in every new session',
    fix: "set global init_connect = ''",
  },
} as const satisfies Record<string, Demand>;

/** Everything that a certificate rests on, read with the trusted session. */
export async function readBoundary(
  control: MysqlConnection,
  execution: MysqlConnection,
  settings: MysqlSettings,
  facts: { readonly backend: string; readonly registration?: Registration },
): Promise<MysqlBoundary> {
  const { business, relations: registered, reads } = settings;
  const names = [...registered.map(({ name }) => name), ...reads];
  const inspections = await readRelations(control, business, names);
  const targets = inspections.slice(0, registered.length);
  const relations = new Map<string, MysqlRelation>();
  for (const inspection of inspections)
    if (inspection.kind === 'usable')
      relations.set(inspection.relation.target, inspection.relation);
  const triggers = await readTriggers(control, settings);
  const code = await judgeCode(control, firstCode(business, targets, triggers));
  const findings: readonly Finding[] = [
    ...targets.map((inspection) =>
      surveyRelation(inspection, facts.registration, triggers, settings),
    ),
    ...code.map((finding) => surveyCode(finding, settings.reviews)),
    ...(await surveyForeignKeys(control, settings)),
    ...(await surveyServer(control)),
    ...(await surveyControl(control, settings, triggers)),
    ...(await surveyRights(execution, settings)),
    ...(await surveyUnmarked(control, settings.controlDatabase)),
    ...CLOSED,
  ];
  const outlets = findings.map(({ outlet, disposition, by }) => ({ outlet, disposition, by }));
  const texts = [...relations.values()].map(({ text }) => text);
  const survey = {
    backend: facts.backend,
    executor: `account ${settings.execution}, a session for each candidate, in an XA branch`,
    outlets,
    configuration: fingerprint([texts, triggers, code, outlets]),
    credentials: fingerprint([settings.control, settings.execution, settings.owner]),
    enforcement: fingerprint([CLOSED, settings.isolation]),
    remedies: findings.flatMap(readRemedy),
  };
  return { survey, relations };
}

/** An outlet, with the statement that closes it if there is one. */
type Finding = Outlet & { readonly fix?: string };

function readRemedy({ outlet, by, fix }: Finding): readonly Remedy[] {
  if (fix === undefined) return [];
  return [{ outlet, object: outlet, why: by, fix: [fix], needs: 'an administrator' }];
}

/** Triggers on tables of both databases, in the order in which they run. */
async function readTriggers(
  control: MysqlConnection,
  { business, controlDatabase }: MysqlSettings,
): Promise<readonly TextCells[]> {
  return await control.texts(
    `select event_object_schema, event_object_table, action_timing, event_manipulation, trigger_name,
        action_statement, definer, sql_mode from information_schema.triggers
      where event_object_schema in (${quoteText(business)}, ${quoteText(controlDatabase)})
      order by 1, 2, 3, 4, action_order`,
  );
}

const isOurs = (name: string | null | undefined) => String(name).startsWith('effectmatch_');

/** What a write of a registered relation runs directly: its triggers and its defaults. */
function firstCode(
  business: string,
  inspections: readonly RelationReport[],
  triggers: readonly TextCells[],
): readonly CodeObject[] {
  return inspections.flatMap((inspection) => {
    if (inspection.kind === 'unusable') return [];
    const { target, columns } = inspection.relation;
    const own = triggers.filter(
      ([schema, table, , , name]) => schema === business && table === target && !isOurs(name),
    );
    const defaults = columns.filter(({ defaultText }) =>
      /nextval|lastval/i.test(defaultText ?? ''),
    );
    return [
      ...own.map(([schema, , , , name, text]) => ({
        name: `trigger ${schema}.${name}`,
        schema: String(schema),
        text: text ?? '',
      })),
      ...defaults.map(({ name, defaultText }) => ({
        name: `default of ${target}.${name}`,
        schema: business,
        text: defaultText ?? '',
      })),
    ];
  });
}

function surveyRelation(
  inspection: RelationReport,
  registration: Registration | undefined,
  triggers: readonly TextCells[],
  settings: MysqlSettings,
): Outlet {
  if (inspection.kind === 'unusable')
    return openOutlet(`relation ${inspection.name}`, inspection.why);
  const { relation } = inspection;
  const outlet = `relation ${relation.target}`;
  const target = registration?.targets.find(({ name }) => name === relation.target);
  if (target !== undefined && !isSameShape(target, relation))
    return openOutlet(outlet, 'its columns or key changed after it was registered; open again');
  const wrong = findRecorderProblem(relation, settings.business, triggers, settings);
  if (wrong !== undefined) return openOutlet(outlet, wrong);
  const uncompared = target?.volatile.length
    ? `, volatile and not compared: ${target.volatile.join(', ')}`
    : '';
  return { outlet, disposition: 'observed', by: `recorders and undo entries${uncompared}` };
}

function isSameShape({ columns, key }: Target, relation: MysqlRelation): boolean {
  const now = [relation.columns.map(({ name }) => name), relation.key];
  return JSON.stringify(now) === JSON.stringify([columns, key]);
}

/** Every recorder must be in its place with its own text: first after, or last before, a write. */
function findRecorderProblem(
  relation: Parameters<typeof recordersOf>[1],
  schema: string,
  triggers: readonly TextCells[],
  settings: MysqlSettings,
): string | undefined {
  const own = triggers.filter(([place, table]) => place === schema && table === relation.target);
  const isInPlace = ({ name, timing, event, body }: Recorder) => {
    const group = own.filter(([, , when, what]) => when === timing && what === event);
    const found = timing === 'AFTER' ? group[0] : group.at(-1);
    const expected = [name, body, `${settings.owner}@localhost`, SQL_MODE];
    return JSON.stringify(found?.slice(4)) === JSON.stringify(expected);
  };
  const wrong = recordersOf(settings, relation).find((recorder) => !isInPlace(recorder));
  if (wrong === undefined) return undefined;
  return `its recorder ${wrong.name} is missing, changed or not in its place; provision again`;
}

function surveyCode(finding: CodeFinding, reviews: readonly string[]): Outlet {
  const { object, digest, problem } = finding;
  if (problem === undefined)
    return { outlet: object, disposition: 'observed', by: 'its writes are recorded or counted' };
  if (reviews.includes(digest))
    return { outlet: object, disposition: 'observed', by: `reviewed as ${digest}` };
  return openOutlet(object, `${problem}; change it, or read it and add "${digest}" to reviews`);
}

/** Foreign-key actions fire no triggers. */
async function surveyForeignKeys(
  control: MysqlConnection,
  { business, relations }: MysqlSettings,
): Promise<readonly Outlet[]> {
  const names = relations.map(({ name }) => quoteText(name)).join(', ');
  const rows = await control.texts(
    `select constraint_schema, constraint_name, table_name, update_rule, delete_rule
      from information_schema.referential_constraints
      where unique_constraint_schema = ${quoteText(business)} and referenced_table_name in (${names})
        and not (update_rule in ('RESTRICT', 'NO ACTION') and delete_rule in ('RESTRICT', 'NO ACTION'))`,
  );
  return rows.map(([schema, name, child, onUpdate, onDelete]) =>
    openOutlet(
      `foreign key ${schema}.${name}`,
      `ON UPDATE ${onUpdate}, ON DELETE ${onDelete} would write rows of "${child}" that no recorder sees; declare RESTRICT`,
    ),
  );
}

async function surveyServer(control: MysqlConnection): Promise<readonly Finding[]> {
  const names = Object.keys(SERVER);
  const variables = [...names, 'log_bin', 'sync_binlog'].map((name) => `@@global.${name}`);
  const [row] = await control.texts(`select ${variables.join(', ')}`);
  const demands: readonly [string, Demand][] = Object.entries(SERVER);
  const open = demands.flatMap(([name, { must, remedy, fix }], index) => {
    const value = row?.[index] ?? '';
    if (must.test(value)) return [];
    return [{ ...openOutlet(`${name} = ${value}`, remedy), ...(fix && { fix }) }];
  });
  const [logs, flushes] = row?.slice(names.length) ?? [];
  if (logs === '0' || flushes === '1') return open;
  const remedy = 'set it to 1: with the binary log on, a commit can be lost with the machine';
  const fix = 'set global sync_binlog = 1';
  return [...open, { ...openOutlet(`sync_binlog = ${flushes}`, remedy), fix }];
}

const PROCEDURES = ['open', 'observe', 'promote'];

/** The procedures and the probe's recorders must be what this release installs. */
async function surveyControl(
  control: MysqlConnection,
  settings: MysqlSettings,
  triggers: readonly TextCells[],
): Promise<readonly Outlet[]> {
  const { controlDatabase: database, owner } = settings;
  const rows = await control.texts(
    `select name, body_utf8, definer, security_type, sql_mode from mysql.proc where db = ${quoteText(database)}`,
  );
  const changed = PROCEDURES.filter((name) => {
    const text = SQL.get(`create_${name}`, { database, owner });
    const body = text.slice(text.indexOf('\nbegin') + 1);
    const found = rows.find(([found]) => found === name);
    const expected = [body, `${owner}@localhost`, 'DEFINER', SQL_MODE];
    return JSON.stringify(found?.slice(1)) !== JSON.stringify(expected);
  });
  const wrong = findRecorderProblem(PROBE_RELATION, database, triggers, settings);
  const extra = triggers.filter(([place, table]) => place === database && table !== 'probe');
  return [
    ...changed.map((name) =>
      openOutlet(`procedure ${name}`, 'missing or changed; provision again'),
    ),
    ...extra.map(([, table]) => openOutlet(`trigger on ${table}`, 'drop it: records need none')),
    ...(wrong === undefined ? [] : [openOutlet('probe', wrong)]),
  ];
}

/** What the account may do must be what provisioning granted, and no more. */
async function surveyRights(
  execution: MysqlConnection,
  settings: MysqlSettings,
): Promise<readonly Finding[]> {
  const { business, controlDatabase, relations, reads, execution: account } = settings;
  const on = (schema: string, name: string) => `${quoteName(schema)}.${quoteName(name)}`;
  const expected = new Set([
    'USAGE ON *.*',
    `SELECT, INSERT ON ${on(controlDatabase, 'probe')}`,
    ...PROCEDURES.map((name) => `EXECUTE ON PROCEDURE ${on(controlDatabase, name)}`),
    ...relations.map(({ name }) => `SELECT, INSERT, UPDATE, DELETE ON ${on(business, name)}`),
    ...reads.map((name) => `SELECT ON ${on(business, name)}`),
  ]);
  const login = ` TO ${quoteName(account)}@\`%\``;
  const granted = (await execution.texts('show grants')).map(([line]) =>
    String(line)
      .replace(/ IDENTIFIED BY PASSWORD '[^']*'/, '')
      .replace(/^GRANT /, '')
      .replace(login, ''),
  );
  const extra = granted.filter((right) => !expected.has(right));
  const missing = [...expected].filter((right) => !granted.includes(right));
  return [
    ...extra.map((right) => ({
      ...openOutlet(`right ${right}`, `revoke it from ${account}`),
      fix: revocationOf(right, `${quoteName(account)}@'%'`),
    })),
    ...missing.map((right) => openOutlet(`right ${right}`, 'it is missing; provision again')),
  ];
}

/** The statement that takes a right away, from its line in SHOW GRANTS. */
function revocationOf(right: string, account: string): string {
  const isPublic = right.endsWith(' TO PUBLIC');
  const [, granted = ''] = /^(.*?)(?: TO PUBLIC)?(?: WITH GRANT OPTION)?$/.exec(right) ?? [];
  const from = isPublic ? 'public' : account;
  if (!right.endsWith(' WITH GRANT OPTION')) return `revoke ${granted} from ${from}`;
  return `revoke grant option${granted.slice(granted.indexOf(' ON '))} from ${from}`;
}

/** A stage that another session can see was committed without its marker. */
async function surveyUnmarked(
  control: MysqlConnection,
  database: string,
): Promise<readonly Outlet[]> {
  const rows = await control.texts(`select occurrence from ${quoteName(database)}.stage`);
  return rows.map(([occurrence]) =>
    openOutlet(
      `occurrence ${occurrence}`,
      'it was committed without a marker, past the gate; compare its records with the tables, then delete its row from `stage`',
    ),
  );
}
