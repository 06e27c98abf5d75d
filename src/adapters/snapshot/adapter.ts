import { hash } from 'node:crypto';
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { normaliseManifest } from '../../backend/normalise.ts';
import type {
  AdapterContext,
  AdapterIdentity,
  PromotableAdapter,
  PromotableProbe,
  Staged,
  Survey,
} from '../../contract/adapter.ts';
import type { Certificate, Claim } from '../../contract/proof.ts';
import { codeIdentity, digestFolders } from '../../crypto/code-identity.ts';
import { EffectMatchError } from '../../errors.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { Manifest } from '../../protocol/manifest.ts';
import type { Registration } from '../../protocol/registration.ts';
import type { Value } from '../../protocol/value.ts';
import {
  createPrivateFile,
  openDatabase,
  pinDurability,
  primaryCode,
  retryWhileBusy,
  SQLITE,
} from '../../sqlite/connection.ts';
import { type CheckedAction, describeAction, parseAction, probeAction } from './action.ts';
import { ensureState, findProblem, PROBE_TABLE, readCurrent } from './control.ts';
import { refused } from './declared.ts';
import { writeDocument } from './document.ts';
import { CHANNELS } from './evidence.ts';
import { admitLayout, type Layout, withWholeLists } from './layout.ts';
import { faultOf, markersOf } from './markers.ts';
import { SnapshotSchema } from './normalise.ts';
import { checkOptionNames, type SnapshotOptions } from './options.ts';
import { StoreConnection } from './promotion.ts';
import { readView } from './reading.ts';
import { openStage, type SnapshotStage } from './stage.ts';
import { surveyStore } from './survey.ts';
import { ToolRunner } from './tools.ts';
import { viewDocument } from './view.ts';

/**
 * Opens the file, with the initial state where it is new, and refuses what could not be compared.
 */
export async function openAdapter(
  options: SnapshotOptions,
  context: AdapterContext,
): Promise<SnapshotAdapter> {
  checkOptionNames(options);
  const busyTimeoutMs = readTimeout(options.busyTimeoutMs ?? 5000, 'busyTimeoutMs');
  const toolTimeoutMs = readTimeout(options.toolTimeoutMs ?? 30_000, 'toolTimeoutMs');
  if (typeof options.file !== 'string') throw refused('file must be the path of a file');
  const initial = options.initial === undefined ? undefined : readInitial(options.initial);
  const layout = admitLayout(options);
  const runner = new ToolRunner(
    { module: moduleUrl(options.tools).href, data: options.toolData },
    { timeoutMs: toolTimeoutMs, quotesValues: layout.registration.values === 'plain' },
  );
  const file = resolve(options.file);
  const exists = statSync(file, { throwIfNoEntry: false });
  if (exists !== undefined && !exists.isFile()) throw refused(`"${file}" is not a regular file`);
  if (exists === undefined && initial === undefined)
    throw refused(`there is no file "${file}"; give the initial state`);
  let db: DatabaseSync | undefined;
  try {
    if (exists === undefined) createPrivateFile(options.file);
    const opened = openDatabase(options.file);
    db = opened;
    const deadline = { deadlineMs: busyTimeoutMs };
    const backend = await ensureState(opened, initial, deadline);
    await retryWhileBusy(() => pinDurability(opened), deadline);
    await retryWhileBusy(() => readCurrent(opened), deadline);
    await runner.open();
    return new SnapshotAdapter({
      file,
      identity: identifyFile(file),
      db: opened,
      layout,
      runner,
      backend,
      busyTimeoutMs,
      context,
    });
  } catch (error) {
    db?.close();
    throw openingFault(error);
  }
}

function readTimeout(timeoutMs: unknown, name: string): number {
  if (typeof timeoutMs === 'number' && Number.isFinite(timeoutMs) && timeoutMs >= 0)
    return timeoutMs;
  throw refused(`${name} must be a number from 0 on`);
}

function moduleUrl(tools: unknown): URL {
  if (tools instanceof URL) return tools;
  if (typeof tools === 'string') return pathToFileURL(tools);
  throw refused('tools must be the path or the URL of the module that exports them');
}

function readInitial(initial: unknown): string {
  try {
    return writeDocument(initial);
  } catch (cause) {
    throw refused(
      `the initial state is not plain JSON: ${cause instanceof Error ? cause.message : ''}`,
      cause,
    );
  }
}

function openingFault(error: unknown): unknown {
  switch (primaryCode(error)) {
    case SQLITE.READONLY:
      return refused('the file or its folder is read-only; a promotion needs write access', error);
    case SQLITE.NOTADB:
      return refused('the file is not a SQLite database', error);
    default:
      return faultOf(error);
  }
}

/** Device, inode and rights: another file under the same path is another backend. */
function identifyFile(file: string): string {
  const stats = statSync(file, { throwIfNoEntry: false });
  return stats === undefined
    ? 'missing'
    : `${stats.dev}:${stats.ino}:${stats.uid}:${stats.gid}:${stats.mode}`;
}

