import type { LedgerContext } from '../../contract/ledgers.ts';
import { openDatabase, setPragma } from '../../sqlite/connection.ts';
import type { Durability, LedgerSnapshot, LedgerTables, TableStore } from '../store.ts';
import { GroupCommit } from './group.ts';
import { type LedgerFile, schemaDifference } from './open.ts';
import {
  createSession,
  guarded,
  read,
  type Session,
  writeFlushed,
  writeRelaxed,
} from './session.ts';
import { sqliteTables } from './tables.ts';

/** A SQLite file as a store. Reads are local, so nothing is fetched in advance. */
export function sqliteStore(context: LedgerContext, store: LedgerFile): TableStore {
  const session = createSession(context, store);
  const tables = sqliteTables(session);
  const group = new GroupCommit(session);
  const write = {
    flushed: (work) => writeFlushed(session, work),
    relaxed: (work) => writeRelaxed(session, work),
    claim: (work) => guarded(store, group.run(work)),
  } satisfies Record<Durability, <T>(work: () => T) => Promise<T>>;
  return {
    context,
    decide: (_about, durability, decide) => write[durability](() => decide(tables)),
    read: (_about, look) => read(session, () => look(tables)),
    openSnapshot: () => guarded(store, openSnapshot(session)),
    async close() {
      if (store.db.isOpen) store.db.close();
    },
  };
}

/**
 * One moment of the store, on a separate connection that only reads, so that it does not hold up
 * the others. The connection is not opened read-only, because SQLite would then skip CHECK
 * constraints.
 */
async function openSnapshot({ context, store }: Session): Promise<LedgerSnapshot> {
  const db = openDatabase(store.file);
  const session = createSession(context, { ...store, db });
  const tables: LedgerTables = sqliteTables(session);
  try {
    setPragma(db, { name: 'query_only', value: 'on', reads: 1 });
    await read(session, () => db.exec('begin'));
  } catch (error) {
    db.close();
    throw error;
  }
  return {
    read: (_about, look) => read(session, () => look(tables)),
    findStructureFault: () => read(session, () => findStructureFault(session)),
    async [Symbol.asyncDispose]() {
      db.close();
    },
  };
}

/** If an index disagrees with its table, or a trigger was added, no other answer can be trusted. */
function findStructureFault({ store: { db } }: Session): string | undefined {
  const difference = schemaDifference(db);
  if (difference !== undefined) return `the schema was changed: ${difference}`;
  const found = String(db.prepare('pragma integrity_check(1)').get()?.integrity_check);
  return found === 'ok' ? undefined : `the file is damaged: ${found}`;
}
