import { resolve } from 'node:path';
import { hasCode } from '../../errors.ts';
import type { Arguments } from '../command.ts';
import { GuidedError } from '../fault.ts';
import { showProgress } from '../progress.ts';
import { ADMIN_VARIABLE } from '../provision.ts';
import { inspectSqlite } from './inspect-sqlite.ts';
import { isMysql } from './logins.ts';
import type { DatabaseSchema } from './schema.ts';

/** The database named on the command line or in the environment. */
interface DatabaseAddress {
  readonly kind: 'file' | 'server';
  /** The absolute path of a file, or the address of a server. */
  readonly address: string;
}

export function readAddress(args: Arguments): DatabaseAddress {
  const named = args.first === '' ? (process.env[ADMIN_VARIABLE] ?? '') : args.first;
  if (SERVER.test(named)) return { kind: 'server', address: named };
  if (named !== '') return { kind: 'file', address: resolve(named) };
  const ways = 'the path of an SQLite file, postgres://… or mysql://…';
  throw args.wrong(`name the database: ${ways} (or set ${ADMIN_VARIABLE})`);
}

/** Reads the schema of a database and changes nothing. */
export async function inspect({ kind, address }: DatabaseAddress): Promise<DatabaseSchema> {
  using _progress = showProgress('looking at the database');
  if (kind === 'file') return inspectSqlite(address);
  if (isMysql(address)) {
    const { inspectMysql } = await load('MariaDB', 'mysql2', () => import('./inspect-mysql.ts'));
    return await inspectMysql(address);
  }
  const packages = 'pg libpg-query';
  const { inspectPostgres } = await load(
    'PostgreSQL',
    packages,
    () => import('./inspect-postgres.ts'),
  );
  return await inspectPostgres(address);
}

const SERVER = /^(?:postgres(?:ql)?|mysql|mariadb):/i;

/** Drivers are optional packages. */
async function load<Module>(
  server: string,
  packages: string,
  open: () => Promise<Module>,
): Promise<Module> {
  try {
    return await open();
  } catch (cause) {
    if (!hasCode(cause, 'ERR_MODULE_NOT_FOUND')) throw cause;
    const names = packages.split(' ');
    const message = `${server} needs the package${names.length > 1 ? 's' : ''} ${names.join(' and ')}`;
    const next = `run \`npm install ${packages}\`, then this command again; nothing was written`;
    throw new GuidedError('ERR_EM_ADAPTER_UNAVAILABLE', message, next, cause);
  }
}
