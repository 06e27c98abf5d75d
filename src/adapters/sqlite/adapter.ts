import { resolve } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { joinStatements } from '../../backend/action.ts';
import {
  type Backend,
  type HoldRequest,
  type HoldResult,
  stagePrevented,
} from '../../backend/candidate.ts';
import { normaliseManifest } from '../../backend/normalise.ts';
import { promotable } from '../../backend/promotable.ts';
import {
  adapterCode,
  FILE_REPLACED,
  identifyFile,
  readTimeoutOption,
  unavailable,
} from '../../backend/setup.ts';
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
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { Manifest } from '../../protocol/manifest.ts';
import type { Registration } from '../../protocol/registration.ts';
import { openingFault } from '../../sqlite/commit.ts';
import {
  hasToken,
  openDatabase,
  pinDurability,
  reading,
  readPragma,
  retryWhileBusy,
} from '../../sqlite/connection.ts';
import { type CheckedSqliteAction, describeAction, parseAction, probeAction } from './action.ts';
import {
  admitFile,
  admitRegistration,
  checkOptions,
  refused,
  type SqliteOptions,
} from './admission.ts';
import { Affinity } from './affinity.ts';
import { type CandidateTools, REPLACED, SqliteCandidate } from './candidate.ts';
import { readCatalog, refreshCatalog, type SqliteCatalog } from './catalog.ts';
import { ensureControlTables, markersOf, PROBE_TABLE } from './control.ts';
import { CHANNELS } from './evidence.ts';
import { HoldingConnection } from './holding-connection.ts';
import { SqliteSchema } from './normalise.ts';
import { QueryProcess } from './query.ts';
import { readState } from './reading.ts';
import { splitScript } from './script.ts';
import { surveyCatalog } from './survey.ts';

const DEFAULT_BUSY_TIMEOUT_MS = 5000;

/** Opens the file and creates missing control tables. Refuses a database it cannot protect. */
export async function openAdapter(
  options: SqliteOptions,
  context: AdapterContext,
): Promise<PromotableAdapter<CheckedSqliteAction>> {
  checkOptions(options);
  const { busyTimeoutMs: timeoutMs = DEFAULT_BUSY_TIMEOUT_MS } = options;
  const busyTimeoutMs = readTimeoutOption(timeoutMs, 'busyTimeoutMs', refused);
  const file = resolve(options.file);
  const identity = admitFile(file);
  const db = openDatabase(options.file);
  try {
    const deadline = { deadlineMs: busyTimeoutMs };
    await retryWhileBusy(() => pinDurability(db), deadline);
    // Check this before the first write, so that a refused registration leaves the file unchanged.
    const registration = admitRegistration(
      options,
      await retryWhileBusy(() => readCatalog(db), deadline),
    );
    const backend = await ensureControlTables(db, deadline);
    const catalog = await retryWhileBusy(() => readCatalog(db), deadline);
    const opened = { file, identity, db, registration, backend, catalog, busyTimeoutMs, context };
    return promotable(new SqliteBackend(opened), context);
  } catch (error) {
    db.close();
    throw openingFault(error, refused);
  }
}

interface Opened {
  readonly file: string;
  readonly identity: string;
  readonly db: DatabaseSync;
  readonly registration: Registration;
  readonly backend: string;
  readonly catalog: SqliteCatalog;
  readonly busyTimeoutMs: number;
  readonly context: AdapterContext;
}

/** One SQLite file behind an authorizer and a session. It only reports; it decides nothing. */
class SqliteBackend implements Backend<CheckedSqliteAction> {
  readonly profiles = ['net-state'] as const;
  readonly channels = CHANNELS;
  readonly identity: AdapterIdentity;
  readonly registration: Registration;
  readonly markers: Markers;
  readonly probe: PromotableProbe<CheckedSqliteAction>;
  readonly parseAction = parseAction;
  readonly describeAction = describeAction;
  readonly readsMany = true;
  readonly holdsTasks = true;
  readonly joinActions = (actions: readonly unknown[]) => joinStatements(actions, splitScript);
  readonly #opened: Opened;
  readonly #affinity = new Affinity();
  readonly #queue = new StageQueue();
  readonly #queries: QueryProcess;
  /**
   * The connection of the last candidate, kept for the next one. Opening it and compiling
   * statements again would cost more than the candidate itself.
   */
  #kept: HoldingConnection | undefined;
  #catalog: SqliteCatalog;
  /**
   * The file's `data_version` when the catalogue was read. It changes when another connection
   * commits.
   */
  #catalogVersion: unknown;
  #isCatalogDoubtful = false;
  #survey:
    | { readonly catalog: SqliteCatalog; readonly file: string; readonly survey: Survey }
    | undefined;

  constructor(opened: Opened) {
    const { db, registration, backend, busyTimeoutMs, context } = opened;
    this.#opened = opened;
    this.#catalog = opened.catalog;
    this.#queries = new QueryProcess(opened.file);
    this.registration = registration;
    this.identity = {
      kind: 'sqlite',
      backend,
      code: adapterCode(import.meta.url, '../../sqlite/'),
    };
    this.markers = markersOf(db, { busyTimeoutMs, reached: context.reached });
    const durable = (token: string) =>
      this.#trying(() => hasToken(opened.file, PROBE_TABLE, token));
    this.probe = { action: probeAction, target: PROBE_TABLE, durable };
  }

