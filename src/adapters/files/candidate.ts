import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import {
  type Applied,
  type Candidate,
  type CandidateEnd,
  type CandidateEvidence,
  type StageFailure,
  stageFailed,
  stagePrevented,
} from '../../backend/candidate.ts';
import type { AdapterContext, CallAnswer, Promotion } from '../../contract/adapter.ts';
import type { MarkerText } from '../../contract/proof.ts';
import { invariant } from '../../errors.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import { immediate } from '../../sqlite/connection.ts';
import { type CheckedFilesAction, namedPaths } from './action.ts';
import { findTreeProblem } from './boundary.ts';
import { cloneTree } from './clone.ts';
import { type FolderVersion, readCurrent, type VersionEntries } from './control.ts';
import {
  type BaseVersion,
  type CandidateWalk,
  describeBase,
  fingerprintEvidence,
  observeCandidate,
  walkCandidate,
} from './evidence.ts';
import { type FolderLayout, makeFolder, treeOf } from './layout.ts';
import { runOperations, type Workplace } from './operations.ts';
import { promoteCandidate } from './promotion.ts';
import { readState } from './reading.ts';
import { SavedPaths } from './saved-paths.ts';
import { abandonStage, endStage } from './sweep.ts';
import { listTree, removeTree, systemCode, systemWords } from './tree.ts';

/** What a candidate knows about its folder. */
export interface FilesTools {
  readonly db: DatabaseSync;
  readonly layout: FolderLayout;
  readonly backend: string;
  readonly busyTimeoutMs: number;
  readonly context: Pick<AdapterContext, 'clock' | 'reached'>;
  /** Whether messages may name paths. */
  readonly quotesValues: boolean;
  readonly entriesOf: (version: FolderVersion) => VersionEntries;
  /** Stores entries in which only the stamps changed. */
  readonly restamp: (version: FolderVersion, entries: VersionEntries) => Promise<void>;
  /** Removes obsolete folders after a commit. */
  readonly sweep: () => Promise<void>;
}

/**
 * A copy of the current version, with the changes of the actions, in a folder that only the adapter
 * knows. It holds no lock.
 */
export class FilesCandidate implements Candidate<CheckedFilesAction> {
  readonly id: string;
  readonly #tools: FilesTools;
  readonly #version: FolderVersion;
  readonly #folder: string;
  readonly #tree: string;
  readonly #named = new Set<string>();
  #workplace: Workplace | undefined;
  #base: BaseVersion | undefined;
  #window: { readonly fromMs: number; readonly toMs: number } | undefined;
  #walk: CandidateWalk | undefined;
  #operations = 0;

  constructor(tools: FilesTools, version: FolderVersion, folder: string) {
    this.id = `files:${tools.backend}:${folder}`;
    this.#tools = tools;
    this.#version = version;
    this.#folder = folder;
    this.#tree = treeOf(tools.layout, folder);
  }

