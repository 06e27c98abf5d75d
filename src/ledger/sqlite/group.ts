import { immediate, isBusy } from '../../sqlite/connection.ts';
import type { Session } from './tables.ts';

type Result =
  | { readonly kind: 'done'; readonly value: unknown }
  | { readonly kind: 'failed'; readonly error: unknown };

interface Waiting {
  readonly work: (session: Session) => unknown;
  readonly settle: (result: Result) => void;
  readonly fail: (error: unknown) => void;
}

/** After decisions were grouped, grouping stays on for this many turns of the event loop. */
const PATIENCE = 2;
/**
 * How many decisions per turn of the event loop are made at once. Further ones wait, so that other
 * work gets its turn.
 */
const PER_TURN = 8;

/**
 * Decisions that arrive while a flush blocks the event loop share the next transaction and its
 * single flush. Each is still decided separately, from rows, in order of arrival. None counts
 * before the flush that covers it: a failed COMMIT fails all of them. A decision that throws is
 * rolled back to its savepoint and does not affect the others.
 *
 * If no attempt of this process is under way and no decisions were grouped recently, a decision is
 * made at once instead of waiting for a group.
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

  async run<T>(work: (session: Session) => T): Promise<T> {
    if (this.#committing > 0) this.#patience = PATIENCE;
    if (this.#waiting.length === 0 && this.#entersAlone())
      return await this.#transact(() => work(this.#session));
    return await new Promise((resolve, reject) => {
      this.#waiting.push({
        work,
        settle: (result) =>
          result.kind === 'done' ? resolve(result.value as T) : reject(result.error),
        fail: reject,
      });
      if (this.#waiting.length === 1) setImmediate(() => this.#endTurn());
    });
  }

  /** Whether to decide at once. Such decisions are counted until the turn ends. */
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
    try {
      const results = await this.#transact(() => group.map(({ work }) => this.#decide(work)));
      group.forEach(({ settle }, index) => {
        const result = results[index];
        if (result !== undefined) settle(result);
      });
    } catch (error) {
      for (const { fail } of group) fail(error);
    }
  }

  async #transact<T>(decide: () => T): Promise<T> {
    const { store } = this.#session;
    this.#committing += 1;
    try {
      return await immediate(store.db, decide, store);
    } finally {
      this.#committing -= 1;
    }
  }

  #decide(work: Waiting['work']): Result {
    const { sql } = this.#session;
    sql('savepoint decision').run();
    try {
      const value = work(this.#session);
      sql('release decision').run();
      return { kind: 'done', value };
    } catch (error) {
      // A busy file affects the whole group, so the whole transaction is retried.
      if (isBusy(error)) throw error;
      sql('rollback to decision').run();
      sql('release decision').run();
      return { kind: 'failed', error };
    }
  }
}
