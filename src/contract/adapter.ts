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

/** What the runtime lends an adapter when it opens it. */
export interface AdapterContext {
  readonly name: string;
  readonly clock: Clock;
  /**
   * How long a silent attempt counts as alive; absent outside a runtime. A request must not take
   * longer than that.
   */
  readonly leaseMs?: number;
  /** An adapter calls this at its own steps (`adapter:…`), so that crash tests can stop there. */
  readonly reached: Reached;
}

/**
 * What `sqlite({...})` and its siblings return: configuration that the runtime opens and admits.
 */
export interface AdapterFactory<Action = unknown> {
  open(context: AdapterContext): Promise<Adapter<Action>>;
  /**
   * Where a backend must be prepared before it can be protected: what an administrator's login has
   * to do.
   */
  readonly provisioning?: (admin: string, what: ProvisioningKind) => Promise<Provisioning>;
}

/**
 * What is to be done: prepare a backend, take that away again but keep the markers, which say what
 * was committed, or take the markers away as well.
 */
export type ProvisioningKind = 'provision' | 'remove' | 'remove-markers';

/** A statement that needs more rights than the administrator's login has. */
export interface LeftOut {
  readonly statement: string;
  readonly needs: string;
}

/** What has to be done to a backend, and the doing of it. */
export interface Provisioning {
  /** The statements in order, for people to read. Passwords are left out. */
  print(): string;
  /**
   * Runs all of them or none; `report` is called after each. Returns what was left out because the
   * administrator's login may not do it: a survey will find what that leaves open.
   */
  apply(report?: (statement: string) => void): Promise<readonly LeftOut[]>;
  /**
   * Tries all of it in a transaction that is rolled back, and says what would be different for every
   * role. Absent if the backend cannot take such statements back.
   */
  rehearse?(): Promise<readonly RightChange[]>;
  /** Whether it is a removal that leaves the markers where they are. */
  readonly keepsMarkers?: boolean;
  /** What it changes for logins of other applications; absent where it changes nothing for them. */
  readonly changes?: readonly LoginChange[];
}

/** A login of another application, and what provisioning means for it. */
export interface LoginChange {
  readonly login: string;
  /** Whether it keeps what it can do now. */
  readonly keeps: boolean;
  /** How it keeps that, or what it loses and why. */
  readonly how: string;
}

/** Rights that a role would have no longer, or have in addition. */
export interface RightChange {
  readonly login: string;
  readonly loses: readonly string[];
  readonly gains: readonly string[];
}

/** Who an adapter is. Any change makes licenses that were signed for it refuse. */
export interface AdapterIdentity {
  /**
   * For example `sqlite`, or `postgresql 17` where what the backend does may depend on its version.
   */
  readonly kind: string;
  /**
   * The backend instance: a random id kept in the backend itself, so that a license does not fit
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
  /** Evidence channels that must answer and agree before an observation counts as complete. */
  readonly channels: readonly string[];

  /**
   * Canonicalises the manifest's values by the backend's own types, splits keys, fills constant
   * defaults. Throws `ERR_EM_MANIFEST_INVALID` with what to change. Runs no application code; a
   * backend where that needs a closed boundary throws `ERR_EM_BOUNDARY_OPEN` while an outlet is
   * open.
   */
  normalise(manifest: Manifest): Promise<Manifest>;
  /**
   * Reads declared state outside any stage, in the order asked; `key` comes back normalised as
   * asked. Runs no application code, and throws `ERR_EM_BOUNDARY_OPEN` like `normalise`.
   */
  read(reads: readonly StateRead[]): Promise<readonly StateReading[]>;
  /**
   * Present if `read` finds thousands of rows of registered targets at once. `prepare` then looks
   * at the rows that an approval changes, and refuses what cannot succeed.
   */
  readonly readsMany?: true;
  /**
   * Checks an untrusted action completely; throws `ERR_EM_ACTION_INVALID`. Called before the claim.
   */
  parseAction(input: unknown): Action;
  /** The action as plain canonical data, for the digest that a license may be bound to. */
  describeAction(action: Action): Value;
  /**
   * Runs one statement for its rows, with the rights of the execution login, where it can write
   * nothing: the backend prevents it, and not a look at the text. Nothing is approved or recorded.
   * Throws `ERR_EM_QUERY_REFUSED` if the statement failed or would do more than read, and
   * `ERR_EM_BOUNDARY_OPEN` like `normalise`. An adapter without it has nothing to query.
   */
  query?(action: Action, limits: QueryLimits): Promise<QueryRows>;
  /** Lists every reachable outlet, fresh, with the trusted connection. */
  survey(): Promise<Survey>;
  /**
   * Everything that an action, and reads of this state, can reach under a survey, in the words of
   * `Outlet.behind`; undefined if that cannot be told. Rather too much than too little: an open
   * outlet behind anything else is not held against the action. A task has no action yet when its
   * reads are asked about. Without this method every open outlet refuses every action.
   */
  reachOf?(
    survey: Survey,
    action: Action | undefined,
    reads: readonly StateRead[],
  ): ReadonlySet<string> | undefined;
  /**
   * What became different between two surveys, for the administrator who has to act on it: the
   * object, what it was and what it is. Whether anything did is decided by the certificates. Runs
   * no application code.
   */
  explainChange?(before: Survey, after: Survey): Promise<readonly string[]>;
  /** Ends what is still held, without a trace. Idempotent. */
  close(): Promise<void>;
}

