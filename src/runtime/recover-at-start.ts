import type { Deployment } from './deployment.ts';
import { type Recovered, type RecoverOptions, recover } from './recover.ts';
import { traced } from './telemetry.ts';

/** How long opening waits for what it settles. Whatever takes longer goes on in the background. */
export const START_WAIT_MS = 1000;

/**
 * Waits for the work, but no longer than that. What it throws later is for others who wait for it.
 */
export async function withinMs(ms: number, work: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  work.catch(() => {});
  try {
    await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Recovery with its span. */
export function recoverTraced(
  deployment: Deployment,
  options?: RecoverOptions,
  isStopped?: () => boolean,
): Promise<readonly Recovered[]> {
  return traced(
    deployment,
    { kind: 'recover' },
    (own) => recover(own, options, isStopped),
    (recovered) => {
      const results = { settled: 0, running: 0, unresolved: 0 };
      for (const { kind } of recovered) results[kind] += 1;
      return { kind: 'recovered', results };
    },
  );
}
