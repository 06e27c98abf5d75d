import { sign, verify } from 'node:crypto';
import { instant, systemClock, type WallClock } from '../contract/clock.ts';
import { canonical } from '../protocol/canon.ts';
import type { Digest, ExecutionId, OccurrenceId } from '../protocol/record.ts';
import { type Finding, type Resolution, resolutionRecord } from '../protocol/resolution.ts';
import { parsePrivateKey, parsePublicKey } from './approver-key.ts';
import { decodeBase64url } from './base64url.ts';
import { digestText } from './digest.ts';

const SIGNATURE_BYTES = 64;

/**
 * Who may say what became of an effect: an operator with a key pair of the same form as an
 * approver's.
 */
export interface OperatorOptions {
  readonly operator: string;
  readonly privateKey: string;
  readonly clock?: WallClock;
}

/** What is to be decided, and on which ground. */
export interface Decision {
  readonly occurrence: OccurrenceId;
  readonly execution: ExecutionId;
  readonly lineage: Digest;
  readonly finding: Finding;
  /**
   * What the operator relies on, as text: an export, a letter of the bank, a query and its result.
   */
  readonly evidence: string;
}

/** Signs an operator's decision. Nothing is recorded by it yet. */
export function signResolution(options: OperatorOptions, decision: Decision): Resolution {
  const { key, publicKey } = parsePrivateKey(options.privateKey);
  const { occurrence, execution, lineage, finding, evidence } = decision;
  const statement = {
    version: 1 as const,
    occurrence,
    execution,
    lineage,
    finding,
    evidence: evidenceDigest(evidence),
    operator: options.operator,
    key: publicKey.id,
    at: instant((options.clock ?? systemClock).now()),
  };
  return resolutionRecord.parse({
    ...statement,
    signature: sign(null, bytesOf(statement), key).toString('base64url'),
  });
}

/** Whether one of these public keys, the one that the resolution names, signed it. */
export function verifyResolution(publicKeys: readonly string[], resolution: Resolution): boolean {
  const { signature, ...statement } = resolution;
  const key = publicKeys.map(parsePublicKey).find(({ id }) => id === statement.key);
  const bytes = decodeBase64url(signature, SIGNATURE_BYTES);
  return (
    key !== undefined && bytes !== undefined && verify(null, bytesOf(statement), key.key, bytes)
  );
}

/** The content address of an operator's evidence. */
export function evidenceDigest(evidence: string): Digest {
  return digestText('effectmatch/evidence/v1', evidence);
}

function bytesOf(statement: object): Buffer {
  return Buffer.from(`${resolutionRecord.domain}\n${canonical(statement)}`);
}
