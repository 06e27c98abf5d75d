import { accessSync, constants, existsSync } from 'node:fs';
import { join } from 'node:path';
import { installPackage } from '../debian.ts';

const FOLDERS = [
  '/usr/sbin',
  '/usr/libexec',
  '/usr/local/sbin',
  ...(process.env.PATH ?? '').split(':'),
];
/** The statements that make the server's own tables, as the package installs them. */
const SCRIPTS = ['/usr/share/mysql', '/usr/share/mariadb', '/usr/local/share/mysql'];

/** What to do if MariaDB is missing, in one line. */
export const MISSING =
  'MariaDB is not installed here; run `apt-get install mariadb-server-core` (Debian 12 has 10.11)';

/** The server program and the folder of its installation scripts; undefined if it is missing. */
export function findMariadb(): { readonly program: string; readonly scripts: string } | undefined {
  const program = FOLDERS.map((folder) => join(folder, 'mariadbd')).find(isExecutable);
  const scripts = SCRIPTS.find((folder) => existsSync(join(folder, 'mysql_system_tables.sql')));
  return program === undefined || scripts === undefined ? undefined : { program, scripts };
}

/** For the `skip` of a test; under CI a skip for this reason fails the run. */
export function skipWithoutMariadb(): string | false {
  return findMariadb() === undefined ? MISSING : false;
}

/** Installs the package if it is missing and this account may do so. */
export function installMariadb(): void {
  if (findMariadb() === undefined) installPackage('mariadb-server-core');
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
