import type { CallAnswer, TaskStage } from '../contract/adapter.ts';
import { type Deadline, deadlineIn, instant, isOver } from '../contract/clock.ts';
import { parseSignedLicense } from '../crypto/signature.ts';
import { EffectMatchError } from '../errors.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import type { Terminal } from '../protocol/terminal.ts';
import { type Attempt, faultOf, type Refusal, readAction, storableText } from './attempt.ts';
import type { Deployment, OpenTask } from './deployment.ts';
import { type ExecuteOptions, executeSigned } from './execute.ts';
import type { Executed } from './promotable.ts';

/** How long a task may hold its candidate, and how many calls it may make. */
export interface TaskLimits {
  /**
   * After this much time the task is discarded; 60 s unless said otherwise, at most 15 minutes. The
   * candidate holds its locks as long: on SQLite the write lock of the whole file.
   */
  readonly deadlineMs?: number;
  /** The call after this many discards the task; 100 unless said otherwise, at most 10 000. */
  readonly maxCalls?: number;
}

/** What a task may bring besides the license. */
export interface TaskOptions extends ExecuteOptions, TaskLimits {
  /** Discards the task when it aborts. */
  readonly signal?: AbortSignal;
}

/** An open task: one private candidate for many calls. */
export interface Task extends AsyncDisposable {
  readonly kind: 'open';
  readonly occurrence: OccurrenceId;
  /** When the task is discarded if it has not ended. */
  readonly expiresAt: string;
  /**
   * Runs one action on the candidate and returns its rows. An action that fails changes nothing,
   * and the task goes on. Calls run one after another. Reads see what earlier calls wrote.
   */
  call(action: unknown): Promise<CallAnswer>;
  /** Compares the whole result with the approval, and makes it durable only if they are equal. */
  finish(): Promise<Executed>;
  /** Gives the candidate up. Returns the recorded terminal, also if the task had ended before. */
  discard(why?: string): Promise<Executed>;
  /** How the task ended, once it has. */
  readonly ended: Promise<Executed>;
}

const DEADLINE_MS = 60_000;
const DEADLINE_MAX_MS = 15 * 60_000;
const CALLS = 100;
const CALLS_MAX = 10_000;

/** The limits of a task with defaults filled in; throws `ERR_EM_USAGE`. */
export function taskLimits(limits: TaskLimits): Required<TaskLimits> {
  const { deadlineMs = DEADLINE_MS, maxCalls = CALLS } = limits;
  demandWhole('deadlineMs', deadlineMs, DEADLINE_MAX_MS);
  demandWhole('maxCalls', maxCalls, CALLS_MAX);
  return { deadlineMs, maxCalls };
}

/** No longer than the backend holds a candidate. */
export function boundedBy(
  { adapters }: Deployment,
  name: string,
  limits: Required<TaskLimits>,
): Required<TaskLimits> {
  const adapter = adapters.get(name)?.adapter;
  const max = adapter?.capability === 'PROMOTABLE' ? adapter.taskMaxMs : undefined;
  return { ...limits, deadlineMs: Math.min(limits.deadlineMs, max ?? limits.deadlineMs) };
}

function demandWhole(name: string, value: unknown, max: number): void {
  if (Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= max) return;
  throw new EffectMatchError('ERR_EM_USAGE', `${name} must be a whole number from 1 to ${max}`);
}

/**
 * Opens a task under a license. The execution path is the one of `execute`: it waits between
 * staging and observing until the task is finished, and refuses what was given up.
 */
export async function openTask(
  deployment: Deployment,
  license: unknown,
  options: TaskOptions = {},
): Promise<Task | Terminal> {
  const { signal, revision } = options;
  const signed = parseSignedLicense(license);
  const limits = boundedBy(deployment, signed.license.adapter, taskLimits(options));
  signal?.throwIfAborted();
  const opened = Promise.withResolvers<HeldTask>();
  const serve = async (stage: TaskStage, attempt: Attempt): Promise<Refusal | undefined> => {
    const task = new HeldTask({ deployment, attempt, stage, limits, ended });
    const interrupt = () => void task.interrupt('its signal was aborted').catch(() => {});
    signal?.addEventListener('abort', interrupt, { once: true });
    deployment.tasks.add(task);
    if (signal?.aborted) interrupt();
    opened.resolve(task);
    try {
      return await task.over;
    } finally {
      signal?.removeEventListener('abort', interrupt);
      deployment.tasks.delete(task);
    }
  };
  const host = { deadlineMs: limits.deadlineMs, serve };
  const ended = executeSigned(deployment, signed, { kind: 'task', host }, { ...defined(revision) });
  // A ledger that cannot record is an error of `finish`; the process must not end because of it.
  ended.catch(() => {});
  return await Promise.race([opened.promise, ended]);
}