/** Can hold a candidate, show it, and make exactly it durable together with a marker. */
export interface PromotableAdapter<Action = unknown> extends AdapterBase<Action> {
  readonly capability: 'PROMOTABLE';
  /**
   * Runs the action once in a private candidate. `failed` means that nothing of it remains. `reads`
   * is the declared state that the stage will be asked for: an adapter that protects it by locks
   * takes them before the action runs. `settings` are applied to the session before the action, and
   * a stage whose action changed one fails. They are only given if `settingRefusal` accepted them.
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
   * backend cannot undo a failed call alone.
   */
  hold?(claim: Claim, certificate: Certificate, terms: TaskTerms): Promise<HeldForTask<Action>>;
  /** How long such a candidate can be held; absent without a limit. */
  readonly taskMaxMs?: number;
  /** Actions as `parseAction` takes them, joined to one action that runs them in order. */
  joinActions?(actions: readonly unknown[]): unknown;
  /**
   * Why a session setting of this name cannot be applied, as the end of a sentence; undefined if it
   * can. An adapter without this has no session settings.
   */
  settingRefusal?(name: string): string | undefined;
  readonly markers: Markers;
  readonly probe: PromotableProbe<Action>;
  /** Where its commits go, if a ledger can be in the same log; asked before each ledger step. */
  commitLog?(): CommitLog | undefined;
}

/**
 * The log that a backend writes its commits to, in order. A ledger in the same log need not flush a
 * claim: the commit of what was claimed comes later in that log, and flushes both.
 */
export interface CommitLog {
  /** Differs for every log, and after every start of its server. */
  readonly name: string;
  /** Takes note of a transaction in this log that wrote to the tables of the ledger alone. */
  readonly note: (transaction: string) => void;
}

/** A held candidate, or why there is none. `failed` means that nothing of the action remains. */
export type Staged =
  | { readonly kind: 'held'; readonly stage: Stage }
  | {
      readonly kind: 'failed';
      readonly reason: string;
      /** Stored as it is: where the registration has values stored as digests, it quotes none. */
      readonly detail: string;
      /** What the rollback did not take back, where that is known. */
      readonly residue?: readonly Residue[];
      /** Whether the same action may succeed soon, for example when another session's lock ends. */
      readonly transient?: boolean;
    };

/**
 * What one statement of an action returned: rows of a SELECT or of RETURNING, as plain data. They
 * are bounded; `omitted` says how many were left out.
 */
export interface StatementResult {
  readonly rows: readonly ResultRow[];
  readonly omitted: number;
}

/** One returned row. Numbers that a JavaScript number cannot carry exactly are text. */
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

/** A held candidate. `discard` is the step; disposal is only the net under it. */
export interface Stage extends AsyncDisposable {
  /** Identity of the candidate (transaction, version): the permit is bound to it. */
  readonly candidate: string;
  /**
   * What the action's statements returned, one entry for each; absent if none returns rows. The
   * core hands it to the caller after the commit, and never of a candidate that was rejected.
   */
  readonly results?: readonly StatementResult[];
  /**
   * Declared state beneath the candidate, without what its own action wrote (an approval may depend
   * on the very row that it changes), protected against change until the stage ends.
   */
  read(reads: readonly StateRead[]): Promise<readonly StateReading[]>;
  /** Records and channels; the core's `establish` decides completeness. */
  observe(): Promise<Evidence>;
  /**
   * The candidate and its evidence as they are now, for the final gate: must equal what was
   * observed.
   */
  recheck(): Promise<CandidateFacts>;
  /**
   * Writes the permit's marker inside the candidate and makes both durable in one commit. `refused`
   * only with proof that nothing became durable and nothing can later; everything else that is
   * not `confirmed` is `unknown`, and so is whatever it throws.
   */
  promote(permit: ConsumedPermit): Promise<Promotion>;
  /**
   * Idempotent. Returns when nothing of the candidate remains, with what a rollback could not take
   * back if that is known and was not observed.
   */
  discard(): Promise<readonly Residue[] | undefined> | Promise<void>;
}

/** What a candidate for a task is opened with; reads and settings are those of `stage`. */
export interface TaskTerms {
  readonly reads: readonly StateRead[];
  readonly settings: SessionSettings;
  /** When the backend itself gives the candidate up, if it can: what holds it may have died. */
  readonly deadlineMs: number;
}

