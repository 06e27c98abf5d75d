/**
 * EffectMatch: approve an outcome, hold the change, compare, then commit. Applications import this
 * module. Adapters, ledgers and the parts for adapter authors have separate entry points.
 *
 * @module
 */
import './node-version.ts';

import {
  createRuntime as openRuntime,
  type Runtime,
  type RuntimeConfig,
} from './runtime/runtime.ts';

/**
 * Opens the store, keys and adapters, admits every adapter, and settles what an earlier process
 * left.
 */
export function createRuntime(config: RuntimeConfig): Promise<Runtime> {
  return openRuntime(config);
}

export type { AgentConfig, UpstreamConfig, UpstreamTool } from './access/configuration.ts';
export { defineConfig, fromEnvironment } from './cli/config.ts';
export {
  type Approver,
  type ApproverKey,
  approver,
  generateApprover,
  loadApproverKey,
  type SignOptions,
  saveApproverKey,
} from './crypto/approver.ts';
export type { Decision, Declined } from './crypto/decision.ts';
export type { Envelope } from './crypto/dsse.ts';
export { rotateKeyring } from './crypto/keyring.ts';
export { type Verified, verifyReceipt } from './crypto/receipt.ts';
export {
  type DeclinerOptions,
  type OperatorOptions,
  type ReopeningDecision,
  signDecline,
  signReopening,
  signResolution,
} from './crypto/signed-decision.ts';
export { EffectMatchError, type ErrorCode } from './errors.ts';
export type { Outlet, Remedy, Survey } from './protocol/boundary.ts';
export type { Halt } from './protocol/continuation.ts';
export type { Diff } from './protocol/diff.ts';
export {
  absent,
  any,
  between,
  count,
  from,
  generated,
  insert,
  type ManifestDraft,
  matches,
  now,
  oneOf,
  read,
  real,
  remove,
  row,
  to,
  unused,
  update,
  writes,
} from './protocol/draft.ts';
export type { License, Proposal, SignedLicense } from './protocol/license.ts';
export type { Receipt } from './protocol/receipt.ts';
export type { OccurrenceId } from './protocol/record.ts';
export { type RenderOptions, renderApproved, renderDiff } from './protocol/render.ts';
export { renderTerminal } from './protocol/render-terminal.ts';
export type { Residue } from './protocol/residue.ts';
export type { Finding, Resolution } from './protocol/resolution.ts';
export { renderShadow, type Shadow } from './protocol/shadow.ts';
export type { Terminal } from './protocol/terminal.ts';
export { effectsOf, type TableTypes, type TypedEffects } from './protocol/typed-draft.ts';
export type { TaskLimits } from './runtime/calls.ts';
export {
  type ContinuationGate,
  type HandOverTransaction,
  type Lineage,
  lineagesOf,
  type OpenContinuation,
  type Release,
  type ReleaseOptions,
} from './runtime/continuation.ts';
export type { Draft, DraftPlan, DraftProposal, DraftTaskOptions } from './runtime/draft.ts';
export type { Ensured, EnsureOptions } from './runtime/ensure.ts';
export type { ExecuteOptions } from './runtime/execute.ts';
export {
  type Contracted,
  defineOperation,
  type Operation,
  type StandardSchema,
} from './runtime/operation.ts';
export type { HoursConfig, IssuerConfig, LimitsConfig } from './runtime/policy.ts';
export type { PrepareRequest } from './runtime/prepare.ts';
export type { Executed } from './runtime/promotable.ts';
export type { ProposeOptions } from './runtime/propose.ts';
export type { ServiceProof } from './runtime/prove.ts';
export type { ReceiptOptions } from './runtime/receipt.ts';
export type { Recovered, RecoverOptions } from './runtime/recover.ts';
export type { PlanOptions, PlanRequest } from './runtime/rehearse.ts';
export type { Runtime, RuntimeConfig } from './runtime/runtime.ts';
export type { ShadowDraft, Shadowed } from './runtime/shadow.ts';
export type { Task, TaskOptions } from './runtime/task.ts';
export type { Telemetry } from './runtime/telemetry.ts';
export type { VerdictWaitOptions } from './runtime/wait.ts';
