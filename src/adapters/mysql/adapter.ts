import { joinStatements } from '../../backend/action.ts';
import type { Backend, HoldRequest, HoldResult } from '../../backend/candidate.ts';
import { DATABASE_NOT_OPENED, STAGE_NOT_OPENED } from '../../backend/failure.ts';
import { promotable } from '../../backend/promotable.ts';
import { QueryLimit } from '../../backend/query.ts';
import { adapterCode, checkVolatile, unregistrable } from '../../backend/setup.ts';
import type {
  AdapterContext,
  AdapterIdentity,
  Markers,
  PromotableAdapter,
  PromotableProbe,
  QueryLimits,
  QueryRows,
  Survey,
} from '../../contract/adapter.ts';
import { EffectMatchError } from '../../errors.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { Manifest } from '../../protocol/manifest.ts';
import type { Registration } from '../../protocol/registration.ts';
import {
  type CheckedMysqlAction,
  describeAction,
  parseAction,
  probeAction,
  splitScript,
} from './action.ts';
import { AdmittedTexts } from './admission.ts';
import { CHANNELS, MysqlCandidate } from './candidate.ts';
import { readRelations } from './catalog.ts';
import { explainChange, keepDefinitions } from './changes.ts';
import { asFault } from './connection.ts';
import { type Definitions, KnownDefinitions } from './definitions.ts';
import { type MysqlDeployment, readDeployment } from './deployment.ts';
import { describeFailure } from './failure.ts';
import { markersOf } from './markers.ts';
import {
  type MysqlOptions,
  type MysqlSettings,
  PROFILES,
  readOptions,
  refused,
} from './options.ts';
import { queryRows } from './query.ts';
import { readState } from './reading.ts';
import { PROBE_RELATION } from './recorders.ts';
import { normalise, normaliseKeys, type SchemaTools } from './schema.ts';
import { type ServerState, ServerWatch } from './server-state.ts';
import { ControlAccount, ExecutionSessions } from './sessions.ts';
import { SharedAnswer } from './shared-answer.ts';
import { quoteName, quoteText } from './sql.ts';
import { surveyDatabase } from './survey.ts';

/**
 * Connects both accounts and refuses a database that is not provisioned or cannot be registered.
 */
export async function openAdapter(
  options: MysqlOptions,
  context: AdapterContext,
): Promise<PromotableAdapter<CheckedMysqlAction>> {
  const settings = readOptions(options);
  const control = new ControlAccount(options.control);
  const sessions = new ExecutionSessions(options.execution, settings);
  try {
    const connection = await control.connection();
    const deployment = await readDeployment(connection, settings.controlDatabase);
    const registration = await admitRegistration(control, settings);
    await sweepRecords(control, settings.controlDatabase);
    const server = new ServerWatch(settings);
    const known = new KnownDefinitions(settings);
    const opened = {
      settings,
      control,
      sessions,
      deployment,
      registration,
      server,
      known,
      context,
    };
    const { counted } = await server.read(connection);
    const backend = new MysqlBackend(opened, await known.read(connection, counted, registration));
    await backend.survey();
    return promotable(backend, context);
  } catch (error) {
    await sessions.close();
    await control.close();
    throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', DATABASE_NOT_OPENED);
  }
}

async function admitRegistration(
  control: ControlAccount,
  settings: MysqlSettings,
): Promise<Registration> {
  const { business, relations, profile, values } = settings;
  const names = relations.map(({ name }) => name);
  const inspections = await readRelations(await control.connection(), business, names);
  const targets = inspections.map((inspection, index) => {
    if (inspection.kind === 'unusable') throw unregistrable(inspection, refused);
    const { target: name, columns, key } = inspection.relation;
    const volatile = [...new Set(relations[index]?.volatile ?? [])];
    const target = { name, columns: columns.map((column) => column.name), key, volatile };
    checkVolatile(target, refused);
    return target;
  });
  return { profile, values, targets };
}

/**
 * Deletes the records of finished stages. Records of stages committed without a marker are kept.
 */
