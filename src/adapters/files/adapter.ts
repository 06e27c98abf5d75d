import { chmodSync, existsSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { normaliseManifest } from '../../backend/normalise.ts';
import type {
  AdapterContext,
  AdapterIdentity,
  PromotableAdapter,
  PromotableProbe,
  Stage,
  Staged,
  Survey,
} from '../../contract/adapter.ts';
import { misnamedOption, type OptionNames } from '../../contract/options.ts';
import type { Certificate, Claim } from '../../contract/proof.ts';
import { codeIdentity } from '../../crypto/code-identity.ts';
import { EffectMatchError, invariant } from '../../errors.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { Manifest as Statement } from '../../protocol/manifest.ts';
import type { Registration } from '../../protocol/registration.ts';
import type { Value } from '../../protocol/value.ts';
import {
  asFault,
  createPrivateFile,
  immediate,
  openDatabase,
  pinDurability,
} from '../../sqlite/connection.ts';
import {
  type CheckedAction,
  describeAction,
  parseAction,
  probeAction,
  probePath,
} from './action.ts';
import { adoptFolder, demandPlainFolder, refused } from './adoption.ts';
import {
  ensureControl,
  type Manifest,
  readCurrent,
  readManifest,
  type Version,
} from './control.ts';
import { CHANNELS, PROBE_TARGET } from './evidence.ts';
import { type Layout, layoutOf, makePassage, showCurrent, treeOf } from './layout.ts';
import { asUnavailable, markersOf } from './markers.ts';
import { FilesSchema } from './normalise.ts';
import { readState } from './reading.ts';
import { openStage, storeStamps } from './stage.ts';
import { identifyControl, surveyFolder } from './survey.ts';
import { sweep } from './sweep.ts';
import { systemCode } from './tree.ts';

const BUSY_TIMEOUT_MS = 5000;
const DEADLINE = { deadlineMs: BUSY_TIMEOUT_MS };

/** What an application says about its folder. */
export interface FilesOptions {
  /** The folder. Once it is adopted this is a symbolic link to the version that counts. */
  readonly root: string;
  /**
   * Where versions and markers are kept; `.<name>.effectmatch` beside the root unless told. On the
   * same file system.
   */
  readonly control?: string;
  /**
   * Agrees that a plain folder is moved into the control folder, with a link in its place. Needed
   * once.
   */
  readonly adopt?: boolean;
  /** What journal and receipts keep of values; `plain` unless told. */
  readonly values?: 'plain' | 'digest';
}

const OPTIONS: OptionNames<FilesOptions> = { root: true, control: true, adopt: true, values: true };

/**
 * Opens the folder, finishes what a process that died had begun, and refuses what could not be
 * protected.
 */
export async function openAdapter(
  options: FilesOptions,
  context: AdapterContext,
): Promise<FilesAdapter> {
  if (process.platform === 'win32') throw refused('this adapter needs a POSIX file system');
  const misnamed = misnamedOption(options, OPTIONS);
  if (misnamed !== undefined) throw refused(misnamed);
  if (typeof options.root !== 'string' || options.root === '')
    throw refused('root must be the path of a folder');
  const values = options.values ?? 'plain';
  if (values !== 'plain' && values !== 'digest')
    throw refused(`values "${String(values)}" is neither plain nor digest`);
  const layout = layoutOf(options);
  admitLayout(layout);
  // Before anything is written, so that a refused folder stays as it was.
  if (!existsSync(layout.database)) demandAdoption(layout, options);
  const db = openControl(layout);
  try {
    return await asUnavailable(async () => {
      const backend = await ensureControl(db, relative(layout.control, layout.root), DEADLINE);
      pinDurability(db);
      if (readCurrent(db) === undefined) {
        demandAdoption(layout, options);
        await adoptFolder(db, layout, DEADLINE);
      }
      await showCurrent(db, layout, DEADLINE);
      await sweep(db, layout, { nowMs: context.clock.now(), ...DEADLINE });
      return new FilesAdapter({
        layout,
        db,
        backend,
        values,
        context,
        identity: identifyControl(layout),
      });
    });
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Whether the control folder can serve the root. */
function admitLayout(layout: Layout): void {
  const { root, control } = layout;
  if (`${control}/`.startsWith(`${root}/`) || `${root}/`.startsWith(`${control}/`)) {
    throw refused('the control folder and the root must not lie inside each other');
  }
  for (const home of [dirname(root), dirname(control)]) {
    if (!existsSync(home)) throw refused(`there is no folder "${home}"`);
  }
  const home = existsSync(control) ? control : dirname(control);
  if (statSync(home).dev !== statSync(dirname(root)).dev) {
    throw refused(
      'the control folder must be on the file system of the root, or a version could not be put in place',
    );
  }
}

function demandAdoption(layout: Layout, { adopt }: FilesOptions): void {
  demandPlainFolder(layout.root);
  if (adopt === true) return;
  throw refused(
    `"${layout.root}" is a plain folder. With adopt: true it is moved to "${layout.versions}" and replaced by a` +
      ' symbolic link to the version that counts; stop what writes to it first',
  );
}

/**
 * The control file is for its owner alone: it names every file, also those that others may not see.
 */
function openControl(layout: Layout): DatabaseSync {
  try {
    makePassage(layout.control);
    makePassage(layout.versions);
    createPrivateFile(layout.database);
    const db = openDatabase(layout.database);
    chmodSync(layout.database, 0o600);
    return db;
  } catch (error) {
    throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'the control folder could not be opened');
  }
}

interface Opened {
  readonly layout: Layout;
  readonly db: DatabaseSync;
  readonly backend: string;
  readonly values: Registration['values'];
  readonly context: AdapterContext;
  readonly identity: string;
}

/** One folder with versions behind a symbolic link. Reports; decides nothing. */
export class FilesAdapter implements PromotableAdapter<CheckedAction> {
  readonly capability = 'PROMOTABLE';
  readonly profiles = ['net-state'] as const;
  readonly channels = CHANNELS;
  readonly identity: AdapterIdentity;
  readonly registration: Registration;
  readonly markers: PromotableAdapter['markers'];
  readonly probe: PromotableProbe<CheckedAction>;
  readonly #opened: Opened;
  readonly #schema: FilesSchema;
  readonly #stages = new Set<Stage>();
  #known: { readonly folder: string; readonly manifest: Manifest } | undefined;
  #survey: Survey | undefined;

  constructor(opened: Opened) {
    const { db, layout, backend, values, context } = opened;
    this.#opened = opened;
    this.identity = { kind: 'files', backend, code: adapterCode() };
    this.#schema = new FilesSchema(values);
    this.registration = this.#schema.registration;
    const redo = async () => await showCurrent(db, layout, DEADLINE);
    this.markers = markersOf(db, {
      busyTimeoutMs: BUSY_TIMEOUT_MS,
      reached: context.reached,
      redo,
    });
    const durable = async (token: string) => existsSync(join(layout.root, probePath(token)));
    this.probe = { action: probeAction, target: PROBE_TARGET, durable };
  }

  async normalise(manifest: Statement): Promise<Statement> {
    return normaliseManifest(this.#schema, manifest);
  }

  /**
   * A version that is replaced and removed while it is being read is read again as what replaced
   * it.
   */
  async read(reads: readonly StateRead[]): Promise<readonly StateReading[]> {
    return await asUnavailable(async () => {
      await this.#redo();
      for (;;) {
        const version = this.#current();
        try {
          return readState(
            treeOf(this.#opened.layout, version.folder),
            this.#manifestOf(version),
            reads,
          );
        } catch (error) {
          if (systemCode(error) === undefined || this.#current().folder === version.folder)
            throw error;
        }
      }
    });
  }

  parseAction(input: unknown): CheckedAction {
    return parseAction(input);
  }

  describeAction(action: CheckedAction): Value {
    return describeAction(action);
  }

  /** The same list, frozen, as long as nothing moved. */
  async survey(): Promise<Survey> {
    const survey = surveyFolder(this.#opened.layout, this.#opened);
    if (JSON.stringify(this.#survey) !== JSON.stringify(survey)) this.#survey = survey;
    return this.#survey ?? survey;
  }

  async stage(claim: Claim, certificate: Certificate, action: CheckedAction): Promise<Staged> {
    const { db, layout, backend, context, values, identity } = this.#opened;
    if (!db.isOpen)
      throw new EffectMatchError(
        'ERR_EM_ADAPTER_UNAVAILABLE',
        'the adapter is closed; open it again',
      );
    if (identifyControl(layout) !== identity) {
      return {
        kind: 'failed',
        reason: 'backend-replaced',
        detail: 'the control folder is not the one that was opened',
      };
    }
    const tools = {
      ...{
        db,
        layout,
        backend,
        context,
        busyTimeoutMs: BUSY_TIMEOUT_MS,
        quotesValues: values === 'plain',
      },
      manifestOf: (version: Version) => this.#manifestOf(version),
      restamp: async (version: Version, manifest: Manifest) => {
        this.#known = { folder: version.folder, manifest };
        await immediate(db, () => storeStamps(db, version, manifest), DEADLINE);
      },
      onEnd: async (stage: Stage, promoted: boolean) => {
        this.#stages.delete(stage);
        if (promoted) await this.#sweep();
      },
    };
    return await asUnavailable(async () => {
      await this.#redo();
      const staged = await openStage(tools, { claim, certificate }, action);
      if (staged.kind === 'held') this.#stages.add(staged.stage);
      return staged;
    });
  }

  /** Ends every stage that is still held; nothing of them remains. */
  async close(): Promise<void> {
    for (const stage of [...this.#stages]) await stage.discard();
    if (this.#opened.db.isOpen) this.#opened.db.close();
  }

  #current(): Version {
    const version = readCurrent(this.#opened.db);
    invariant(version !== undefined, 'an open adapter has a version');
    return version;
  }

  #manifestOf(version: Version): Manifest {
    if (this.#known?.folder !== version.folder) {
      this.#known = {
        folder: version.folder,
        manifest: readManifest(this.#opened.db, version.number),
      };
    }
    return this.#known.manifest;
  }

  async #redo(): Promise<void> {
    await showCurrent(this.#opened.db, this.#opened.layout, DEADLINE);
  }

  /**
   * Tidying up never turns a promotion that is over into a failure; what it leaves the next sweep
   * finds.
   */
  async #sweep(): Promise<void> {
    const { db, layout, context } = this.#opened;
    await sweep(db, layout, { nowMs: context.clock.now(), deadlineMs: 100 }).catch(() => {});
  }
}

/** The adapter's own modules and those they stand on. */
function adapterCode(): string {
  const folders = ['.', '../../sqlite/', '../../backend/'];
  return folders.map((folder) => codeIdentity(new URL(folder, import.meta.url))).join('+');
}
