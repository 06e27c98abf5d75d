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
import type { ConsumedPermit, MarkerText } from '../contract/proof.ts';
import type { Profile, StateRead, StateReading } from '../protocol/effect.ts';
import type { Manifest } from '../protocol/manifest.ts';
import { describeDecided } from '../protocol/marker.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import type { Registration } from '../protocol/registration.ts';
import type { Residue } from '../protocol/residue.ts';
import type { SessionSettings } from '../protocol/settings.ts';
import type { Value } from '../protocol/value.ts';
import type { StagedUnder } from './permit-check.ts';

/** Why no candidate is held, or why an action failed on it. */
export type StageFailure = Extract<Staged, { readonly kind: 'failed' }>;

/** A promotion that provably made nothing durable, and why. */
export type PromotionRefusal = Extract<Promotion, { readonly kind: 'refused' }>;

/**
 * One kind of backend, as `promotable` needs it: what is particular to the engine. Everything that
 * is the same for every engine (permits, the order of the steps, ending a candidate once, closing)
 * is done by the kernel. Each function reports; none of them decides.
 */
export interface Backend<Action> {
  readonly identity: AdapterIdentity;
  readonly registration: Registration;
  readonly profiles: readonly Profile[];
  /** Evidence channels that must answer and agree before an observation counts as complete. */
  readonly channels: readonly string[];
  readonly markers: Markers;
  readonly probe: PromotableProbe<Action>;

  /** The manifest in the backend's own types; usually one call of `normaliseManifest`. */
  normalise(manifest: Manifest): Promise<Manifest>;
  /** Declared state outside any candidate, in the order asked. */
  read(reads: readonly StateRead[]): Promise<readonly StateReading[]>;
  /** Whether `read` finds thousands of rows of registered targets at once. */
  readonly readsMany?: true;
  /** Checks an untrusted action completely and copies it; throws `ERR_EM_ACTION_INVALID`. */
  parseAction(input: unknown): Action;
  /** The action as plain data: equal actions have equal descriptions. */
  describeAction(action: Action): Value;
  /** Runs one statement for its rows where the backend lets it write nothing. */
  readonly query?: PromotableAdapter<Action>['query'];
  /** Every reachable outlet as it is now. The kernel keeps an equal survey as one object. */
  survey(): Promise<Survey>;
  /** What changed between two surveys, in words for an administrator. */
  readonly explainChange?: PromotableAdapter['explainChange'];
  /** What an action can reach under a survey whose outlets say what they are behind. */
  readonly reachOf?: PromotableAdapter<Action>['reachOf'];
  /** Present if a candidate can apply the settings of a `HoldRequest`. */
  readonly settingRefusal?: PromotableAdapter['settingRefusal'];
  /** Present if a ledger can be in the log that commits are written to. */
  readonly commitLog?: PromotableAdapter['commitLog'];
  /** Present if its candidates take the calls of a task: `Candidate.call`. */
  readonly holdsTasks?: true;
  /** How long a candidate of a task can be held; absent without a limit. */
  readonly taskMaxMs?: number;
  /** Actions that `parseAction` has accepted, joined to one that runs them in order. */
  joinActions?(actions: readonly unknown[]): unknown;
  /** Opens a private candidate with nothing applied yet. After `failed` nothing is held. */
  hold(request: HoldRequest): Promise<HoldResult<Action>>;
  /** Closes connections. Every candidate that was handed out has ended before. Called once. */
  close(): Promise<void>;
}

/** What a candidate is opened for. */
export interface HoldRequest extends StagedUnder {
  readonly occurrence: OccurrenceId;
  /** The state that the candidate will be asked for: lock it before an action runs, if you can. */
  readonly reads: readonly StateRead[];
  /** Settings of the session: apply them before an action runs, and fail if it changed one. */
  readonly settings: SessionSettings;
  /** Present if the candidate is for a task: it takes calls, until this much time has passed. */
  readonly task?: { readonly deadlineMs: number };
}

/** An open candidate, with the marker that is already durable under its occurrence, if any. */
export type HoldResult<Action> =
  | {
      readonly kind: 'open';
      readonly candidate: Candidate<Action>;
      /**
       * The kernel refuses an occurrence that has a marker. This saves running the action; what
       * keeps it from committing twice is `commit`.
       */
      readonly marker: Pick<MarkerText, 'disposition'> | undefined;
    }
  | StageFailure;

/**
 * A private candidate as one engine holds it. The kernel calls `apply` first, then any of `read`,
 * `observe` and `recheck`, then at most one `commit`, and in every case `end`; nothing after `end`.
 * For a task, any number of `call` and then `complete` take the place of `apply`.
 */
export interface Candidate<Action> {
  /** What a permit is bound to: different for every candidate, at most 256 characters. */
  readonly id: string;
  /**
   * Runs one action where only this candidate sees it. Several actions may be applied one after
   * another. The kernel ends the candidate if one fails, so nothing has to be rolled back here.
   */
  apply(action: Action): Promise<Applied>;
  /**
   * Runs one action like `apply`. If it fails, the candidate is as it was before the call;
   * otherwise the answer says `isLost`.
   */
  call?(action: Action): Promise<CallAnswer>;
  /** Checks what was put off until no call follows. Called once, also without any call. */
  complete?(): Promise<Applied>;
  /** Declared state beneath the candidate, without what its own actions wrote. */
  read(reads: readonly StateRead[]): Promise<readonly StateReading[]>;
  /** All records and channels, read from the backend; the same every time. */
  observe(): Promise<CandidateEvidence>;
  /** The `evidence` that an observation would have now. */
  recheck(): Promise<string>;
  /**
   * Writes the marker into the candidate and makes both durable in one step, which cannot succeed
   * if the occurrence already has a marker. Calls `reached('adapter:marker-written')` before that
   * step and `reached('adapter:commit-returned')` after it. `refused` only with proof that nothing
   * became durable or ever will; everything else, and everything thrown, is `unknown`. The permit
   * says until when, and with which credentials, something may be sent to a service.
   */
  commit(marker: MarkerText, permit: ConsumedPermit): Promise<Promotion>;
  /**
   * Gives up what the candidate holds: after `discarded` nothing of it remains. The kernel calls it
   * once, and again only if it threw. Returns what a rollback could not take back, if that is
   * known.
   */
  end(how: CandidateEnd): Promise<readonly Residue[] | undefined> | Promise<void>;
}

/** What was observed of a candidate. The kernel adds which candidate it was. */
export type CandidateEvidence = Omit<Evidence, 'candidate' | 'window'> & {
  /** When the actions ran, on the backend's clock; on the runtime's clock if it is left out. */
  readonly window?: Evidence['window'];
};

/** What became of one applied action. */
export type Applied =
  | {
      readonly kind: 'done';
      /** What the statements returned; `ResultCollector` keeps it within bounds. */
      readonly results?: readonly StatementResult[];
    }
  | StageFailure;

/**
 * How a candidate ends: it is durable, nothing of it may remain, or its commit was issued and the
 * result is not known. What may be durable must not be removed.
 */
export type CandidateEnd = 'committed' | 'discarded' | 'unknown';

/** A failure of a stage. `reason` is a name; `detail` is a sentence. */
export function stageFailed(reason: string, detail: string): StageFailure {
  return { kind: 'failed', reason, detail };
}

/**
 * A failure that waiting may cure: a lock of another session, a deadlock, a conflict with another
 * transaction. The core stages the same action again for a while before it gives up.
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
