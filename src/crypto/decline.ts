import { sign, verify } from 'node:crypto';
import { instant, systemClock, type WallClock } from '../contract/clock.ts';
import { canonical } from '../protocol/canon.ts';
import { declineRecord, type SignedDecline } from '../protocol/decline.ts';
import { parsePrivateKey, parsePublicKey } from './approver-key.ts';
import { decodeBase64url } from './base64url.ts';
import { isPasskeyText } from './passkey-text.ts';

const SIGNATURE_BYTES = 64;

/** Who declines. */
export interface DeclinerOptions {
  readonly issuer: string;
  readonly privateKey: string;
  readonly clock?: WallClock;
}

/** What is declined, and why. */
export type Declined = Pick<SignedDecline, 'request' | 'generation' | 'approved' | 'reason'>;

/** Signs a "no" to one request. Nothing is recorded by it yet. */
export function signDecline(options: DeclinerOptions, declined: Declined): SignedDecline {
  const { key, publicKey } = parsePrivateKey(options.privateKey);
  const { request, generation, approved, reason } = declined;
  const statement = {
    ...{ version: 1 as const, request, generation, approved, reason },
    issuer: options.issuer,
    key: publicKey.id,
    at: instant((options.clock ?? systemClock).now()),
  };
  const signature = sign(null, bytesOf(statement), key).toString('base64url');
  return declineRecord.parse({ ...statement, signature });
}

/** Whether one of these public keys, the one that the decline names, signed it. Passkeys do not. */
export function verifyDecline(publicKeys: readonly string[], decline: SignedDecline): boolean {
  const { signature, ...statement } = decline;
  const keys = publicKeys.filter((text) => !isPasskeyText(text)).map(parsePublicKey);
  const key = keys.find(({ id }) => id === statement.key);
  const bytes = decodeBase64url(signature, SIGNATURE_BYTES);
  if (key === undefined || bytes === undefined) return false;
  return verify(null, bytesOf(statement), key.key, bytes);
}

function bytesOf(statement: object): Buffer {
  return Buffer.from(`${declineRecord.domain}\n${canonical(statement)}`);
}
