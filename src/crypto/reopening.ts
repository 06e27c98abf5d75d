import { instant, systemClock } from '../contract/clock.ts';
import { canonical } from '../protocol/canon.ts';
import { type Acknowledgement, acknowledgementRecord } from '../protocol/continuation.ts';
import type { Digest, OccurrenceId } from '../protocol/record.ts';
import { parsePrivateKey } from './approver-key.ts';
import { evidenceDigest, type SignedContent } from './decision.ts';
import { isSignedBy, signContent } from './person-signature.ts';
import type { OperatorOptions } from './resolution.ts';

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
  const signature = signContent(key, contentOf(statement, by));
  return acknowledgementRecord.parse({ ...statement, decision: { ...by, signature } });
}

/** Whether one of these public keys, the one that the decision names, signed it. */
export function verifyReopening(
  publicKeys: readonly string[],
  { decision, ...statement }: Acknowledgement,
): boolean {
  if (decision === undefined) return false;
  const { signature, ...by } = decision;
  return isSignedBy(publicKeys, by.key, contentOf(statement, by), signature);
}

function contentOf(statement: object, by: object): SignedContent {
  return { domain: 'effectmatch/reopening/v1', text: canonical({ ...statement, ...by }) };
}
