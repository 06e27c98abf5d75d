import { EffectMatchError, ERROR_CODES, type ErrorCode, hasCode, messageOf } from '../errors.ts';
import { adviceFor, adviceForMessage } from './advice.ts';

/** An error with its own advice, which takes precedence over the table of advice. */
export class GuidedError<C extends ErrorCode = ErrorCode> extends EffectMatchError<C> {
  readonly next: string;

  constructor(code: C, message: string, next: string, cause?: unknown) {
    super(code, message, cause === undefined ? {} : { cause });
    this.next = next;
  }
}

/** A fault as every verb reports it: the code, what happened, and what to do. */
interface FaultReport {
  readonly code: ErrorCode;
  readonly message: string;
  readonly next: string;
}

/** Describes any thrown value. */
export function describeFault(error: unknown): FaultReport {
  if (isOurs(error)) {
    const { code, message } = error;
    if (error instanceof GuidedError) return { code, message, next: error.next };
    const next = adviceForMessage(code, message) ?? adviseCause(error) ?? adviceFor(code);
    return { code, message, next };
  }
  const code = 'ERR_EM_INVARIANT';
  return { code, message: `unexpected: ${messageOf(error)}`, next: adviceFor(code) };
}

/** Compares the name and code, not the class: a configuration file may load its own copy of us. */
function isOurs(error: unknown): error is EffectMatchError {
  if (!(error instanceof Error) || error.name !== 'EffectMatchError') return false;
  return ERROR_CODES.some((code) => hasCode(error, code));
}

const MAX_CAUSES = 5;

/** The advice for the first cause in the chain that has any. */
function adviseCause(error: Error): string | undefined {
  let { cause } = error;
  for (let depth = 0; cause instanceof Error && depth < MAX_CAUSES; depth += 1) {
    const advice = isOurs(cause) ? undefined : adviceFor(causeCode(cause));
    if (advice !== undefined) return `${advice}; then run the command again`;
    cause = cause.cause;
  }
  return undefined;
}

/** SQLite's numeric code may carry details in its upper bits. MariaDB numbers its errors. */
function causeCode(cause: Error & { errcode?: unknown; code?: unknown; number?: unknown }): string {
  if (typeof cause.errcode === 'number') return `SQLITE_${cause.errcode & 0xff}`;
  if (typeof cause.number === 'number') return `MARIADB_${cause.number}`;
  const isTimeout = /connection timeout|timeout expired/i.test(cause.message);
  return isTimeout ? 'ETIMEDOUT' : String(cause.code);
}

/** Replaces the advice for faults with this code. */
export function withNext<T>(code: ErrorCode, next: string | (() => string), work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (!isOurs(cause) || cause.code !== code) throw cause;
    const step = typeof next === 'string' ? next : next();
    throw new GuidedError(code, cause.message, step, cause);
  }
}

/** Adds "nothing was changed" to any fault of `work`, which must only read or open. */
export async function sayUnchanged<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const { code, message, next } = describeFault(cause);
    if (code === 'ERR_EM_INVARIANT' || message.includes('nothing was')) throw cause;
    throw new GuidedError(code, `${message}; nothing was changed`, next, cause);
  }
}

/** A mistake on the command line. The advice points to the verb's help. */
export function usageError(message: string, verb?: string): GuidedError<'ERR_EM_USAGE'> {
  const help = verb === undefined ? 'effectmatch help' : `effectmatch ${verb} --help`;
  return new GuidedError('ERR_EM_USAGE', message, `run \`${help}\`; nothing was done`);
}
