import {
  type Backend,
  type HoldRequest,
  type HoldResult,
  stagePrevented,
} from '../../backend/candidate.ts';
import { DATABASE_NOT_OPENED } from '../../backend/failure.ts';
import { promotable } from '../../backend/promotable.ts';
import { QueryLimit, queryRefused } from '../../backend/query.ts';
import { adapterCode } from '../../backend/setup.ts';
import type {
  AdapterContext,
  AdapterIdentity,
  CommitLog,
  Markers,
  PromotableAdapter,
  PromotableProbe,
  QueryLimits,
  QueryRows,
  Survey,
} from '../../contract/adapter.ts';
import { EffectMatchError } from '../../errors.ts';
import { asFault, type Connection } from '../../postgres/connection.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { Manifest } from '../../protocol/manifest.ts';
import type { Registration } from '../../protocol/registration.ts';
import {
  type ActionTools,
  type CheckedPostgresAction,
  describeAction,
  joinActions,
  parseAction,
  probeAction,
  refuseAdmitted,
} from './action.ts';
import {
  admitRegistration,
  type BoundaryRoles,
  type PostgresBoundary,
  readBoundary,
} from './boundary.ts';
import { PostgresCandidate, type PostgresCandidateTools } from './candidate.ts';
import { explainChange, reachUnder } from './certify/changes.ts';
import { demandClosed, demandOwnEvidence } from './certify/guards.ts';
import type { Touched } from './certify/reach.ts';
import type { PostgresDeployment } from './control.ts';
import { Control } from './control.ts';
import { markersOf } from './markers.ts';
import { normaliseManifest, normaliseReads } from './normalise.ts';
import { CHANNELS } from './observation.ts';
import { type PostgresOptions, readOptions, type Settings } from './options.ts';
import { queryRows } from './query.ts';
import { lockReads, readState } from './reading.ts';
import { refuseServerSettings, refuseSetting } from './session-settings.ts';
import { Sessions } from './sessions.ts';
import { loadGate, type StatementGate } from './statement-gate.ts';

/** How much longer than the stage timeout an answer may take. */
const ANSWER_GRACE_MS = 5000;

/** How long to wait for a live transaction before giving up on writing a void marker. */
const VOID_LOCK_TIMEOUT_MS = 250;

/** Records of finished transactions are removed after this many stages. */
const STAGES_BETWEEN_SWEEPS = 1000;

/**
 * Connects both logins, checks that the database is provisioned, and refuses a configuration that
 * cannot be protected.
 */
export async function openAdapter(
  options: PostgresOptions,
  context: AdapterContext,
): Promise<PromotableAdapter<CheckedPostgresAction>> {
  const settings = readOptions(options);
  const isManaged = settings.boundary === 'managed';
  const control = new Control(options.control, settings.boundary);
  const deadlineMs = settings.stageTimeoutMs + ANSWER_GRACE_MS;
  const sessions = new Sessions(options.execution, options.sessions, deadlineMs, isManaged);
  try {
    await control.demandProvisioned();
    const deployment = await control.deployment();
    const gate = await loadGate(isManaged ? deployment.major : undefined);
    const executor = await sessions.login();
    const path = sessions.searchPath(executor);
    const roles = { backend: deployment.backend, executor, path, ...(await control.roles()) };
    // The survey rarely finds other roles. Watching these from the start usually saves reading the
    // boundary a second time.
    control.watchRoles([executor, roles.owner, roles.control]);
    const boundary = await readBoundary(control, settings, roles);
    demandOwnEvidence(boundary.survey);
    const { relations, drawableSequences } = boundary;
    const registration = admitRegistration(settings, relations, drawableSequences);
    const opened = { settings, gate, control, sessions, deployment, registration, roles };
    const backend = new PostgresBackend({ ...opened, reached: context.reached }, boundary);
    return promotable(backend, context);
  } catch (error) {
    await sessions.close();
    await control.close();
    throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', DATABASE_NOT_OPENED);
  }
}

interface OpenedDatabase {
  readonly settings: Settings;
  readonly gate: StatementGate;
  readonly control: Control;
  readonly sessions: Sessions;
  readonly deployment: PostgresDeployment;
  readonly registration: Registration;
  readonly roles: BoundaryRoles;
  readonly reached: AdapterContext['reached'];
}

/**
 * What an action and an approval touch: the action's statements and the relations that the approval
 * names. If a name is not known as written, all relations.
 */
