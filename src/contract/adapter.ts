import type { Outlet, Survey } from '../protocol/boundary.ts';
import type { Profile, StateRead, StateReading, TargetCount } from '../protocol/effect.ts';
import type { Capability } from '../protocol/frame.ts';
import type { Manifest } from '../protocol/manifest.ts';
import type {
  Assigned,
  CandidateFacts,
  ChannelReport,
  Evidence,
  ReferringColumns,
} from '../protocol/observation.ts';
import type { Digest, OccurrenceId } from '../protocol/record.ts';
import type { Registration } from '../protocol/registration.ts';
import type { Residue } from '../protocol/residue.ts';
import type { SessionSettings } from '../protocol/settings.ts';
import type { Value } from '../protocol/value.ts';
import type { Clock } from './clock.ts';
import type { Certificate, Claim, ConsumedPermit, MarkerText, RequestPermit } from './proof.ts';
import type { Reached } from './steps.ts';

export type {
  Assigned,
  CandidateFacts,
  ChannelReport,
  Evidence,
  Outlet,
  ReferringColumns,
  Survey,
  TargetCount,
};

/** What the runtime passes to an adapter when it opens it. */
export interface AdapterContext {
  readonly name: string;
  readonly clock: Clock;
  /**
   * How long an attempt without signs of life counts as alive. Absent outside a runtime. A request
   * must not take longer.
   */
  readonly leaseMs?: number;
  /** The adapter calls this at its own steps (`adapter:…`), so that crash tests can stop there. */
  readonly reached: Reached;
}

/**
 * What `sqlite({...})` and its siblings return: a configuration that the runtime opens and admits.
 */
export interface AdapterFactory<Action = unknown> {
  open(context: AdapterContext): Promise<Adapter<Action>>;
  /**
   * For a backend that must be prepared before it can be protected: what an administrator's login
   * has to do.
   */
  readonly provisioning?: (admin: string, what: ProvisioningKind) => Promise<Provisioning>;
}

/**
 * Prepare a backend; undo that but keep the markers, which say what was committed; or remove the
 * markers as well.
 */
export type ProvisioningKind = 'provision' | 'remove' | 'remove-markers';

/** A statement that needs more rights than the administrator's login has. */
export interface LeftOut {
  readonly statement: string;
  readonly needs: string;
}

/** What has to be done to a backend, and how to do it. */
export interface Provisioning {
  /** The statements in order, for people to read, without passwords. */
  print(): string;
  /**
   * Runs all statements or none, and calls `report` after each. Returns those left out because the
   * administrator's login may not run them. A survey finds what that leaves open.
   */
  apply(report?: (statement: string) => void): Promise<readonly LeftOut[]>;
  /**
   * Tries everything in a transaction that is rolled back, and says what would change for each
   * role. Absent if the backend cannot roll back such statements.
   */
  rehearse?(): Promise<readonly RightChange[]>;
  /** Whether this is a removal that keeps the markers. */
  readonly keepsMarkers?: boolean;
  /** What changes for logins of other applications. Absent if nothing does. */
  readonly changes?: readonly LoginChange[];
}

/** A login of another application, and what provisioning means for it. */
export interface LoginChange {
  readonly login: string;
  /** Whether it can still do what it can do now. */
  readonly keeps: boolean;
  /** How it keeps its access, or what it loses and why. */
  readonly how: string;
}

/** Rights that a role would lose or gain. */
export interface RightChange {
  readonly login: string;
  readonly loses: readonly string[];
  readonly gains: readonly string[];
}

/** The identity of an adapter. Any change invalidates licenses that were signed for it. */
export interface AdapterIdentity {
  /** For example `sqlite`, or `postgresql 17` if behaviour may depend on the backend's version. */
  readonly kind: string;
  /**
   * The backend instance: a random id stored in the backend itself, so that a license does not fit
   * another database.
   */
  readonly backend: string;
  /** Package version and digest of the adapter's modules. */
  readonly code: string;
}

interface AdapterBase<Action> {
  readonly capability: Capability;
  readonly identity: AdapterIdentity;
  readonly registration: Registration;
  readonly profiles: readonly Profile[];
  /** Evidence channels that must answer and agree before an observation is complete. */
  readonly channels: readonly string[];

