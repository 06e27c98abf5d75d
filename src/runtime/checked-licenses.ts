import type { License, Proposal, SignedLicense } from '../protocol/license.ts';
import { RecentMap } from '../protocol/recent-map.ts';
import type { Digest } from '../protocol/record.ts';

type Signatures = Pick<SignedLicense, 'signature' | 'second'>;

/** What was checked about a license and cannot change during the life of the deployment. */
export interface CheckedLicense {
  /** The signatures that were verified with registered keys. */
  readonly signatures: string;
  /** The signed outcome can be compared, renders to the signed text, and fits the registration. */
  isSound: boolean;
}

const KEPT_MAX = 4096;
/** Fewer, because the whole text of a draft is kept. */
const DRAFTS_MAX = 1024;

/**
 * Recently checked licenses, by digest. Verifying a signature and rendering an outcome are the
 * slowest checks and depend only on the license. Expiry, state, limits and policy are checked at
 * every use.
 */
export class CheckedLicenses {
  readonly #known = new RecentMap<Digest, CheckedLicense>(KEPT_MAX);
  /** The drafts of proposals that this runtime made, by the digest of their outcome. */
  readonly #drafts = new RecentMap<Digest, string>(DRAFTS_MAX);

  /** What is known about a license with these signatures. */
  find(lineage: Digest, signatures: Signatures): CheckedLicense | undefined {
    const known = this.#known.get(lineage);
    return known?.signatures === textOf(signatures) ? known : undefined;
  }

  /** Remembers signatures that were verified. */
  add(lineage: Digest, signatures: Signatures): CheckedLicense {
    const checked = { signatures: textOf(signatures), isSound: false };
    this.#known.set(lineage, checked);
    return checked;
  }

  /** Remembers a draft whose outcome can be evaluated and renders to the text that it names. */
  addDraft(draft: Proposal['draft']): void {
    this.#drafts.set(draft.approved, JSON.stringify(draft));
  }

  /** Whether a license adds to such a draft only what the approver decides. */
  isDrafted(license: License): boolean {
    const { issuer, key, nonce, notBefore, expiresAt, ...draft } = license;
    return this.#drafts.get(draft.approved) === JSON.stringify(draft);
  }
}

function textOf({ signature, second }: Signatures): string {
  if (second === undefined) return signature;
  return `${signature} ${second.issuer} ${second.key} ${second.signature}`;
}
