import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { createSecretFile, readSecretFile } from '../../crypto/secret-file.ts';
import { GuidedError, usageError } from '../guided-error.ts';
import { literal } from './config-text.ts';
import type { FoundDatabase } from './found.ts';

const ENV_FILE = 'effectmatch.env';
const CONTROL = 'EFFECTMATCH_CONTROL_URL';
const EXECUTION = 'EFFECTMATCH_EXECUTION_URL';

/**
 * Looks at a PostgreSQL database and says how a configuration reaches it: by two logins of their
 * own, whose passwords are made here and kept in a file beside the configuration. The
 * administrator's address is written nowhere.
 */
export async function reachPostgres(
  admin: string,
  { folder, suffix }: { readonly folder: string; readonly suffix: string | undefined },
): Promise<
  FoundDatabase & {
    reach(): Promise<{ readonly reach: readonly string[]; readonly written: readonly string[] }>;
  }
> {
  const address = readAddress(admin);
  if (suffix !== undefined && !/^[a-z0-9_]{1,40}$/.test(suffix)) {
    throw usageError('--roles takes small letters, digits and _, at most 40', 'init');
  }
  const { inspectPostgres } = await loadDriver();
  const found = await inspectPostgres(admin);
  const file = join(folder, ENV_FILE);
  const roles = suffix ?? found.roleSuffix;
  const kept = existsSync(file) ? readKept(file) : undefined;
  const control = kept?.[CONTROL] ?? loginOf(address, `effectmatch_control${roles}`);
  const execution = kept?.[EXECUTION] ?? loginOf(address, `effectmatch_exec${roles}`);
  const owner = `effectmatch_owner${new URL(control).username.replace(/^effectmatch_control/, '')}`;
  const reach = [
    '// Two logins that `effectmatch provision` makes. Their addresses, with passwords, are in the environment or in',
    `// ${ENV_FILE}, which only you can read: keep it out of version control.`,
    `control: fromEnvironment('${CONTROL}', { file: '${ENV_FILE}' }),`,
    `execution: fromEnvironment('${EXECUTION}', { file: '${ENV_FILE}' }),`,
    ...(owner === 'effectmatch_owner' ? [] : [`owner: ${literal(owner)},`]),
  ];
  return {
    ...found,
    async reach() {
      if (kept !== undefined) return { reach, written: [] };
      createSecretFile(file, `${CONTROL}=${control}\n${EXECUTION}=${execution}\n`);
      return { reach, written: [file] };
    },
  };
}

/** Loads what needs the optional packages, or says how to install them. */
export async function loadDriver(): Promise<typeof import('./inspect-postgres.ts')> {
  try {
    return await import('./inspect-postgres.ts');
  } catch (cause) {
    const missing =
      cause instanceof Error && 'code' in cause && cause.code === 'ERR_MODULE_NOT_FOUND';
    if (!missing) throw cause;
    const next = 'run `npm install pg libpg-query`, then this command again; nothing was written';
    throw new GuidedError(
      'ERR_EM_ADAPTER_UNAVAILABLE',
      'PostgreSQL needs the packages pg and libpg-query',
      next,
      {
        cause,
      },
    );
  }
}

function readAddress(admin: string): URL {
  const address = URL.canParse(admin) ? new URL(admin) : undefined;
  if (address !== undefined && address.hostname !== '' && address.pathname.length > 1)
    return address;
  throw usageError(
    'the address of a PostgreSQL database is postgres://USER:PASSWORD@HOST:PORT/DATABASE',
    'init',
  );
}

/**
 * Addresses that an earlier run has kept; a file of that name without them belongs to somebody
 * else.
 */
function readKept(file: string): Record<string, string | undefined> {
  const values = parseEnv(readSecretFile(file));
  if (URL.canParse(values[CONTROL] ?? '') && URL.canParse(values[EXECUTION] ?? '')) return values;
  throw new GuidedError(
    'ERR_EM_CONFIG_INVALID',
    `${file} exists and has no ${CONTROL} and ${EXECUTION}; nothing was written`,
    'add them, or move the file away and run this again',
  );
}

function loginOf(address: URL, role: string): string {
  const login = new URL(address);
  login.username = role;
  login.password = randomBytes(24).toString('base64url');
  return login.href;
}
