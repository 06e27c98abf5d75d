import { setTimeout as sleep } from 'node:timers/promises';
import type { Requests } from '../requests/requests.ts';
import type { OpenContinuation } from '../runtime/continuation.ts';
import type { Recovered } from '../runtime/recover.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { type Ending, faultOf, quietly, type Telemetry } from '../runtime/telemetry.ts';
import { checkCount } from './engine.ts';
import type { ReportedNode } from './report.ts';
import type { Workflows } from './workflows.ts';

/** What a watcher looks after, and how. */
export interface WatcherOptions {
  readonly runtime: Runtime;
  readonly requests?: Requests;
  readonly workflows?: Workflows;
  /** How often it looks, in milliseconds; 5000 by default. */
  readonly everyMs?: number;
  /** Receives a report of every look, for example the configured `telemetry`. */
  readonly telemetry?: Telemetry;
  /** Called with the findings of every look. */
  readonly onLook?: (found: WatcherFindings) => void;
  /** Called when a look fails. The watcher keeps looking. */
  readonly onFault?: (error: unknown) => void;
}

/** What one look found and did. */
export interface WatcherFindings {
  /** Interrupted attempts, and what recovery found. */
  readonly recovered: readonly Recovered[];
  /** Runs of silent workers that were taken over. */
  readonly takenOver: readonly string[];
  /** How many requests wait for an answer. Overdue ones have expired before the count. */
  readonly waiting: number;
  /** Work that was released and has not completed. */
  readonly continuations: readonly OpenContinuation[];
  /** Workflow runs that cannot continue without a person. */
  readonly runs: readonly HaltedRun[];
}

/** A workflow run that cannot continue without a person. */
export interface HaltedRun {
  readonly run: string;
  /** Nodes that wait for a signature. */
  readonly unapproved: readonly string[];
  /** Nodes that diverged, are indeterminate, or were released and never completed. */
  readonly needsResolution: readonly string[];
}

/** A running watcher. */
export interface Watcher extends AsyncDisposable {
  /** Looks now and returns the findings. */
  look(): Promise<WatcherFindings>;
  close(): Promise<void>;
}

const EVERY_MS = 5000;
const PAGE = 500;

/**
 * Cleans up after interrupted processes: settles attempts whose lease has expired, takes over the
 * runs of silent workers, expires overdue requests, and finds what needs a person. Any number of
 * watchers may run at once.
 */
export function startWatcher(options: WatcherOptions): Watcher {
  const { everyMs = EVERY_MS, onLook = () => {}, onFault = () => {} } = options;
  checkCount('startWatcher', 'everyMs', everyMs);
  const closing = new AbortController();
  const { signal } = closing;
  const watch = async () => {
    while (!signal.aborted) {
      await lookOnce(options).then(onLook).catch(onFault);
      await sleep(everyMs, undefined, { signal }).catch(() => {});
    }
  };
  const watching = watch();
  const close = async () => {
    closing.abort();
    await watching;
  };
  return { look: () => lookOnce(options), close, [Symbol.asyncDispose]: close };
}

/** Looks once, and reports the look to telemetry. */
async function lookOnce(options: WatcherOptions): Promise<WatcherFindings> {
  const trace = quietly(() => options.telemetry?.begin({ kind: 'watch' }));
  try {
    const found = await findAll(options);
    quietly(() => trace?.end(endingOf(found)));
    return found;
  } catch (error) {
    quietly(() => trace?.end(faultOf(error)));
    throw error;
  }
}

function endingOf({ takenOver, waiting, continuations, runs }: WatcherFindings): Ending {
  const count = (list: 'unapproved' | 'needsResolution') =>
    runs.reduce((sum, run) => sum + run[list].length, 0);
  const people = { signatures: count('unapproved'), resolutions: count('needsResolution') };
  return {
    kind: 'watched',
    takenOver: takenOver.length,
    waiting: { requests: waiting, ...people, continuations: continuations.length },
  };
}

async function findAll({ runtime, requests, workflows }: WatcherOptions): Promise<WatcherFindings> {
  // If one fails, the others still finish.
  const [recovered, takenOver = []] = await Promise.all([
    runtime.recover(),
    workflows?.takeOver(),
    requests && expireOverdue(requests),
  ]);
  const waiting = (await requests?.countWaiting()) ?? 0;
  const runs = workflows === undefined ? [] : await findHalted(workflows);
  return { recovered, takenOver, waiting, continuations: await runtime.continuations(), runs };
}

/** Reads all pending requests: reading an overdue request makes it expire. */
async function expireOverdue(requests: Requests): Promise<void> {
  let after: string | undefined;
  do {
    const page = { state: 'pending', limit: PAGE, ...(after !== undefined && { after }) } as const;
    after = (await requests.page(page)).next;
  } while (after !== undefined);
}

async function findHalted(workflows: Workflows): Promise<readonly HaltedRun[]> {
  const halted: HaltedRun[] = [];
  for (const run of await workflows.openRuns()) {
    const report = await workflows.report(run);
    const namesOf = (nodes: readonly ReportedNode[]) => nodes.map(({ instance }) => instance);
    const unapproved = namesOf(report.waiting.filter(({ state }) => state === 'unapproved'));
    const needsResolution = namesOf(report.needsResolution);
    if (unapproved.length + needsResolution.length > 0)
      halted.push({ run, unapproved, needsResolution });
  }
  return halted;
}
