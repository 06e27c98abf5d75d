/**
 * The ports that adapters and ledgers implement, and the steps and proofs that order them.
 *
 * @module
 */
import '../node-version.ts';

export { EffectMatchError, type ErrorCode } from '../errors.ts';
export type {
  Adapter,
  AdapterContext,
  AdapterFactory,
  AdapterIdentity,
  Approval,
  Assigned,
  CandidateFacts,
  ChannelReport,
  Dispatch,
  Evidence,
  Fingerprint,
  LeftOut,
  LoginChange,
  Markers,
  PromotableAdapter,
  PromotableProbe,
  Promotion,
  Provisioning,
  ProvisioningKind,
  QueryLimits,
  QueryRows,
  ReferringColumns,
  RemoteAdapter,
  RemoteProbe,
  RemoteRequest,
  ResultRow,
  RightChange,
  Stage,
  Staged,
  StatementResult,
  TargetCount,
  VoidResult,
} from './adapter.ts';
export {
  type Clock,
  type Deadline,
  deadlineIn,
  type IdSource,
  instant,
  isOver,
  systemClock,
  type WallClock,
} from './clock.ts';
export type {
  AttemptName,
  ClaimEntry,
  ClaimRequest,
  ClaimResult,
  JournalEntry,
  JournalVerdict,
  LedgerContext,
  Ledgers,
  LedgersFactory,
  PermitState,
  Standing,
} from './ledgers.ts';
export type { Certificate, Claim, ConsumedPermit, MarkerText, RequestPermit } from './proof.ts';
export type { Sealed, Sealer } from './seal.ts';
export { type Reached, STEPS, type Step, unobserved } from './steps.ts';
