import type { SignedLicense } from '../protocol/license.ts';
import type { Digest } from '../protocol/record.ts';

/** The signatures under a license. */
type Signatures = Pick<SignedLicense, 'signature' | 'second'>;

/** What was found to hold of a license and cannot change while the deployment stands. */
interface Checked {
  /** The signatures that registered keys made. */
  readonly signatures: string;
  /** The outcome that was signed can be compared, renders as it was read, and fits what is registered. */
  isSound: boolean;
}

const KEPT_MAX = 4096;

/**
 * The licenses that were checked here lately, by digest. Verifying a signature and rendering an
 * outcome take longer than anything else that is checked, and depend on the license alone. Expiry,
 * state, limits and policy are checked at every use.
 */
export class CheckedLicenses {
  readonly #known = new Map<Digest, Checked>();

  /** What is known about a license under these signatures. */
  find(lineage: Digest, signatures: Signatures): Checked | undefined {
    const known = this.#known.get(lineage);
    return known?.signatures === textOf(signatures) ? known : undefined;
  }

  /** Takes note of signatures that were verified. */
  add(lineage: Digest, signatures: Signatures): void {
    const [oldest] = this.#known.size < KEPT_MAX ? [] : this.#known.keys();
    if (oldest !== undefined) this.#known.delete(oldest);
    this.#known.set(lineage, { signatures: textOf(signatures), isSound: false });
  }
}

function textOf({ signature, second }: Signatures): string {
  if (second === undefined) return signature;
  return `${signature} ${second.issuer} ${second.key} ${second.signature}`;
}
