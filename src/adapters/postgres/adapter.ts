import type {
  AdapterContext,
  AdapterIdentity,
  PromotableAdapter,
  PromotableProbe,
  Stage,
  Staged,
  Survey,
} from '../../contract/adapter.ts';
import type { Certificate, Claim } from '../../contract/proof.ts';
import { codeIdentity } from '../../crypto/code-identity.ts';
import { EffectMatchError } from '../../errors.ts';
import { asFault, type Connection } from '../../postgres/connection.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { Manifest } from '../../protocol/manifest.ts';
import type { Registration } from '../../protocol/registration.ts';
import type { Value } from '../../protocol/value.ts';
import { type CheckedAction, describeAction, isProbe, parseAction, probeAction } from './action.ts';
import { type Boundary, type Parties, readBoundary } from './boundary.ts';
import { explainChange } from './certify/changes.ts';
import { demandClosed, demandOwnEvidence } from './certify/guards.ts';
import { Control } from './control.ts';
import { findUsed } from './fresh.ts';
import { areRecordersIntact } from './intact.ts';
import { lockReads, NO_READS } from './locking.ts';
import { markersOf } from './markers.ts';
import { normaliseManifest, normaliseReads } from './normalise.ts';
import { CHANNELS } from './observation.ts';
import { type PostgresOptions, readOptions, type Settings } from './options.ts';
import { readState } from './reading.ts';
import { admitRegistration } from './registration.ts';
import type { Deployment } from './secret.ts';
import { Sessions } from './sessions.ts';
import { openStage, type StageTools } from './stage.ts';
import { type Gate, loadGate } from './statement-gate.ts';
import { mapLeaves } from './watched.ts';

/** How much longer than a stage may take its answer may take. */
const ANSWER_GRACE_MS = 5000;

/** Stages after which the records of finished transactions are swept away. */
const STAGES_BETWEEN_SWEEPS = 1000;

/**
 * Connects both logins, checks that the database is provisioned, and refuses what could not be
 * protected.
 */
export async function openAdapter(
  options: PostgresOptions,
  context: AdapterContext,
): Promise<PostgresAdapter> {
  const settings = readOptions(options);
  const gate = await loadGate();
  const control = new Control(options.control);
  const sessions = new Sessions(
    options.execution,
    options.sessions,
    settings.stageTimeoutMs + ANSWER_GRACE_MS,
  );
  try {
    await control.demandProvisioned();
    const deployment = await control.deployment();
    const executor = await sessions.login();
    const parties = { backend: deployment.backend, executor, ...(await control.roles()) };
    const boundary = await readBoundary(control, settings, parties);
    demandOwnEvidence(boundary.survey);
    const registration = admitRegistration(
      settings,
      boundary.relations,
      boundary.drawableSequences,
    );
    const opened = {
      settings,
      gate,
      control,
      sessions,
      deployment,
      context,
      registration,
      parties,
    };
    return new PostgresAdapter(opened, boundary);
  } catch (error) {
    await sessions.close();
    await control.close();
    throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'the database could not be opened');
  }
}

interface Opened {
  readonly settings: Settings;
  readonly gate: Gate;
  readonly control: Control;
  readonly sessions: Sessions;
  readonly deployment: Deployment;
  readonly context: AdapterContext;
  readonly registration: Registration;
  readonly parties: Parties;
}

/** One PostgreSQL database behind two logins. Reports; decides nothing. */
export class PostgresAdapter implements PromotableAdapter<CheckedAction> {
  readonly capability = 'PROMOTABLE';
  readonly profiles = ['relation-write', 'row-event', 'net-state'] as const;
  readonly channels = CHANNELS;
  readonly identity: AdapterIdentity;
  readonly registration: Registration;
  readonly markers: PromotableAdapter['markers'];
  readonly probe: PromotableProbe<CheckedAction>;
  readonly #opened: Opened;
  readonly #stages = new Set<Stage>();
  #boundary: Boundary;
  #staged = 0;

  constructor(opened: Opened, boundary: Boundary) {
    const { control, settings, deployment, registration, parties, context } = opened;
    this.#opened = opened;
    this.#boundary = boundary;
    this.registration = registration;
    this.identity = {
      kind: `postgresql ${deployment.major}`,
      backend: deployment.backend,
      code: adapterCode(),
    };
    this.markers = markersOf({
      control: () => control.connection(),
      open: () => control.open('effectmatch recovery'),
      reached: context.reached,
      lockTimeoutMs: VOID_LOCK_TIMEOUT_MS,
      idleTimeoutMs: settings.stageTimeoutMs,
      endOverdue: () => control.endOverdue(parties.executor, settings.stageTimeoutMs),
    });
    this.probe = {
      action: probeAction,
      target: boundary.probe.target,
      durable: (token) => this.#isDurable(token),
    };
  }

  async normalise(manifest: Manifest): Promise<Manifest> {
    const { isolation } = this.#opened.settings;
    const boundary = await this.#readBoundary();
    const { relations, readable, views } = boundary;
    const known = new Map([
      ...readable,
      ...relations.map((relation) => [relation.target, relation] as const),
    ]);
    const tools = {
      ...{ registration: this.registration, relations: known, isolation, views },
      withExecution: <T>(use: (session: Connection) => Promise<T>) =>
        this.#withSession(boundary, use),
      read: (reads: readonly StateRead[]) => this.read(reads),
    };
    return await normaliseManifest(tools, manifest);
  }

