import type { Ledgers } from '../contract/ledgers.ts';
import type { Sealer } from '../contract/seal.ts';
import { evidenceDigest } from '../crypto/decision.ts';
import { verifyResolution } from '../crypto/signed-decision.ts';
import { errorsOf } from '../errors.ts';
import { approvedRecord } from '../protocol/manifest.ts';
import type { Digest } from '../protocol/record.ts';
import { type Resolution, resolutionRecord } from '../protocol/resolution.ts';

/** Public keys of the operators, by name. */
export type OperatorKeys = ReadonlyMap<string, readonly string[]>;

/** Maximum length of the evidence for a decision, in characters. */
const EVIDENCE_MAX = 1_000_000;

/**
 * Records an operator's signed decision about an occurrence whose outcome could not be established.
 * Needs no backend, sends nothing and releases nothing: the verdict stays, and the question is
 * closed. If the deployment does not store values, only the digest of the evidence is kept.
 */
export async function resolveOccurrence(
  parts: { readonly ledgers: Ledgers; readonly sealer: Sealer; readonly operators: OperatorKeys },
  input: unknown,
  evidence: string,
): Promise<Resolution> {
  const { ledgers, sealer, operators } = parts;
  const resolution = resolutionRecord.parse(input);
  const fault = findUnsigned(operators, resolution, evidence, (keys) =>
    verifyResolution(keys, resolution),
  );
  if (fault !== undefined) throw refuse(fault);
  const holder = await ledgers.holder(resolution.occurrence);
  if (holder === undefined)
    throw refuse('this occurrence was never claimed, so there is nothing to resolve');
  // Required even if recovery found nothing before: until its lease expires, a live attempt may
  // still send.
  if (!holder.leaseExpired) {
    throw refuse(
      'the attempt may still be running; wait until its lease has run out, and recover first',
    );
  }
  // Keep the evidence first, so that a crash cannot leave a decision without it.
  const { values } = approvedRecord.parseText(holder.approvedText).registration;
  if (values === 'plain') await ledgers.keep(resolution.evidence, evidence);
  return await ledgers.resolve(sealer.seal(resolutionRecord, resolution));
}

/**
 * Why a decision does not count as signed by an operator for this evidence; undefined if it does.
 */
export function findUnsigned(
  operators: OperatorKeys,
  decision: { readonly operator: string; readonly evidence: Digest },
  evidence: string,
  verify: (keys: readonly string[]) => boolean,
): string | undefined {
  const { operator } = decision;
  const keys = operators.get(operator);
  if (keys === undefined) return `"${operator}" is not an operator of this deployment`;
  if (!verify(keys)) return `the signature is not by a registered key of "${operator}"`;
  if (evidence.trim() === '' || evidence.length > EVIDENCE_MAX)
    return `evidence is a text of 1 to ${EVIDENCE_MAX} characters`;
  if (evidenceDigest(evidence) !== decision.evidence)
    return 'the evidence is not the one that was signed for';
  return undefined;
}

const refuse = errorsOf('ERR_EM_RESOLUTION_REFUSED', 'nothing was resolved: ');
