import type { AttemptFacts } from './attempt.ts';
import type { Deployment } from './deployment.ts';

/**
 * Renews a live attempt's lease until disposed, so that recovery leaves it alone. A missed renewal is harmless: the
 * marker decides, whatever recovery believes about this process.
 */
export function keepLease(deployment: Deployment, attempt: AttemptFacts): Disposable {
  const { ledgers, leaseMs } = deployment;
  const timer = setInterval(() => {
    ledgers.renew(attempt.occurrence, attempt.execution, leaseMs).catch(() => {});
  }, leaseMs / 3);
  timer.unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