function touchedBy(
  { relations, readable, views }: PostgresBoundary,
  targets: readonly { readonly target: string }[],
  action?: CheckedPostgresAction,
): Touched {
  const known = [...relations, ...readable.values(), ...views];
  const named = new Set(targets.map(({ target }) => target));
  const found = known.filter(({ target }) => named.has(target));
  const isKnown = new Set(found.map(({ target }) => target)).size === named.size;
  const touched = (isKnown ? found : known).map(({ oid }) => oid);
  return { texts: action?.statements.map(({ sql }) => sql) ?? [], relations: touched };
}

/** One PostgreSQL database, reached through two logins. It reports and decides nothing. */
class PostgresBackend implements Backend<CheckedPostgresAction> {
  readonly profiles = ['relation-write', 'row-event', 'net-state'] as const;
  readonly channels = CHANNELS;
  readonly identity: AdapterIdentity;
  readonly registration: Registration;
  readonly markers: Markers;
  readonly probe: PromotableProbe<CheckedPostgresAction>;
  readonly describeAction = describeAction;
  readonly readsMany = true;
  readonly holdsTasks = true;
  readonly taskMaxMs: number;
  readonly settingRefusal = refuseSetting;
  readonly #opened: OpenedDatabase;
  readonly #queries: QueryLimit;
  #boundary: PostgresBoundary;
  #staged = 0;

  constructor(opened: OpenedDatabase, boundary: PostgresBoundary) {
    const { control, settings, deployment, registration, roles, reached } = opened;
    this.#opened = opened;
    this.#boundary = boundary;
    // Queries use at most half of the sessions, but at least one, to leave the others to operations.
    this.#queries = new QueryLimit(Math.max(1, Math.floor(opened.sessions.max / 2)));
    this.registration = registration;
    this.taskMaxMs = settings.stageTimeoutMs;
    this.identity = {
      kind: `postgresql ${deployment.major}${settings.boundary === 'managed' ? ' managed' : ''}`,
      backend: deployment.backend,
      code: adapterCode(import.meta.url, '../../postgres/'),
    };
    this.markers = markersOf({
      control: () => control.connection(),
      open: () => control.open('effectmatch recovery'),
      reached,
      lockTimeoutMs: VOID_LOCK_TIMEOUT_MS,
      idleTimeoutMs: settings.stageTimeoutMs,
      endOverdue: () => control.endOverdue(roles.executor, settings.stageTimeoutMs),
    });
    this.probe = {
      action: probeAction,
      target: boundary.probe.target,
      durable: (token) => this.#isDurable(token),
    };
  }

