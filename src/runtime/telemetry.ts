import type { Step } from '../contract/steps.ts';
import { EffectMatchError } from '../errors.ts';
import type { Gate, Terminal } from '../protocol/terminal.ts';
import type { Deployment } from './deployment.ts';

/** What is being done, by names that the configuration or this package chose. */
export interface Activity {
  readonly kind: 'execute' | 'task' | 'plan' | 'shadow' | 'recover' | 'watch' | 'http';
  readonly adapter?: string;
  /** Of a call over HTTP: its method and the pattern of its path, never the path itself. */
  readonly route?: string;
}

/** What a watcher finds that waits for a person: answers, signatures, resolutions, work. */
export type WaitingKind = 'requests' | 'signatures' | 'resolutions' | 'continuations';

/**
 * How it ended, by words that this package chose. Reasons that an adapter words itself are left
 * out.
 */
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
      /** Runs of silent workers that were taken over. */
      readonly takenOver: number;
      readonly waiting: Readonly<Record<WaitingKind, number>>;
    }
  | { readonly kind: 'done' }
  | { readonly kind: 'answered'; readonly status: number }
  | { readonly kind: 'fault'; readonly code: string };

/** One activity from its beginning to its end. */
export interface Trace {
  /** Called when a step has been completed, in order. */
  step(step: Step): void;
  end(ending: Ending): void;
}

/**
 * Where a deployment reports how it works: what was done, how it ended, how long each step took. It
 * never gets a value, a key, a statement or a message, so that nothing of the data can leave by it.
 * `effectmatch/telemetry` implements it on OpenTelemetry; without one, nothing is measured.
 */
export interface Telemetry {
  begin(activity: Activity): Trace;
  /**
   * Lends a way to count attempts whose process is gone and that have no verdict; returns how to
   * give it back.
   */
  watchOrphans(count: () => Promise<number>): () => void;
}

/**
 * Runs an activity with a deployment whose steps are reported. Reporting can fail in its own way
 * and never changes what is reported: a verdict must not depend on who watches.
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

/** A fault as telemetry may know it. */
export function faultOf(error: unknown): Ending {
  const code = error instanceof EffectMatchError ? error.code : 'unknown';
  return { kind: 'fault', code };
}

/**
 * Runs what telemetry brought, which may also fail after it returned: an unhandled
 * rejection ends the process.
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

/**
 * Gates whose reasons are always defined by the core; at other gates an adapter may supply its own.
 */
const CORE_GATES: readonly Gate[] = [
  'action',
  'authority',
  'boundary',
  'comparison',
  'final-gate',
  'recovery',
];

/** A verdict as telemetry may know it. */
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
