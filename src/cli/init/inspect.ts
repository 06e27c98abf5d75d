import { resolve } from 'node:path';
import type { Arguments } from '../command.ts';
import { GuidedError, hasCode } from '../fault.ts';
import { showProgress } from '../progress.ts';
import { ADMIN_VARIABLE } from '../provision.ts';
import { inspectSqlite } from './inspect-sqlite.ts';
import type { DatabaseSchema } from './schema.ts';

/** The database that the command line or the environment names. */
interface DatabaseAddress {
  readonly kind: 'file' | 'server';
  /** The absolute path of a file, or the address of a server. */
  readonly address: string;
}

export function readAddress(args: Arguments): DatabaseAddress {
  const named = args.first === '' ? (process.env[ADMIN_VARIABLE] ?? '') : args.first;
  if (/^postgres(?:ql)?:/i.test(named)) return { kind: 'server', address: named };
  if (named !== '') return { kind: 'file', address: resolve(named) };
  const ways = 'the path of an SQLite file, or postgres://…';
  throw args.wrong(`name the database: ${ways} (or set ${ADMIN_VARIABLE})`);
}

/** Reads the schema of a database. The database is only read. */
export async function inspect({ kind, address }: DatabaseAddress): Promise<DatabaseSchema> {
  using _progress = showProgress('looking at the database');
  if (kind === 'file') return inspectSqlite(address);
  const { inspectPostgres } = await loadPostgres();
  return await inspectPostgres(address);
}

/** The driver is an optional package. */
async function loadPostgres(): Promise<typeof import('./inspect-postgres.ts')> {
  try {
    return await import('./inspect-postgres.ts');
  } catch (cause) {
    if (!hasCode(cause, 'ERR_MODULE_NOT_FOUND')) throw cause;
    const message = 'PostgreSQL needs the packages pg and libpg-query';
    const next = 'run `npm install pg libpg-query`, then this command again; nothing was written';
    throw new GuidedError('ERR_EM_ADAPTER_UNAVAILABLE', message, next, cause);
  }
}
