import { EffectMatchError } from '../../errors.ts';
import { asFault, Connection } from '../../postgres/connection.ts';
import type { ConnectionOptions } from '../../postgres/options.ts';
import type { SessionOptions } from './options.ts';
import { demandOwnProcesses } from './pooling.ts';
import { CALLS, PreparedTexts } from './prepared.ts';

/**
 * What a session forgets before another operation may use it: everything that DISCARD ALL forgets
 * except cached plans, which cost more to make again than all of the rest, and our own prepared
 * calls, which must still be there; and besides the random seed. The counters of the second witness
 * are flushed as well. Left over is one bit per custom setting that was ever named, since an unset
 * one reads as '' from then on, and how statements of functions were first understood: their
 * literals, under settings of that moment. Our own have none that a setting could change.
 */
const RESET =
  'close all; set session authorization default; reset all; unlisten *;' +
  ' discard temp; discard sequences; select effectmatch.reset()';

async function resetSession(
  session: Connection,
  texts: PreparedTexts,
  asked: Promise<boolean>,
): Promise<void> {
  if ((await asked) && !texts.isSpent) return;
  await session.script('deallocate all');
  texts.forget();
  await session.prepare(CALLS);
  if (!(await isReset(session))) throw new Error('the session cannot be cleaned');
}

/**
 * Resets a session that is in no transaction; false where statements were prepared or removed by
 * others, which is not asked again after a COMMIT.
 */
export async function isReset(session: Connection, isCommitted = false): Promise<boolean> {
  const script = isCommitted ? RESET : `${RESET}; select effectmatch.calls_intact()`;
  return (await session.script(script)).at(-1)?.rows[0]?.[0] === 't';
}

/**
 * Which database of which server version a session is in, as far as this login can tell. Names no
 * object by its path.
 */
const PLACE = `select pg_catalog.concat_ws(' ', d.oid,
    pg_catalog.current_setting('server_version_num')::pg_catalog.int4 operator(pg_catalog./) 10000),
    pg_catalog.current_setting('search_path')
  from pg_catalog.pg_database as d where d.datname operator(pg_catalog.=) pg_catalog.current_database()`;

/** Ends the wait of a caller, with a session if there is one. */
type Waiter = (session: Connection | undefined) => void;

/** The execution login's sessions. Each serves one operation at a time. */
export class Sessions {
  readonly #options: ConnectionOptions;
  readonly max: number;
  readonly #deadlineMs: number | undefined;
  readonly #reuse: boolean;
  readonly #idle: Connection[] = [];
  readonly #waiting: Waiter[] = [];
  readonly #all = new Map<Connection, PreparedTexts>();
  #opening = 0;
  /** Sessions that are being reset. */
  #resetting = 0;
  /** Where the first session led; all others must lead there. */
  #place: string | undefined;
  /** The search path of the first session, where all must have the same. */
  #path: string | undefined;
  readonly #pinsPath: boolean;
  #closed = false;

  /**
   * `deadlineMs` is how long any answer may take: longer than the server itself lets an operation
   * run. With `pinsPath`, names mean the same in all sessions, or none is opened.
   */
  constructor(
    options: ConnectionOptions,
    { max = 10, reuse = true }: SessionOptions = {},
    deadlineMs?: number,
    pinsPath = false,
  ) {
    this.#pinsPath = pinsPath;
    this.#options = options;
    this.#deadlineMs = deadlineMs;
    this.max = max;
    this.#reuse = reuse;
  }

