import { EffectMatchError } from '../../errors.ts';
import { asFault, Connection, sqlState, type WireStatement } from '../../postgres/connection.ts';
import type { ConnectionOptions } from '../../postgres/options.ts';
import type { Queries } from './fetch.ts';

/** Where a ledger is, and how long its operations wait for the server and for each other. */
export interface Place {
  readonly connection: ConnectionOptions;
  readonly queries: Queries;
  readonly deadlineMs: number;
  /** Whether the login may ask the server which log it writes to. */
  readonly namesLog: boolean;
}

/** How long a process may take to decide, while it holds the lock, before the server ends it. */
const DECIDING_MS = 10_000;

/** The settings end with the transaction, so that a pooler hands on nothing of them. */
export function beginning({ deadlineMs }: Place): readonly WireStatement[] {
  return [
    { text: 'begin isolation level read committed read write' },
    { text: `set local lock_timeout = ${deadlineMs}` },
    { text: `set local idle_in_transaction_session_timeout = ${DECIDING_MS}` },
  ];
}

export const COMMIT: WireStatement = { text: 'commit' };

/** For a transaction that writes nothing more. */
export const WAIT_FOR_FLUSH: WireStatement = { text: 'set local synchronous_commit = on' };

/** A session that gives up on a server that does not answer. */
export function openSession({ connection, deadlineMs }: Place): Promise<Connection> {
  return Connection.open(connection, 'effectmatch ledger', deadlineMs + DECIDING_MS);
}

/** The state of an error by which a wait for the lock ends. */
export const LOCK_TIMEOUT = '55P03';
/** Classes of errors after which the session, and perhaps the server, is gone. */
const LOST = /^(?:08|57P|25P03|53300)/;

/** Whether an error says that the session is gone. */
export function isLost(error: unknown): boolean {
  if (error instanceof EffectMatchError) return false;
  const state = sqlState(error);
  return state === undefined || LOST.test(state);
}

/** What is said after `close`. */
export function closed(): EffectMatchError<'ERR_EM_STORE_UNAVAILABLE'> {
  return new EffectMatchError('ERR_EM_STORE_UNAVAILABLE', 'the ledger was closed; open it again');
}

/** A fault of the server or the way to it, as the ledger reports it. */
export function unavailable(error: unknown): unknown {
  if (sqlState(error) === LOCK_TIMEOUT)
    return asFault(error, 'ERR_EM_STORE_BUSY', 'the ledger was locked by other decisions');
  return asFault(
    error,
    'ERR_EM_STORE_UNAVAILABLE',
    'the ledger in PostgreSQL cannot be used; check that the server runs and lets this login in',
  );
}
