import { Connection, sqlState } from '../../postgres/connection.ts';
import type { ConnectionOptions } from '../../postgres/options.ts';
import { refused } from './options.ts';

/** How long the second session may take to answer. With a pool of one connection it never does. */
const ANSWER_MS = 10_000;
const TOO_MANY_CONNECTIONS = '53300';

/**
 * Refuses a login behind a pooler that gives a session different server processes from one
 * transaction to the next. What an operation left in one process would affect the next operation,
 * and a reset would reach a different process. Two sessions that are open at once must have
 * different server processes, and each must keep its own. The test only proves the bad case: a busy
 * pooler may happen to give every session the same process again.
 */
export async function demandOwnProcesses(
  first: Connection,
  options: ConnectionOptions,
): Promise<void> {
  await using second = await openSecond(options);
  if (second === undefined) return;
  // Each query is a separate transaction. This order exposes a pooler that hands out the last
  // released process as well as one that hands them out in turn.
  const before = await readProcess(first);
  const other = await readProcess(second);
  const otherAgain = await readProcess(second);
  const after = await readProcess(first);
  if (before === after && other === otherAgain && before !== other) return;
  throw refused(
    'the execution login is connected through a pooler that changes server processes between transactions; connect to ' +
      'the server directly, or give each login its own pool in session mode (pool_mode = session)',
  );
}

/** Undefined if the server allows the login no second session: then there is nothing to compare. */
async function openSecond(options: ConnectionOptions): Promise<Connection | undefined> {
  try {
    return await Connection.open(options, 'effectmatch execution', ANSWER_MS);
  } catch (error) {
    if (sqlState(error) === TOO_MANY_CONNECTIONS) return undefined;
    throw error;
  }
}

async function readProcess(session: Connection): Promise<string> {
  const { rows } = await session.query('select pg_catalog.pg_backend_pid()');
  return String(rows[0]?.[0]);
}