  /** A session in its first state; undefined when none became free in time. */
  async take(withinMs: number): Promise<Connection | undefined> {
    if (this.#closed)
      throw new EffectMatchError('ERR_EM_ADAPTER_UNAVAILABLE', 'the adapter is closed');
    for (let session = this.#idle.pop(); session !== undefined; session = this.#idle.pop()) {
      if (session.isAlive) return session;
      this.#all.delete(session);
    }
    // One that is being reset is there sooner than a new one, and has its plans and caches.
    if (this.#resetting > this.#waiting.length) return await this.#wait(withinMs);
    return await (this.#hasRoom ? this.#open() : this.#wait(withinMs));
  }

  /** What a session of this pool has prepared of actions. */
  textsOf(session: Connection): PreparedTexts {
    return this.#all.get(session) ?? new PreparedTexts();
  }

  /**
   * Takes a session back. One that is not reused, or cannot be reset, is closed; `asked` is a reset
   * under way.
   */
  async giveBack(session: Connection, asked?: Promise<boolean>): Promise<void> {
    try {
      if (!this.#reuse || this.#closed || !session.isAlive) throw new Error('not reused');
      this.#resetting += 1;
      const texts = this.textsOf(session);
      await resetSession(session, texts, asked ?? isReset(session)).finally(() => {
        this.#resetting -= 1;
      });
    } catch {
      await this.drop(session);
      return;
    }
    this.#offer(session);
  }

  /** Ends a session whose state is in doubt. */
  async drop(session: Connection): Promise<void> {
    this.#all.delete(session);
    await session.close();
    if (this.#waiting.length === 0 || this.#closed || !this.#hasRoom) return;
    try {
      this.#offer(await this.#open());
    } catch {
      this.#waiting.shift()?.(undefined);
    }
  }

  get #hasRoom(): boolean {
    return this.#all.size + this.#opening < this.max;
  }

  /**
   * The login that the sessions have, as the server calls it. Refuses one whose sessions are shared
   * between operations.
   */
  async login(): Promise<string> {
    const session = await this.take(0);
    if (session === undefined)
      throw new EffectMatchError('ERR_EM_ADAPTER_UNAVAILABLE', 'no session is free');
    const { rows } = await session.query('select session_user');
    await demandOwnProcesses(session, this.#options);
    await this.giveBack(session);
    return String(rows[0]?.[0]);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const waiting of this.#waiting.splice(0)) waiting(undefined);
    await Promise.all([...this.#all.keys()].map((session) => session.close()));
    this.#all.clear();
    this.#idle.length = 0;
  }

  async #open(): Promise<Connection> {
    this.#opening += 1;
    try {
      const session = await Connection.open(
        this.#options,
        'effectmatch execution',
        this.#deadlineMs,
      );
      await this.#demandSamePlace(session);
      await session.prepare(CALLS);
      this.#all.set(session, new PreparedTexts());
      return session;
    } catch (error) {
      throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'the execution login could not connect');
    } finally {
      this.#opening -= 1;
    }
  }

  /**
   * Admission proved that both logins meet in one database; an address that leads elsewhere later
   * would undo that.
   */
  async #demandSamePlace(session: Connection): Promise<void> {
    try {
      const { rows } = await session.query(PLACE);
      const place = String(rows[0]?.[0]);
      this.#place ??= place;
      this.#demandSamePath(String(rows[0]?.[1]));
      if (place === this.#place) return;
      const what =
        'postgres: the address of the execution login leads to another database than when it was opened';
      throw new EffectMatchError('ERR_EM_ADAPTER_UNAVAILABLE', `${what}; restart`);
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  #demandSamePath(path: string): void {
    this.#path ??= path;
    if (!this.#pinsPath || path === this.#path) return;
    const what = `postgres: the search_path of the execution login was ${this.#path} and now is ${path}`;
    throw new EffectMatchError('ERR_EM_ADAPTER_UNAVAILABLE', `${what}; restart`);
  }

  /** The schemas that sessions search, by name; those that do not exist are among them. */
  searchPath(login: string): readonly string[] {
    const parts = this.#path?.match(/(?:"(?:[^"]|"")*"|[^,"])+/g) ?? [];
    const names = parts.map((part) => readSchema(part.trim()));
    return names.map((name) => (name === '$user' ? login : name));
  }

  #offer(session: Connection): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#idle.push(session);
    else next(session);
  }

  async #wait(withinMs: number): Promise<Connection | undefined> {
    const { promise, resolve } = Promise.withResolvers<Connection | undefined>();
    this.#waiting.push(resolve);
    const timer = setTimeout(() => {
      const place = this.#waiting.indexOf(resolve);
      if (place >= 0) this.#waiting.splice(place, 1);
      resolve(undefined);
    }, withinMs);
    return await promise.finally(() => clearTimeout(timer));
  }
}

/** A schema as the server reads it from a search path: folded unless quoted, and cut. */
function readSchema(text: string): string {
  const isQuoted = text.startsWith('"');
  const name = isQuoted
    ? text.slice(1, -1).replaceAll('""', '"')
    : text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  return Buffer.from(name).subarray(0, 63).toString();
}
