import type {
  AdapterIdentity,
  CallAnswer,
  Evidence,
  Markers,
  PromotableAdapter,
  PromotableProbe,
  Promotion,
  Staged,
  StatementResult,
  Survey,
} from '../contract/adapter.ts';
import type { Certificate, Claim, ConsumedPermit, MarkerText } from '../contract/proof.ts';
import type { Profile, StateRead, StateReading } from '../protocol/effect.ts';
import type { Manifest } from '../protocol/manifest.ts';
import { describeDecided } from '../protocol/marker.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import type { Registration } from '../protocol/registration.ts';
import type { Residue } from '../protocol/residue.ts';
import type { SessionSettings } from '../protocol/settings.ts';
import type { Value } from '../protocol/value.ts';

/** Why no candidate is held, or why an action failed on it. */
export type StageFailure = Extract<Staged, { readonly kind: 'failed' }>;

/** A promotion that provably made nothing durable, and why. */
export type PromotionRefusal = Extract<Promotion, { readonly kind: 'refused' }>;

/**
 * One kind of backend: the engine-specific part that `promotable` needs. The kernel does what is
 * the same for every engine: permits, the order of the steps, ending a candidate once, closing.
 * Each function reports; none of them decides.
 */
export interface Backend<Action> {
  readonly identity: AdapterIdentity;
  readonly registration: Registration;
  readonly profiles: readonly Profile[];
  /** Evidence channels that must answer and agree before an observation counts as complete. */
  readonly channels: readonly string[];
  readonly markers: Markers;
  readonly probe: PromotableProbe<Action>;

  /** The manifest in the backend's types; usually one call of `normaliseManifest`. */
  normalise(manifest: Manifest): Promise<Manifest>;
  /** Reads declared state outside any candidate, in the order asked. */
  read(reads: readonly StateRead[]): Promise<readonly StateReading[]>;
  /** Whether `read` can read thousands of rows of registered targets at once. */
  readonly readsMany?: true;
  /** Checks an untrusted action completely and copies it; throws `ERR_EM_ACTION_INVALID`. */
  parseAction(input: unknown): Action;
  /** The action as plain data: equal actions have equal descriptions. */
  describeAction(action: Action): Value;
  /** Runs one statement that the backend prevents from writing, and returns its rows. */
  readonly query?: PromotableAdapter<Action>['query'];
  /**
   * Every reachable outlet at this moment. The kernel reuses the object of an equal earlier survey.
   */
  survey(): Promise<Survey>;
  /** What changed between two surveys, in words for an administrator. */
  readonly explainChange?: PromotableAdapter['explainChange'];
  /** What an action can reach under a survey, if its outlets state what they are behind. */
  readonly reachOf?: PromotableAdapter<Action>['reachOf'];
  /** Present if a candidate can apply the settings of a `HoldRequest`. */
  readonly settingRefusal?: PromotableAdapter['settingRefusal'];
  /** Present if a ledger can share the log that commits are written to. */
  readonly commitLog?: PromotableAdapter['commitLog'];
  /** Present if its candidates accept the calls of a task: `Candidate.call`. */
  readonly holdsTasks?: true;
  /** How long the candidate of a task can be held; absent if there is no limit. */
  readonly taskMaxMs?: number;
  /** Joins actions that `parseAction` has accepted into one that runs them in order. */
  joinActions?(actions: readonly unknown[]): unknown;
  /** Opens a private candidate with nothing applied yet. After `failed`, nothing is held. */
  hold(request: HoldRequest): Promise<HoldResult<Action>>;
  /**
   * Closes connections. Called once, after the held candidates were ended. A candidate whose action
   * is still running may end later.
   */
  close(): Promise<void>;
}

/** What a candidate is opened for. */
export interface HoldRequest {
  /** The claim and certificate of the attempt. Only a permit that names both can promote. */
  readonly claim: Claim;
  readonly certificate: Certificate;
  readonly occurrence: OccurrenceId;
  /** The state that the candidate will be asked for. Lock it before an action runs, if possible. */
  readonly reads: readonly StateRead[];
  /** Session settings: apply them before an action runs, and fail if the action changed one. */
  readonly settings: SessionSettings;
  /** Present if the candidate is for a task: it accepts calls until this much time has passed. */
  readonly task?: { readonly deadlineMs: number };
}

