import { createHmac, createSecretKey } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Connection } from '../../../src/postgres/connection.ts';
import type { LedgerKind } from './paths.ts';
import type { Site } from './site.ts';

/** What any ledger is told and asked during one operation, written by hand. */
export interface FloorLedger extends AsyncDisposable {
  claim(occurrence: string, text: string): Promise<void>;
  /** Whether the claim still stands; asked while the candidate is held. */
  stands(occurrence: string): Promise<boolean>;
  end(occurrence: string): Promise<void>;
}

const SEAL = createSecretKey(Buffer.alloc(32, 1));
/** About as long as the record of a committed operation. */
const TERMINAL = 'x'.repeat(700);
const TABLE =
  'create table if not exists floor_journal(slot text primary key, text text, mac text)';

function seal(text: string): string {
  return createHmac('sha256', SEAL).update(text).digest('hex');
}

/**
 * The rows that no ledger can leave out: a claim and a terminal, each under a unique key and a seal.
 * With a ledger in the database neither is flushed, because the commit of the candidate flushes the
 * claim and proves the terminal. `note` is told the transactions of a ledger in the database.
 */
export async function openFloorLedger(
  site: Site,
  ledger: LedgerKind,
  note: (xid: string) => void,
): Promise<FloorLedger> {
  return ledger === 'SQLite' ? openInFile(site) : await openInDatabase(site, note);
}

/** One session, whose messages do not wait for each other. */
async function openInDatabase(site: Site, note: (xid: string) => void): Promise<FloorLedger> {
  const session = await Connection.open(site.plainUrl, 'floor ledger');
  await session.script(`${TABLE}; set synchronous_commit = off; set jit = off`);
  await session.prepare({
    insert: 'insert into floor_journal values ($1, $2, $3) returning pg_current_xact_id()',
    find: 'select mac from floor_journal where slot = $1',
  });
  const ask = async (prepared: string, values: readonly string[]) => {
    const { replies, failure } = await session.run([{ prepared, values }]);
    if (failure !== undefined) throw failure.error;
    return replies[0]?.rows[0]?.[0] ?? '';
  };
  const write = async (slot: string, text: string) =>
    note(await ask('insert', [slot, text, seal(text)]));
  const claims = new Map<string, string>();
  return {
    async claim(occurrence, text) {
      claims.set(occurrence, seal(text));
      await write(`${occurrence} claim`, text);
    },
    stands: async (occurrence) =>
      (await ask('find', [`${occurrence} claim`])) === claims.get(occurrence),
    async end(occurrence) {
      claims.delete(occurrence);
      await write(`${occurrence} terminal`, TERMINAL);
    },
    [Symbol.asyncDispose]: () => session.close(),
  };
}

/** The claim is flushed. The terminal is not: the marker proves it. */
function openInFile({ folder }: Site): FloorLedger {
  const db = new DatabaseSync(join(folder, `floor-${crypto.randomUUID()}.db`));
  db.exec(`pragma journal_mode = wal; pragma synchronous = full; ${TABLE}`);
  const insert = db.prepare('insert into floor_journal values (?, ?, ?)');
  const find = db.prepare('select mac from floor_journal where slot = ?');
  const write = (slot: string, text: string) => insert.run(slot, text, seal(text));
  return {
    async claim(occurrence, text) {
      write(`${occurrence} claim`, text);
    },
    stands: async (occurrence) => find.get(`${occurrence} claim`) !== undefined,
    async end(occurrence) {
      db.exec('pragma synchronous = normal');
      write(`${occurrence} terminal`, TERMINAL);
      db.exec('pragma synchronous = full');
    },
    async [Symbol.asyncDispose]() {
      db.close();
    },
  };
}
