import type { LedgerContext } from '../../contract/ledgers.ts';
import { EffectMatchError } from '../../errors.ts';
import {
  asFault,
  immediate,
  immediateUnflushed,
  openDatabase,
  retryWhileBusy,
  setPragma,
} from '../../sqlite/connection.ts';
import type { LedgerSnapshot, LedgerTables, TableStore } from '../store.ts';
import { GroupCommit } from './group.ts';
import { type LedgerFile, schemaDifference, unusable } from './open.ts';
import { createSession, type Session, sqliteTables } from './tables.ts';

/** A SQLite file as a store. Reads are local, so nothing is fetched in advance. */
export function sqliteStore(context: LedgerContext, store: LedgerFile): TableStore {
  const session = createSession(context, store);
  const tables = sqliteTables(session);
  const group = new GroupCommit(session);
  return {
    context,
    decide(_about, durability, decide) {
      const body = () => decide(tables);
      if (durability === 'claim') return guarded(store, group.run(body));
      const write = durability === 'relaxed' ? immediateUnflushed : immediate;
      return guarded(store, write(store.db, body, store));
    },
    read: (_about, look) => readGuarded(store, () => look(tables)),
    openSnapshot: () => guarded(store, openSnapshot(session)),
    async close() {
      if (store.db.isOpen) store.db.close();
    },
  };
}

/** Turns SQLite's errors about the file into errors that say what to do. */
async function guarded<T>({ db, file }: LedgerFile, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (db.isOpen || error instanceof EffectMatchError) throw unusable(error, file);
    const what = `the ledger ${file} was closed; open it again`;
    throw asFault(error, 'ERR_EM_STORE_UNAVAILABLE', what);
  }
}

/** Sees what is committed, flushed or not, as other processes do. */
function readGuarded<T>(store: LedgerFile, look: () => T): Promise<T> {
  return guarded(store, retryWhileBusy(look, store));
}

/**
 * One moment of the store, on a separate connection that only reads, so that it does not hold up
 * the others. The connection is not opened read-only, because SQLite would then skip CHECK
 * constraints.
 */
async function openSnapshot({ context, store }: Session): Promise<LedgerSnapshot> {
  const db = openDatabase(store.file);
  const opened = { ...store, db };
  const session = createSession(context, opened);
  const tables: LedgerTables = sqliteTables(session);
  try {
    setPragma(db, { name: 'query_only', value: 'on', reads: 1 });
    await readGuarded(opened, () => db.exec('begin'));
  } catch (error) {
    db.close();
    throw error;
  }
  return {
    read: (_about, look) => readGuarded(opened, () => look(tables)),
    findStructureFault: () => readGuarded(opened, () => findStructureFault(opened)),
    async [Symbol.asyncDispose]() {
      db.close();
    },
  };
}

/** If an index disagrees with its table, or a trigger was added, no other answer can be trusted. */
function findStructureFault({ db }: LedgerFile): string | undefined {
  const difference = schemaDifference(db);
  if (difference !== undefined) return `the schema was changed: ${difference}`;
  const found = String(db.prepare('pragma integrity_check(1)').get()?.integrity_check);
  return found === 'ok' ? undefined : `the file is damaged: ${found}`;
}
