import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { joinItems } from '../../backend/action.ts';
import {
  type Backend,
  type HoldRequest,
  type HoldResult,
  stageFailed,
} from '../../backend/candidate.ts';
import { normaliseManifest } from '../../backend/normalise.ts';
import { adapterFault, promotable } from '../../backend/promotable.ts';
import {
  adapterCode,
  FILE_REPLACED,
  fingerprint,
  identifyFile,
  readTimeoutOption,
} from '../../backend/setup.ts';
import type {
  AdapterContext,
  AdapterIdentity,
  Markers,
  PromotableAdapter,
  PromotableProbe,
  Survey,
} from '../../contract/adapter.ts';
import { codeIdentity } from '../../crypto/code-identity.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { Manifest } from '../../protocol/manifest.ts';
import type { Registration } from '../../protocol/registration.ts';
import {
  createPrivateFile,
  openDatabase,
  pinDurability,
  primaryCode,
  retryWhileBusy,
  SQLITE,
} from '../../sqlite/connection.ts';
import { type CheckedSnapshotAction, describeAction, parseAction } from './action.ts';
import { type CandidateSite, CHANNELS, SnapshotCandidate } from './candidate.ts';
import {
  ensureState,
  findProblem,
  markersOf,
  PROBE_TABLE,
  readBase,
  readStored,
  readVersion,
} from './control.ts';
import { type Document, readDocument, writeDocument } from './document.ts';
import { admitLayout, type DocumentLayout } from './layout.ts';
import { SnapshotSchema } from './normalise.ts';
import { checkOptions, refused, type SnapshotOptions } from './options.ts';
import { StoreConnection } from './promotion.ts';
import { readState } from './reading.ts';
import { surveyStore } from './survey.ts';
import { ToolRunner } from './tools.ts';
import { type DocumentView, viewDocument } from './view.ts';

/** Longer documents are read again instead of being kept in memory. */
const MAX_KEPT_CHARACTERS = 4 * 1024 * 1024;

/** Opens the file, or creates it with the initial state. Refuses a state it cannot compare. */
export async function openAdapter(
  options: SnapshotOptions,
  context: AdapterContext,
): Promise<PromotableAdapter<CheckedSnapshotAction>> {
  checkOptions(options);
  const { tools, toolData } = options;
  const busyTimeoutMs = readTimeoutOption(options.busyTimeoutMs ?? 5000, 'busyTimeoutMs', refused);
  const timeoutMs = readTimeoutOption(options.toolTimeoutMs ?? 30_000, 'toolTimeoutMs', refused);
  const initial = options.initial === undefined ? undefined : readInitial(options.initial);
  const layout = admitLayout(options);
  const file = resolve(options.file);
  const exists = statSync(file, { throwIfNoEntry: false });
  if (exists !== undefined && !exists.isFile()) throw refused(`"${file}" is not a file`);
  if (exists === undefined && initial === undefined)
    throw refused(`the file "${file}" does not exist; give the initial state`);
  const module = tools instanceof URL ? tools : pathToFileURL(tools);
  const runner = new ToolRunner(
    { module: module.href, data: toolData },
    { timeoutMs, quotesValues: layout.registration.values === 'plain' },
  );
  let db: DatabaseSync | undefined;
  try {
    // Load the tools before the first write, so that refused tools leave no file.
    await runner.open();
    if (exists === undefined) createPrivateFile(options.file);
    const opened = openDatabase(options.file);
    db = opened;
    const deadline = { deadlineMs: busyTimeoutMs };
    const backend = await ensureState(opened, initial, deadline);
    await retryWhileBusy(() => pinDurability(opened), deadline);
    await retryWhileBusy(() => readStored(opened), deadline);
    const facts = { file, db: opened, layout, runner, backend, busyTimeoutMs, context };
    return promotable(new SnapshotBackend(facts), context);
  } catch (error) {
    await runner.close();
    db?.close();
    throw openingFault(error);
  }
}

function readInitial(initial: unknown): string {
  try {
    return writeDocument(initial);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : '';
    throw refused(`the initial state is not plain JSON: ${why}`, cause);
  }
}

function openingFault(error: unknown): unknown {
  const code = primaryCode(error);
  if (code === SQLITE.READONLY)
    return refused('the file or its folder is read-only; a promotion needs write access', error);
  if (code === SQLITE.NOTADB) return refused('the file is not a snapshot store', error);
  return adapterFault(error);
}

interface Opened {
  readonly file: string;
  readonly db: DatabaseSync;
  readonly layout: DocumentLayout;
  readonly runner: ToolRunner;
  readonly backend: string;
  readonly busyTimeoutMs: number;
  readonly context: AdapterContext;
}

