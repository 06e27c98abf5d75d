import type { CallAnswer, Survey, TaskStage } from '../contract/adapter.ts';
import { type Deadline, deadlineIn, instant, isOver } from '../contract/clock.ts';
import { EffectMatchError } from '../errors.ts';
import { faultOf, type Refusal, readAction } from './attempt.ts';
import { refuseReached } from './boundary.ts';
import type { AdmittedPromotable, Deployment } from './deployment.ts';

/** How long a candidate may be held, and how many calls it may take. */
export interface TaskLimits {
  /**
   * The candidate is discarded after this time. The default is 60 s, the maximum 15 minutes or what
   * the backend allows. Locks are held for as long: on SQLite, the write lock of the whole file.
   */
  readonly deadlineMs?: number;
  /** One more call than this discards the candidate. The default is 100, the maximum 10 000. */
  readonly maxCalls?: number;
}

const DEADLINE_MS = 60_000;
const DEADLINE_MAX_MS = 15 * 60_000;
const CALLS = 100;
const CALLS_MAX = 10_000;

/** The limits for one adapter, with the defaults filled in. Throws `ERR_EM_USAGE`. */
export function limitsFor(
  { adapters }: Deployment,
  name: string,
  limits: TaskLimits,
): Required<TaskLimits> {
  const { deadlineMs = DEADLINE_MS, maxCalls = CALLS } = limits;
  demandWhole('deadlineMs', deadlineMs, DEADLINE_MAX_MS);
  demandWhole('maxCalls', maxCalls, CALLS_MAX);
  const adapter = adapters.get(name)?.adapter;
  const max = adapter?.capability === 'PROMOTABLE' ? adapter.taskMaxMs : undefined;
  return { deadlineMs: Math.min(deadlineMs, max ?? deadlineMs), maxCalls };
}

/** Throws `ERR_EM_USAGE` unless the value is a whole number from 1 to `max`. */
export function demandWhole(name: string, value: unknown, max: number): void {
  if (Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= max) return;
  throw new EffectMatchError('ERR_EM_USAGE', `${name} must be a whole number from 1 to ${max}`);
}

/** The held candidate that calls run on, and their limits. */
export interface CallsOn {
  readonly deployment: Deployment;
  readonly admitted: AdmittedPromotable;
  readonly stage: TaskStage;
  /** The survey that the candidate was certified by. */
  readonly survey: Survey;
  readonly limits: Required<TaskLimits>;
}

/**
 * The calls on one held candidate, one at a time. The deadline, the budget or a lost candidate ends
 * them.
 */
export class Calls {
  readonly expiresAt: string;
  /**
   * Resolves when no call can follow: with a refusal, or with undefined if the calls were
   * completed.
   */
  readonly over: Promise<Refusal | undefined>;
  readonly #on: CallsOn;
  readonly #deadline: Deadline;
  readonly #timer: NodeJS.Timeout;
  readonly #end: (refusal: Refusal | undefined) => void;
  #count = 0;
  #turn: Promise<unknown> = Promise.resolve();
  #ending: { readonly refusal: Refusal | undefined } | undefined;

  constructor(on: CallsOn) {
    const { deployment, limits } = on;
    this.#on = on;
    this.#deadline = deadlineIn(deployment.clock, limits.deadlineMs);
    this.expiresAt = instant(this.#deadline.atMs);
    const { promise, resolve } = Promise.withResolvers<Refusal | undefined>();
    this.over = promise;
    this.#end = resolve;
    this.#timer = setTimeout(() => this.giveUp(this.#late()), limits.deadlineMs);
  }

  /** Runs one action, after any pending calls. A failed action changes nothing. */
  async call(action: unknown): Promise<CallAnswer> {
    return await this.#inTurn(() => this.#run(action));
  }

  /** Ends the calls once the pending ones have run. Has no effect if they have already ended. */
  async complete(): Promise<void> {
    await this.#inTurn(async () => {
      this.#endIfLate();
      this.#close({ refusal: undefined });
    });
  }

  /** Starts no further call. The candidate is discarded when the running call has returned. */
  giveUp({ reason, detail }: Refusal): void {
    if (this.#ending !== undefined) return;
    const ending = { refusal: { reason, detail } };
    this.#ending = ending;
    void this.#turn.then(() => this.#close(ending));
  }

  async #run(untrusted: unknown): Promise<CallAnswer> {
    const { admitted, limits, stage, survey } = this.#on;
    this.#endIfLate();
    if (this.#count === limits.maxCalls) this.giveUp(spent(limits));
    if (this.#ending !== undefined) return { kind: 'failed', ...overOf(this.#ending.refusal) };
    this.#count += 1;
    const read = readAction(admitted, untrusted);
    if (read.kind === 'refused') return { ...read, kind: 'failed' };
    const refusal = refuseReached(admitted, survey, { action: read.action, reads: [] });
    if (refusal !== undefined) return { ...refusal, kind: 'failed' };
    try {
      const answer = await stage.call(read.action);
      if (answer.kind === 'failed' && answer.isLost === true) this.giveUp(answer);
      return answer;
    } catch (error) {
      const fault = faultOf(admitted, error);
      this.giveUp(fault);
      return { ...fault, kind: 'failed', isLost: true };
    }
  }

  #endIfLate(): void {
    if (isOver(this.#on.deployment.clock, this.#deadline)) this.giveUp(this.#late());
  }

  #late(): Refusal {
    const { deadlineMs } = this.#on.limits;
    const detail = `it was not finished within ${deadlineMs} ms`;
    return { reason: 'task-timeout', detail };
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
  return { reason: 'task-budget', detail: `it made more than ${maxCalls} calls` };
}

/** The answer to a call that comes too late. */
function overOf(refusal: Refusal | undefined): Refusal & { readonly isLost: true } {
  const why = refusal === undefined ? 'it was finished' : `nothing was kept: ${refusal.detail}`;
  return { reason: 'task-over', detail: `the task is over (${why})`, isLost: true };
}
