import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from '../postgres/connection.ts';

const DEADLINE_MS = 10_000;
const PREPARE = [
  'create schema if not exists effectmatch_engine',
  `create table if not exists effectmatch_engine.worker (
    name text primary key, seen timestamptz not null)`,
];
const BEAT = `insert into effectmatch_engine.worker (name, seen) values ($1, clock_timestamp())
  on conflict (name) do update set seen = excluded.seen`;
const LIVING = `select name from effectmatch_engine.worker
  where seen > clock_timestamp() - make_interval(secs => $1::float8 / 1000)`;
const LEAVE = 'delete from effectmatch_engine.worker where name = $1';
/** The key of the advisory lock; any number that all workers share. */
const STARTING = '7240024';
const PATIENCE_MS = 30_000;
const POLL_MS = 50;
const FORGET = `delete from effectmatch_engine.worker
  where seen < clock_timestamp() - interval '1 day'`;

/** When each worker was last seen, by the clock of the database that they share. */
export class Heartbeats {
  readonly #url: string;
  readonly #worker: string;
  readonly #silentMs: number;
  #session: Connection | undefined;
  #opening: Promise<Connection> | undefined;

  private constructor(url: string, worker: string, silentMs: number) {
    this.#url = url;
    this.#worker = worker;
    this.#silentMs = silentMs;
  }

  static async open(url: string, worker: string, silentMs: number): Promise<Heartbeats> {
    const heartbeats = new Heartbeats(url, worker, silentMs);
    await heartbeats.alone(async () => {
      for (const text of PREPARE) await heartbeats.#query(text);
    });
    await heartbeats.#query(FORGET);
    return heartbeats;
  }

  /**
   * Runs `work` while no other worker does. Workers that start at the same time would otherwise
   * create the same tables, and one of them would fail. A worker that has waited too long proceeds
   * without the lock, because the one that holds it is stuck.
   */
  async alone(work: () => Promise<void>): Promise<void> {
    const until = performance.now() + PATIENCE_MS;
    while (!(await this.#tryLock()) && performance.now() < until) await sleep(POLL_MS);
    try {
      await work();
    } finally {
      // If the session is gone, so is the lock.
      await this.#query('select pg_advisory_unlock($1)', [STARTING]).catch(() => {});
    }
  }

  async #tryLock(): Promise<boolean> {
    const { rows } = await this.#query('select pg_try_advisory_lock($1)', [STARTING]);
    return rows[0]?.[0] === 't';
  }

  async beat(): Promise<void> {
    await this.#query(BEAT, [this.#worker]);
  }

  /** The workers that were seen recently. */
  async living(): Promise<ReadonlySet<string>> {
    const { rows } = await this.#query(LIVING, [String(this.#silentMs)]);
    return new Set(rows.map(([name]) => String(name)));
  }

  /** Removes this worker's heartbeat, so that its runs are taken over at once. */
  async close(): Promise<void> {
    await this.#query(LEAVE, [this.#worker]).catch(() => {});
    await this.#session?.close();
  }

  async #query(text: string, values: readonly string[] = []) {
    if (this.#session?.isAlive !== true) {
      // Concurrent queries share one connection attempt.
      this.#opening ??= Connection.open(this.#url, 'effectmatch worker', DEADLINE_MS).finally(
        () => {
          this.#opening = undefined;
        },
      );
      this.#session = await this.#opening;
    }
    return await this.#session.query(text, values);
  }
}
