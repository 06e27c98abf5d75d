import type { ForeignKeyColumn } from '../../backend/foreign-keys.ts';
import { fingerprint, openOutlet } from '../../backend/setup.ts';
import type { Outlet } from '../../protocol/boundary.ts';
import type { Registration, Target } from '../../protocol/registration.ts';
import { type MysqlRelation, type RelationReport, readRelations } from './catalog.ts';
import {
  type CodeFinding,
  type CodeObject,
  digestOf,
  judgeCode,
  objectName,
  SEQUENCE_FUNCTION,
} from './code.ts';
import type { MysqlConnection, TextCells } from './connection.ts';
import { surveyControlTables, surveyProcedures } from './control-objects.ts';
import type { MysqlSettings } from './options.ts';
import { SQL_MODE } from './provision.ts';
import { PROBE_RELATION, type Recorder, recordersOf } from './recorders.ts';
import { type FixableOutlet, surveyControlRights, surveyHiddenRights } from './rights.ts';
import { quoteText } from './sql.ts';

/** What a survey reads from definitions: tables, triggers, and the code that they reach. */
export interface Definitions {
  /** Registered relations and relations that may only be read. */
  readonly relations: ReadonlyMap<string, MysqlRelation>;
  /** Foreign keys of registered relations. */
  readonly foreignKeys: readonly ForeignKeyColumn[];
  readonly outlets: readonly FixableOutlet[];
  readonly fingerprint: string;
  /** Each definition by the name of its object, to report which one changed. */
  readonly texts: ReadonlyMap<string, string>;
}

/**
 * Reads definitions again only if the server has counted a statement that could have changed one.
 * The counts come from `ServerWatch`. The server counts a statement before it runs, so definitions
 * are kept only if no counted statement was running when the read began. The counters restart with
 * the server, but a restart also ends the session.
 */
export class KnownDefinitions {
  readonly #settings: MysqlSettings;
  #known:
    | {
        readonly control: MysqlConnection;
        readonly counted: string;
        readonly definitions: Definitions;
      }
    | undefined;

  constructor(settings: MysqlSettings) {
    this.#settings = settings;
  }