  async normalise(manifest: Manifest): Promise<Manifest> {
    return normaliseManifest(await this.#schema(), manifest);
  }

  async read(reads: readonly StateRead[]): Promise<readonly StateReading[]> {
    const schema = await this.#schema();
    return await this.#trying(() => readState(this.#opened.db, schema, reads));
  }

  async query(action: CheckedSqliteAction, limits: QueryLimits): Promise<QueryRows> {
    if (this.#isReplaced()) throw unavailable(FILE_REPLACED.detail);
    return await this.#queries.query(action, limits);
  }

  async survey(): Promise<Survey> {
    const catalog = await this.#readCatalog();
    const file = identifyFile(this.#opened.file);
    const known = this.#survey;
    if (known?.catalog === catalog && known.file === file) return known.survey;
    const { backend, identity } = this.#opened;
    const facts = { backend, file, registration: this.registration, isReplaced: file !== identity };
    const survey = surveyCatalog(facts, catalog);
    this.#survey = { catalog, file, survey };
    return survey;
  }

  async hold({ occurrence }: HoldRequest): Promise<HoldResult<CheckedSqliteAction>> {
    const { busyTimeoutMs } = this.#opened;
    const since = performance.now();
    const endTurn = await this.#queue.take(busyTimeoutMs);
    if (endTurn === undefined)
      return stagePrevented('busy', `another stage held the database for ${busyTimeoutMs} ms`);
    let result: HoldResult<CheckedSqliteAction> = REPLACED;
    let connection: HoldingConnection | undefined;
    try {
      connection = this.#takeConnection();
      if (connection === undefined) return result;
      const candidate = new SqliteCandidate(this.#candidateTools(endTurn), connection);
      result = await candidate.begin(occurrence, busyTimeoutMs - (performance.now() - since));
      return result;
    } finally {
      if (result.kind === 'failed') {
        // The connection read the whole schema before its first use, and may be right.
        this.#isCatalogDoubtful ||= result.reason === 'boundary-changed';
        connection?.close();
        endTurn();
      }
    }
  }

  /** Undefined if the path has a different file. Opening a missing file would create it. */
  #takeConnection(): HoldingConnection | undefined {
    const kept = this.#kept;
    this.#kept = undefined;
    if (kept?.catalog === this.#catalog) return kept;
    kept?.close();
    return this.#isReplaced() ? undefined : new HoldingConnection(this.#opened.file);
  }

  #candidateTools(endTurn: () => void): CandidateTools {
    const { backend, busyTimeoutMs, registration, db, context } = this.#opened;
    return {
      ...{ backend, busyTimeoutMs, registration, base: db, reached: context.reached },
      affinity: this.#affinity,
      catalog: this.#catalog,
      isReplaced: () => this.#isReplaced(),
      release: (connection, isClean) => {
        if (isClean && connection.release()) this.#kept = connection;
        else connection.close();
        endTurn();
      },
    };
  }

  async close(): Promise<void> {
    this.#kept?.close();
    this.#queries.close();
    if (this.#opened.db.isOpen) this.#opened.db.close();
    this.#affinity.close();
  }

  async #schema(): Promise<SqliteSchema> {
    return new SqliteSchema(await this.#readCatalog(), this.#affinity, this.registration);
  }

  /**
   * Reads the catalogue again if another connection has committed: only a commit can change the
   * schema.
   */
  #readCatalog(): Promise<SqliteCatalog> {
    const { db } = this.#opened;
    const look = () => {
      const version = readPragma(db, 'data_version');
      if (this.#isCatalogDoubtful) this.#catalog = readCatalog(db, this.#catalog);
      else if (version !== this.#catalogVersion) this.#catalog = refreshCatalog(db, this.#catalog);
      this.#isCatalogDoubtful = false;
      this.#catalogVersion = version;
      return this.#catalog;
    };
    return this.#trying(() => reading(db, look));
  }

  #trying<T>(attempt: () => T): Promise<T> {
    return retryWhileBusy(attempt, { deadlineMs: this.#opened.busyTimeoutMs });
  }

  #isReplaced(): boolean {
    return identifyFile(this.#opened.file) !== this.#opened.identity;
  }
}

/**
 * Gives the write lock to the stages of one process in the order they asked for it. SQLite has no
 * queue: every writer retries until the lock happens to be free. This remains so between processes.
 */
class StageQueue {
  #taken = false;
  readonly #waiting: (() => void)[] = [];

  /**
   * Waits up to `deadlineMs` for a turn. Returns a function that ends the turn, or undefined if the
   * deadline passed.
   */
  async take(deadlineMs: number): Promise<(() => void) | undefined> {
    if (this.#taken && !(await this.#wait(deadlineMs))) return undefined;
    this.#taken = true;
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      this.#passOn();
    };
  }

  #wait(deadlineMs: number): Promise<boolean> {
    if (deadlineMs <= 0) return Promise.resolve(false);
    return new Promise((resolve) => {
      const proceed = () => {
        clearTimeout(timer);
        resolve(true);
      };
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(proceed), 1);
        resolve(false);
      }, deadlineMs);
      this.#waiting.push(proceed);
    });
  }

  /** Passes the turn directly to the next in line, so that a later stage cannot overtake it. */
  #passOn(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#taken = false;
    else next();
  }
}
