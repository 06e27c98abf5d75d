import type { Clock } from '../contract/clock.ts';
import type { Ledgers } from '../contract/ledgers.ts';
import type { OccurrenceId } from '../protocol/record.ts';

/**
 * How many refusals without a claim are kept per occurrence, for signed and forged licenses
 * separately.
 */
const KEPT_PER_OCCURRENCE = 32;
/** How many refusals of forged licenses are kept per minute: anyone can make any number of them. */
const FORGED_PER_MINUTE = 100;
const MINUTE_MS = 60_000;
/** Occurrences counted in memory. Those that were dropped are counted again from the journal. */
const COUNTED_MAX = 10_000;

/** Why a license counts as forged: no designated issuer signed it. */
const FORGED: readonly string[] = ['issuer-unknown', 'signature-invalid'];

/**
 * Decides which refusals without a claim are kept, so that repeating them cannot fill the journal.
 */
export interface RefusalBound {
  /** Whether to keep one more refusal of this occurrence. It is counted either way. */
  keeps(occurrence: OccurrenceId, reason: string): Promise<boolean>;
}

/** Forged licenses are counted separately, so that they cannot use up the room for signed ones. */
export function openRefusalBound(ledgers: Ledgers, clock: Clock): RefusalBound {
  const counted = new Map<string, number>();
  let forged = { sinceMs: Number.NEGATIVE_INFINITY, count: 0 };
  const hasRoomThisMinute = (): boolean => {
    const now = clock.now();
    if (now < forged.sinceMs || now - forged.sinceMs >= MINUTE_MS)
      forged = { sinceMs: now, count: 0 };
    forged.count += 1;
    return forged.count <= FORGED_PER_MINUTE;
  };
  return {
    async keeps(occurrence, reason) {
      const isForged = FORGED.includes(reason);
      // Counted before the first await, so that concurrent refusals do not all find room.
      const kind = `${isForged ? 'forged' : 'signed'} ${occurrence}`;
      const count = (counted.get(kind) ?? 0) + 1;
      if (counted.size >= COUNTED_MAX) counted.clear();
      counted.set(kind, count);
      if (count > KEPT_PER_OCCURRENCE || (isForged && !hasRoomThisMinute())) return false;
      const stored = (await ledgers.attempts(occurrence)).filter(
        (attempt) =>
          attempt.kind === 'rejected' &&
          attempt.claim === undefined &&
          FORGED.includes(attempt.reason) === isForged,
      );
      return stored.length < KEPT_PER_OCCURRENCE;
    },
  };
}
