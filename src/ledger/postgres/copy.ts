import { existsSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import type { JournalVerdict, LedgerContext, LedgersFactory } from '../../contract/ledgers.ts';
import { EffectMatchError, invariant } from '../../errors.ts';
import { asFault, Connection, type ParameterValue } from '../../postgres/connection.ts';
import type { ConnectionOptions } from '../../postgres/options.ts';
import { openDatabase, retryWhileBusy } from '../../sqlite/connection.ts';
import { tampered } from '../journal.ts';
import { sqliteLedgers } from '../sqlite/index.ts';
import type { Queries } from './fetch.ts';
import { texts } from './write.ts';

/** How long to wait while a decision locks the file. */
const BUSY_MS = 5000;
/** Rows read and sent at once. */
const BATCH = 200;

/** The tables to copy, in the order of the statement's parameters: name, key, columns. */
const TABLES = [
  ['plan', 'task', 'task, revision'],
  ['issuance', 'id', 'id, issuer, nonce, claimed, license, approved, binding, seal_key, mac'],
  ['journal', 'seq', 'seq, kind, occurrence, slot, text, seal_key, seal_mac, digest, issuance'],
  ['checkpoint', 'through_seq', 'through_seq, text, seal_key, seal_mac'],
  ['document', 'digest', 'digest, text, seal_key, seal_mac'],
] as const;

interface Target {
  readonly connection: ConnectionOptions;
  readonly queries: Queries;
  readonly factory: Pick<LedgersFactory, 'open'>;
}

/**
 * Moves a SQLite ledger into an empty one in PostgreSQL. Both are verified against the same
 * checkpoint. The file accepts no decisions during the copy, and no program can use it afterwards:
 * two ledgers with the same licenses would contradict each other.
 */
export async function copyLedger(
  context: LedgerContext,
  file: string,
  target: Target,
): Promise<{ readonly rows: number }> {
  if (!existsSync(file))
    throw new EffectMatchError('ERR_EM_NOT_FOUND', `no ledger was found at ${file}`);
  const source = await sqliteLedgers(file).open(context);
  const exported = await source.checkpoint();
  const verdict = await source.verify(exported);
  await source.close();
  const rows = demandIntact(file, verdict);

  using db = openDatabase(file);
  await retryWhileBusy(() => db.exec('begin immediate'), { deadlineMs: BUSY_MS });
  demandAtRest(db, file, rows);
  await sendAll(db, rows, target);
  await using copied = await openCopy(context, target);
  const arrived = demandIntact('the copy', await copied.ledgers.verify(exported));
  invariant(arrived === rows, 'every row was copied');
  db.exec('alter table journal rename to journal_moved_to_postgres');
  db.exec('commit');
  return { rows };
}

function demandIntact(where: string, verdict: JournalVerdict): number {
  if (verdict.kind === 'tampered') throw tampered(`${where}, row ${verdict.seq}`, verdict.what);
  return verdict.rows;
}

/** Refuses if an attempt is still open, or if rows were added since the file was verified. */
function demandAtRest(db: DatabaseSync, file: string, rows: number): void {
  const found = db
    .prepare('select max(positions) as positions, count(*) - 1 as open from unsettled')
    .get();
  const refuse = (why: string) =>
    new EffectMatchError('ERR_EM_ATTEMPT_OPEN', `${file} was not copied: ${why}`);
  if (Number(found?.open) > 0)
    throw refuse(`${found?.open} attempts have not ended; run \`effectmatch recover\` first`);
  if (Number(found?.positions) !== rows)
    throw refuse('it is still in use; stop the programs that use it first');
}

/** Sends everything in one transaction: the target has the whole ledger or stays empty. */
async function sendAll(db: DatabaseSync, rows: number, target: Target): Promise<void> {
  const { connection, queries } = target;
  try {
    await using session = await Connection.open(connection, 'effectmatch copy');
    await session.query('begin');
    await session.query('set local synchronous_commit = on');
    await session.query(queries.get('lock').text);
    const { rows: head } = await session.query(queries.get('moment').text);
    if (head[0]?.[0] !== '0')
      throw new EffectMatchError(
        'ERR_EM_STORE_UNAVAILABLE',
        'the ledger in PostgreSQL is not empty, and a ledger is copied only into an empty one',
      );
    const { text } = queries.get('copy_rows');
    const send = async (at: number, value: ParameterValue) => {
      const values: ParameterValue[] = [null, null, null, null, null, null];
      await session.query(text, values.with(at, value));
    };
    for (const [at, [table, key, columns]] of TABLES.entries())
      for (const batch of readBatches(db, table, key, columns)) await send(at, batch);
    await send(TABLES.length, String(rows));
    await session.query('commit');
  } catch (error) {
    throw asFault(error, 'ERR_EM_STORE_UNAVAILABLE', 'the ledger was not copied');
  }
}

/** The rows of a table in batches, in the form that `copy_rows` takes. */
function* readBatches(
  db: DatabaseSync,
  table: string,
  key: string,
  columns: string,
): Generator<ParameterValue> {
  const read = db.prepare(`select ${columns} from ${table} order by ${key} limit ? offset ?`);
  for (let offset = 0; ; offset += BATCH) {
    const rows = read.all(BATCH, offset);
    const columnsOf = rows.map((row) => Object.values(row) as (string | number | null)[]);
    if (rows.length > 0) yield texts(columnsOf);
    if (rows.length < BATCH) return;
  }
}

async function openCopy(context: LedgerContext, { factory }: Target) {
  const ledgers = await factory.open(context);
  return { ledgers, [Symbol.asyncDispose]: () => ledgers.close() };
}
