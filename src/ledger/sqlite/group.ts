import { isBusy } from '../../sqlite/connection.ts';
import { type Session, writeFlushed } from './session.ts';

type Result =
  | { readonly kind: 'done'; readonly value: unknown }
  | { readonly kind: 'failed'; readonly error: unknown };

interface Waiting {
  readonly work: (session: Session) => unknown;
  readonly settle: (result: Result) => void;
  readonly fail: (error: unknown) => void;
}

/** How many turns of the event loop a decision waits for others after some came together. */
const PATIENCE = 2;
/**
 * How many are decided at once before the event loop gets its turn: everything else waits for it.
 */
const PER_TURN = 8;

/**
 * Decisions that arrive while a flush keeps the event loop busy share the next transaction and its
 * one flush. Each is still decided alone, by rows, in the order of arrival, and none counts before
 * the flush that covers it: a failed COMMIT fails all of them. One that throws is rolled back to
 * its own savepoint and takes nothing else with it.
 *
 * If no attempt of this process is under way and none came together lately, a decision is made at
 * once instead of waiting for a group.
 */
export class GroupCommit {
  readonly #session: Session;
  #waiting: Waiting[] = [];
  #committing = 0;
  #patience = 0;
  #inTurn = 0;

  constructor(session: Session) {
    this.#session = session;
  }

  run<T>(work: (session: Session) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({
        work,
        settle: (result) =>
          result.kind === 'done' ? resolve(result.value as T) : reject(result.error),
        fail: reject,
      });
      if (this.#committing > 0) this.#patience = PATIENCE;
      if (this.#waiting.length > 1) return;
      if (this.#entersAlone()) void this.#commit();
      else setImmediate(() => this.#endTurn());
    });
  }

  /** Whether a decision is made at once; those that are, are counted until the turn ends. */
  #entersAlone(): boolean {
    if (this.#patience > 0 || this.#session.underWay.size > 0 || this.#inTurn === PER_TURN)
      return false;
    if (this.#inTurn === 0) {
      setImmediate(() => {
        this.#inTurn = 0;
      });
    }
    this.#inTurn += 1;
    return true;
  }

  #endTurn(): void {
    this.#patience = this.#waiting.length > 1 ? PATIENCE : Math.max(0, this.#patience - 1);
    void this.#commit();
  }

  async #commit(): Promise<void> {
    const group = this.#waiting;
    this.#waiting = [];
    this.#committing += 1;
    try {
      const results = await writeFlushed(this.#session, () =>
        group.map(({ work }) => this.#decide(work, group.length)),
      );
      group.forEach(({ settle }, index) => {
        const result = results[index];
        if (result !== undefined) settle(result);
      });
    } catch (error) {
      for (const { fail } of group) fail(error);
    } finally {
      this.#committing -= 1;
    }
  }

  #decide(work: Waiting['work'], size: number): Result {
    const { sql } = this.#session;
    if (size === 1) return { kind: 'done', value: work(this.#session) };
    sql('savepoint decision').run();
    try {
      const value = work(this.#session);
      sql('release decision').run();
      return { kind: 'done', value };
    } catch (error) {
      // A busy file concerns all of them: the whole transaction is tried again.
      if (isBusy(error)) throw error;
      sql('rollback to decision').run();
      sql('release decision').run();
      return { kind: 'failed', error };
    }
  }
}
