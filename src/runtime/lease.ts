import type { Ledgers } from '../contract/ledgers.ts';
import type { AttemptFacts } from './attempt.ts';

/** The leases of the attempts that are under way here. */
export interface Leases {
  /** Renews a live attempt's lease until disposed, so that recovery leaves it alone. */
  keep(attempt: AttemptFacts): Disposable;
  close(): void;
}

/**
 * Renews them all with one timer: starting one for every attempt takes longer than most of what an attempt does. A missed
 * renewal is harmless: the marker decides, whatever recovery believes about this process.
 */
export function openLeases(ledgers: Ledgers, leaseMs: number): Leases {
  const live = new Set<AttemptFacts>();
  const timer = setInterval(() => {
    for (const { occurrence, execution } of live) ledgers.renew(occurrence, execution, leaseMs).catch(() => {});
  }, leaseMs / 3);
  timer.unref();
  return {
    keep(attempt) {
      live.add(attempt);
      return { [Symbol.dispose]: () => live.delete(attempt) };
    },
    close: () => clearInterval(timer),
  };
}