  /**
   * Canonicalises the manifest's values by the backend's own types, splits keys and fills in
   * constant defaults. Throws `ERR_EM_MANIFEST_INVALID` with what to change. Runs no application
   * code. If the backend needs a closed boundary for that, throws `ERR_EM_BOUNDARY_OPEN` while an
   * outlet is open.
   */
  normalise(manifest: Manifest): Promise<Manifest>;
  /**
   * Reads declared state outside any stage, in the order asked, and returns each `key` as asked.
   * Runs no application code, and throws `ERR_EM_BOUNDARY_OPEN` like `normalise`.
   */
  read(reads: readonly StateRead[]): Promise<readonly StateReading[]>;
  /**
   * Present if `read` can find thousands of rows of registered targets at once. `prepare` then
   * looks at the rows that an approval changes, and refuses what cannot succeed.
   */
  readonly readsMany?: true;
  /**
   * Checks an untrusted action completely. Throws `ERR_EM_ACTION_INVALID`. Called before the claim.
   */
  parseAction(input: unknown): Action;
  /** The action as plain canonical data, for the digest that a license may be bound to. */
  describeAction(action: Action): Value;
  /**
   * Runs one statement and returns its rows, with the rights of the execution login. It cannot
   * write: the backend prevents it, not an inspection of the text. Nothing is approved or recorded.
   * Throws `ERR_EM_QUERY_REFUSED` if the statement failed or would do more than read, and
   * `ERR_EM_BOUNDARY_OPEN` like `normalise`. Absent if the adapter has nothing to query.
   */
  query?(action: Action, limits: QueryLimits): Promise<QueryRows>;
  /** Lists every reachable outlet afresh, over the trusted connection. */
  survey(): Promise<Survey>;
  /**
   * Everything that an action, and reads of this state, can reach under a survey, named as in
   * `Outlet.behind`; undefined if unknown. List too much rather than too little: open outlets
   * behind anything else are not held against the action. The action is undefined for a task, whose
   * calls are not known yet. Without this method, every open outlet refuses every action.
   */
  reachOf?(
    survey: Survey,
    action: Action | undefined,
    reads: readonly StateRead[],
  ): ReadonlySet<string> | undefined;
  /**
   * What changed between two surveys, for the administrator who has to act on it: the object, what
   * it was and what it is. The certificates decide whether anything changed. Runs no application
   * code.
   */
  explainChange?(before: Survey, after: Survey): Promise<readonly string[]>;
  /** Ends everything that is still held, without a trace. Idempotent. */
  close(): Promise<void>;
}

/**
 * Can hold a candidate, show it, and make exactly that candidate durable together with a marker.
 */
export interface PromotableAdapter<Action = unknown> extends AdapterBase<Action> {
  readonly capability: 'PROMOTABLE';
  /**
   * Runs the action once in a private candidate. `failed` means that nothing of it remains. `reads`
   * is the declared state that the stage will be asked for; an adapter that protects it by locks
   * takes them before the action runs. `settings` are applied to the session before the action, and
   * the stage fails if the action changed one. They are passed only if `settingRefusal` accepted
   * them.
   */
  stage(
    claim: Claim,
    certificate: Certificate,
    action: Action,
    reads?: readonly StateRead[],
    settings?: SessionSettings,
  ): Promise<Staged>;
  /**
   * Opens a private candidate that takes the calls of a task, one after another. Absent if the
   * backend cannot undo a single failed call.
   */
  hold?(claim: Claim, certificate: Certificate, terms: TaskTerms): Promise<HeldForTask<Action>>;
  /** How long such a candidate can be held. Absent if there is no limit. */
  readonly taskMaxMs?: number;
  /** Joins actions, as `parseAction` takes them, into one action that runs them in order. */
  joinActions?(actions: readonly unknown[]): unknown;
  /**
   * Why a session setting of this name cannot be applied, as the end of a sentence, or undefined if
   * it can. Absent if the adapter has no session settings.
   */
  settingRefusal?(name: string): string | undefined;
  readonly markers: Markers;
  readonly probe: PromotableProbe<Action>;
  /** The log of its commits, if a ledger can share it. Called before each ledger step. */
  commitLog?(): CommitLog | undefined;
}

/**
 * The log to which a backend writes its commits, in order. A ledger in the same log need not flush
 * a claim: the commit of the claimed change comes later in that log, and flushes both.
 */
export interface CommitLog {
  /** Unique to each log, and new after every start of its server. */
  readonly name: string;
  /** Notes a transaction in this log that wrote only to the ledger's tables. */
  readonly note: (transaction: string) => void;
}

