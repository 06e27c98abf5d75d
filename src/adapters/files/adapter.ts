import { chmodSync, existsSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { joinItems } from '../../backend/action.ts';
import {
  type Backend,
  type HoldRequest,
  type HoldResult,
  stageFailed,
  stagePrevented,
} from '../../backend/candidate.ts';
import { normaliseManifest } from '../../backend/normalise.ts';
import { adapterFault, promotable } from '../../backend/promotable.ts';
import { adapterCode, readValuesOption } from '../../backend/setup.ts';
import type {
  AdapterContext,
  AdapterIdentity,
  Markers,
  PromotableAdapter,
  PromotableProbe,
  Survey,
} from '../../contract/adapter.ts';
import { misnamedOption, type OptionNames } from '../../contract/options.ts';
import { invariant } from '../../errors.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { Manifest } from '../../protocol/manifest.ts';
import type { Registration } from '../../protocol/registration.ts';
import { isBusyFault } from '../../sqlite/commit.ts';
import {
  createPrivateFile,
  immediate,
  openDatabase,
  pinDurability,
} from '../../sqlite/connection.ts';
import {
  type CheckedFilesAction,
  describeAction,
  parseAction,
  probeAction,
  probePath,
} from './action.ts';
import { adoptFolder, demandPlainFolder, newFolderName, refused } from './adoption.ts';
import { FilesCandidate, type FilesTools } from './candidate.ts';
import {
  ensureControl,
  type FolderVersion,
  readCurrent,
  readEntries,
  storeStamps,
  type VersionEntries,
} from './control.ts';
import { CHANNELS, PROBE_TARGET } from './evidence.ts';
import { type FolderLayout, layoutOf, makePassage, showCurrent, treeOf } from './layout.ts';
import { findMarker, markersOf } from './markers.ts';
import { FilesSchema } from './normalise.ts';
import { readState } from './reading.ts';
import { identifyControl, surveyFolder } from './survey.ts';
import { registerStage, sweep } from './sweep.ts';
import { systemCode } from './tree.ts';

const BUSY_TIMEOUT_MS = 5000;
const DEADLINE = { deadlineMs: BUSY_TIMEOUT_MS };

/** How an application describes its folder. */
export interface FilesOptions {
  /** The folder. After adoption it is a symbolic link to the current version. */
  readonly root: string;
  /**
   * Where versions and markers are kept, on the same file system. Default: `.<name>.effectmatch`
   * next to the root.
   */
  readonly control?: string;
  /**
   * Allows a plain folder to be moved into the control folder and replaced by a link. Needed only
   * once.
   */
  readonly adopt?: boolean;
  /** Whether journal and receipts keep values or only their digests. Default: `plain`. */
  readonly values?: 'plain' | 'digest';
}

const OPTIONS: OptionNames<FilesOptions> = { root: true, control: true, adopt: true, values: true };

/**
 * Opens the folder and finishes the work of a process that died. Refuses a folder it cannot
 * protect.
 */
export async function openAdapter(
  options: FilesOptions,
  context: AdapterContext,
): Promise<PromotableAdapter<CheckedFilesAction>> {
  if (process.platform === 'win32') throw refused('this adapter needs a POSIX file system');
  const misnamed = misnamedOption(options, OPTIONS);
  if (misnamed !== undefined) throw refused(misnamed);
  if (typeof options.root !== 'string' || options.root === '')
    throw refused('root must be the path of a folder');
  const values = readValuesOption(options.values, refused);
  const layout = layoutOf(options);
  admitLayout(layout);
  // Check this before the first write, so that a refused folder stays unchanged.
  if (!existsSync(layout.database)) demandAdoption(layout, options);
  const db = openControl(layout);
  try {
    const backend = await ensureControl(db, relative(layout.control, layout.root), DEADLINE);
    pinDurability(db);
    if (readCurrent(db) === undefined) {
      demandAdoption(layout, options);
      await adoptFolder(db, layout, DEADLINE);
    }
    await showCurrent(db, layout, DEADLINE);
    await sweep(db, layout, { nowMs: context.clock.now(), ...DEADLINE });
    const identity = identifyControl(layout);
    const opened = { layout, db, backend, values, context, identity };
    return promotable(new FilesBackend(opened), context);
  } catch (error) {
    db.close();
    throw adapterFault(error);
  }
}

/** Checks that the control folder can serve the root. */
function admitLayout(layout: FolderLayout): void {
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

function demandAdoption(layout: FolderLayout, { adopt }: FilesOptions): void {
  demandPlainFolder(layout.root);
  if (adopt === true) return;
  throw refused(
    `"${layout.root}" is a plain folder. With adopt: true it is moved to "${layout.versions}" and replaced by a` +
      ' symbolic link to the version that counts; stop what writes to it first',
  );
}

/**
 * Only the owner can read the control file: it names every file, including those that others may
 * not see.
 */
function openControl(layout: FolderLayout): DatabaseSync {
  try {
    makePassage(layout.control);
    makePassage(layout.versions);
    createPrivateFile(layout.database);
    const db = openDatabase(layout.database);
    chmodSync(layout.database, 0o600);
    return db;
  } catch (error) {
    throw adapterFault(error);
  }
}

interface Opened {
  readonly layout: FolderLayout;
  readonly db: DatabaseSync;
  readonly backend: string;
  readonly values: Registration['values'];
  readonly context: AdapterContext;
  readonly identity: string;
}

/** One folder with versions behind a symbolic link. It only reports; it decides nothing. */
class FilesBackend implements Backend<CheckedFilesAction> {
  readonly profiles = ['net-state'] as const;
  readonly channels = CHANNELS;
  readonly identity: AdapterIdentity;
  readonly registration: Registration;
  readonly markers: Markers;
  readonly probe: PromotableProbe<CheckedFilesAction>;
  readonly parseAction = parseAction;
  readonly describeAction = describeAction;
  readonly readsMany = true;
  readonly holdsTasks = true;
  readonly joinActions = (actions: readonly unknown[]) => joinItems('operations', actions);
  readonly #opened: Opened;
  readonly #schema: FilesSchema;
  #known: { readonly folder: string; readonly entries: VersionEntries } | undefined;

  constructor(opened: Opened) {
    const { db, layout, backend, values, context } = opened;
    this.#opened = opened;
    const code = adapterCode(import.meta.url, '../../sqlite/');
    this.identity = { kind: 'files', backend, code };
    this.#schema = new FilesSchema(values);
    this.registration = this.#schema.registration;
    // If a committed marker is found, its version must be visible in the folder.
    const redo = () => showCurrent(db, layout, DEADLINE);
    const { reached } = context;
    this.markers = markersOf(db, { busyTimeoutMs: BUSY_TIMEOUT_MS, reached, redo });
    const durable = async (token: string) => existsSync(join(layout.root, probePath(token)));
    this.probe = { action: probeAction, target: PROBE_TARGET, durable };
  }

  async normalise(manifest: Manifest): Promise<Manifest> {
    return normaliseManifest(this.#schema, manifest);
  }

  /** If the version is replaced and removed during the read, reads the next one. */
  async read(reads: readonly StateRead[]): Promise<readonly StateReading[]> {
    await this.#showCurrent();
    for (;;) {
      const version = this.#current();
      const tree = treeOf(this.#opened.layout, version.folder);
      try {
        return readState(tree, this.#entriesOf(version), reads);
      } catch (error) {
        const isReplaced = this.#current().folder !== version.folder;
        if (systemCode(error) === undefined || !isReplaced) throw error;
      }
    }
  }

  async survey(): Promise<Survey> {
    return surveyFolder(this.#opened.layout, this.#opened);
  }

  async hold({ occurrence }: HoldRequest): Promise<HoldResult<CheckedFilesAction>> {
    const { db, layout, identity, context } = this.#opened;
    if (identifyControl(layout) !== identity)
      return stageFailed('backend-replaced', 'the control folder is not the one that was opened');
    await this.#showCurrent();
    const folder = newFolderName();
    const candidate = new FilesCandidate(this.#candidateTools(), this.#current(), folder);
    try {
      await immediate(db, () => registerStage(db, folder, context.clock.now()), DEADLINE);
    } catch (error) {
      if (!isBusyFault(error)) throw error;
      const detail = `other writers kept the control file locked for ${BUSY_TIMEOUT_MS} ms`;
      return stagePrevented('busy', detail);
    }
    return { kind: 'open', candidate, marker: findMarker(db, occurrence) };
  }

  #candidateTools(): FilesTools {
    const { db, layout, backend, context, values } = this.#opened;
    return {
      db,
      layout,
      backend,
      context,
      busyTimeoutMs: BUSY_TIMEOUT_MS,
      quotesValues: values === 'plain',
      entriesOf: (version) => this.#entriesOf(version),
      restamp: async (version, entries) => {
        this.#known = { folder: version.folder, entries };
        await immediate(db, () => storeStamps(db, version, entries), DEADLINE);
      },
      sweep: () => sweep(db, layout, { nowMs: context.clock.now(), deadlineMs: 100 }),
    };
  }

  async close(): Promise<void> {
    this.#opened.db.close();
  }

  #current(): FolderVersion {
    const version = readCurrent(this.#opened.db);
    invariant(version !== undefined, 'an open adapter has a version');
    return version;
  }

  #entriesOf({ folder, number }: FolderVersion): VersionEntries {
    if (this.#known?.folder !== folder)
      this.#known = { folder, entries: readEntries(this.#opened.db, number) };
    return this.#known.entries;
  }

  #showCurrent(): Promise<void> {
    return showCurrent(this.#opened.db, this.#opened.layout, DEADLINE);
  }
}
