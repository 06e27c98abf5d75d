import { EffectMatchError } from '../errors.ts';
import type { RunStatus } from './run.ts';

/** What an engine calls to drive runs. */
export interface EngineHost {
  /**
   * Drives a run as far as it can go now. Safe to call at any time, from any number of processes,
   * and again after a crash.
   */
  drive(run: string, signal?: AbortSignal): Promise<RunStatus>;
  /** Runs that are not over, whichever program started them. */
  openRuns(): Promise<readonly string[]>;
  /** Whether a run can make progress now. */
  isRunnable(run: string): Promise<boolean>;
  /** Reports a fault after which the engine tries again. */
  onFault(run: string, error: unknown): void;
}

/** A running engine. */
export interface OpenEngine {
  /**
   * Makes sure that a run is driven, because it may now be able to progress. Called for a new run,
   * and when something happens that a run may wait for.
   */
  wake(run: string): Promise<void>;
  /** Takes over the runs of workers that went silent, and returns their ids. */
  takeOver(): Promise<readonly string[]>;
  close(): Promise<void>;
}

/**
 * Schedules runs. An engine only decides when something is tried. The runtime ensures that an
 * effect happens once, and only as approved.
 */
export interface WorkflowEngine {
  open(host: EngineHost): Promise<OpenEngine>;
}

/** Drives nothing, for programs that only record work for others. */
export const IDLE: WorkflowEngine = {
  open: async () => {
    const nothing = async () => {};
    return { wake: nothing, takeOver: async () => [], close: nothing };
  },
};

/** Throws unless an option is a whole number of at least one. */
export function checkCount(engine: string, name: string, value: unknown): void {
  if (Number.isSafeInteger(value) && Number(value) >= 1) return;
  throw new EffectMatchError(
    'ERR_EM_CONFIG_INVALID',
    `${engine}: ${name} must be a whole number of at least 1, not ${String(value)}`,
  );
}
