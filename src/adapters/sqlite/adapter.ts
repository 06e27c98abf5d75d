import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { normaliseManifest } from '../../backend/normalise.ts';
import type { StagedUnder } from '../../backend/permit-check.ts';
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
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { Manifest } from '../../protocol/manifest.ts';
import type { Registration } from '../../protocol/registration.ts';
import type { Value } from '../../protocol/value.ts';
import {
  asFault,
  openDatabase,
  pinDurability,
  primaryCode,
  readPragma,
  retryWhileBusy,
  SQLITE,
} from '../../sqlite/connection.ts';
import { type CheckedAction, describeAction, parseAction, probeAction } from './action.ts';
import {
  admitFile,
  admitRegistration,
  checkOptions,
  type FileIdentity,
  identifyFile,
  refused,
  type SqliteOptions,
} from './admission.ts';
import { Affinity } from './affinity.ts';
import { type Catalog, readCatalog, refreshCatalog } from './catalog.ts';
import { ensureControlTables, PROBE_TABLE } from './control.ts';
import { CHANNELS } from './evidence.ts';
import { Keeper } from './keeper.ts';
import { markersOf } from './markers.ts';
import { SqliteSchema } from './normalise.ts';
import { readState } from './reading.ts';
import { openStage } from './stage.ts';
import { surveyCatalog } from './survey.ts';
import { Turns } from './turns.ts';

const DEFAULT_BUSY_TIMEOUT_MS = 5000;

/**
 * Opens the file, creates the control tables where they are missing, and refuses what could not be
 * protected.
 */
export async function openAdapter(
  options: SqliteOptions,
  context: AdapterContext,
): Promise<SqliteAdapter> {
  checkOptions(options);
  const busyTimeoutMs = options.busyTimeoutMs ?? DEFAULT_BUSY_TIMEOUT_MS;
  if (!Number.isFinite(busyTimeoutMs) || busyTimeoutMs < 0)
    throw refused('busyTimeoutMs must be a number from 0 on');
  const file = resolve(options.file);
  const identity = admitFile(file);
  const db = openDatabase(options.file);
  try {
    const deadline = { deadlineMs: busyTimeoutMs };
    await retryWhileBusy(() => pinDurability(db), deadline);
    // Before anything is written, so that a refused registration leaves the file as it was.
    const registration = admitRegistration(
      options,
      await retryWhileBusy(() => readCatalog(db), deadline),
    );
    const backend = await ensureControlTables(db, deadline);
    const catalog = await retryWhileBusy(() => readCatalog(db), deadline);
    return new SqliteAdapter({
      file,
      identity,
      db,
      registration,
      backend,
      catalog,
      busyTimeoutMs,
      context,
    });
  } catch (error) {
    db.close();
    throw openingFault(error);
  }
}

function openingFault(error: unknown): unknown {
  if (error instanceof EffectMatchError) return error;
  switch (primaryCode(error)) {
    case SQLITE.READONLY:
      return refused('the file or its folder is read-only; a promotion needs write access', error);
    case SQLITE.NOTADB:
      return refused('the file is not a SQLite database', error);
    default:
      return asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'the database could not be opened');
  }
}

interface Opened {
  readonly file: string;
  readonly identity: FileIdentity;
  readonly db: DatabaseSync;
  readonly registration: Registration;
  readonly backend: string;
  readonly catalog: Catalog;
  readonly busyTimeoutMs: number;
  readonly context: AdapterContext;
}

/** One SQLite file behind an authorizer and a session. Reports; decides nothing. */
export class SqliteAdapter implements PromotableAdapter<CheckedAction> {
  readonly capability = 'PROMOTABLE';
  readonly profiles = ['net-state'] as const;
  readonly channels = CHANNELS;
  readonly identity: AdapterIdentity;
  readonly registration: Registration;
  readonly markers: PromotableAdapter['markers'];
  readonly probe: PromotableProbe<CheckedAction>;
  readonly #opened: Opened;
  readonly #affinity = new Affinity();
  readonly #stages = new Set<Stage>();
  readonly #turns = new Turns();
  readonly #keeper = new Keeper();
  #catalog: Catalog;
  /**
   * The file's version, as the trusted connection counts commits of others, when the catalogue was
   * read.
   */
  #catalogVersion: unknown;
  #isCatalogDoubtful = false;
  #survey:
    | { readonly catalog: Catalog; readonly file: FileIdentity; readonly survey: Survey }
    | undefined;

  constructor(opened: Opened) {
    const { db, registration, backend, busyTimeoutMs, context } = opened;
    this.#opened = opened;
    this.#catalog = opened.catalog;
    this.registration = registration;
    this.identity = { kind: 'sqlite', backend, code: adapterCode() };
    this.markers = markersOf(db, { busyTimeoutMs, reached: context.reached });
    const durable = async (token: string) => await this.#trying(() => this.#isDurable(token));
    this.probe = { action: probeAction, target: PROBE_TABLE, durable };
  }

