import { type Clock, type Deadline, deadlineIn } from '../contract/clock.ts';
import type { Ledgers } from '../contract/ledgers.ts';
import type { ExecutionId } from '../protocol/record.ts';
import type { AttemptFacts } from './attempt.ts';

/** The leases of the attempts in this process. */
export interface Leases {
  /**
   * Renews a live attempt's lease until disposed, so that recovery leaves it alone. `until` is its
   * current end.
   */
  keep(attempt: AttemptFacts, until: Deadline): Disposable;
  /** When the lease expires unless it is renewed. Undefined if the attempt is not kept. */
  deadline(attempt: Pick<AttemptFacts, 'execution'>): Deadline | undefined;
  close(): void;
}

interface Kept {
  readonly attempt: AttemptFacts;
  until: Deadline;
}

/**
 * Renews all leases with one timer: starting a timer takes longer than most steps of an attempt. A
 * missed renewal is harmless: the marker decides, whatever recovery assumes about this process.
 */
export function openLeases(ledgers: Ledgers, leaseMs: number, clock: Clock): Leases {
  const live = new Map<ExecutionId, Kept>();
  const renew = async (kept: Kept) => {
    // Read before the store is asked: the process may sleep before the answer arrives.
    const until = deadlineIn(clock, leaseMs);
    const { occurrence, execution } = kept.attempt;
    if (await ledgers.renew(occurrence, execution, leaseMs)) kept.until = until;
  };
  const timer = setInterval(() => {
    for (const kept of live.values()) renew(kept).catch(() => {});
  }, leaseMs / 3);
  timer.unref();
  return {
    keep(attempt, until) {
      live.set(attempt.execution, { attempt, until });
      return { [Symbol.dispose]: () => void live.delete(attempt.execution) };
    },
    deadline: ({ execution }) => live.get(execution)?.until,
    close: () => clearInterval(timer),
  };
}
