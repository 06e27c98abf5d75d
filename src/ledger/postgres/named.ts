import { hash } from 'node:crypto';
import {
  type Connection,
  type MessageAnswer,
  sqlState,
  type WireStatement,
} from '../../postgres/connection.ts';

const UNKNOWN_OR_KNOWN = new Set(['26000', '42P05']);

/**
 * Plans are made once, while the tables are small: one that reads all of a small table would read
 * all of a large one later.
 */
const BEGINNING: readonly WireStatement[] = [
  { text: 'deallocate all' },
  { text: 'set plan_cache_mode = force_generic_plan' },
  { text: 'set enable_seqscan = off' },
  { text: 'set jit = off' },
];

/** What one session has prepared, by name. */
interface Prepared {
  readonly names: Set<string>;
  /** It is new, or a message failed: it is not known which names exist. */
  isStale: boolean;
}

/**
 * Statements that a server keeps parsed and planned, which costs more than running them. Only on
 * sessions that were shown to be a process of the server and no pooler's: one that is handed on
 * must not keep anything. A name is a digest of its text, so that it never stands for another.
 */
export class NamedStatements {
  readonly #sessions = new WeakMap<Connection, Prepared>();
  readonly #asked = new WeakSet<Connection>();
  readonly #names = new Map<string, string>();
  #isPooled = false;

  /** Takes note of the process that answered a session. Another than at login is a pooler's. */
  answered(session: Connection, process: string | null | undefined): void {
    if (process == null || this.#isPooled) return;
    if (Number(process) !== session.processId) this.#isPooled = true;
    else if (!this.#sessions.has(session))
      this.#sessions.set(session, { names: new Set(), isStale: true });
  }

  /** Whether a session was shown to be one process of the server. */
  isOwn(session: Connection): boolean {
    return !this.#isPooled && this.#sessions.has(session);
  }

  /**
   * Sends questions outside a transaction, and asks a new session which process it is. A session
   * that does not know a name after all, or knows it already, was handed on: it is asked by text.
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

  /** Sends a message, with names where the session may have them. */
  async run(session: Connection, statements: readonly WireStatement[]): Promise<MessageAnswer> {
    const prepared = this.isOwn(session) ? this.#sessions.get(session) : undefined;
    if (prepared === undefined) return await session.run(statements);
    const first = prepared.isStale ? BEGINNING : [];
    if (prepared.isStale) prepared.names.clear();
    const named = statements.map((statement) => this.#name(prepared, statement));
    const { replies, ...ended } = await session.run([...first, ...named]);
    if (ended.failure !== undefined) prepared.isStale = true;
    else if (first.length > 0) prepared.isStale = false;
    return { replies: replies.slice(first.length), ...ended };
  }

  /** Statements without a list of values are not worth it. */
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
