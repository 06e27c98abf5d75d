import { occurrenceId } from '../crypto/digest.ts';
import { parseProposal } from '../crypto/proposal.ts';
import { parseSignedLicense } from '../crypto/signature.ts';
import { EffectMatchError } from '../errors.ts';
import { approvedOutcome } from '../protocol/approve.ts';
import { draftManifest, type ManifestDraft } from '../protocol/draft.ts';
import type { StateReading } from '../protocol/effect.ts';
import type { Proposal } from '../protocol/license.ts';
import type { Approved } from '../protocol/manifest.ts';
import type { Digest } from '../protocol/record.ts';
import type { Basis } from '../protocol/shadow.ts';
import type { Attempt } from './attempt.ts';
import {
  checkLicense,
  checkPlan,
  checkPresupposed,
  checkRequired,
  checkState,
  openAttempt,
  type Refusal,
} from './authority.ts';
import { type Admitted, adapterNamed, type Deployment } from './deployment.ts';

/**
 * What is said about an action that nobody has approved yet. Without `effects` there is nothing to
 * compare with.
 */
export interface ShadowDraft extends Omit<ManifestDraft, 'effects'> {
  readonly effects?: ManifestDraft['effects'];
}

/** What a shadow compares with. Nothing of it needs the backend before `resolve`. */
export interface Comparison {
  readonly basis: Basis;
  readonly admitted: Admitted;
  readonly task: string;
  /** Digest of the license, where there is one. */
  readonly license?: Digest;
  resolve(): Promise<Resolved>;
}

export interface Resolved {
  /** Undefined where nothing is approved. */
  readonly approved: Approved | undefined;
  /** Declared state that the stage is asked for. */
  readonly declared: Pick<Approved, 'requires' | 'watch'>;
  checkAuthority(action: unknown): Promise<Refusal | undefined>;
  checkState(readings: readonly StateReading[]): Refusal | undefined;
}

/**
 * Reads a signed license, a proposal or a draft, each as an object, and the first two as JSON text
 * too.
 */
export function openComparison(
  deployment: Deployment,
  approval: unknown,
  revision: string | undefined,
): Comparison {
  const fields = fieldsOf(approval);
  if ('signature' in fields) return fromLicense(deployment, approval, revision);
  if ('draft' in fields) return fromProposal(deployment, approval, revision);
  if (typeof approval === 'string') return fromLicense(deployment, approval, revision);
  return fromDraft(deployment, fields as unknown as ShadowDraft);
}

/** Only to tell the kinds apart: each is parsed strictly by its own reader afterwards. */
function fieldsOf(approval: unknown): object {
  if (typeof approval === 'object' && approval !== null) return approval;
  if (typeof approval !== 'string') {
    throw new EffectMatchError(
      'ERR_EM_USAGE',
      'a shadow needs a license, a proposal or a draft to compare with',
    );
  }
  try {
    const parsed: unknown = JSON.parse(approval);
    return typeof parsed === 'object' && parsed !== null ? parsed : {};
  } catch {
    return {};
  }
}

function fromLicense(
  deployment: Deployment,
  approval: unknown,
  revision: string | undefined,
): Comparison {
  const signed = parseSignedLicense(approval);
  const admitted = adapterNamed(deployment, signed.license.adapter);
  const attempt = openAttempt(deployment, admitted, signed);
  const { approved } = signed;
  return {
    basis: 'license',
    admitted,
    task: signed.license.task,
    license: attempt.lineage,
    resolve: async () => ({
      approved,
      declared: approved,
      checkAuthority: async (action) =>
        checkLicense(deployment, attempt, action) ?? (await checkUnspent(deployment, attempt)),
      checkState: (readings) => checkState(attempt, readings, revision),
    }),
  };
}

/** Whether a claim would be refused, found out by reading: the claim itself is never tried. */
async function checkUnspent(
  deployment: Deployment,
  attempt: Attempt,
): Promise<Refusal | undefined> {
  const { issuer, nonce, occurrences, task } = attempt.license;
  const superseded = checkPlan(attempt, await deployment.ledgers.standing(task, attempt));
  if (superseded !== undefined) return superseded;
  for (let index = 0; index < occurrences; index += 1) {
    const occurrence = occurrenceId({ issuer, nonce, license: attempt.lineage, index });
    if ((await deployment.ledgers.holder(occurrence)) === undefined) return undefined;
  }
  return { reason: 'spent', detail: 'every execution that this license buys has been claimed' };
}

function fromProposal(
  deployment: Deployment,
  approval: unknown,
  revision: string | undefined,
): Comparison {
  const { draft, approved }: Proposal = parseProposal(approval);
  const admitted = adapterNamed(deployment, draft.adapter);
  const stated = { admitted, signed: { license: draft, approved } };
  return {
    basis: 'proposal',
    admitted,
    task: draft.task,
    resolve: async () => ({
      approved,
      declared: approved,
      checkAuthority: async (action) => checkPresupposed(deployment, stated, action),
      checkState: (readings) => checkState(stated, readings, revision),
    }),
  };
}

/**
 * A draft is normalised as for an approval, but no plan is announced: it must not supersede one
 * that is in use.
 */
function fromDraft(deployment: Deployment, draft: ShadowDraft): Comparison {
  const stated = draftManifest({
    ...draft,
    effects: draft.effects === undefined ? [] : draft.effects,
  });
  const admitted = adapterNamed(deployment, stated.adapter);
  return {
    basis: draft.effects === undefined ? 'none' : 'manifest',
    admitted,
    task: stated.task,
    async resolve() {
      const manifest = await admitted.adapter.normalise(stated);
      const outcome = approvedOutcome(manifest, admitted.registration, deployment.ids.hex(16));
      return {
        approved: draft.effects === undefined ? undefined : outcome,
        declared: outcome,
        checkAuthority: async () => undefined,
        checkState: (readings) => checkRequired(outcome, readings),
      };
    },
  };
}
