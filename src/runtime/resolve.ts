import type { Ledgers } from '../contract/ledgers.ts';
import type { Sealer } from '../contract/seal.ts';
import { evidenceDigest, verifyResolution } from '../crypto/resolution.ts';
import { EffectMatchError } from '../errors.ts';
import { approvedRecord } from '../protocol/manifest.ts';
import { type Resolution, resolutionRecord } from '../protocol/resolution.ts';

/** Public keys of those who may resolve, by name. */
export type OperatorKeys = ReadonlyMap<string, readonly string[]>;

/** Largest evidence that is kept with the resolution, in characters. */
const EVIDENCE_MAX = 1_000_000;

/**
 * Records an operator's signed decision about an occurrence that nothing could establish. It needs
 * no backend, sends nothing and releases nothing: the verdict stays what it is, and the question is
 * closed. Where a deployment does not store values, of the evidence only the digest is kept.
 */
export async function resolveOccurrence(
  parts: { readonly ledgers: Ledgers; readonly sealer: Sealer; readonly operators: OperatorKeys },
  input: unknown,
  evidence: string,
): Promise<Resolution> {
  const { ledgers, sealer, operators } = parts;
  const resolution = resolutionRecord.parse(input);
  const keys = operators.get(resolution.operator);
  if (keys === undefined)
    throw refuse(`"${resolution.operator}" is not an operator of this deployment`);
  if (!verifyResolution(keys, resolution)) {
    throw refuse(`the signature is not by a registered key of "${resolution.operator}"`);
  }
  if (evidence.trim() === '' || evidence.length > EVIDENCE_MAX) {
    throw refuse(`evidence is a text of 1 to ${EVIDENCE_MAX} characters`);
  }
  if (evidenceDigest(evidence) !== resolution.evidence)
    throw refuse('the evidence is not the one that was signed for');
  const holder = await ledgers.holder(resolution.occurrence);
  if (holder === undefined)
    throw refuse('this occurrence was never claimed, so there is nothing to resolve');
  // Also where recovery has found nothing before: until its lease has run out, an attempt that
  // lives may still send.
  if (!holder.leaseExpired) {
    throw refuse(
      'the attempt may still be running; wait until its lease has run out, and recover first',
    );
  }
  // First, so that no decision is ever recorded whose evidence a crash has taken along.
  const { values } = approvedRecord.parseText(holder.approvedText).registration;
  if (values === 'plain') await ledgers.keep(resolution.evidence, evidence);
  return await ledgers.resolve(sealer.seal(resolutionRecord, resolution));
}

function refuse(why: string): EffectMatchError<'ERR_EM_RESOLUTION_REFUSED'> {
  return new EffectMatchError('ERR_EM_RESOLUTION_REFUSED', `nothing was resolved: ${why}`);
}