/** A held candidate, or why there is none. `failed` means that nothing of the action remains. */
export type Staged =
  | { readonly kind: 'held'; readonly stage: Stage }
  | {
      readonly kind: 'failed';
      readonly reason: string;
      /** Stored unchanged. It must not quote values if the registration stores them as digests. */
      readonly detail: string;
      /** What the rollback did not undo, if known. */
      readonly residue?: readonly Residue[];
      /**
       * Whether the same action may succeed soon, for example when another session's lock is
       * released.
       */
      readonly transient?: boolean;
    };

/**
 * What one statement of an action returned: rows of a SELECT or of RETURNING, as plain data. The
 * rows are limited; `omitted` says how many were left out.
 */
export interface StatementResult {
  readonly rows: readonly ResultRow[];
  readonly omitted: number;
}

/** One returned row. Numbers that JavaScript cannot represent exactly are text. */
export type ResultRow = { readonly [column: string]: null | boolean | number | string };

/** How long a query may take, and how much of its answer is kept. */
export interface QueryLimits {
  readonly timeoutMs: number;
  readonly rows: number;
}

/** What a query found. */
export interface QueryRows {
  readonly rows: readonly ResultRow[];
  /** Whether there are more rows than these. */
  readonly more: boolean;
}

/** A held candidate. Call `discard` to drop it; disposal is only a safety net. */
export interface Stage extends AsyncDisposable {
  /** Identity of the candidate (transaction, version), to which the permit is bound. */
  readonly candidate: string;
  /**
   * What the action's statements returned, one entry each; absent if none returns rows. The core
   * passes this to the caller after the commit, and never for a rejected candidate.
   */
  readonly results?: readonly StatementResult[];
  /**
   * Declared state beneath the candidate, without the action's own writes (an approval may depend
   * on the very row that it changes). Protected against change until the stage ends.
   */
  read(reads: readonly StateRead[]): Promise<readonly StateReading[]>;
  /** Returns records and channels. The core's `establish` decides whether they are complete. */
  observe(): Promise<Evidence>;
  /**
   * The candidate and its evidence as they are now, for the final gate. Must equal what was
   * observed.
   */
  recheck(): Promise<CandidateFacts>;
  /**
   * Writes the permit's marker inside the candidate and makes both durable in one commit. Returns
   * `refused` only with proof that nothing became durable and nothing can later. Everything else
   * that is not `confirmed` is `unknown`, including whatever it throws.
   */
  promote(permit: ConsumedPermit): Promise<Promotion>;
  /**
   * Idempotent. Returns when nothing of the candidate remains, with what the rollback could not
   * undo, if that is known and was not observed.
   */
  discard(): Promise<readonly Residue[] | undefined> | Promise<void>;
}

/** What a candidate for a task is opened with. Reads and settings are those of `stage`. */
export interface TaskTerms {
  readonly reads: readonly StateRead[];
  readonly settings: SessionSettings;
  /**
   * When the backend itself drops the candidate, if it can: the process that holds it may have
   * died.
   */
  readonly deadlineMs: number;
}

/** A candidate that takes calls, or why there is none. */
export type HeldForTask<Action = unknown> =
  | { readonly kind: 'held'; readonly stage: TaskStage<Action> }
  | Extract<Staged, { readonly kind: 'failed' }>;

/**
 * A candidate for many calls. Calls come one after another, then `complete`, and only then the
 * methods of every stage.
 */
export interface TaskStage<Action = unknown> extends Stage {
  /**
   * Runs one action. If it fails, the candidate is as it was before the call, unless it is lost.
   */
  call(action: Action): Promise<CallAnswer>;
  /**
   * Called after the last call. Checks what was deferred until now, such as deferred constraints.
   */
  complete(): Promise<CallAnswer>;
}

/** What one call of a task returned, or why it failed. */
export type CallAnswer =
  | {
      readonly kind: 'done';
      readonly results?: readonly StatementResult[];
      /** What the tools returned, one entry per tool call; `null` for nothing. */
      readonly returned?: readonly Value[];
    }
  | (Extract<Staged, { readonly kind: 'failed' }> & {
      /** The call also lost the candidate, so no other call can follow. */
      readonly isLost?: true;
    });

/**
 * The result of a promotion. `refused` is proof that nothing became durable; without proof it is
 * `unknown`.
 */
export type Promotion =
  | { readonly kind: 'confirmed' }
  | { readonly kind: 'refused'; readonly reason: string; readonly detail: string }
  | { readonly kind: 'unknown'; readonly cause: unknown };

