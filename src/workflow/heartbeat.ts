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
const FORGET = `delete from effectmatch_engine.worker
  where seen < clock_timestamp() - interval '1 day'`;

/** When workers were last seen, by the clock of the database that they share. */
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
    // Two workers that start at once may both make the table, and one of them fails.
    for (const text of PREPARE) await heartbeats.#query(text).catch(() => heartbeats.#query(text));
    await heartbeats.#query(FORGET);
    return heartbeats;
  }

  async beat(): Promise<void> {
    await this.#query(BEAT, [this.#worker]);
  }

  /** The workers that were seen lately. */
  async living(): Promise<ReadonlySet<string>> {
    const { rows } = await this.#query(LIVING, [String(this.#silentMs)]);
    return new Set(rows.map(([name]) => String(name)));
  }

  /** Says that this worker is gone, so that its runs are taken over at once. */
  async close(): Promise<void> {
    await this.#query(LEAVE, [this.#worker]).catch(() => {});
    await this.#session?.close();
  }

  async #query(text: string, values: readonly string[] = []) {
    if (this.#session?.isAlive !== true) {
      // Once for all that ask at the same time.
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
