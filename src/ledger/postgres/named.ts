import { hash } from 'node:crypto';
import {
  type Connection,
  type MessageAnswer,
  sqlState,
  type WireStatement,
} from '../../postgres/connection.ts';

const UNKNOWN_OR_KNOWN = new Set(['26000', '42P05']);

/**
 * Plans are made once, while the tables are small. A plan that scans all of a small table would
 * later scan all of a large one.
 */
const beginning = (lockMs: number): readonly WireStatement[] => [
  { text: 'deallocate all' },
  { text: 'set plan_cache_mode = force_generic_plan' },
  { text: 'set enable_seqscan = off' },
  { text: 'set jit = off' },
  { text: `set lock_timeout = ${lockMs}` },
];

/** The names that one session has prepared. */
interface Prepared {
  readonly names: Set<string>;
  /** The session is new or a message failed, so it is unknown which names exist. */
  isStale: boolean;
}

/**
 * Prepared statements, because parsing and planning cost more than running them. They are used only
 * on sessions known to be one server process: a pooler hands sessions on, so they must not keep
 * anything. A name is a digest of the text, so it never refers to another statement.
 */
export class NamedStatements {
  readonly #sessions = new WeakMap<Connection, Prepared>();
  readonly #asked = new WeakSet<Connection>();
  readonly #names = new Map<string, string>();
  readonly #beginning: readonly WireStatement[];
  #isPooled = false;

  /** Statements on such a session wait for a lock at most `lockMs`. */
  constructor(lockMs: number) {
    this.#beginning = beginning(lockMs);
  }

  /** Notes which process answered. If it is not the one from the login, there is a pooler. */
  answered(session: Connection, process: string | null | undefined): void {
    if (process == null || this.#isPooled) return;
    if (Number(process) !== session.processId) this.#isPooled = true;
    else if (!this.#sessions.has(session))
      this.#sessions.set(session, { names: new Set(), isStale: true });
  }

  /** Whether a session is known to be a single server process, which keeps its settings. */
  isOwn(session: Connection): boolean {
    return !this.#isPooled && this.#sessions.has(session);
  }

  /**
   * Sends queries outside a transaction, and asks a new session for its process first. If a name is
   * unknown, or exists already, a pooler handed the session on, and the text is sent instead.
   */
  async read(session: Connection, statements: readonly WireStatement[]): Promise<MessageAnswer> {
    if (!this.#asked.has(session)) {
      this.#asked.add(session);
      const { rows } = await session.query('select pg_catalog.pg_backend_pid()');
      this.answered(session, rows[0]?.[0]);
    }
    const answer = await this.run(session, statements);
    if (!UNKNOWN_OR_KNOWN.has(sqlState(answer.failure?.error) ?? '')) return answer;
    this.#isPooled = true;
    return await session.run(statements);
  }

  /** Sends a message, with prepared names if the session may keep them. */
  async run(session: Connection, statements: readonly WireStatement[]): Promise<MessageAnswer> {
    const prepared = this.isOwn(session) ? this.#sessions.get(session) : undefined;
    if (prepared === undefined) return await session.run(statements);
    const first = prepared.isStale ? this.#beginning : [];
    if (prepared.isStale) prepared.names.clear();
    const named = statements.map((statement) => this.#name(prepared, statement));
    const { replies, ...ended } = await session.run([...first, ...named]);
    if (ended.failure !== undefined) prepared.isStale = true;
    else if (first.length > 0) prepared.isStale = false;
    return { replies: replies.slice(first.length), ...ended };
  }

  /** Names a statement. Statements without values are not worth preparing. */
  #name({ names }: Prepared, statement: WireStatement): WireStatement {
    const { text, values } = statement;
    if (text === undefined || values === undefined) return statement;
    const name = this.#names.get(text) ?? `effectmatch_${hash('sha256', text).slice(0, 32)}`;
    this.#names.set(text, name);
    if (names.has(name)) return { prepared: name, values };
    names.add(name);
    return { text, prepared: name, values };
  }
}
