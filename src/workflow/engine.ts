import type { RunStatus } from './run.ts';

/** What an engine drives. */
export interface EngineHost {
  /**
   * Takes a run as far as it goes now. Safe to call at any time, from any number of processes, and
   * again after a crash.
   */
  drive(run: string, signal?: AbortSignal): Promise<RunStatus>;
  /** Runs that are not over, whichever program started them. */
  openRuns(): Promise<readonly { readonly run: string; readonly revision: number }[]>;
  /** Whether something of a run can be done now. */
  isRunnable(run: string): Promise<boolean>;
  /** Faults that an engine met and passed over; it tries again. */
  onFault(run: string, error: unknown): void;
}

/** An engine at work. */
export interface OpenEngine {
  /** Sees to it that a run is driven until it is over. Starting it twice is starting it once. */
  start(run: string, revision: number): Promise<void>;
  /** Something that a run may wait for has happened. */
  wake(run: string, revision: number): Promise<void>;
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
