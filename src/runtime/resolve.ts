import type { ClaimEntry, Ledgers } from '../contract/ledgers.ts';
import type { Sealer } from '../contract/seal.ts';
import { evidenceDigest } from '../crypto/decision.ts';
import { verifyReopening, verifyResolution } from '../crypto/signed-decision.ts';
import { errorsOf } from '../errors.ts';
import { type Acknowledgement, acknowledgementRecord } from '../protocol/continuation.ts';
import { approvedRecord } from '../protocol/manifest.ts';
import type { Digest } from '../protocol/record.ts';
import { type Resolution, resolutionRecord } from '../protocol/resolution.ts';
import { stateOf } from './continuation.ts';

/** Public keys of the operators, by name. */
export type OperatorKeys = ReadonlyMap<string, readonly string[]>;

/** Maximum length of the evidence for a decision, in characters. */
const EVIDENCE_MAX = 1_000_000;

/** What recording a decision needs. It needs no backend. */
interface Deciding {
  readonly ledgers: Ledgers;
  readonly sealer: Sealer;
  readonly operators: OperatorKeys;
}

/**
 * Records an operator's signed decision about an occurrence whose outcome could not be established.
 * Sends nothing and releases nothing: the verdict stays, and the question is closed.
 */
export async function resolveOccurrence(
  { ledgers, sealer, operators }: Deciding,
  input: unknown,
  evidence: string,
): Promise<Resolution> {
  const refuse = errorsOf('ERR_EM_RESOLUTION_REFUSED', 'nothing was resolved: ');
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
  await keepEvidence(ledgers, holder, resolution.evidence, evidence);
  return await ledgers.resolve(sealer.seal(resolutionRecord, resolution));
}

/**
 * Records an operator's signed decision that work which was released and never completed may be
 * released again. Runs nothing: the next worker that asks gets the release.
 */
export async function reopenContinuation(
  { ledgers, sealer, operators }: Deciding,
  input: unknown,
  evidence: string,
): Promise<Acknowledgement> {
  const refuse = errorsOf('ERR_EM_RESOLUTION_REFUSED', 'nothing was reopened: ');
  const decided = acknowledgementRecord.parse(input);
  const { decision, occurrence, continuation, lineage, turn } = decided;
  if (decision === undefined) throw refuse('it is not a decision of an operator');
  const fault = findUnsigned(operators, decision, evidence, (keys) =>
    verifyReopening(keys, decided),
  );
  if (fault !== undefined) throw refuse(fault);
  const holder = await ledgers.holder(occurrence);
  if (holder?.claim.record.license !== lineage)
    throw refuse('no execution of this license claimed this occurrence');
  const state = stateOf(await ledgers.acknowledgements(occurrence), continuation);
  if (state.isCompleted) throw refuse('the work has completed');
  if (!state.isReleased)
    throw refuse('the work has not been released, so it can simply be asked for');
  const next = (state.turn ?? 1) + 1;
  if (turn !== next) throw refuse(`the next release is number ${next}, and this is for ${turn}`);
  await keepEvidence(ledgers, holder, decision.evidence, evidence);
  if (await ledgers.acknowledge(sealer.seal(acknowledgementRecord, decided))) return decided;
  throw refuse('it completed, or another decision was recorded, in the meantime');
}

/**
 * Keeps the evidence before the decision, so that a crash cannot leave a decision without it. If
 * the deployment does not store values, only the digest in the decision is kept.
 */
async function keepEvidence(
  ledgers: Ledgers,
  { approvedText }: ClaimEntry,
  digest: Digest,
  evidence: string,
): Promise<void> {
  const { values } = approvedRecord.parseText(approvedText).registration;
  if (values === 'plain') await ledgers.keep(digest, evidence);
}

/**
 * Why a decision does not count as signed by an operator for this evidence; undefined if it does.
 */
function findUnsigned(
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
    return `evidence must be a string of 1 to ${EVIDENCE_MAX} characters`;
  if (evidenceDigest(evidence) !== decision.evidence)
    return 'the evidence is not the one that was signed for';
  return undefined;
}