/** One JSON document in a SQLite file, changed by registered tools. */
class SnapshotBackend implements Backend<CheckedSnapshotAction> {
  readonly profiles = ['net-state'] as const;
  readonly channels = CHANNELS;
  readonly identity: AdapterIdentity;
  readonly registration: Registration;
  readonly markers: Markers;
  readonly probe: PromotableProbe<CheckedSnapshotAction>;
  readonly describeAction = describeAction;
  readonly readsMany = true;
  readonly holdsTasks = true;
  readonly joinActions = (actions: readonly unknown[]) => joinItems('calls', actions);
  readonly #opened: Opened;
  readonly #file: string;
  readonly #site: CandidateSite;
  /** The survey, kept while there are no problems, because every execution asks for it twice. */
  #clean: Survey | undefined;
  /** The last promoted document. Most candidates start from it. */
  #promoted: Document | undefined;
  /** A document is compared twice: with the one before it, and with the one made from it. */
  readonly #views = new WeakMap<Document, DocumentView>();

  constructor(opened: Opened) {
    const { file, db, layout, runner, backend, busyTimeoutMs, context } = opened;
    const { reached } = context;
    this.#opened = opened;
    this.#file = identifyFile(file);
    this.registration = layout.registration;
    // The identity covers the code and the layout, which determines how states are compared.
    const all = fingerprint([adapterCode(import.meta.url, '../../sqlite/'), layout.text]);
    const code = `${codeIdentity(new URL('.', import.meta.url))}+${all}`;
    this.identity = { kind: 'snapshot', backend, code };
    this.markers = markersOf(db, { busyTimeoutMs, reached });
    this.probe = {
      action: (token) => ({ calls: [], token }),
      target: PROBE_TABLE,
      durable: async (token) => this.#isDurable(token),
    };
    const isReplaced = () => identifyFile(file) !== this.#file;
    this.#site = {
      backend,
      busyTimeoutMs,
      reached,
      layout,
      runner,
      isReplaced,
      connection: new StoreConnection(file, isReplaced),
      durable: () => this.#trying(readVersion),
      viewOf: (document) => this.#viewOf(document),
      onPromoted: (document) => {
        this.#promoted = document.text.length > MAX_KEPT_CHARACTERS ? undefined : document;
      },
    };
  }

  async normalise(manifest: Manifest): Promise<Manifest> {
    return normaliseManifest(new SnapshotSchema(this.#opened.layout), manifest);
  }

  async read(reads: readonly StateRead[]): Promise<readonly StateReading[]> {
    const { text } = await this.#trying(readStored);
    return readState(this.#opened.layout, readDocument(text).state, reads);
  }

  parseAction(input: unknown): CheckedSnapshotAction {
    return parseAction(input, this.#opened.runner.names);
  }

  async survey(): Promise<Survey> {
    const { backend, layout } = this.#opened;
    const problem = await this.#trying(findProblem);
    const file = identifyFile(this.#opened.file);
    if (problem === undefined && file === this.#file) {
      this.#clean ??= surveyStore({ backend, file, layout, problems: [] });
      return this.#clean;
    }
    const problems = problem === undefined ? [] : [problem];
    if (file !== this.#file)
      problems.push('another file, or other rights, since it was opened; reopen it');
    return surveyStore({ backend, file, layout, problems });
  }

  async hold({ occurrence }: HoldRequest): Promise<HoldResult<CheckedSnapshotAction>> {
    const base = await this.#trying((db) => readBase(db, occurrence));
    if (base.backend !== this.#opened.backend)
      return stageFailed(FILE_REPLACED.reason, FILE_REPLACED.detail);
    const promoted = this.#promoted;
    const initial = promoted?.text === base.text ? promoted : readDocument(base.text);
    const candidate = new SnapshotCandidate(this.#site, base, initial);
    return { kind: 'open', candidate, marker: base.marker };
  }

  #viewOf(document: Document): DocumentView {
    const view = this.#views.get(document) ?? viewDocument(this.#opened.layout, document.state);
    this.#views.set(document, view);
    return view;
  }

  async close(): Promise<void> {
    await this.#opened.runner.close();
    this.#site.connection.close();
    this.#opened.db.close();
  }

  #trying<T>(attempt: (db: DatabaseSync) => T): Promise<T> {
    const { busyTimeoutMs } = this.#opened;
    const { connection } = this.#site;
    return retryWhileBusy(() => attempt(connection.open()), { deadlineMs: busyTimeoutMs });
  }

  /** Uses a new connection, which sees only committed data. */
  #isDurable(token: string): boolean {
    using independent = openDatabase(this.#opened.file, { readOnly: true });
    const found = independent.prepare(`select 1 from main.${PROBE_TABLE} where token = ?`);
    return found.get(token) !== undefined;
  }
}
