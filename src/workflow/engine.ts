import { EffectMatchError } from '../errors.ts';
import type { RunStatus } from './run.ts';

/** What an engine drives. */
export interface EngineHost {
  /**
   * Takes a run as far as it goes now. Safe to call at any time, from any number of processes, and
   * again after a crash.
   */
  drive(run: string, signal?: AbortSignal): Promise<RunStatus>;
  /** Runs that are not over, whichever program started them. */
  openRuns(): Promise<readonly string[]>;
  /** Whether something of a run can be done now. */
  isRunnable(run: string): Promise<boolean>;
  /** Faults that an engine met and passed over; it tries again. */
  onFault(run: string, error: unknown): void;
}

/** An engine at work. */
export interface OpenEngine {
  /**
   * Something of a run may be possible now: sees to it that it is driven. Called for a new run, and
   * when something has happened that it may wait for.
   */
  wake(run: string): Promise<void>;
  /** Takes over the runs of workers that went silent; returns which. */
  takeOver(): Promise<readonly string[]>;
  close(): Promise<void>;
}

/**
 * What schedules runs. It decides when something is tried, and nothing else: that an effect happens
 * once, and only as approved, is up to the runtime.
 */
export interface WorkflowEngine {
  open(host: EngineHost): Promise<OpenEngine>;
}

/** Drives nothing, for programs that only record what is to be done. */
export const IDLE: WorkflowEngine = {
  open: async () => {
    const nothing = async () => {};
    return { wake: nothing, takeOver: async () => [], close: nothing };
  },
};

/** Refuses an option that is not a whole number of at least one. */
export function checkCount(engine: string, name: string, value: unknown): void {
  if (Number.isSafeInteger(value) && Number(value) >= 1) return;
  throw new EffectMatchError(
    'ERR_EM_CONFIG_INVALID',
    `${engine}: ${name} must be a whole number of at least 1, not ${String(value)}`,
  );
}
