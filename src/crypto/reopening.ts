import { instant, systemClock } from '../contract/clock.ts';
import { canonical } from '../protocol/canon.ts';
import { type Acknowledgement, acknowledgementRecord } from '../protocol/continuation.ts';
import type { Digest, OccurrenceId } from '../protocol/record.ts';
import { parsePrivateKey } from './approver-key.ts';
import { evidenceDigest, type SignedContent } from './decision.ts';
import { isSignedBy, signContent } from './person-signature.ts';
import type { OperatorOptions } from './resolution.ts';

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

/** Signs that work which never completed may be released again. Records nothing. */
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

/** Whether the key named in the decision is one of these public keys and signed it. */
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
