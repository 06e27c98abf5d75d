import { systemClock, type WallClock } from '../contract/clock.ts';
import { declineRecord, type SignedDecline } from '../protocol/decline.ts';
import { parsePrivateKey } from './approver-key.ts';
import { contentOfDecline, type Declined, writeDecline } from './decision.ts';
import { isSignedBy, signContent } from './person-signature.ts';

/** The issuer who declines. */
export interface DeclinerOptions {
  readonly issuer: string;
  readonly privateKey: string;
  readonly clock?: WallClock;
}

/** Signs a decline of one request. Does not record it. */
export function signDecline(options: DeclinerOptions, declined: Declined): SignedDecline {
  const { key, publicKey } = parsePrivateKey(options.privateKey);
  const nowMs = (options.clock ?? systemClock).now();
  const decline = writeDecline({ name: options.issuer, key: publicKey.id, nowMs }, declined);
  const signature = signContent(key, contentOfDecline(decline));
  return declineRecord.parse({ ...decline, signature });
}

/** Whether the key named in the decline is one of these public keys and signed it. */
export function verifyDecline(publicKeys: readonly string[], signed: SignedDecline): boolean {
  const { signature, ...decline } = signed;
  return isSignedBy(publicKeys, decline.key, contentOfDecline(decline), signature);
}
