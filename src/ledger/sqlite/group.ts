import { isBusy } from '../../sqlite/connection.ts';
import { decideFlushed, type Session } from './session.ts';

type Result =
  | { readonly kind: 'done'; readonly value: unknown }
  | { readonly kind: 'failed'; readonly error: unknown };

interface Waiting {
  readonly work: (session: Session) => unknown;
  readonly settle: (result: Result) => void;
  readonly fail: (error: unknown) => void;
}

/** For so many turns of the event loop somebody waits for company after there was some. */
const PATIENCE = 2;
/**
 * So many are decided at once before the event loop gets its turn: everything else waits for it.
 */
const PER_TURN = 8;

/**
 * Decisions that arrive while a flush keeps the event loop busy share the next transaction and its
 * one flush. Each is still decided alone, by rows, in the order of arrival, and none counts before
 * the flush that covers it: a failed COMMIT fails all of them. One that throws is rolled back to
 * its own savepoint and takes nothing else with it.
 *
 * Waiting for the end of the turn is only worth it where others are about. Who comes while no
 * attempt of this process is under way, and nobody met anybody lately, is decided at once.
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

  /** Whether the one who comes is decided at once; who is, is counted until the turn ends. */
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
      const results = await decideFlushed(this.#session, () =>
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
