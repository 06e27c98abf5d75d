import type { Clock } from '../contract/clock.ts';
import type { Ledgers } from '../contract/ledgers.ts';
import type { OccurrenceId } from '../protocol/record.ts';

/** How many refusals without a claim are kept of one occurrence. */
const KEPT_PER_OCCURRENCE = 32;
/** How many refusals of licenses that no designated issuer signed are kept every minute: anybody can make more. */
const FORGED_PER_MINUTE = 100;
const MINUTE_MS = 60_000;
/** Occurrences that are counted in memory. What was forgotten is counted again from the journal. */
const COUNTED_MAX = 10_000;

/** Decides which refusals without a claim are kept, so that whoever repeats them cannot fill the journal. */
export interface RefusalBound {
  /** Whether one more refusal of this occurrence is kept; it is counted either way. */
  keeps(occurrence: OccurrenceId): Promise<boolean>;
  /** Whether one more refusal of a license that nobody designated signed is kept. */
  keepsForged(): boolean;
}

export function openRefusalBound(ledgers: Ledgers, clock: Clock): RefusalBound {
  const counted = new Map<OccurrenceId, number>();
  let forged = { sinceMs: Number.NEGATIVE_INFINITY, count: 0 };
  return {
    async keeps(occurrence) {
      // Counted before anything is awaited, so that many at once do not all find room.
      const count = (counted.get(occurrence) ?? 0) + 1;
      if (counted.size >= COUNTED_MAX) counted.clear();
      counted.set(occurrence, count);
      if (count > KEPT_PER_OCCURRENCE) return false;
      const stored = (await ledgers.attempts(occurrence)).filter(({ claim }) => claim === undefined);
      return stored.length < KEPT_PER_OCCURRENCE;
    },
    keepsForged() {
      const now = clock.now();
      if (now < forged.sinceMs || now - forged.sinceMs >= MINUTE_MS) forged = { sinceMs: now, count: 0 };
      forged.count += 1;
      return forged.count <= FORGED_PER_MINUTE;
    },
  };
}
