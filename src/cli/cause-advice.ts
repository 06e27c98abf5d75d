/**
 * What to do about the usual ways in which a server, a file or a package is not there, by the code
 * of the cause.
 */
const ADVICE: Readonly<Record<string, string>> = {
  '28000':
    'check the login in the address: it must exist and be allowed to connect; `effectmatch provision` makes the two of EffectMatch',
  '28P01':
    'correct the password in the address; `effectmatch provision` sets the passwords of the two logins again',
  '3F000': 'prepare the database with `effectmatch provision`',
  '3D000': 'correct the name of the database in the address, or create it',
  '42883': 'prepare the database with `effectmatch provision`',
  '53300': 'the server has no connection left: close some, then try again',
  '57P03': 'the server is starting or stopping: wait a moment, then try again',
  EAI_AGAIN: 'correct the host in the address, or check the network',
  EACCES: 'give this user the right to read and write there, or name another folder',
  ECONNREFUSED: 'start the server, or correct host and port in the address',
  ECONNRESET: 'check that the address leads to a PostgreSQL server',
  EHOSTUNREACH: 'correct the host in the address, or check the network',
  ENOSPC: 'make room on the disk',
  ENOTFOUND: 'correct the host in the address',
  EROFS: 'use a folder on a disk that can be written',
  ETIMEDOUT: 'check host, port and firewall: the server does not answer',
};

/** By primary result code. */
const SQLITE_ADVICE: Readonly<Record<number, string>> = {
  8: 'the file or its disk can only be read: use a folder that can be written',
  13: 'make room on the disk',
  14: 'check that the folder exists and that this user may write there',
  26: 'name a database file: this one is something else',
};

/** Advice for the first cause in the chain that has one; undefined where none has. */
export function adviseCause(error: Error): string | undefined {
  for (
    let cause = error.cause, depth = 0;
    cause instanceof Error && depth < 5;
    cause = cause.cause, depth += 1
  ) {
    const advice = adviseOne(cause);
    if (advice !== undefined) return `${advice}; then run the command again`;
  }
  return undefined;
}

function adviseOne(cause: Error): string | undefined {
  if ('errcode' in cause && typeof cause.errcode === 'number')
    return SQLITE_ADVICE[cause.errcode & 0xff];
  if ('code' in cause && typeof cause.code === 'string' && Object.hasOwn(ADVICE, cause.code))
    return ADVICE[cause.code];
  return /connection timeout|timeout expired/i.test(cause.message) ? ADVICE.ETIMEDOUT : undefined;
}
