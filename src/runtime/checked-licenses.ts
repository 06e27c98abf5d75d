import type { SignedLicense } from '../protocol/license.ts';
import { RecentMap } from '../protocol/recent-map.ts';
import type { Digest } from '../protocol/record.ts';

type Signatures = Pick<SignedLicense, 'signature' | 'second'>;

/** What was checked about a license and cannot change during the life of the deployment. */
interface Checked {
  /** The signatures that were verified with registered keys. */
  readonly signatures: string;
  /** The signed outcome can be compared, renders to the signed text, and fits the registration. */
  isSound: boolean;
}

const KEPT_MAX = 4096;

/**
 * Recently checked licenses, by digest. Verifying a signature and rendering an outcome are the
 * slowest checks and depend only on the license. Expiry, state, limits and policy are checked at
 * every use.
 */
export class CheckedLicenses {
  readonly #known = new RecentMap<Digest, Checked>(KEPT_MAX);

  /** What is known about a license with these signatures. */
  find(lineage: Digest, signatures: Signatures): Checked | undefined {
    const known = this.#known.get(lineage);
    return known?.signatures === textOf(signatures) ? known : undefined;
  }

  /** Remembers signatures that were verified. */
  add(lineage: Digest, signatures: Signatures): void {
    this.#known.set(lineage, { signatures: textOf(signatures), isSound: false });
  }
}

function textOf({ signature, second }: Signatures): string {
  if (second === undefined) return signature;
  return `${signature} ${second.issuer} ${second.key} ${second.signature}`;
}