  async read(reads: readonly StateRead[]): Promise<readonly StateReading[]> {
    if (reads.length === 0) return [];
    const boundary = await this.#readBoundary();
    const { readable } = boundary;
    demandClosed(boundary.survey);
    const withExecution = <T>(use: (session: Connection) => Promise<T>) =>
      this.#withSession(boundary, use);
    const stated = await normaliseReads({ relations: readable, withExecution }, reads);
    return await readState(await this.#control(), readable, stated).catch(
      unavailable('declared state'),
    );
  }

  parseAction(input: unknown): CheckedAction {
    return parseAction({ gate: this.#opened.gate, entries: this.#boundary.entries }, input);
  }

  describeAction(action: CheckedAction): Value {
    return describeAction(action);
  }

  async survey(): Promise<Survey> {
    return (await this.#readBoundary()).survey;
  }

  async explainChange(before: Survey, after: Survey): Promise<readonly string[]> {
    return await explainChange(await this.#control(), before, after);
  }

  async stage(
    claim: Claim,
    certificate: Certificate,
    action: CheckedAction,
    reads: readonly StateRead[] = [],
  ): Promise<Staged> {
    const { sessions, settings } = this.#opened;
    // Refuses what cannot be read, before a session is taken that nobody would give back.
    const work = {
      action,
      locked: reads.length === 0 ? NO_READS : lockReads(this.#boundary.readable, reads),
    };
    const session = await sessions.take(settings.lockTimeoutMs);
    if (session === undefined) {
      const detail = `all execution sessions were in use for ${settings.lockTimeoutMs} ms; raise sessions.max`;
      return { kind: 'failed', reason: 'busy', detail };
    }
    let held: Stage | undefined;
    const release: StageTools['release'] = async (inDoubt, reset) => {
      if (held !== undefined) this.#stages.delete(held);
      await (inDoubt ? sessions.drop(session) : sessions.giveBack(session, reset));
    };
    const staged = await openStage(
      this.#stageTools(session, action, release),
      { claim, certificate },
      work,
    );
    if (staged.kind === 'held') {
      held = staged.stage;
      this.#stages.add(held);
    }
    this.#sweepSometimes();
    return staged;
  }

  #stageTools(
    session: Connection,
    action: CheckedAction,
    release: StageTools['release'],
  ): StageTools {
    const { settings, deployment, control, context } = this.#opened;
    const { relations, leaves, readable, probe, watched, forceConstraints, recorders } =
      this.#boundary;
    const { sequences, randomColumns, readableSequences, drawableSequences, asked } =
      this.#boundary;
    const written = isProbe(action)
      ? { relations: [probe], leaves: mapLeaves([probe]) }
      : { relations, leaves };
    return {
      ...{ session, deployment, watched, forceConstraints, release, ...written },
      ...{ sequences, randomColumns, readableSequences, drawableSequences, asked },
      findUsed: async (column, identifiers) =>
        await findUsed(await control.connection(), column, identifiers).catch(
          unavailable('identifiers in use'),
        ),
      expectedSession: `origin on UTF8 ${settings.isolation} 0 0`,
      isolation: settings.isolation,
      stageTimeoutMs: settings.stageTimeoutMs,
      lockTimeoutMs: settings.lockTimeoutMs,
      quotesValues: settings.values === 'plain',
      reached: context.reached,
      recordersIntact: async (oids) =>
        await areRecordersIntact(await control.connection(), recorders, oids).catch(
          unavailable('the recorders'),
        ),
      promoted: control.excuser(),
      transactionStatus: (xid) => control.transactionStatus(xid),
      readCommitted: (reads) => this.read(reads),
      lockReads: (reads) => lockReads(readable, reads),
    };
  }

  /** Ends every stage that is still held; nothing of them remains. */
  async close(): Promise<void> {
    for (const stage of this.#stages) await stage.discard();
    await this.#opened.sessions.close();
    await this.#opened.control.close();
  }

  async #control(): Promise<Connection> {
    return await this.#opened.control.connection();
  }

  async #readBoundary(): Promise<Boundary> {
    const { control, settings, parties } = this.#opened;
    const boundary = await readBoundary(control, settings, parties, this.#boundary);
    this.#boundary = boundary;
    return boundary;
  }

  async #withSession<T>(
    { survey }: Boundary,
    use: (session: Connection) => Promise<T>,
  ): Promise<T> {
    const { sessions, settings } = this.#opened;
    demandClosed(survey);
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
  }

  /**
   * Records of finished transactions are read by nobody; they go in the background, now and then.
   */
  #sweepSometimes(): void {
    this.#staged += 1;
    if (this.#staged % STAGES_BETWEEN_SWEEPS !== 0) return;
    this.#opened.control.sweep().catch(() => {});
  }

  async #isDurable(token: string): Promise<boolean> {
    const control = await this.#control();
    const { rows } = await control.query('select from effectmatch.probe where token = $1', [token]);
    return rows.length > 0;
  }
}

/** A server that is gone is a fault under our own code, wherever it is noticed. */
function unavailable(what: string): (error: unknown) => never {
  return (error) => {
    throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', `${what} could not be read`);
  };
}

/** How long a void marker waits for a live transaction before it leaves the occurrence alone. */
const VOID_LOCK_TIMEOUT_MS = 250;

/** The adapter's own modules and those they stand on. */
function adapterCode(): string {
  const folders = ['.', '../../postgres/', '../../backend/'];
  return folders.map((folder) => codeIdentity(new URL(folder, import.meta.url))).join('+');
}
