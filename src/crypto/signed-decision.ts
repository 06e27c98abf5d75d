import { instant, systemClock, type WallClock } from '../contract/clock.ts';
import { canonical } from '../protocol/canon.ts';
import { type Acknowledgement, acknowledgementRecord } from '../protocol/continuation.ts';
import { declineRecord, type SignedDecline } from '../protocol/decline.ts';
import type { Digest, OccurrenceId } from '../protocol/record.ts';
import { type Resolution, resolutionRecord } from '../protocol/resolution.ts';
import { parsePrivateKey } from './approver-key.ts';
import {
  contentOfDecline,
  contentOfResolution,
  type Decider,
  type Decision,
  type Declined,
  evidenceDigest,
  type SignedContent,
  writeDecline,
  writeResolution,
} from './decision.ts';
import { parseIssuerKey } from './issuer-key.ts';
import { isSignedBy, signContent } from './signature.ts';

/** The issuer who declines. */
export interface DeclinerOptions {
  readonly issuer: string;
  readonly privateKey: string;
  readonly clock?: WallClock;
}

/**
 * An operator, who may state what became of an effect. The key pair has the same form as an
 * approver's.
 */
export interface OperatorOptions {
  readonly operator: string;
  readonly privateKey: string;
  readonly clock?: WallClock;
}

/** The work to release again, and the reason. */
export interface ReopeningDecision {
  readonly occurrence: OccurrenceId;
  readonly continuation: string;
  readonly lineage: Digest;
  /** The number of the release that this allows: 2 after the first one. */
  readonly turn: number;
  /** The operator's evidence as text: why the work has not been done. */
  readonly evidence: string;
}

/** Signs a decline of one request. Does not record it. */
export function signDecline(options: DeclinerOptions, declined: Declined): SignedDecline {
  const write = (by: Decider) => writeDecline(by, declined);
  return declineRecord.parse(signAs(options.issuer, options, write, contentOfDecline));
}

/** Whether the key named in the decline is one of these public keys and signed it. */
export function verifyDecline(publicKeys: readonly string[], signed: SignedDecline): boolean {
  return isSigned(publicKeys, signed, contentOfDecline);
}

/** Signs an operator's decision. Does not record it. */
export function signResolution(options: OperatorOptions, decision: Decision): Resolution {
  const write = (by: Decider) => writeResolution(by, decision);
  return resolutionRecord.parse(signAs(options.operator, options, write, contentOfResolution));
}

/** Whether the key named in the resolution is one of these public keys and signed it. */
export function verifyResolution(publicKeys: readonly string[], resolution: Resolution): boolean {
  return isSigned(publicKeys, resolution, contentOfResolution);
}

/** Signs that work which never completed may be released again. Records nothing. */
export function signReopening(
  options: OperatorOptions,
  { evidence: text, ...work }: ReopeningDecision,
): Acknowledgement {
  const write = ({ name: operator, key, nowMs }: Decider) => ({
    version: 1 as const,
    ...work,
    state: 'reopened' as const,
    at: instant(nowMs),
    operator,
    key,
    evidence: evidenceDigest(text),
  });
  const signed = signAs(options.operator, options, write, contentOfReopening);
  const { operator, key, evidence, signature, ...statement } = signed;
  const decision = { operator, key, evidence, signature };
  return acknowledgementRecord.parse({ ...statement, decision });
}

/** Whether the key named in the decision is one of these public keys and signed it. */
export function verifyReopening(
  publicKeys: readonly string[],
  { decision, ...statement }: Acknowledgement,
): boolean {
  if (decision === undefined) return false;
  return isSigned(publicKeys, { ...statement, ...decision }, contentOfReopening);
}

function contentOfReopening(statement: object): SignedContent {
  return { domain: 'effectmatch/reopening/v1', text: canonical(statement) };
}

/** Lets a person write a statement, and signs it with their key. */
function signAs<Statement extends object>(
  name: string,
  { privateKey, clock = systemClock }: { readonly privateKey: string; readonly clock?: WallClock },
  write: (by: Decider) => Statement,
  contentOf: (statement: Statement) => SignedContent,
): Statement & { readonly signature: string } {
  const { key, publicKey } = parsePrivateKey(privateKey);
  const statement = write({ name, key: publicKey.id, nowMs: clock.now() });
  return { ...statement, signature: signContent(key, contentOf(statement)) };
}

function isSigned<Statement extends { readonly key: Digest }>(
  publicKeys: readonly string[],
  { signature, ...statement }: Statement & { readonly signature: string },
  contentOf: (statement: Omit<Statement, 'signature'>) => SignedContent,
): boolean {
  const content = contentOf(statement as Omit<Statement, 'signature'>);
  const keys = publicKeys.map(parseIssuerKey);
  return isSignedBy(keys, (statement as { readonly key: Digest }).key, content, signature);
}
