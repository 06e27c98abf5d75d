import { systemClock, type WallClock } from '../contract/clock.ts';
import { type Resolution, resolutionRecord } from '../protocol/resolution.ts';
import { parsePrivateKey } from './approver-key.ts';
import { contentOfResolution, type Decision, writeResolution } from './decision.ts';
import { isSignedBy, signContent } from './person-signature.ts';

/**
 * An operator, who may state what became of an effect. The key pair has the same form as an
 * approver's.
 */
export interface OperatorOptions {
  readonly operator: string;
  readonly privateKey: string;
  readonly clock?: WallClock;
}

/** Signs an operator's decision. Does not record it. */
export function signResolution(options: OperatorOptions, decision: Decision): Resolution {
  const { key, publicKey } = parsePrivateKey(options.privateKey);
  const nowMs = (options.clock ?? systemClock).now();
  const decided = writeResolution({ name: options.operator, key: publicKey.id, nowMs }, decision);
  const signature = signContent(key, contentOfResolution(decided));
  return resolutionRecord.parse({ ...decided, signature });
}

/** Whether the key named in the resolution is one of these public keys and signed it. */
export function verifyResolution(publicKeys: readonly string[], resolution: Resolution): boolean {
  const { signature, ...decided } = resolution;
  return isSignedBy(publicKeys, decided.key, contentOfResolution(decided), signature);
}
