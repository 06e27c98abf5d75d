import type { CallAnswer, Survey, TaskStage } from '../contract/adapter.ts';
import { parseSignedLicense } from '../crypto/signature.ts';
import { invariant } from '../errors.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import type { Terminal } from '../protocol/terminal.ts';
import { type Attempt, type Refusal, storableText } from './attempt.ts';
import { Calls, limitsFor, type TaskLimits } from './calls.ts';
import { type Deployment, isPromotable, type OpenTask } from './deployment.ts';
import { type ExecuteOptions, executeSigned } from './execute.ts';
import type { Executed } from './promotable.ts';

/** Options of a task. */
export interface TaskOptions extends ExecuteOptions, TaskLimits {
  /** Discards the task when it aborts. */
  readonly signal?: AbortSignal;
}

/** An open task: one private candidate for many calls. */
export interface Task extends AsyncDisposable {
  readonly kind: 'open';
  readonly occurrence: OccurrenceId;
  /** When the task is discarded unless it ends first. */
  readonly expiresAt: string;
  /**
   * Runs one action on the candidate and returns its rows. A failed action changes nothing, and the
   * task continues. Calls run one after another, and see what earlier calls wrote.
   */
  call(action: unknown): Promise<CallAnswer>;
  /** Compares the whole result with the approval, and makes it durable only if they match. */
  finish(): Promise<Executed>;
  /** Discards the candidate. Returns the recorded terminal, even if the task had already ended. */
  discard(why?: string): Promise<Executed>;
  /** How the task ended, once it has. */
  readonly ended: Promise<Executed>;
}

type HeldTask = Task & OpenTask;

/**
 * Opens a task under a license. It uses the execution path of `execute`, which waits between
 * staging and observing until the task is finished, and refuses a task that was discarded.
 */
export async function openTask(
  deployment: Deployment,
  license: unknown,
  options: TaskOptions = {},
): Promise<Task | Terminal> {
  const { signal, revision } = options;
  const signed = parseSignedLicense(license);
  const limits = limitsFor(deployment, signed.license.adapter, options);
  signal?.throwIfAborted();
  const opened = Promise.withResolvers<HeldTask>();
  const serve = async (
    stage: TaskStage,
    attempt: Attempt,
    survey: Survey,
  ): Promise<Refusal | undefined> => {
    const { admitted } = attempt;
    invariant(isPromotable(admitted), 'a candidate is held by a promotable adapter');
    const calls = new Calls({ deployment, admitted, stage, survey, limits });
    const task = holdTask(attempt, calls, ended);
    const interrupt = () => void task.interrupt('its signal was aborted').catch(() => {});
    signal?.addEventListener('abort', interrupt, { once: true });
    deployment.tasks.add(task);
    if (signal?.aborted) interrupt();
    opened.resolve(task);
    try {
      return await calls.over;
    } finally {
      signal?.removeEventListener('abort', interrupt);
      deployment.tasks.delete(task);
    }
  };
  const host = { deadlineMs: limits.deadlineMs, serve };
  const given = revision === undefined ? {} : { revision };
  const ended = executeSigned(deployment, signed, { kind: 'task', host }, given);
  // If the ledger cannot record, `finish` throws; an unhandled rejection must not end the process.
  ended.catch(() => {});
  return await Promise.race([opened.promise, ended]);
}

/** Runs work with a task, then finishes the task, or discards it if the work threw. */
export async function runTask(
  deployment: Deployment,
  license: unknown,
  work: (task: Task) => unknown,
  options: TaskOptions = {},
): Promise<Executed> {
  const task = await openTask(deployment, license, options);
  if (task.kind !== 'open') return task;
  const worked = (async () => await work(task))().then(
    () => ({ kind: 'returned' as const }),
    (error: unknown) => ({ kind: 'threw' as const, error }),
  );
  const over = task.ended.then(() => ({ kind: 'ended' as const }));
  const first = await Promise.race([worked, over]);
  if (first.kind === 'threw') {
    await task.discard('the work of the task failed');
    throw first.error;
  }
  return first.kind === 'returned' ? await task.finish() : await task.ended;
}

/** A task from the moment its candidate is open. */
function holdTask(attempt: Attempt, calls: Calls, ended: Promise<Executed>): HeldTask {
  const giveUp = async (refusal: Refusal): Promise<Executed> => {
    calls.giveUp(refusal);
    return await ended;
  };
  const discard = (why = 'the task was discarded') =>
    giveUp({ reason: 'task-discarded', detail: storableText(attempt.admitted, why) });
  return {
    kind: 'open',
    occurrence: attempt.occurrence,
    expiresAt: calls.expiresAt,
    ended,
    call: (action) => calls.call(action),
    async finish() {
      await calls.complete();
      return await ended;
    },
    discard,
    interrupt: (why) => giveUp({ reason: 'task-interrupted', detail: why }),
    async [Symbol.asyncDispose]() {
      await discard('the scope of the task was left before it was finished');
    },
  };
}
