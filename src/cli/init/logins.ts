import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { readSecretFile } from '../../crypto/secret-file.ts';
import type { Arguments } from '../command.ts';
import { GuidedError } from '../fault.ts';
import { ENV_FILE, LEDGER_VARIABLE, literal } from './config-text.ts';

const CONTROL = 'EFFECTMATCH_CONTROL_URL';
const EXECUTION = 'EFFECTMATCH_EXECUTION_URL';

/** How a configuration connects to its database. */
interface Access {
  /** Lines of the adapter's options, as code. */
  readonly lines: readonly string[];
  /** A file with passwords, to be written. */
  readonly secrets?: { readonly file: string; readonly text: string };
}

/** The server's address, and the suffix of its role names if one was given. */
interface Server {
  readonly address: URL;
  readonly suffix: string | undefined;
}

/** Whether an address is that of a MariaDB or MySQL server. */
export const isMysql = (address: string) => /^(?:mysql|mariadb):/i.test(address);

export function readServer(args: Arguments, admin: string): Server {
  const address = URL.canParse(admin) ? new URL(admin) : undefined;
  if (address === undefined || address.hostname === '' || address.pathname.length <= 1) {
    const [scheme, server] = isMysql(admin) ? ['mysql', 'MariaDB'] : ['postgres', 'PostgreSQL'];
    const form = `${scheme}://USER:PASSWORD@HOST:PORT/DATABASE`;
    throw args.wrong(`the address of a ${server} database is ${form}`);
  }
  const roles = args.value('roles');
  if (roles !== undefined && !/^[a-z0-9_]{1,40}$/.test(roles))
    throw args.wrong('--roles takes at most 40 lowercase letters, digits and _');
  return { address, suffix: roles?.replace(/^_*/, '_') };
}

/**
 * Two logins, and a third for a ledger kept in PostgreSQL. Their passwords are generated here and
 * stored in a file in the configuration's folder. The administrator's address is never stored.
 */
export function loginsOf(address: URL, suffix: string, folder: string): Access {
  const file = join(folder, ENV_FILE);
  const kept = existsSync(file) ? readKept(file) : undefined;
  const control = kept?.[CONTROL] ?? loginOf(address, `effectmatch_control${suffix}`);
  const execution = kept?.[EXECUTION] ?? loginOf(address, `effectmatch_exec${suffix}`);
  const owner = `effectmatch_owner${new URL(control).username.replace(/^effectmatch_control/, '')}`;
  const lines = [
    '// Two logins that `effectmatch provision` makes. Their addresses, with passwords, are in the environment or in',
    `// ${ENV_FILE}, which only you can read: keep it out of version control.`,
    `control: fromEnvironment('${CONTROL}', { file: '${ENV_FILE}' }),`,
    `execution: fromEnvironment('${EXECUTION}', { file: '${ENV_FILE}' }),`,
    ...(owner === 'effectmatch_owner' ? [] : [`owner: ${literal(owner)},`]),
    // A MariaDB server has many databases. Each protected one needs its own database for the
    // records.
    ...(isMysql(address.href) && owner !== 'effectmatch_owner'
      ? [`controlDatabase: ${literal(owner.replace('_owner', ''))},`]
      : []),
  ];
  if (kept !== undefined) return { lines };
  const logins = `${CONTROL}=${control}\n${EXECUTION}=${execution}\n`;
  if (isMysql(address.href)) return { lines, secrets: { file, text: logins } };
  const ledger = loginOf(address, `effectmatch_ledger${suffix}`);
  return { lines, secrets: { file, text: `${logins}${LEDGER_VARIABLE}=${ledger}\n` } };
}

/** Reads the addresses that an earlier run stored. A file without them is not ours. */
function readKept(file: string): Record<string, string | undefined> {
  const values = parseEnv(readSecretFile(file));
  if (URL.canParse(values[CONTROL] ?? '') && URL.canParse(values[EXECUTION] ?? '')) return values;
  const message = `${file} exists and has no ${CONTROL} and ${EXECUTION}; nothing was written`;
  const next = 'add them, or move the file away and run this again';
  throw new GuidedError('ERR_EM_CONFIG_INVALID', message, next);
}

function loginOf(address: URL, role: string): string {
  const login = new URL(address);
  login.username = role;
  login.password = randomBytes(24).toString('base64url');
  return login.href;
}
