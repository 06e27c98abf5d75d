import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { PermitCheck, type StagedUnder } from '../../backend/permit-check.ts';
import type {
  AdapterContext,
  CandidateFacts,
  Evidence,
  Promotion,
  Stage,
  Staged,
} from '../../contract/adapter.ts';
import type { ConsumedPermit } from '../../contract/proof.ts';
import { EffectMatchError, invariant } from '../../errors.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import { immediate, statement } from '../../sqlite/connection.ts';
import { type CheckedAction, namedPaths } from './action.ts';
import { newFolderName } from './adoption.ts';
import { findTreeProblem } from './boundary.ts';
import { cloneTree } from './clone.ts';
import { type Manifest, readCurrent, type Version } from './control.ts';
import {
  describeBase,
  fingerprintEvidence,
  type Observed,
  observeCandidate,
  type Reading,
  readCandidate,
} from './evidence.ts';
import { type Layout, makeFolder, treeOf } from './layout.ts';
import { asUnavailable, findMarker } from './markers.ts';
import { runOperations } from './operations.ts';
import { promoteCandidate } from './promotion.ts';
import { readState } from './reading.ts';
import { abandonStage, endStage, registerStage } from './sweep.ts';
import { listTree, removeTree, systemCode, systemWords } from './tree.ts';

/** What a stage needs of the adapter that opens it. */
export interface StageTools {
  readonly db: DatabaseSync;
  readonly layout: Layout;
  readonly backend: string;
  readonly busyTimeoutMs: number;
  readonly context: Pick<AdapterContext, 'clock' | 'reached'>;
  /** Whether reasons may name paths. */
  readonly quotesValues: boolean;
  /** The manifest of a version, and what is now known to be the same with other stamps. */
  readonly manifestOf: (version: Version) => Manifest;
  readonly restamp: (version: Version, manifest: Manifest) => Promise<void>;
  /** Called when a held stage is over; `promoted` says that another version counts now. */
  readonly onEnd: (stage: Stage, promoted: boolean) => Promise<void>;
}

/**
 * Runs the action once in a copy of the current version and holds the copy. No lock is held
 * meanwhile.
 */
export async function openStage(
  tools: StageTools,
  under: StagedUnder,
  action: CheckedAction,
): Promise<Staged> {
  const { db, context } = tools;
  const version = readCurrent(db);
  invariant(version !== undefined, 'an open adapter has a version');
  if (findMarker(db, under.claim.sealed.record.occurrence) !== undefined) {
    return failed(
      'already-decided',
      'a marker of this occurrence exists, so it can no longer commit',
    );
  }
  const folder = newFolderName();
  const deadline = { deadlineMs: tools.busyTimeoutMs };
  try {
    await immediate(db, () => registerStage(db, folder, context.clock.now()), deadline);
  } catch (error) {
    if (!(error instanceof EffectMatchError) || error.code !== 'ERR_EM_STORE_BUSY') throw error;
    return failed(
      'busy',
      `other writers kept the control file locked for ${tools.busyTimeoutMs} ms`,
    );
  }
  try {
    const staged = await stageAction(tools, { under, action, version, folder });
    if (staged.kind === 'failed') await dropCandidate(tools, folder);
    return staged;
  } catch (error) {
    await dropCandidate(tools, folder);
    if (systemCode(error) === undefined) throw error;
    const moved = readCurrent(db)?.folder !== version.folder;
    if (moved)
      return failed('base-changed', 'another promotion came first while the copy was made');
    return failed('storage-failed', systemWords(error));
  }
}

interface Request {
  readonly under: StagedUnder;
  readonly action: CheckedAction;
  readonly version: Version;
  readonly folder: string;
}

async function stageAction(tools: StageTools, request: Request): Promise<Staged> {
  const { under, action, version, folder } = request;
  const { layout, context, quotesValues } = tools;
  const quote = (path: string) => (quotesValues ? JSON.stringify(path) : 'something in the folder');
  const workplace = makeFolder(layout, folder);
  context.reached('adapter:stage-opened');
  const from = treeOf(layout, version.folder);
  const manifest = tools.manifestOf(version);
  const cloned = cloneTree(from, manifest, workplace.tree);
  if (cloned.kind === 'changed') {
    return failed(
      'base-changed',
      `the folder was changed past EffectMatch: ${quote(cloned.path)}, ${cloned.what}; put it back`,
    );
  }
  if (cloned.base !== manifest) await tools.restamp(version, cloned.base);
  const fromMs = context.clock.now();
  const failure = runOperations(workplace, action, { quotesValues });
  if (failure !== undefined) return failed('action-failed', failure);
  const problem = findTreeProblem(listTree(workplace.tree));
  if (problem !== undefined)
    return failed('outlet-denied', `${quote(problem.path)}: ${problem.what}`);
  context.reached('adapter:action-done');
  const observed = {
    candidate: `files:${tools.backend}:${folder}`,
    tree: workplace.tree,
    base: { version, tree: from, manifest: cloned.base, folders: cloned.folders },
    named: namedPaths(action),
    window: { fromMs, toMs: context.clock.now() },
  };
  return { kind: 'held', stage: new HeldStage(tools, { under, folder }, observed) };
}

