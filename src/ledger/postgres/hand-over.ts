import type { LedgerTransaction } from '../../contract/ledgers.ts';
import { EffectMatchError } from '../../errors.ts';
import { type Connection, describeError } from '../../postgres/connection.ts';
import type { About, LedgerTables } from '../store.ts';
import { Fetching, type Queries } from './fetch.ts';
import { type FetchedTables, Unfetched } from './fetched.ts';
import { beginning, COMMIT, isLost, type Place, unavailable } from './transaction.ts';
import { writeOf } from './write.ts';

/** What one hand-over needs. */
interface Parts {
  readonly session: Connection;
  readonly queries: Queries;
  readonly tables: FetchedTables;
  readonly place: Place;
}

/** How the transaction ended. A `failed` one left nothing behind. */
type Ended<T> =
  | {
      readonly kind: 'decided';
      readonly result:
        | { readonly released: true; readonly value: T }
        | { readonly released: false };
    }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'unanswered'; readonly error: unknown; readonly value: T };

/**
 * Runs the caller's work in a ledger transaction, then takes the ledger's lock and decides. The
 * lock comes last, so work that waits does not hold up other decisions, and a transaction that
 * holds the lock never waits for another's work.
 */
export async function handOver<T>(
  parts: Parts,
  about: About,
  work: (transaction: LedgerTransaction) => T | Promise<T>,
  decide: (tables: LedgerTables) => boolean,
): Promise<Ended<T>> {
  const { session } = parts;
  let done: { readonly value: T } | undefined;
  try {
    await begin(parts);
    const value = await runWork(session, work);
    if (!(await decideFetched(parts, about, decide))) {
      await session.query('rollback');
      return { kind: 'decided', result: { released: false } };
    }
    done = { value };
    const write = writeOf(parts.queries, parts.tables, { relaxed: false });
    const { failure } = await session.run([write, COMMIT]);
    if (failure !== undefined) throw failure.error;
    return { kind: 'decided', result: { released: true, value } };
  } catch (error) {
    const fault = error instanceof WorkFailed ? error.cause : unavailable(error);
    if (done !== undefined && isLost(error))
      return { kind: 'unanswered', error: fault, value: done.value };
    return { kind: 'failed', error: fault };
  }
}

/** Wraps an error thrown by the work. The caller gets the original error. */
class WorkFailed extends Error {}

async function begin({ session, place }: Parts): Promise<void> {
  const { failure } = await session.run(beginning(place));
  if (failure !== undefined) throw failure.error;
}

async function runWork<T>(
  session: Connection,
  work: (transaction: LedgerTransaction) => T | Promise<T>,
): Promise<T> {
  let isOpen = true;
  const query: LedgerTransaction['query'] = async (text, values = []) => {
    demandStatement(text, isOpen);
    const texts = values.map((value) => (value === null ? null : String(value)));
    const { replies, failure } = await session.run([{ text, values: texts, describe: true }]);
    if (failure !== undefined) throw refusedStatement(failure.error);
    const [{ rows, columns = [] } = { rows: [] }] = replies;
    return rows.map((row) =>
      Object.fromEntries(columns.map(({ name }, at) => [name, row[at] ?? null])),
    );
  };
  try {
    return await work({ query });
  } catch (cause) {
    throw new WorkFailed('the work failed', { cause });
  } finally {
    isOpen = false;
  }
}

const CONTROL = /^\s*(?:begin|start|commit|end|rollback|abort|savepoint|release|prepare)\b/i;

/** Only the hand-over may end the transaction. Otherwise a job could exist without its release. */
function demandStatement(text: string, isOpen: boolean): void {
  if (!isOpen)
    throw new EffectMatchError('ERR_EM_USAGE', 'the hand-over is over; await every query in it');
  if (CONTROL.test(text))
    throw new EffectMatchError(
      'ERR_EM_USAGE',
      'a hand-over begins and ends its transaction itself; leave transaction statements out',
    );
}

function refusedStatement(error: unknown): EffectMatchError<'ERR_EM_HAND_OVER_FAILED'> {
  return new EffectMatchError(
    'ERR_EM_HAND_OVER_FAILED',
    `nothing was handed over: ${describeError(error)}; the ledger's login needs the rights to insert the job`,
    { cause: error },
  );
}

/** Decides, and returns whether to write and commit. */
async function decideFetched(
  { session, queries, tables }: Parts,
  about: About,
  decide: (tables: LedgerTables) => boolean,
): Promise<boolean> {
  await new Fetching(queries, tables).lock().moment().about(about).run(session);
  for (;;) {
    try {
      return tables.attempt(decide);
    } catch (error) {
      if (!(error instanceof Unfetched)) throw error;
      await new Fetching(queries, tables).occurrences([error.occurrence]).run(session);
    }
  }
}
