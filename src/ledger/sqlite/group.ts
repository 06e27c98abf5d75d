import { immediate, isBusy } from '../../sqlite/connection.ts';
import type { Session } from './session.ts';

type Result = { readonly kind: 'done'; readonly value: unknown } | { readonly kind: 'failed'; readonly error: unknown };

interface Waiting {
  readonly work: (session: Session) => unknown;
  readonly settle: (result: Result) => void;
  readonly fail: (error: unknown) => void;
}

/**
 * Decisions that arrive while a flush keeps the event loop busy share the next transaction and its one flush. Each is
 * still decided alone, by rows, in the order of arrival, and none counts before the flush that covers it: a failed
 * COMMIT fails all of them. One that throws is rolled back to its own savepoint and takes nothing else with it.
 */
export class GroupCommit {
  readonly #session: Session;
  #waiting: Waiting[] = [];

  constructor(session: Session) {
    this.#session = session;
  }

  run<T>(work: (session: Session) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      // The next turn of the loop: until then everything that is ready has asked.
      if (this.#waiting.length === 0) setImmediate(() => void this.#commit());
      this.#waiting.push({
        work,
        settle: (result) => (result.kind === 'done' ? resolve(result.value as T) : reject(result.error)),
        fail: reject,
      });
    });
  }

  async #commit(): Promise<void> {
    const group = this.#waiting;
    this.#waiting = [];
    const { db, patience } = this.#session;
    try {
      const results = await immediate(db, () => group.map(({ work }) => this.#decide(work, group.length)), patience);
      group.forEach(({ settle }, index) => {
        const result = results[index];
        if (result !== undefined) settle(result);
      });
    } catch (error) {
      for (const { fail } of group) fail(error);
    }
  }

  #decide(work: Waiting['work'], size: number): Result {
    const session = this.#session;
    if (size === 1) return { kind: 'done', value: work(session) };
    session.sql('savepoint decision').run();
    try {
      const value = work(session);
      session.sql('release decision').run();
      return { kind: 'done', value };
    } catch (error) {
      // A busy file concerns all of them: the whole transaction is tried again.
      if (isBusy(error)) throw error;
      session.sql('rollback to decision').run();
      session.sql('release decision').run();
      return { kind: 'failed', error };
    }
  }
}