  async normalise(manifest: Manifest): Promise<Manifest> {
    return normaliseManifest(await this.#schema(), manifest);
  }

  async read(reads: readonly StateRead[]): Promise<readonly StateReading[]> {
    if (reads.length === 0) return [];
    const schema = await this.#schema();
    return await this.#trying(() => readState(this.#opened.db, schema, reads));
  }

  parseAction(input: unknown): CheckedAction {
    return parseAction(input);
  }

  describeAction(action: CheckedAction): Value {
    return describeAction(action);
  }

  async survey(): Promise<Survey> {
    const catalog = await this.#readCatalog();
    const file = this.#fileNow();
    const known = this.#survey;
    if (known?.catalog === catalog && known.file === file) return known.survey;
    const { backend, identity } = this.#opened;
    const facts = { backend, file, registration: this.registration, isReplaced: file !== identity };
    const survey = surveyCatalog(facts, catalog);
    this.#survey = { catalog, file, survey };
    return survey;
  }

  async stage(claim: Claim, certificate: Certificate, action: CheckedAction): Promise<Staged> {
    const { busyTimeoutMs, db } = this.#opened;
    const since = performance.now();
    const endTurn = await this.#turns.take(busyTimeoutMs);
    if (endTurn === undefined) {
      return {
        kind: 'failed',
        reason: 'busy',
        detail: `another stage held the database for ${busyTimeoutMs} ms`,
      };
    }
    try {
      if (!db.isOpen)
        throw new EffectMatchError('ERR_EM_ADAPTER_UNAVAILABLE', 'the adapter is closed');
      const leftMs = Math.max(0, busyTimeoutMs - (performance.now() - since));
      const staged = await this.#openStage({ claim, certificate }, action, {
        lockWithinMs: leftMs,
        endTurn,
      });
      if (staged.kind === 'failed') endTurn();
      return staged;
    } catch (error) {
      endTurn();
      throw error;
    }
  }

  async #openStage(
    under: StagedUnder,
    action: CheckedAction,
    turn: { readonly lockWithinMs: number; readonly endTurn: () => void },
  ): Promise<Staged> {
    const { db, file, backend, busyTimeoutMs, context } = this.#opened;
    const tools = {
      ...{
        file,
        backend,
        busyTimeoutMs,
        lockWithinMs: turn.lockWithinMs,
        base: db,
        reached: context.reached,
      },
      registration: this.registration,
      affinity: this.#affinity,
      catalog: this.#catalog,
      isReplaced: () => this.#isReplaced(),
      keeper: this.#keeper,
      onEnd: (stage: Stage) => {
        this.#stages.delete(stage);
        turn.endTurn();
      },
    };
    const staged = await openStage(tools, under, action);
    if (staged.kind === 'held') this.#stages.add(staged.stage);
    // The candidate's own connection reads the schema completely before its first use, and may know
    // better.
    else if (staged.reason === 'boundary-changed') this.#isCatalogDoubtful = true;
    return staged;
  }

  /** Ends every stage that is still held; nothing of them remains. */
  async close(): Promise<void> {
    for (const stage of this.#stages) await stage.discard();
    this.#stages.clear();
    this.#keeper.close();
    if (this.#opened.db.isOpen) this.#opened.db.close();
    this.#affinity.close();
  }

  async #schema(): Promise<SqliteSchema> {
    return new SqliteSchema(await this.#readCatalog(), this.#affinity, this.registration);
  }

  /**
   * Read again whenever any other connection has committed since; nothing else can change a schema.
   */
  async #readCatalog(): Promise<Catalog> {
    const { db } = this.#opened;
    return await this.#trying(() => {
      const version = readPragma(db, 'data_version');
      if (this.#isCatalogDoubtful) this.#catalog = readCatalog(db, this.#catalog);
      else if (version !== this.#catalogVersion) this.#catalog = refreshCatalog(db, this.#catalog);
      this.#isCatalogDoubtful = false;
      this.#catalogVersion = version;
      return this.#catalog;
    });
  }

  async #trying<T>(attempt: () => T): Promise<T> {
    try {
      return await retryWhileBusy(attempt, { deadlineMs: this.#opened.busyTimeoutMs });
    } catch (error) {
      if (error instanceof EffectMatchError && error.code !== 'ERR_EM_STORE_BUSY') throw error;
      throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'the database could not be read');
    }
  }

  #isReplaced(): boolean {
    return this.#fileNow() !== this.#opened.identity;
  }

  #fileNow(): FileIdentity {
    const stats = statSync(this.#opened.file, { throwIfNoEntry: false });
    return stats === undefined ? 'missing' : identifyFile(stats);
  }

  /** Asks a connection of its own, which sees only what has been committed. */
  #isDurable(token: string): boolean {
    using independent = openDatabase(this.#opened.file, { readOnly: true });
    return (
      independent.prepare(`select 1 from main.${PROBE_TABLE} where token = ?`).get(token) !==
      undefined
    );
  }
}

/** The adapter's own modules and those they stand on. */
function adapterCode(): string {
  const folders = ['.', '../../sqlite/', '../../backend/'];
  return folders.map((folder) => codeIdentity(new URL(folder, import.meta.url))).join('+');
}