/** An open candidate, and the durable marker of its occurrence, if there is one. */
export type HoldResult<Action> =
  | {
      readonly kind: 'open';
      readonly candidate: Candidate<Action>;
      /**
       * The kernel refuses an occurrence that has a marker. This only avoids running the action;
       * `commit` prevents a second commit.
       */
      readonly marker: Pick<MarkerText, 'disposition'> | undefined;
    }
  | StageFailure;

/**
 * A private candidate of one engine. The kernel calls `apply` first, then any of `read`, `observe`
 * and `recheck`, then at most one `commit`, and always `end` as the last call. For a task, any
 * number of `call` and then `complete` replace `apply`.
 */
export interface Candidate<Action> {
  /** The id that a permit binds: different for every candidate, at most 256 characters. */
  readonly id: string;
  /**
   * Runs one action that only this candidate can see. Several actions may be applied in sequence.
   * If one fails, the kernel ends the candidate, so this need not roll back.
   */
  apply(action: Action): Promise<Applied>;
  /**
   * Runs one action like `apply`. If it fails, the candidate must be as it was before the call;
   * otherwise the answer says `isLost`.
   */
  call?(action: Action): Promise<CallAnswer>;
  /**
   * Runs the checks that were deferred to the end of the calls. Called once, even if there were no
   * calls.
   */
  complete?(): Promise<Applied>;
  /** Reads declared state beneath the candidate, without its own writes. */
  read(reads: readonly StateRead[]): Promise<readonly StateReading[]>;
  /** All records and channels, read from the backend. Returns the same every time. */
  observe(): Promise<CandidateEvidence>;
  /** The `evidence` that an observation would return now. */
  recheck(): Promise<string>;
  /**
   * Writes the marker into the candidate and makes both durable in one step, which must fail if the
   * occurrence already has a marker. Calls `reached('adapter:marker-written')` before that step and
   * `reached('adapter:commit-returned')` after it. Returns `refused` only with proof that nothing
   * became durable or ever will; anything else, including an error, is `unknown`. The permit states
   * until when, and with which credentials, something may be sent to a service.
   */
  commit(marker: MarkerText, permit: ConsumedPermit): Promise<Promotion>;
  /**
   * Releases what the candidate holds. After `discarded` nothing of it remains. The kernel calls
   * this once, and again only if it threw. Returns what a rollback could not undo, if known.
   */
  end(how: CandidateEnd): Promise<readonly Residue[] | undefined> | Promise<void>;
}

/** What was observed of a candidate. The kernel adds the candidate's id. */
export type CandidateEvidence = Omit<Evidence, 'candidate' | 'window'> & {
  /** When the actions ran, on the backend's clock. If absent, the runtime's clock is used. */
  readonly window?: Evidence['window'];
};

/** The result of one applied action. */
export type Applied =
  | {
      readonly kind: 'done';
      /** The rows that the statements returned; `ResultCollector` keeps them within bounds. */
      readonly results?: readonly StatementResult[];
    }
  | StageFailure;

/**
 * How a candidate ends: it is durable, nothing of it may remain, or its commit was issued with an
 * unknown result. A candidate that may be durable must not be removed.
 */
export type CandidateEnd = 'committed' | 'discarded' | 'unknown';

/** A failure of a stage. `reason` is a name; `detail` is a sentence. */
export function stageFailed(reason: string, detail: string): StageFailure {
  return { kind: 'failed', reason, detail };
}

/**
 * A failure that may go away: another session's lock, a deadlock, a conflict with another
 * transaction. The core retries the stage for a while before it gives up.
 */
export function stagePrevented(reason: string, detail: string): StageFailure {
  return { ...stageFailed(reason, detail), transient: true };
}

/** A refusal of a promotion. `reason` is a name; `detail` is a sentence. */
export function refusedPromotion(reason: string, detail: string): PromotionRefusal {
  return { kind: 'refused', reason, detail };
}

/** The failure of a stage whose occurrence already has a marker. */
export function alreadyDecided({ disposition }: Pick<MarkerText, 'disposition'>): StageFailure {
  return { kind: 'failed', ...describeDecided(disposition) };
}
