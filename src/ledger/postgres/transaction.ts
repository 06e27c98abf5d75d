import { EffectMatchError } from '../../errors.ts';
import { asFault, Connection, sqlState, type WireStatement } from '../../postgres/connection.ts';
import type { ConnectionOptions } from '../../postgres/options.ts';
import type { Queries } from './fetch.ts';

/** Where a ledger is, and how long its operations wait for the server and for each other. */
export interface Place {
  readonly connection: ConnectionOptions;
  readonly queries: Queries;
  readonly deadlineMs: number;
  /** Whether the login may ask which log the server writes to. */
  readonly namesLog: boolean;
}

/** How long a process may hold the lock while it decides, before the server ends its session. */
const DECIDING_MS = 10_000;

/** Starts a transaction. The settings end with it, so a pooler does not pass them on. */
export function beginning({ deadlineMs }: Place): readonly WireStatement[] {
  return [
    { text: 'begin isolation level read committed read write' },
    { text: `set local lock_timeout = ${deadlineMs}` },
    { text: `set local idle_in_transaction_session_timeout = ${DECIDING_MS}` },
  ];
}

export const COMMIT: WireStatement = { text: 'commit' };

/** For a transaction that has nothing else to write. */
export const WAIT_FOR_FLUSH: WireStatement = { text: 'set local synchronous_commit = on' };

/** Opens a session that gives up if the server does not answer. */
export function openSession({ connection, deadlineMs }: Place): Promise<Connection> {
  return Connection.open(connection, 'effectmatch ledger', deadlineMs + DECIDING_MS);
}

/** The SQLSTATE of a lock timeout. */
export const LOCK_TIMEOUT = '55P03';
/** SQLSTATEs that mean the session, and perhaps the server, is gone. */
const LOST = /^(?:08|57P|25P03|53300)/;

/** Whether an error means that the session is gone. */
export function isLost(error: unknown): boolean {
  if (error instanceof EffectMatchError) return false;
  const state = sqlState(error);
  return state === undefined || LOST.test(state);
}

/** The error for calls after `close`. */
export function closed(): EffectMatchError<'ERR_EM_STORE_UNAVAILABLE'> {
  return new EffectMatchError('ERR_EM_STORE_UNAVAILABLE', 'the ledger was closed; open it again');
}

/** Turns an error of the server or the connection into the ledger's fault. */
export function unavailable(error: unknown): unknown {
  if (sqlState(error) === LOCK_TIMEOUT)
    return asFault(error, 'ERR_EM_STORE_BUSY', 'the ledger was locked by other decisions');
  return asFault(
    error,
    'ERR_EM_STORE_UNAVAILABLE',
    'the ledger in PostgreSQL cannot be used; check that the server runs and lets this login in',
  );
}
