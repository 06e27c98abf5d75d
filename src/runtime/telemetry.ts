import type { Step } from '../contract/steps.ts';
import { EffectMatchError } from '../errors.ts';
import type { Gate, Terminal } from '../protocol/terminal.ts';
import type { Deployment } from './deployment.ts';

/** What is being done. The names come from the configuration or this package. */
export interface Activity {
  readonly kind: 'execute' | 'task' | 'plan' | 'shadow' | 'recover' | 'watch' | 'http';
  readonly adapter?: string;
  /** For a call over HTTP: its method and the pattern of its path, never the path itself. */
  readonly route?: string;
}

/** The things a watcher finds waiting for a person: requests, signatures, resolutions, work. */
export type WaitingKind = 'requests' | 'signatures' | 'resolutions' | 'continuations';

/** How an activity ended, in words that this package chose. Omits reasons worded by an adapter. */
export type Ending =
  | {
      readonly kind: 'verdict';
      readonly disposition: Terminal['kind'];
      readonly execution: string;
      readonly gate?: Gate;
      readonly reason?: string;
    }
  | { readonly kind: 'shadow'; readonly would: string }
  | {
      readonly kind: 'recovered';
      readonly results: Readonly<Record<'settled' | 'running' | 'unresolved', number>>;
    }
  | {
      readonly kind: 'watched';
      /** Runs taken over from silent workers. */
      readonly takenOver: number;
      readonly waiting: Readonly<Record<WaitingKind, number>>;
    }
  | { readonly kind: 'done' }
  | { readonly kind: 'answered'; readonly status: number }
  | { readonly kind: 'fault'; readonly code: string };

/** One activity from start to end. */
export interface Trace {
  /** Called after each completed step, in order. */
  step(step: Step): void;
  end(ending: Ending): void;
}

/**
 * Receives reports about a deployment: what was done, how it ended, how long each step took. It
 * never gets a value, a key, a statement or a message, so no data can leak through it.
 * `effectmatch/telemetry` implements it on OpenTelemetry; without one, nothing is measured.
 */
export interface Telemetry {
  begin(activity: Activity): Trace;
  /**
   * Receives a function that counts attempts without a verdict whose process is gone, to call until
   * the returned function is called.
   */
  watchOrphans(count: () => Promise<number>): () => void;
}

/**
 * Runs an activity and reports its steps. A failure to report never affects the activity: a verdict
 * must not depend on who watches.
 */
export async function traced<T>(
  deployment: Deployment,
  activity: Activity,
  work: (deployment: Deployment) => Promise<T>,
  describe: (result: T) => Ending,
): Promise<T> {
  const { telemetry, reached: forward } = deployment;
  if (telemetry === undefined) return await work(deployment);
  const trace = quietly(() => telemetry.begin(activity));
  const report = (step: Step) => {
    quietly(() => trace?.step(step));
    forward(step);
  };
  try {
    const result = await work({ ...deployment, reached: report });
    quietly(() => trace?.end(describe(result)));
    return result;
  } catch (error) {
    quietly(() => trace?.end(faultOf(error)));
    throw error;
  }
}

/** The fault without anything that telemetry must not see. */
export function faultOf(error: unknown): Ending {
  const code = error instanceof EffectMatchError ? error.code : 'unknown';
  return { kind: 'fault', code };
}

/**
 * Runs telemetry code and ignores its errors, including later ones: an unhandled rejection would
 * end the process.
 */
export function quietly<T>(report: () => T): T | undefined {
  try {
    const result = report();
    if (result instanceof Promise) result.catch(() => {});
    return result;
  } catch {
    return undefined;
  }
}

/** Gates whose reasons the core always defines. At other gates an adapter may supply its own. */
const CORE_GATES: readonly Gate[] = [
  'action',
  'authority',
  'boundary',
  'comparison',
  'final-gate',
  'recovery',
];

/** The verdict without anything that telemetry must not see. */
export function endingOf(terminal: Terminal): Ending {
  const base = {
    kind: 'verdict' as const,
    disposition: terminal.kind,
    execution: terminal.execution,
  };
  if (terminal.kind !== 'rejected') return base;
  const { at: gate, reason } = terminal;
  return CORE_GATES.includes(gate) ? { ...base, gate, reason } : { ...base, gate };
}
