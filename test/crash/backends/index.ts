import { findMariadb } from '../../mysql/binaries.ts';
import type { Backend } from './backend.ts';
import { filesBackend } from './files.ts';
import { mysqlBackend } from './mysql.ts';
import { postgresBackend, postgresLedgerBackend } from './postgres.ts';
import { snapshotBackend } from './snapshot.ts';
import { sqliteBackend } from './sqlite.ts';

/** Every backend that the crash tests know. */
export const BACKENDS: readonly Backend[] = [
  sqliteBackend('wal'),
  sqliteBackend('delete'),
  filesBackend,
  snapshotBackend,
  postgresBackend,
];

/** The same, and PostgreSQL with its ledger beside the business data. */
export const BACKENDS_AND_LEDGERS: readonly Backend[] = [...BACKENDS, postgresLedgerBackend];

/**
 * MariaDB, where it is installed; test/mysql says so where it is not. It takes its turn with the
 * others, because test/adapters/mysql/kill.test.ts has its clients killed at every step already.
 */
export const MARIADB: readonly Backend[] = findMariadb() === undefined ? [] : [mysqlBackend];

/** Those that `soak --adapter` selects from by the start of a name. */
export const SOAKED: readonly Backend[] = [...BACKENDS_AND_LEDGERS, ...MARIADB];