  async read(
    control: MysqlConnection,
    counted: string,
    registration?: Registration,
  ): Promise<Definitions> {
    const known = this.#known;
    if (known?.control === control && known.counted === counted) return known.definitions;
    const isQuiet = await noneIsRunning(control);
    const definitions = await readDefinitions(control, this.#settings, registration);
    this.#known = isQuiet ? { control, counted, definitions } : undefined;
    return definitions;
  }
}

/** Statements that begin like this change no definition. SET and BEGIN may precede ones that do. */
const PLAIN_STATEMENT = '^(?:select|insert|update|delete|replace|commit|rollback|xa|show)\\b';

/** Whether all counted statements have ended, except those that cannot change a definition. */
async function noneIsRunning(control: MysqlConnection): Promise<boolean> {
  const running = await control.query(
    `select 1 from information_schema.processlist
      where id <> connection_id() and info not rlike ${quoteText(PLAIN_STATEMENT)} limit 1`,
  );
  return running.length === 0;
}

async function readDefinitions(
  control: MysqlConnection,
  settings: MysqlSettings,
  registration: Registration | undefined,
): Promise<Definitions> {
  const { business, relations: registered, reads } = settings;
  const names = [...registered.map(({ name }) => name), ...reads];
  const inspections = await readRelations(control, business, names);
  const targets = inspections.slice(0, registered.length);
  const relations = new Map<string, MysqlRelation>();
  for (const inspection of inspections)
    if (inspection.kind === 'usable')
      relations.set(inspection.relation.target, inspection.relation);
  const triggers = await readTriggers(control, settings);
  const recorders = namesOfRecorders(settings, targets);
  const first = firstCode(business, targets, triggers, recorders);
  const code = await judgeCode(control, first, { ...settings, recorders });
  const foreignKeys = await readForeignKeys(control, settings);
  const outlets = [
    ...targets.map((report) => surveyRelation(report, registration, triggers, settings)),
    ...inspections.slice(registered.length).flatMap(surveyReading),
    ...(await surveyNativeFunctions(control, settings.reviews)),
    ...code.map((finding) => surveyCode(finding, settings.reviews)),
    ...(await surveyForeignKeys(control, settings)),
    ...surveyProbe(settings, triggers, recorders),
    ...(await surveyControlTables(control, settings)),
    ...(await surveyProcedures(control, settings)),
    ...(await surveyHiddenRights(control, settings)),
    ...(await surveyControlRights(control)),
  ];
  const texts = new Map([
    ...[...relations].map(([name, { text }]) => [`relation ${name}`, text] as const),
    ...triggers.map((row) => [objectName('trigger', row[0], row[4]), JSON.stringify(row)] as const),
    ...code.map(({ object, digest }) => [object, digest] as const),
  ]);
  return {
    ...{ relations, foreignKeys, outlets, texts },
    fingerprint: fingerprint([[...texts], outlets]),
  };
}

/** The triggers on tables of both databases, in the order they run. */
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

/** The names of our recorders, as code is named. */
function namesOfRecorders(
  settings: MysqlSettings,
  inspections: readonly RelationReport[],
): ReadonlySet<string> {
  const relations = inspections.flatMap((one) => (one.kind === 'usable' ? [one.relation] : []));
  const namesIn = (schema: string, relation: Parameters<typeof recordersOf>[1]) =>
    recordersOf(settings, relation).map(({ name }) => objectName('trigger', schema, name));
  return new Set([
    ...relations.flatMap((relation) => namesIn(settings.business, relation)),
    ...namesIn(settings.controlDatabase, PROBE_RELATION),
  ]);
}

/** The code that a write to a registered relation runs directly: triggers and defaults. */
function firstCode(
  business: string,
  inspections: readonly RelationReport[],
  triggers: readonly TextCells[],
  recorders: ReadonlySet<string>,
): readonly CodeObject[] {
  return inspections.flatMap((inspection) => {
    if (inspection.kind === 'unusable') return [];
    const { target, columns } = inspection.relation;
    const own = triggers.filter(
      ([schema, table, , , name]) =>
        schema === business &&
        table === target &&
        !recorders.has(objectName('trigger', schema, name)),
    );
    const defaults = columns.filter(({ defaultText }) =>
      SEQUENCE_FUNCTION.test(String(defaultText)),
    );
    return [
      ...own.map(([schema, , , , name, text]) => ({
        name: objectName('trigger', schema, name),
        schema: String(schema),
        text: text ?? '',
      })),
      ...defaults.map(({ name, defaultText }) => ({
        name: objectName('default of', target, name),
        schema: business,
        text: String(defaultText),
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

/** A table that may only be read. It is an open outlet if it cannot be used. */
function surveyReading(inspection: RelationReport): readonly Outlet[] {
  if (inspection.kind === 'usable') return [];
  return [openOutlet(`relation ${inspection.name}`, inspection.why)];
}

/** Every account may call functions from shared libraries and plugins, which can do anything. */
async function surveyNativeFunctions(
  control: MysqlConnection,
  reviews: readonly string[],
): Promise<readonly Outlet[]> {
  const rows = await control.texts(
    `select name, dl from mysql.func
      union all
      select plugin_name, plugin_library from information_schema.plugins
      where plugin_type = 'FUNCTION' and plugin_library is not null order by name`,
  );
  return rows.map(([name, library]) => {
    const object = `native function ${name}`;
    const problem = `every account may call it, and the library ${library} may do anything`;
    return surveyCode({ object, digest: digestOf(object, String(library)), problem }, reviews);
  });
}

function isSameShape({ columns, key }: Target, relation: MysqlRelation): boolean {
  const now = [relation.columns.map(({ name }) => name), relation.key];
  return JSON.stringify(now) === JSON.stringify([columns, key]);
}

/** Each recorder must have its own text and be first after a write, or last before it. */
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

const COUNTED =
  'writes to registered tables are recorded; a write to another table is counted and refused';

function surveyCode(finding: CodeFinding, reviews: readonly string[]): Outlet {
  const { object, digest, problem } = finding;
  if (problem === undefined) return { outlet: object, disposition: 'observed', by: COUNTED };
  if (reviews.includes(digest))
    return { outlet: object, disposition: 'observed', by: `reviewed as ${digest}` };
  return openOutlet(object, `${problem}; change it, or read it and add "${digest}" to reviews`);
}

/**
 * Foreign-key actions do not fire triggers. Those that refer to our own tables would run while the
 * change is committed, after everything was compared.
 */
async function surveyForeignKeys(
  control: MysqlConnection,
  { business, relations, controlDatabase }: MysqlSettings,
): Promise<readonly Outlet[]> {
  const names = relations.map(({ name }) => quoteText(name)).join(', ');
  const rows = await control.texts(
    `select constraint_schema, constraint_name, table_name, update_rule, delete_rule
      from information_schema.referential_constraints
      where (unique_constraint_schema = ${quoteText(controlDatabase)}
          or unique_constraint_schema = ${quoteText(business)} and referenced_table_name in (${names}))
        and not (update_rule in ('RESTRICT', 'NO ACTION') and delete_rule in ('RESTRICT', 'NO ACTION'))`,
  );
  return rows.map(([schema, name, child, onUpdate, onDelete]) =>
    openOutlet(
      `foreign key ${schema}.${name}`,
      `ON UPDATE ${onUpdate}, ON DELETE ${onDelete} would write rows of "${child}" that no recorder sees; declare RESTRICT`,
    ),
  );
}

/** The probe's recorders must be in place, and our tables must have no other triggers. */
function surveyProbe(
  settings: MysqlSettings,
  triggers: readonly TextCells[],
  recorders: ReadonlySet<string>,
): readonly Outlet[] {
  const { controlDatabase: database } = settings;
  const wrong = findRecorderProblem(PROBE_RELATION, database, triggers, settings);
  const extra = triggers.filter(
    ([place, , , , name]) =>
      place === database && !recorders.has(objectName('trigger', place, name)),
  );
  return [
    ...extra.map(([, table]) => openOutlet(`trigger on ${table}`, 'drop it: records need none')),
    ...(wrong === undefined ? [] : [openOutlet('probe', wrong)]),
  ];
}

/** The foreign-key columns of registered relations, for rehearsals. */
async function readForeignKeys(
  control: MysqlConnection,
  { business, relations }: MysqlSettings,
): Promise<readonly ForeignKeyColumn[]> {
  const registered = new Set(relations.map(({ name }) => name));
  const rows = await control.texts(
    `select table_name, column_name, referenced_table_schema, referenced_table_name, referenced_column_name
      from information_schema.key_column_usage
      where table_schema = ${quoteText(business)} and referenced_table_name is not null`,
  );
  const texts = rows.map((row) => row.map(String) as [string, string, string, string, string]);
  return texts
    .filter(([target]) => registered.has(target))
    .map(([target, column, schema, table, referred]) => {
      const isKnown = schema === business && registered.has(table);
      return {
        target,
        column,
        refersTo: isKnown ? { target: table, column: referred } : undefined,
      };
    });
}