function defined(revision: string | undefined): ExecuteOptions {
  return revision === undefined ? {} : { revision };
}

/** Runs work with a task, and ends the task as the work ended. */
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

interface HeldTaskParts {
  readonly deployment: Deployment;
  readonly attempt: Attempt;
  readonly stage: TaskStage;
  readonly limits: Required<TaskLimits>;
  readonly ended: Promise<Executed>;
}

/** A task from the moment its candidate is open. Calls, finish and discard take turns. */
class HeldTask implements Task, OpenTask {
  readonly kind = 'open';
  readonly occurrence: OccurrenceId;
  readonly expiresAt: string;
  readonly ended: Promise<Executed>;
  /** Resolves when no call follows: with nothing if the task was finished. */
  readonly over: Promise<Refusal | undefined>;
  readonly #parts: HeldTaskParts;
  readonly #deadline: Deadline;
  readonly #timer: NodeJS.Timeout;
  readonly #end: (refusal: Refusal | undefined) => void;
  #calls = 0;
  #turn: Promise<unknown> = Promise.resolve();
  #ending: { readonly refusal: Refusal | undefined } | undefined;

  constructor(parts: HeldTaskParts) {
    const { deployment, attempt, limits, ended } = parts;
    const { clock } = deployment;
    this.#parts = parts;
    this.occurrence = attempt.occurrence;
    this.ended = ended;
    this.#deadline = deadlineIn(clock, limits.deadlineMs);
    this.expiresAt = instant(this.#deadline.atMs);
    const { promise, resolve } = Promise.withResolvers<Refusal | undefined>();
    this.over = promise;
    this.#end = resolve;
    this.#timer = setTimeout(() => this.#giveUp(this.#late()), limits.deadlineMs);
  }

  async call(action: unknown): Promise<CallAnswer> {
    return await this.#inTurn(() => this.#run(action));
  }

  async finish(): Promise<Executed> {
    await this.#inTurn(async () => {
      if (isOver(this.#parts.deployment.clock, this.#deadline)) this.#giveUp(this.#late());
      this.#close({ refusal: undefined });
    });
    return await this.ended;
  }

  async discard(why = 'the task was discarded'): Promise<Executed> {
    const detail = storableText(this.#parts.attempt.admitted, why);
    this.#giveUp({ reason: 'task-discarded', detail });
    return await this.ended;
  }

  async interrupt(why: string): Promise<Executed> {
    this.#giveUp({ reason: 'task-interrupted', detail: why });
    return await this.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.discard('the scope of the task was left before it was finished');
  }

  async #run(untrusted: unknown): Promise<CallAnswer> {
    const { deployment, attempt, limits, stage } = this.#parts;
    const { admitted } = attempt;
    if (isOver(deployment.clock, this.#deadline)) this.#giveUp(this.#late());
    else if (this.#calls === limits.maxCalls) this.#giveUp(spent(limits));
    if (this.#ending !== undefined) return { kind: 'failed', ...overOf(this.#ending.refusal) };
    this.#calls += 1;
    const read = readAction(admitted, untrusted);
    if (read.kind === 'refused') return { kind: 'failed', ...read.refusal };
    try {
      const answer = await stage.call(read.action);
      if (answer.kind === 'failed' && answer.isLost === true) this.#giveUp(answer);
      return answer;
    } catch (error) {
      const fault = faultOf(admitted, error);
      this.#giveUp(fault);
      return { kind: 'failed', ...fault, isLost: true };
    }
  }

  #late(): Refusal {
    const { deadlineMs } = this.#parts.limits;
    const detail = `the task was not finished within ${deadlineMs} ms`;
    return { reason: 'task-timeout', detail };
  }

  /** No call begins from here on; the candidate is given up when the running one has returned. */
  #giveUp({ reason, detail }: Refusal): void {
    if (this.#ending !== undefined) return;
    const ending = { refusal: { reason, detail } };
    this.#ending = ending;
    void this.#turn.then(() => this.#close(ending));
  }

  #close(ending: { readonly refusal: Refusal | undefined }): void {
    this.#ending ??= ending;
    clearTimeout(this.#timer);
    this.#end(this.#ending.refusal);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work);
    this.#turn = result.catch(() => {});
    return result;
  }
}

function spent({ maxCalls }: Required<TaskLimits>): Refusal {
  return { reason: 'task-budget', detail: `the task made more than ${maxCalls} calls` };
}

/** The answer to a call that comes too late. */
function overOf(refusal: Refusal | undefined): Refusal & { readonly isLost: true } {
  const why = refusal === undefined ? 'it was finished' : `nothing was kept: ${refusal.detail}`;
  return { reason: 'task-over', detail: `the task is over (${why})`, isLost: true };
}
