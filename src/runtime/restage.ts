import { setTimeout as sleep } from 'node:timers/promises';
import type { Staged } from '../contract/adapter.ts';
import { type Deadline, deadlineIn, isOver } from '../contract/clock.ts';
import { isName } from '../protocol/record.ts';
import { joinResidue, type Residue } from '../protocol/residue.ts';
import { type FailedTry, MAX_TRIES } from '../protocol/terminal.ts';
import type { Refused } from './attempt.ts';
import { checkState, checkTime } from './authority.ts';
import { type Deployment, nowInstant } from './deployment.ts';
import type { Established } from './gate.ts';

const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 1000;

/**
 * The tries of one claimed execution. A stage that failed because of other transactions and left
 * nothing is retried under the same claim until the time is up. Nothing is retried after a
 * promotion was issued.
 */
export class Tries {
  readonly #deployment: Deployment;
  readonly #until: Deadline;
  readonly #failed: FailedTry[] = [];
  #residue: readonly Residue[] = [];
  #pauseMs = FIRST_PAUSE_MS;

  constructor(deployment: Deployment) {
    this.#deployment = deployment;
    this.#until = deadlineIn(deployment.clock, deployment.restageMs);
  }

  /** Earlier failed tries, as a terminal lists them. */
  get failed(): readonly FailedTry[] {
    return this.#failed;
  }

  /** What rollbacks could not undo, in this try and in earlier ones. */
  residue(last: readonly Residue[] | undefined): readonly Residue[] {
    return joinResidue(this.#residue, last);
  }

  /**
   * Waits before the next try. Returns false if there should be no next try: waiting would not
   * help, or the time is up.
   */
  async waitAfter(failure: Extract<Staged, { kind: 'failed' }>): Promise<boolean> {
    const { clock } = this.#deployment;
    if (failure.transient !== true || isOver(clock, this.#until)) return false;
    if (this.#failed.length === MAX_TRIES) return false;
    const reason = isName(failure.reason) ? failure.reason : 'unnamed';
    this.#failed.push({ at: nowInstant(this.#deployment), reason });
    this.#residue = this.residue(failure.residue);
    // Two transactions that blocked each other must not retry at the same moment.
    await sleep(this.#pauseMs * (0.5 + Math.random() / 2));
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
    return true;
  }

  /**
   * What changed since the claim, so that a further try could only fail; undefined if nothing did.
   */
  async findStale(
    claimed: Pick<Established, 'attempt' | 'revision'>,
  ): Promise<Refused | undefined> {
    const { attempt, revision } = claimed;
    const readings = await attempt.admitted.adapter.read(attempt.reads);
    return checkState(attempt, readings, revision) ?? checkTime(this.#deployment, attempt);
  }
}
