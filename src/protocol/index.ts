/**
 * Records, effects, comparison and rendering, without any I/O, for verifiers, approval tools and
 * other implementations.
 *
 * @module
 */
import '../node-version.ts';

export { type Binding, bindingRecord, type ClaimRecord, claimRecord } from './binding.ts';
export {
  type CertificateRecord,
  certificateRecord,
  type Outlet,
  type Remedy,
  type Survey,
} from './boundary.ts';
export { canonical } from './canon.ts';
export { type Checkpoint, checkpointRecord } from './checkpoint.ts';
export {
  type Acknowledgement,
  acknowledgementRecord,
  type Continuation,
  continuationOf,
  type Halt,
} from './continuation.ts';
export { declineRecord, type SignedDecline } from './decline.ts';
export type { CountedEffect, Diff } from './diff.ts';
export type {
  ApprovedEffect,
  Cell,
  ChangeRecord,
  ChangeRecords,
  Effect,
  Op,
  Profile,
  Requirement,
  StateRead,
  StateReading,
} from './effect.ts';
export {
  type Capability,
  type Frame,
  frameRecord,
  type Policy,
  policyRecord,
  type Source,
} from './frame.ts';
export { type License, licenseRecord, type Proposal, type SignedLicense } from './license.ts';
export {
  type Exceeded,
  findExceeded,
  findOverlong,
  findUntimely,
  LIMIT_REASONS,
  type LimitReason,
  type Limits,
} from './limits.ts';
export { type Approved, approvedRecord, type Manifest, manifestRecord } from './manifest.ts';
export { type MarkerRecord, markerRecord } from './marker.ts';
export { type MatchResult, matchBags, type Prepared, prepareApproved } from './match.ts';
export { type Note, renderNote } from './note.ts';
export { type Evidence, establish, type Observation } from './observation.ts';
export { classify, type Outcome } from './outcome.ts';
export { type PermitRecord, permitRecord } from './permit.ts';
export { canonObserved } from './profile.ts';
export { type Receipt, receiptRecord, type Statement, statementRecord } from './receipt.ts';
export type { Digest, ExecutionId, OccurrenceId, RecordKind } from './record.ts';
export type { Registration, Target } from './registration.ts';
export { renderApproved, renderDiff } from './render.ts';
export { renderTerminal } from './render-terminal.ts';
export { type Residue, renderResidue } from './residue.ts';
export { FINDINGS, type Finding, type Resolution, resolutionRecord } from './resolution.ts';
export type { SessionSettings } from './settings.ts';
export { BASES, type Basis, renderShadow, type Shadow, shadowRecord } from './shadow.ts';
export { assertAssured, type Terminal, terminalRecord } from './terminal.ts';
export {
  encodeBytes,
  encodeData,
  encodeInteger,
  encodeReal,
  type Row,
  type Value,
} from './value.ts';
