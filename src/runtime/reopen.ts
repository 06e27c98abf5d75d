import type { Ledgers } from '../contract/ledgers.ts';
import type { Sealer } from '../contract/seal.ts';
import { verifyReopening } from '../crypto/signed-decision.ts';
import { errorsOf } from '../errors.ts';
import { type Acknowledgement, acknowledgementRecord } from '../protocol/continuation.ts';
import { approvedRecord } from '../protocol/manifest.ts';
import { stateOf } from './continuation.ts';
import { findUnsigned, type OperatorKeys } from './resolve.ts';

/**
 * Records an operator's signed decision that work which was released and never completed may be
 * released again. Runs nothing: the next worker that asks gets the release.
 */
export async function reopenContinuation(
  parts: { readonly ledgers: Ledgers; readonly sealer: Sealer; readonly operators: OperatorKeys },
  input: unknown,
  evidence: string,
): Promise<Acknowledgement> {
  const { ledgers, sealer, operators } = parts;
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
  if (turn !== (state.turn ?? 1) + 1)
    throw refuse(`the next release is number ${(state.turn ?? 1) + 1}, and this is for ${turn}`);
  const { values } = approvedRecord.parseText(holder.approvedText).registration;
  if (values === 'plain') await ledgers.keep(decision.evidence, evidence);
  if (await ledgers.acknowledge(sealer.seal(acknowledgementRecord, decided))) return decided;
  throw refuse('it completed, or another decision was recorded, in the meantime');
}

const refuse = errorsOf('ERR_EM_RESOLUTION_REFUSED', 'nothing was reopened: ');
