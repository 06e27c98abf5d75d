import type { Backend } from './backend.ts';

/**
 * Loads the backend with this name and no other: thousands of processes start only to be killed,
 * and each one that loads every driver costs twice as much.
 */
export async function backendNamed(name: string): Promise<Backend> {
  switch (name) {
    case 'sqlite-wal':
      return (await import('./sqlite.ts')).sqliteBackend('wal');
    case 'sqlite-unmarked':
      return (await import('./unmarked.ts')).unmarkedBackend;
    case 'sqlite-delete':
      return (await import('./sqlite.ts')).sqliteBackend('delete');
    case 'files':
      return (await import('./files.ts')).filesBackend;
    case 'snapshot':
      return (await import('./snapshot.ts')).snapshotBackend;
    case 'postgres':
      return (await import('./postgres.ts')).postgresBackend;
    case 'postgres-ledger':
      return (await import('./postgres.ts')).postgresLedgerBackend;
    case 'mysql':
      return (await import('./mysql.ts')).mysqlBackend;
    default:
      return await remoteBackendNamed(name);
  }
}

async function remoteBackendNamed(name: string): Promise<Backend> {
  const { REMOTE_BACKENDS } = await import('./http.ts');
  const found = REMOTE_BACKENDS.find((backend) => backend.name === name);
  if (found === undefined) throw new Error(`no backend "${name}"`);
  return found;
}