  async apply(action: CheckedFilesAction): Promise<Applied> {
    try {
      return (await this.#copyBase()) ?? this.#run(action);
    } catch (error) {
      return this.#explain(error);
    }
  }

  #explain(error: unknown): StageFailure {
    if (systemCode(error) === undefined) throw error;
    if (readCurrent(this.#tools.db)?.folder === this.#version.folder)
      return stageFailed('storage-failed', systemWords(error));
    return stagePrevented('base-changed', 'another promotion came first while the copy was made');
  }

  /**
   * Runs operations of a task. Hard links save the named paths first, and restore them on failure.
   */
  async call(action: CheckedFilesAction): Promise<CallAnswer> {
    try {
      const failure = await this.#copyBase();
      if (failure !== undefined) return { ...failure, isLost: true };
      const saved = new SavedPaths(this.#placeOfWork(), namedPaths(action));
      const answer = this.#run(action);
      if (answer.kind === 'failed') saved.putBack();
      saved.forget();
      return answer;
    } catch (error) {
      return { ...this.#explain(error), isLost: true };
    }
  }

  async complete(): Promise<Applied> {
    return await this.apply({ operations: [] });
  }

  #placeOfWork(): Workplace {
    invariant(this.#workplace !== undefined, 'the base was copied');
    return this.#workplace;
  }

  async #copyBase(): Promise<StageFailure | undefined> {
    if (this.#base !== undefined) return undefined;
    const { layout, entriesOf, restamp } = this.#tools;
    const version = this.#version;
    this.#workplace = makeFolder(layout, this.#folder);
    const tree = treeOf(layout, version.folder);
    const entries = entriesOf(version);
    const cloned = cloneTree(tree, entries, this.#tree);
    if (cloned.kind === 'changed')
      return stageFailed(
        'base-changed',
        `the folder was changed past EffectMatch: ${this.#quote(cloned.path)}, ${cloned.what}; put it back`,
      );
    if (cloned.base !== entries) await restamp(version, cloned.base);
    this.#base = { version, tree, entries: cloned.base, folders: cloned.folders };
    return undefined;
  }

  #run(action: CheckedFilesAction): CallAnswer {
    const { context, quotesValues } = this.#tools;
    const workplace = this.#placeOfWork();
    const fromMs = this.#window?.fromMs ?? context.clock.now();
    const first = this.#operations;
    this.#operations += action.operations.length;
    const ran = runOperations(workplace, action, { quotesValues, first });
    if (ran.kind === 'failed') return stageFailed('action-failed', ran.why);
    const problem = findTreeProblem(listTree(this.#tree));
    if (problem !== undefined)
      return stageFailed('outlet-denied', `${this.#quote(problem.path)}: ${problem.what}`);
    for (const path of namedPaths(action)) this.#named.add(path);
    this.#window = { fromMs, toMs: context.clock.now() };
    return { kind: 'done', returned: ran.returned };
  }

  #quote(path: string): string {
    return this.#tools.quotesValues ? JSON.stringify(path) : 'something in the folder';
  }

  /** Reads the base version, which never changes. The commit requires that it is still current. */
  async read(reads: readonly StateRead[]): Promise<readonly StateReading[]> {
    const { tree, entries } = this.#held();
    return readState(tree, entries, reads);
  }

  async observe(): Promise<CandidateEvidence> {
    const base = this.#held();
    const walk = this.#look();
    const window = this.#window;
    invariant(window !== undefined, 'operations ran in the copy');
    const observed = { tree: this.#tree, base, named: this.#named, window };
    return observeCandidate(observed, walk, this.#describeBase(walk));
  }

  async recheck(): Promise<string> {
    const walk = this.#look();
    return fingerprintEvidence(walk, this.#describeBase(walk));
  }

  async commit(marker: MarkerText): Promise<Promotion> {
    const { db, layout, busyTimeoutMs, context } = this.#tools;
    const walk = this.#walk ?? this.#look();
    const candidate = { folder: this.#folder, base: this.#held(), walk };
    const { reached } = context;
    return await promoteCandidate({ db, layout, busyTimeoutMs, reached }, candidate, marker);
  }

  async end(how: CandidateEnd): Promise<void> {
    if (how === 'committed') await this.#tools.sweep();
    // The folder may be the current version. A later sweep finds out.
    else if (how === 'unknown') abandonStage(this.#folder);
    else await this.#drop();
  }

  /** Ends the registration last: without it, any process may remove the folder. */
  async #drop(): Promise<void> {
    const { db, layout, busyTimeoutMs } = this.#tools;
    try {
      removeTree(join(layout.versions, this.#folder));
    } finally {
      // If the registration cannot be ended, for example on a full disk, it does no harm, and the
      // next sweep ends it.
      const ending = immediate(db, () => endStage(db, this.#folder), { deadlineMs: busyTimeoutMs });
      await ending.catch(() => abandonStage(this.#folder));
    }
  }

  #held(): BaseVersion {
    invariant(this.#base !== undefined, 'the base was copied');
    return this.#base;
  }

  #look(): CandidateWalk {
    this.#walk = walkCandidate(this.#tree, this.#held().entries);
    return this.#walk;
  }

  #describeBase(walk: CandidateWalk): string {
    return describeBase(this.#held(), readCurrent(this.#tools.db), walk);
  }
}
