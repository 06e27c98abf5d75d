import type { Digest } from '../protocol/record.ts';

/** What was found to hold of a license and cannot change while the deployment stands. */
interface Checked {
  /** The signature that a registered key made. */
  readonly signature: string;
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

  /** What is known about a license under this signature. */
  find(lineage: Digest, signature: string): Checked | undefined {
    const known = this.#known.get(lineage);
    return known?.signature === signature ? known : undefined;
  }

  /** Takes note of a signature that was verified. */
  add(lineage: Digest, signature: string): void {
    const [oldest] = this.#known.size < KEPT_MAX ? [] : this.#known.keys();
    if (oldest !== undefined) this.#known.delete(oldest);
    this.#known.set(lineage, { signature, isSound: false });
  }
}
