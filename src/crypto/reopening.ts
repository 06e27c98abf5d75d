import { sign, verify } from 'node:crypto';
import { instant, systemClock } from '../contract/clock.ts';
import { canonical } from '../protocol/canon.ts';
import { type Acknowledgement, acknowledgementRecord } from '../protocol/continuation.ts';
import type { Digest, OccurrenceId } from '../protocol/record.ts';
import { parsePrivateKey, parsePublicKey } from './approver-key.ts';
import { decodeBase64url } from './base64url.ts';
import { evidenceDigest, type OperatorOptions } from './resolution.ts';

const SIGNATURE_BYTES = 64;

/** Which work is to be released again, and why that is right. */
export interface ReopeningDecision {
  readonly occurrence: OccurrenceId;
  readonly continuation: string;
  readonly lineage: Digest;
  /** Which release this allows: 2 after the first one. */
  readonly turn: number;
  /** What the operator relies on, as text: why the work has not been done. */
  readonly evidence: string;
}

/** Signs that work which never completed may be released once more. Records nothing. */
export function signReopening(
  options: OperatorOptions,
  decision: ReopeningDecision,
): Acknowledgement {
  const { key, publicKey } = parsePrivateKey(options.privateKey);
  const { evidence, ...work } = decision;
  const at = instant((options.clock ?? systemClock).now());
  const statement = { version: 1 as const, ...work, state: 'reopened' as const, at };
  const by = { operator: options.operator, key: publicKey.id, evidence: evidenceDigest(evidence) };
  const signature = sign(null, bytesOf(statement, by), key).toString('base64url');
  return acknowledgementRecord.parse({ ...statement, decision: { ...by, signature } });
}

/** Whether one of these public keys, the one that the decision names, signed it. */
export function verifyReopening(
  publicKeys: readonly string[],
  { decision, ...statement }: Acknowledgement,
): boolean {
  if (decision === undefined) return false;
  const { signature, ...by } = decision;
  const key = publicKeys.map(parsePublicKey).find(({ id }) => id === by.key);
  const bytes = decodeBase64url(signature, SIGNATURE_BYTES);
  if (key === undefined || bytes === undefined) return false;
  return verify(null, bytesOf(statement, by), key.key, bytes);
}

function bytesOf(statement: object, by: object): Buffer {
  return Buffer.from(`effectmatch/reopening/v1\n${canonical({ ...statement, ...by })}`);
}
