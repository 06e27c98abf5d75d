import type { Promotion } from '../contract/adapter.ts';
import type { Certificate, Claim, ConsumedPermit } from '../contract/proof.ts';

/** The claim and certificate under which a stage is opened. It is promoted only under these. */
export interface StagedUnder {
  readonly claim: Claim;
  readonly certificate: Certificate;
}

type Refused = Extract<Promotion, { readonly kind: 'refused' }>;

/**
 * An adapter's own check of a permit, independent of the core: the permit must name the claim and
 * certificate under which its stage was opened, its candidate, and the evidence reported last.
 */
export class PermitCheck {
  readonly #under: StagedUnder;
  readonly #candidate: string;
  #evidence: string | undefined;

  constructor(under: StagedUnder, candidate: string) {
    this.#under = under;
    this.#candidate = candidate;
  }

  /** Remembers the evidence of an observation. */
  observed(evidence: string): void {
    this.#evidence = evidence;
  }

  /** Compares the evidence of a recheck. If it differs, a promotion needs another observation. */
  rechecked(evidence: string): void {
    if (evidence !== this.#evidence) this.#evidence = undefined;
  }

  /** The refusal if the permit is not for this stage. Discard the stage before returning it. */
  refusalOf(permit: ConsumedPermit): Refused | undefined {
    const what = this.#findMismatch(permit);
    if (what === undefined) return undefined;
    return {
      kind: 'refused',
      reason: 'permit-mismatch',
      detail: `the permit is for ${what}; nothing was promoted`,
    };
  }

  #findMismatch({ record, marker }: ConsumedPermit): string | undefined {
    const { claim, certificate } = this.#under;
    const { occurrence, execution } = claim.sealed.record;
    const { bound } = record;
    if (record.occurrence !== occurrence) return 'another occurrence';
    if (record.execution !== execution) return 'another execution';
    if (record.claim !== claim.digest) return 'another claim';
    if (record.certificate !== certificate.digest) return 'another certificate';
    if (!('candidate' in bound)) return 'a request';
    if (bound.candidate !== this.#candidate) return 'another candidate';
    if (this.#evidence === undefined)
      return 'a candidate that was not observed, or that changed since';
    if (bound.evidence !== this.#evidence) return 'other evidence';
    const isOwn = marker.occurrence === occurrence && marker.disposition === 'committed';
    return isOwn ? undefined : 'another marker';
  }
}