interface Opened {
  readonly file: string;
  readonly identity: string;
  readonly db: DatabaseSync;
  readonly layout: Layout;
  readonly runner: ToolRunner;
  readonly backend: string;
  readonly busyTimeoutMs: number;
  readonly context: AdapterContext;
}

/** One JSON document in a SQLite file, changed by registered tools. Reports; decides nothing. */
export class SnapshotAdapter implements PromotableAdapter<CheckedAction> {
  readonly capability = 'PROMOTABLE';
  readonly profiles = ['net-state'] as const;
  readonly channels = CHANNELS;
  readonly identity: AdapterIdentity;
  readonly registration: Registration;
  readonly markers: PromotableAdapter['markers'];
  readonly probe: PromotableProbe<CheckedAction>;
  readonly #opened: Opened;
  readonly #stages = new Set<SnapshotStage>();
  readonly #connection: StoreConnection;
  /** What every survey finds as long as nothing has changed: every execution asks twice. */
  readonly #asOpened: Survey;

  constructor(opened: Opened) {
    const { db, layout, backend, busyTimeoutMs, context } = opened;
    this.#opened = opened;
    this.#asOpened = surveyStore({ backend, file: opened.identity, layout, problems: [] });
    this.#connection = new StoreConnection(opened.file, () => this.#isReplaced());
    this.registration = layout.registration;
    this.identity = { kind: 'snapshot', backend, code: adapterCode(layout) };
    this.markers = markersOf(db, { busyTimeoutMs, reached: context.reached });
    const durable = async (token: string) => await this.#trying(() => this.#isDurable(token));
    this.probe = { action: probeAction, target: PROBE_TABLE, durable };
  }

  async normalise(manifest: Manifest): Promise<Manifest> {
    return normaliseManifest(new SnapshotSchema(this.#opened.layout), manifest);
  }

  async read(reads: readonly StateRead[]): Promise<readonly StateReading[]> {
    if (reads.length === 0) return [];
    const { layout } = this.#opened;
    const { text } = await this.#trying(readCurrent);
    const whole = withWholeLists(layout);
    return readView(whole, viewDocument(whole, text), reads);
  }

  parseAction(input: unknown): CheckedAction {
    return parseAction(input, this.#opened.runner.names);
  }

  describeAction(action: CheckedAction): Value {
    return describeAction(action);
  }

  async survey(): Promise<Survey> {
    const { backend, layout, identity } = this.#opened;
    const problem = await this.#trying(findProblem);
    const file = identifyFile(this.#opened.file);
    if (problem === undefined && file === identity) return this.#asOpened;
    const replaced =
      file === identity ? [] : ['another file, or other rights, since it was opened; reopen it'];
    return surveyStore({
      backend,
      file,
      layout,
      problems: [...(problem === undefined ? [] : [problem]), ...replaced],
    });
  }

  async stage(claim: Claim, certificate: Certificate, action: CheckedAction): Promise<Staged> {
    const { db, context } = this.#opened;
    if (!db.isOpen) throw closed();
    const tools = {
      ...this.#opened,
      reached: context.reached,
      clock: context.clock,
      connection: this.#connection,
      isReplaced: () => this.#isReplaced(),
      onEnd: (stage: SnapshotStage) => this.#stages.delete(stage),
    };
    const staged = await openStage(tools, { claim, certificate }, action);
    if (staged.kind === 'failed') return staged;
    // A tool may take so long that the adapter was closed meanwhile; what it made must not outlive
    // that.
    if (!db.isOpen) {
      await staged.stage.discard();
      throw closed();
    }
    this.#stages.add(staged.stage as SnapshotStage);
    return staged;
  }

  /** Ends every stage that is still held; nothing of them remains. */
  async close(): Promise<void> {
    for (const stage of this.#stages) await stage.discard();
    await this.#opened.runner.close();
    this.#connection.close();
    if (this.#opened.db.isOpen) this.#opened.db.close();
  }

  #trying<T>(attempt: (db: DatabaseSync) => T): Promise<T> {
    return this.#connection.read(attempt, { deadlineMs: this.#opened.busyTimeoutMs });
  }

  #isReplaced(): boolean {
    return identifyFile(this.#opened.file) !== this.#opened.identity;
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

function closed(): EffectMatchError {
  return new EffectMatchError('ERR_EM_ADAPTER_UNAVAILABLE', 'the adapter is closed');
}

/** The adapter's own modules, those they stand on, and the layout by which states compare. */
function adapterCode(layout: Layout): string {
  const beneath = digestFolders(
    ['../../sqlite/', '../../backend/'].map((folder) => new URL(folder, import.meta.url)),
  );
  const own = codeIdentity(new URL('.', import.meta.url));
  return [own, beneath, hash('sha256', layout.text, 'hex').slice(0, 32)].join('+');
}