/**
 * Nothing of a candidate remains; its registration goes last, because without it anybody may remove
 * the folder.
 */
async function dropCandidate(tools: StageTools, folder: string): Promise<void> {
  const { db, layout, busyTimeoutMs } = tools;
  try {
    removeTree(join(layout.versions, folder));
  } finally {
    // A registration that cannot be ended does no harm, and the next sweep ends it: a full disk
    // must not matter.
    const ending = immediate(db, () => endStage(db, folder), { deadlineMs: busyTimeoutMs });
    await ending.catch(() => abandonStage(folder));
  }
}

/** A folder of its own with the action's writes in it. */
class HeldStage implements Stage {
  readonly candidate: string;
  readonly #tools: StageTools;
  readonly #folder: string;
  readonly #permit: PermitCheck;
  readonly #observed: Observed;
  #reading: Reading | undefined;
  #ended = false;

  constructor(tools: StageTools, own: Pick<Request, 'under' | 'folder'>, observed: Observed) {
    this.candidate = observed.candidate;
    this.#tools = tools;
    this.#folder = own.folder;
    this.#permit = new PermitCheck(own.under, observed.candidate);
    this.#observed = observed;
  }

  /**
   * The base version, which nobody changes; that it still counts is a condition of the promotion.
   */
  async read(reads: readonly StateRead[]): Promise<readonly StateReading[]> {
    this.#assertHeld();
    const { tree, manifest } = this.#observed.base;
    return await asUnavailable(async () => readState(tree, manifest, reads));
  }

  async observe(): Promise<Evidence> {
    return await asUnavailable(async () => {
      const reading = this.#read();
      const evidence = observeCandidate(this.#observed, reading, this.#describeBase(reading));
      this.#permit.observed(evidence.evidence);
      return evidence;
    });
  }

  async recheck(): Promise<CandidateFacts> {
    return await asUnavailable(async () => {
      const reading = this.#read();
      const evidence = fingerprintEvidence(reading, this.#describeBase(reading));
      this.#permit.rechecked(evidence);
      return { candidate: this.candidate, evidence };
    });
  }

  async promote(permit: ConsumedPermit): Promise<Promotion> {
    this.#assertHeld();
    const mismatch = this.#permit.refusalOf(permit);
    if (mismatch !== undefined) {
      await this.discard();
      return mismatch;
    }
    const folder = this.#folder;
    const candidate = { folder, base: this.#observed.base, reading: this.#reading ?? this.#read() };
    this.#ended = true;
    const tools = { ...this.#tools, reached: this.#tools.context.reached };
    const promotion = await promoteCandidate(tools, candidate, permit.marker);
    // After an unknown result the folder may be the version that counts: whoever sweeps later can
    // tell.
    if (promotion.kind === 'refused') await dropCandidate(this.#tools, folder);
    else if (promotion.kind === 'unknown') abandonStage(folder);
    await this.#tools.onEnd(this, promotion.kind === 'confirmed');
    return promotion;
  }

  async discard(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    await dropCandidate(this.#tools, this.#folder);
    await this.#tools.onEnd(this, false);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.discard();
  }

  #read(): Reading {
    this.#assertHeld();
    const { tree, base } = this.#observed;
    this.#reading = readCandidate(tree, base.manifest);
    return this.#reading;
  }

  #describeBase(reading: Reading): string {
    return describeBase(this.#observed.base, readCurrent(this.#tools.db), reading);
  }

  #assertHeld(): void {
    invariant(!this.#ended, 'the stage is still held');
  }
}

/**
 * Writes stamps that moved without the content: a copy of the whole folder, for example, has other
 * inodes.
 */
export function storeStamps(db: DatabaseSync, version: Version, manifest: Manifest): void {
  const update = statement(
    db,
    'update entry set stamp = ?1 where path = ?2 and stamp <> ?1 and since <= ?3 and (until is null or until > ?3)',
  );
  for (const { path, stamp } of manifest.values()) update.run(stamp, path, version.number);
}

function failed(reason: string, detail: string): Staged {
  return { kind: 'failed', reason, detail: detail.slice(0, 1000).toWellFormed() };
}
