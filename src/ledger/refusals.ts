import type { ClaimResult } from '../contract/ledgers.ts';
import type { License } from '../protocol/license.ts';
import type { OccurrenceId } from '../protocol/record.ts';

type Refused = Extract<ClaimResult, { kind: 'refused' }>;

/** A later plan was announced for the task: what was approved for an earlier one no longer fits. */
export function planSuperseded(license: License, announced: number): Refused {
  const detail =
    `the license is for plan revision ${license.planRevision} of task "${license.task}" and revision ${announced} ` +
    'was announced; prepare and sign again';
  return { kind: 'refused', reason: 'plan-superseded', detail };
}

/** The issuer signed two different licenses with one nonce. The first one seen keeps it. */
export function nonceReused(license: License): Refused {
  const detail = `issuer "${license.issuer}" has used nonce ${license.nonce} for another license; sign again with a fresh nonce`;
  return { kind: 'refused', reason: 'nonce-reused', detail };
}

/** Every occurrence that the license buys is spent, whatever became of it. */
export function spent(license: License): Refused {
  const detail =
    license.occurrences === 1
      ? 'the license has been used; the journal says with what result, and doing it again needs a new license'
      : `all ${license.occurrences} occurrences of the license have been used; doing it again needs a new license`;
  return { kind: 'refused', reason: 'spent', detail };
}

/** The execution that was asked for is not the next one: it was spent, or one before it was not. */
export function notNext(
  occurrences: readonly OccurrenceId[],
  wanted: OccurrenceId,
  next: OccurrenceId,
): Refused {
  const at = occurrences.indexOf(wanted);
  const turn = occurrences.indexOf(next);
  if (at < turn) {
    const detail = `execution ${at + 1} of the license has been used; the journal says with what result`;
    return { kind: 'refused', reason: 'spent', detail };
  }
  const detail = `execution ${at + 1} of the license was asked for, and ${turn + 1} comes first`;
  return { kind: 'refused', reason: 'out-of-turn', detail };
}
