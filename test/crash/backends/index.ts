import type { Backend } from './backend.ts';
import { filesBackend } from './files.ts';
import { REMOTE_BACKENDS } from './http.ts';
import { postgresBackend, postgresLedgerBackend } from './postgres.ts';
import { snapshotBackend } from './snapshot.ts';
import { sqliteBackend } from './sqlite.ts';

/** Every backend that the crash tests know; `soak --adapter` selects by the start of a name. */
export const BACKENDS: readonly Backend[] = [
  sqliteBackend('wal'),
  sqliteBackend('delete'),
  filesBackend,
  snapshotBackend,
  postgresBackend,
];

/** The same, and PostgreSQL with its ledger beside the business data. */
export const BACKENDS_AND_LEDGERS: readonly Backend[] = [...BACKENDS, postgresLedgerBackend];

export function backendNamed(name: string): Backend {
  const all = [...BACKENDS_AND_LEDGERS, ...REMOTE_BACKENDS];
  const found = all.find((backend) => backend.name === name);
  if (found === undefined) {
    throw new Error(
      `no backend "${name}"; there are ${BACKENDS.map((backend) => backend.name).join(', ')}`,
    );
  }
  return found;
}
