import { EffectMatchError } from '../../errors.ts';
import { asFault, Connection } from '../../postgres/connection.ts';
import type { ConnectionOptions } from '../../postgres/options.ts';
import type { SessionOptions } from './options.ts';
import { demandOwnProcesses } from './pooling.ts';
import { CALLS, PreparedTexts } from './prepared.ts';

/**
 * Resets a session before another operation may use it. Clears everything that DISCARD ALL clears,
 * except cached plans, which cost more to rebuild than all the rest, and the statements that the
 * runtime prepared. Also changes the random seed and flushes the counters. Two things remain. A
 * custom setting that was ever named reads as '' instead of unset. Statements in functions keep
 * their literals as they were read under the settings of their first run; no setting can change the
 * literals in our own functions.
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
 * Resets a session that is not in a transaction. False if others prepared or removed statements.
 * After a COMMIT, which has checked that already, it is not checked again.
 */
export async function isReset(session: Connection, isCommitted = false): Promise<boolean> {
  const script = isCommitted ? RESET : `${RESET}; select effectmatch.calls_intact()`;
  return (await session.script(script)).at(-1)?.rows[0]?.[0] === 't';
}

/**
 * The database and server version of a session, as far as this login can tell. Does not depend on
 * the search path.
 */
const PLACE = `select pg_catalog.concat_ws(' ', d.oid,
    pg_catalog.current_setting('server_version_num')::pg_catalog.int4 operator(pg_catalog./) 10000),
    pg_catalog.current_setting('search_path')
  from pg_catalog.pg_database as d where d.datname operator(pg_catalog.=) pg_catalog.current_database()`;

/** Ends a caller's wait, with a session if there is one. */
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
  /** How many sessions are being reset. */
  #resetting = 0;
  /** The database of the first session. All others must be in the same one. */
  #place: string | undefined;
  /** The search path of the first session. With `pinsPath`, all others must have the same one. */
  #path: string | undefined;
  readonly #pinsPath: boolean;
  #closed = false;

  /**
   * `deadlineMs` is how long any answer may take. It must be longer than the server lets an
   * operation run. With `pinsPath`, a session whose search path differs from the first one's is
   * refused.
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

  /** A session in its initial state; undefined if none becomes free in time. */
  async take(withinMs: number): Promise<Connection | undefined> {
    if (this.#closed)
      throw new EffectMatchError('ERR_EM_ADAPTER_UNAVAILABLE', 'the adapter is closed');
    for (let session = this.#idle.pop(); session !== undefined; session = this.#idle.pop()) {
      if (session.isAlive) return session;
      this.#all.delete(session);
    }
    // A session that is being reset is ready sooner than a new one, and has its plans and caches.
    if (this.#resetting > this.#waiting.length) return await this.#wait(withinMs);
    return await (this.#hasRoom ? this.#open() : this.#wait(withinMs));
  }

  /** The action texts that a session of this pool has prepared. */
  textsOf(session: Connection): PreparedTexts {
    return this.#all.get(session) ?? new PreparedTexts();
  }

  /**
   * Takes a session back. Closes it if it is not reused or cannot be reset. `asked` is a reset that
   * is already under way.
   */
  async giveBack(session: Connection, asked?: Promise<boolean>): Promise<void> {
    const isReusable = this.#reuse && !this.#closed && session.isAlive;
    if (!isReusable) return await this.drop(session);
    this.#resetting += 1;
    const resetting = resetSession(session, this.textsOf(session), asked ?? isReset(session));
    const isClean = await resetting.then(
      () => true,
      () => false,
    );
    // In the same turn as the offer: a caller must find the session as one or the other.
    this.#resetting -= 1;
    if (!isClean) return await this.drop(session);
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
   * The login's name on the server. Refuses a login whose sessions are shared between operations.
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
   * Admission proved that both logins use the same database. An address that leads elsewhere later
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

  /** The names of the schemas that sessions search, including schemas that do not exist. */
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

/**
 * A schema as the server reads it from a search path: folded to lower case unless quoted, and
 * truncated.
 */
function readSchema(text: string): string {
  const isQuoted = text.startsWith('"');
  const name = isQuoted
    ? text.slice(1, -1).replaceAll('""', '"')
    : text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  return Buffer.from(name).subarray(0, 63).toString();
}