/**
 * The marker table of a backend, accessed with trusted rights only. Adapters store markers; the
 * core reads them.
 */
export interface Markers {
  /** The durable marker of this occurrence. */
  find(occurrence: OccurrenceId): Promise<MarkerText | undefined>;
  /**
   * Inserts a void marker in its own transaction. Returns `busy` if a live transaction blocks it: a
   * lock does not show whether that is the attempt itself, so the occurrence is left alone.
   */
  void(marker: MarkerText): Promise<VoidResult>;
  /** Removes a marker whose terminal is durable and checkpointed. */
  forget(occurrence: OccurrenceId): Promise<void>;
}

/** The result of inserting a void marker. */
export type VoidResult =
  | { readonly kind: 'inserted' }
  | { readonly kind: 'conflict'; readonly marker: MarkerText }
  | { readonly kind: 'busy'; readonly why: string };

/** Lets admission test what the adapter declares, on the adapter's own control object. */
export interface PromotableProbe<Action> {
  /**
   * Writes something unique to this token, which `observe` reports as a record on `target`. The
   * action goes to `stage` unparsed: `parseAction` lets no one else name that target.
   */
  action(token: string): Action;
  readonly target: string;
  /** Checks over an independent connection whether that write is durable. */
  durable(token: string): Promise<boolean>;
  /**
   * Present if the probe reaches a live service. The probe then runs once per fingerprint, on
   * request or before the first use, instead of every time a runtime opens. See {@link
   * RemoteProbe}.
   */
  readonly fingerprint?: Fingerprint;
}

/**
 * Names the service and the credential used with it. The adapter's identity and code are added.
 * Pass the credential only through `digest`, which is keyed.
 */
export type Fingerprint = (digest: (secret: string) => string) => string;

/**
 * Owns the only request path, or constrains one it does not own. The request is derived, never
 * taken from the agent.
 */
export interface RemoteAdapter<Action = unknown> extends AdapterBase<Action> {
  readonly capability: 'MEDIATED' | 'OPAQUE';
  /**
   * MEDIATED derives the request from A alone; OPAQUE constrains the action. Deterministic, no I/O.
   */
  buildRequest(approved: Approval, action: Action): RemoteRequest;
  /**
   * Sends the request once, never again. `occurrence` is the idempotency key. Check the permit's
   * credentials and deadline last, when the connection is open and before the first byte is
   * written.
   */
  dispatch(permit: RequestPermit, request: RemoteRequest): Promise<Dispatch>;
  /**
   * Reads back independently. Recovery may know only the occurrence, which was the idempotency key.
   * A request that is not found may still be on its way: its channels are then `silent`, because an
   * empty outcome would be a verdict. `approved` says where to look, never what to see.
   */
  readBack(
    occurrence: OccurrenceId,
    request: RemoteRequest | undefined,
    approved: Approval,
  ): Promise<Evidence>;
  readonly probe: RemoteProbe;
}

/** A, from which a request is built. */
export type Approval = import('../protocol/manifest.ts').Approved;

/** A request as it will be sent, which a permit binds. */
export interface RemoteRequest {
  /**
   * Everything that will be sent, as canonical data without credentials. The permit binds its
   * digest.
   */
  readonly content: Value;
  /**
   * A's salt, added by the core: a permit is stored, and its digest must not allow values to be
   * guessed.
   */
  readonly salt?: string;
}

/**
 * `mayHaveSent: false` only if provably nothing left this process. `why` is stored unchanged, so it
 * must not quote values.
 */
export type Dispatch =
  | { readonly mayHaveSent: false; readonly why: string }
  | { readonly mayHaveSent: true };

/** Facts that admission requires of a MEDIATED adapter, each shown against the real service. */
export interface RemoteProbe {
  /**
   * An approved outcome for every operation. Requests built from reordered copies of it must be
   * equal.
   */
  samples(): readonly Approval[];
  /** The service refuses the same request without the gateway's credential. */
  exclusiveCredential(): Promise<boolean>;
  /** The service honours the idempotency key. */
  idempotent(): Promise<boolean>;
  /**
   * The service is probed once per fingerprint, on request or before the first claim, and the
   * result is stored.
   */
  readonly fingerprint: Fingerprint;
}

/** Any adapter; `capability` says which kind. */
export type Adapter<Action = unknown> = PromotableAdapter<Action> | RemoteAdapter<Action>;

export type { Digest };