  async normalise(manifest: Manifest): Promise<Manifest> {
    const targets = [manifest.effects, manifest.requires, manifest.watch].flat();
    const { relations, readable, views } = await this.#closedBoundary(targets);
    await refuseServerSettings(await this.#opened.control.connection(), manifest.settings);
    const known = new Map(readable);
    for (const relation of relations) known.set(relation.target, relation);
    const tools = {
      registration: this.registration,
      relations: known,
      isolation: this.#opened.settings.isolation,
      views,
      withExecution: this.#withExecution,
      read: (reads: readonly StateRead[]) => this.read(reads),
    };
    return await normaliseManifest(tools, manifest);
  }

  async read(reads: readonly StateRead[]): Promise<readonly StateReading[]> {
    const { readable } = await this.#closedBoundary(reads);
    const tools = { relations: readable, withExecution: this.#withExecution };
    const stated = await normaliseReads(tools, reads);
    return await readState(await this.#opened.control.connection(), readable, stated);
  }

  async query(action: CheckedPostgresAction, limits: QueryLimits): Promise<QueryRows> {
    const timeoutMs = Math.min(limits.timeoutMs, this.#opened.settings.stageTimeoutMs);
    return await this.#queries.run(async () => {
      const boundary = await this.#closedBoundary([], action);
      const why = refuseAdmitted(this.#actionTools(boundary), action);
      if (why !== undefined) throw queryRefused(why);
      const bounded = { ...limits, timeoutMs };
      return await this.#withExecution((session) => queryRows(session, action, bounded));
    });
  }

  parseAction(input: unknown): CheckedPostgresAction {
    return parseAction(this.#actionTools(this.#boundary), input);
  }

  joinActions(actions: readonly unknown[]): unknown {
    return joinActions(this.#actionTools(this.#boundary), actions);
  }

  #actionTools({ entries, names }: PostgresBoundary): ActionTools {
    return { gate: this.#opened.gate, entries, catalog: names };
  }

  survey(): Promise<Survey> {
    return this.#readBoundary().then(({ survey }) => survey);
  }

  commitLog(): CommitLog | undefined {
    return this.#opened.control.commitLog();
  }

  async explainChange(before: Survey, after: Survey): Promise<readonly string[]> {
    return await explainChange(await this.#opened.control.connection(), before, after);
  }

  /** Takes a session. Without a task, the transaction begins in the same message as the action. */
  async hold(request: HoldRequest): Promise<HoldResult<CheckedPostgresAction>> {
    const { sessions, settings, control, deployment, reached } = this.#opened;
    const boundary = this.#boundary;
    // This throws if a row cannot be read, so do it before a session is taken.
    const locked = lockReads(boundary.readable, request.reads);
    const session = await sessions.take(settings.lockTimeoutMs);
    if (session === undefined) {
      const detail = `all execution sessions were in use for ${settings.lockTimeoutMs} ms; raise sessions.max`;
      return stagePrevented('busy', detail);
    }
    this.#sweepSometimes();
    const tools: PostgresCandidateTools = {
      session,
      texts: sessions.textsOf(session),
      settings,
      control,
      deployment,
      boundary,
      reached,
      refuse: (action) => refuseAdmitted(this.#actionTools(boundary), action),
      readCommitted: (reads) => this.read(reads),
      // A setting that was applied reads as '' afterwards instead of unset, so the session is not
      // reused.
      release: async (inDoubt, reset) =>
        await (inDoubt || Object.keys(request.settings).length > 0
          ? sessions.drop(session)
          : sessions.giveBack(session, reset)),
    };
    const candidate = new PostgresCandidate(tools, request, locked);
    if (request.task === undefined) return { kind: 'open', candidate, marker: undefined };
    return await this.#openTask(candidate);
  }

  /** Gives the session back if the task could not be opened. */
  async #openTask(candidate: PostgresCandidate): Promise<HoldResult<CheckedPostgresAction>> {
    const opening = await candidate.openTask().catch((error: unknown) => ({ thrown: error }));
    if (opening === undefined) return { kind: 'open', candidate, marker: undefined };
    const residue = await candidate.end('discarded');
    if ('thrown' in opening) throw opening.thrown;
    return residue === undefined ? opening : { ...opening, residue };
  }

  async close(): Promise<void> {
    await this.#opened.sessions.close();
    await this.#opened.control.close();
  }

  async #readBoundary(): Promise<PostgresBoundary> {
    const { control, settings, roles } = this.#opened;
    const boundary = await readBoundary(control, settings, roles, this.#boundary);
    this.#boundary = boundary;
    return boundary;
  }

  /** For approvals and queries, which must not cast or read through an open outlet. */
  async #closedBoundary(
    targets: readonly { readonly target: string }[],
    action?: CheckedPostgresAction,
  ): Promise<PostgresBoundary> {
    const boundary = await this.#readBoundary();
    demandClosed(boundary.survey, touchedBy(boundary, targets, action));
    return boundary;
  }

  reachOf(
    survey: Survey,
    action: CheckedPostgresAction | undefined,
    reads: readonly StateRead[],
  ): ReadonlySet<string> | undefined {
    return reachUnder(survey, touchedBy(this.#boundary, reads, action));
  }

  readonly #withExecution = async <T>(use: (session: Connection) => Promise<T>): Promise<T> => {
    const { sessions, settings } = this.#opened;
    const session = await sessions.take(settings.lockTimeoutMs);
    if (session === undefined) {
      throw new EffectMatchError(
        'ERR_EM_ADAPTER_UNAVAILABLE',
        'postgres: all execution sessions are in use',
      );
    }
    try {
      return await use(session);
    } finally {
      await sessions.giveBack(session);
    }
  };

  /** Removes records of finished transactions in the background. They are never read again. */
  #sweepSometimes(): void {
    this.#staged += 1;
    if (this.#staged % STAGES_BETWEEN_SWEEPS !== 0) return;
    this.#opened.control.sweep().catch(() => {});
  }

  async #isDurable(token: string): Promise<boolean> {
    const control = await this.#opened.control.connection();
    const { rows } = await control.query('select from effectmatch.probe where token = $1', [token]);
    return rows.length > 0;
  }
}
