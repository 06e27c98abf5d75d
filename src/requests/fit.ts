import { canonical } from '../protocol/canon.ts';
import type { Proposal, SignedLicense } from '../protocol/license.ts';

const SIGNED: readonly string[] = ['issuer', 'key', 'nonce', 'notBefore', 'expiresAt'];

/** The first field in which a license differs from its proposal; undefined if the license fits. */
export function findUnfit({ draft }: Proposal, { license }: SignedLicense): string | undefined {
  const fields = Object.keys(draft) as (keyof typeof draft)[];
  const other = fields.find((name) => canonical(license[name]) !== canonical(draft[name]));
  if (other !== undefined) return other;
  const extra = Object.keys(license).find((name) => !(name in draft) && !SIGNED.includes(name));
  return extra ?? (license.occurrences === 1 ? undefined : 'occurrences');
}