/** A candidate that takes calls, or why there is none. */
export type HeldForTask<Action = unknown> =
  | { readonly kind: 'held'; readonly stage: TaskStage<Action> }
  | Extract<Staged, { readonly kind: 'failed' }>;

/**
 * A candidate of many calls. Calls come one after another, then `complete`, and only then what
 * every stage is asked for.
 */
export interface TaskStage<Action = unknown> extends Stage {
  /** Runs one action. If it fails, the candidate is as it was before, unless it is lost. */
  call(action: Action): Promise<CallAnswer>;
  /** No call follows: what was put off until now, such as deferred constraints, is checked. */
  complete(): Promise<CallAnswer>;
}

/** What one call of a task returned, or why it failed. */
export type CallAnswer =
  | {
      readonly kind: 'done';
      readonly results?: readonly StatementResult[];
      /** What the tools returned, one entry for each call of a tool; `null` for nothing. */
      readonly returned?: readonly Value[];
    }
  | (Extract<Staged, { readonly kind: 'failed' }> & {
      /** The candidate was lost with the call: no other call can follow. */
      readonly isLost?: true;
    });

/**
 * What became of a promotion. `refused` is proof that nothing became durable; without proof it is
 * `unknown`.
 */
export type Promotion =
  | { readonly kind: 'confirmed' }
  | { readonly kind: 'refused'; readonly reason: string; readonly detail: string }
  | { readonly kind: 'unknown'; readonly cause: unknown };

/**
 * The marker table of a backend, reached with trusted rights only. Adapters store markers; the core
 * reads them.
 */
export interface Markers {
  /** What is durable under this occurrence. */
  find(occurrence: OccurrenceId): Promise<MarkerText | undefined>;
  /**
   * Inserts a void marker in its own transaction. `busy` when a live transaction is in the way:
   * whether that is the attempt itself cannot be told from a lock, so the occurrence is left alone.
   */
  void(marker: MarkerText): Promise<VoidResult>;
  /** Removes a marker whose terminal is durable and checkpointed. */
  forget(occurrence: OccurrenceId): Promise<void>;
}

/** What the insertion of a void marker found. */
export type VoidResult =
  | { readonly kind: 'inserted' }
  | { readonly kind: 'conflict'; readonly marker: MarkerText }
  | { readonly kind: 'busy'; readonly why: string };

/** Lets admission try what the adapter declares, on a control object of the adapter's own. */
export interface PromotableProbe<Action> {
  /**
   * Writes something distinctive for this token, visible to `observe` as a record on `target`. It
   * goes to `stage` as it is: `parseAction` refuses to let anybody else name that target.
   */
  action(token: string): Action;
  readonly target: string;
  /** Looks with an independent connection whether that write is durable. */
  durable(token: string): Promise<boolean>;
  /**
   * Present if the probe reaches a live service. The probe then runs once per fingerprint, on
   * request or before the first use, and not every time a runtime opens. See {@link RemoteProbe}.
   */
  readonly fingerprint?: Fingerprint;
}

/**
 * Names the service and the credential with which it is spoken to; identity and code of the adapter
 * are added to it. The credential goes in through `digest` only, which is keyed.
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
   * Sends once, never again. `occurrence` is the idempotency key. Check the permit's credentials
   * and deadline last, when the connection is open and before the first byte is written.
   */
  dispatch(permit: RequestPermit, request: RemoteRequest): Promise<Dispatch>;
  /**
   * Independent read-back. Recovery may know only the occurrence, which was the idempotency key. A
   * request that is not found may still be on its way: its channels are then `silent`, because an
   * empty outcome would be a verdict. `approved` says where to look, never what to see.
   */
  readBack(
    occurrence: OccurrenceId,
    request: RemoteRequest | undefined,
    approved: Approval,
  ): Promise<Evidence>;
  readonly probe: RemoteProbe;
}

/** The part of A that a request may be built from. */
export type Approval = import('../protocol/manifest.ts').Approved;

/** A request as it will be sent: what a permit binds. */
export interface RemoteRequest {
  /**
   * Everything that will be sent, as canonical data without credentials: the permit binds its
   * digest.
   */
  readonly content: Value;
  /**
   * A's salt, which the core adds: a permit is stored, and its digest must not let anybody try
   * values out.
   */
  readonly salt?: string;
}

/**
 * `mayHaveSent: false` only when provably nothing left this process. `why` is stored as it is, so
 * it quotes no values.
 */
export type Dispatch =
  | { readonly mayHaveSent: false; readonly why: string }
  | { readonly mayHaveSent: true };

/**
 * Named facts that admission demands of a MEDIATED adapter, each shown against the real service.
 */
export interface RemoteProbe {
  /**
   * An approved outcome for every operation: requests built from reordered copies of it must be the
   * same.
   */
  samples(): readonly Approval[];
  /** The same request without the gateway's credential is refused by the service. */
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