async function sweepRecords(control: ControlAccount, database: string): Promise<void> {
  const connection = await control.connection();
  const [record, stage] = ['record', 'stage'].map((table) => `${quoteName(database)}.${table}`);
  for (let swept = SWEEP; swept === SWEEP; ) {
    const rows = await connection.texts(
      `select id from ${record} where stage not in (select token from ${stage}) limit ${SWEEP}`,
    );
    swept = rows.length;
    const ids = rows.map(([id]) => id).join(', ');
    if (swept > 0) await connection.query(`delete from ${record} where id in (${ids})`);
  }
}

/** The maximum number of queries that run at the same time. */
const MAX_QUERIES = 8;

const SWEEP = 1000;
/** How many stages are opened between two sweeps of old records. */
const STAGES_BETWEEN_SWEEPS = 1000;

interface Surveyed {
  readonly server: ServerState;
  readonly definitions: Definitions;
}

interface Opened {
  readonly settings: MysqlSettings;
  readonly control: ControlAccount;
  readonly sessions: ExecutionSessions;
  readonly deployment: MysqlDeployment;
  readonly registration: Registration;
  readonly server: ServerWatch;
  readonly known: KnownDefinitions;
  readonly context: AdapterContext;
}

/** One MariaDB database behind two accounts. It only reports; it decides nothing. */
class MysqlBackend implements Backend<CheckedMysqlAction> {
  readonly profiles = PROFILES;
  readonly channels = CHANNELS;
  readonly identity: AdapterIdentity;
  readonly registration: Registration;
  readonly markers: Markers;
  readonly probe: PromotableProbe<CheckedMysqlAction>;
  readonly parseAction = parseAction;
  readonly describeAction = describeAction;
  readonly readsMany = true;
  readonly holdsTasks = true;
  readonly joinActions = (actions: readonly unknown[]) => joinStatements(actions, splitScript);
  readonly taskMaxMs: number;
  readonly explainChange = explainChange;
  readonly #opened: Opened;
  #definitions: Definitions;
  /** The last survey and the facts it was made from. */
  #surveyed: { readonly from: string; readonly survey: Survey } | undefined;
  #granted: { readonly definitions: Definitions; readonly grants: readonly string[] } | undefined;
  readonly #admitted = new AdmittedTexts();
  readonly #queries = new QueryLimit(MAX_QUERIES);
  readonly #server = new SharedAnswer(async () => await this.#askServer());
  #staged = 0;

  constructor(opened: Opened, definitions: Definitions) {
    const { deployment, registration, control, settings, context } = opened;
    const { controlDatabase } = settings;
    this.#opened = opened;
    this.#definitions = definitions;
    this.registration = registration;
    this.taskMaxMs = settings.stageTimeoutMs;
    this.identity = {
      kind: 'mariadb 10.11',
      backend: deployment.backend,
      code: adapterCode(import.meta.url, '../../postgres/'),
    };
    this.markers = markersOf({ control, controlDatabase, reached: context.reached });
    this.probe = {
      action: (token) => probeAction(controlDatabase, token),
      target: PROBE_RELATION.target,
      durable: (token) => this.#hasToken(token),
    };
  }

  async normalise(manifest: Manifest): Promise<Manifest> {
    return await normalise(await this.#schemaTools(), manifest);
  }

  async read(reads: readonly StateRead[]): Promise<readonly StateReading[]> {
    const tools = await this.#schemaTools();
    const stated = await normaliseKeys(tools, reads);
    const connection = await this.#opened.control.connection();
    const { business: database } = this.#opened.settings;
    return await readState({ connection, database }, tools.relations, stated);
  }

  async query(action: CheckedMysqlAction, limits: QueryLimits): Promise<QueryRows> {
    const { sessions, settings } = this.#opened;
    return await this.#queries.run(async () => {
      const { outlets } = await this.survey();
      const open = outlets.find(({ disposition }) => disposition === 'unclassified');
      if (open !== undefined)
        throw new EffectMatchError('ERR_EM_BOUNDARY_OPEN', `${open.outlet} is open: ${open.by}`);
      const session = await sessions.take();
      const tools = { settings, admitted: this.#admitted };
      const timeoutMs = Math.min(limits.timeoutMs, settings.stageTimeoutMs);
      return await queryRows(session, action, { ...limits, timeoutMs }, tools).finally(() =>
        sessions.giveBack(session),
      );
    });
  }

  async survey(): Promise<Survey> {
    const { settings, deployment } = this.#opened;
    const { server, definitions } = await this.#server.get();
    const grants = await this.#readGrants(definitions);
    const from = [definitions.fingerprint, server.text, ...grants].join('\n');
    if (this.#surveyed?.from === from) return this.#surveyed.survey;
    const facts = { backend: deployment.backend, definitions, server, grants };
    const survey = surveyDatabase(settings, facts);
    keepDefinitions(survey.outlets, definitions);
    this.#surveyed = { from, survey };
    return survey;
  }

  async hold({ occurrence, reads }: HoldRequest): Promise<HoldResult<CheckedMysqlAction>> {
    const { sessions, control, deployment, settings, context } = this.#opened;
    const definitions = this.#definitions;
    const stated = await normaliseKeys(this.#schemaToolsOf(definitions), reads);
    const { reached } = context;
    this.#sweepSometimes();
    const session = await sessions
      .take()
      .catch((error: unknown) => describeFailure(error, STAGE_NOT_OPENED, settings.values));
    if ('kind' in session) return session;
    const candidate = new MysqlCandidate({
      session,
      sessions,
      control,
      deployment,
      settings,
      definitions,
      reached,
      admitted: this.#admitted,
    });
    try {
      const disposition = await candidate.begin(occurrence, stated);
      return { kind: 'open', candidate, marker: disposition && { disposition } };
    } catch (error) {
      await candidate.end('discarded');
      return describeFailure(error, STAGE_NOT_OPENED, settings.values);
    }
  }

  async close(): Promise<void> {
    await this.#opened.sessions.close();
    await this.#opened.control.close();
  }

  /** The current state of the server and its definitions. Callers share an answer. */
  async #askServer(): Promise<Surveyed> {
    const { known, control, registration, sessions } = this.#opened;
    const connection = await control.connection();
    const server = await this.#opened.server.read(connection);
    const definitions = await known.read(connection, server.counted, registration);
    if (definitions !== this.#definitions) {
      sessions.forget();
      this.#admitted.clear();
    }
    this.#definitions = definitions;
    return { server, definitions };
  }

  /**
   * The execution account's grants. The server also counts GRANT and REVOKE, so grants are read
   * again whenever the definitions are.
   */
  async #readGrants(definitions: Definitions): Promise<readonly string[]> {
    if (this.#granted?.definitions === definitions) return this.#granted.grants;
    const grants = await this.#opened.sessions.readGrants();
    this.#granted = { definitions, grants };
    return grants;
  }

  async #schemaTools(): Promise<SchemaTools> {
    return this.#schemaToolsOf((await this.#server.get()).definitions);
  }

  #schemaToolsOf({ relations }: Definitions): SchemaTools {
    const { control, settings } = this.#opened;
    return {
      registration: this.registration,
      relations,
      controlDatabase: settings.controlDatabase,
      withSession: (use) => control.withSession(use),
    };
  }

  #sweepSometimes(): void {
    this.#staged += 1;
    if (this.#staged % STAGES_BETWEEN_SWEEPS !== 0) return;
    const { control, settings } = this.#opened;
    sweepRecords(control, settings.controlDatabase).catch(() => {});
  }

  async #hasToken(token: string): Promise<boolean> {
    const connection = await this.#opened.control.connection();
    const table = `${quoteName(this.#opened.settings.controlDatabase)}.probe`;
    const rows = await connection.query(`select 1 from ${table} where token = ${quoteText(token)}`);
    return rows.length > 0;
  }
}
