import { EffectMatchError, ERROR_CODES, type ErrorCode, hasCode } from '../errors.ts';
import { adviceFor, adviceForMessage } from './advice.ts';

/** A fault whose thrower knows better than the table of advice what to do next. */
export class GuidedError<C extends ErrorCode = ErrorCode> extends EffectMatchError<C> {
  readonly next: string;

  constructor(code: C, message: string, next: string, cause?: unknown) {
    super(code, message, cause === undefined ? {} : { cause });
    this.next = next;
  }
}

/** A fault in the form in which every verb reports it: code, what happened, what to do. */
interface FaultReport {
  readonly code: ErrorCode;
  readonly message: string;
  readonly next: string;
}

/** Describes anything that was thrown. */
export function describeFault(error: unknown): FaultReport {
  if (isOurs(error)) {
    const { code, message } = error;
    const next = error instanceof GuidedError ? error.next : adviseCause(error);
    return { code, message, next: next ?? adviceForMessage(code, message) ?? adviceFor(code) };
  }
  const code = 'ERR_EM_INVARIANT';
  return { code, message: `unexpected: ${wordsOf(error)}`, next: adviceFor(code) };
}

/** The message of anything that was thrown. */
export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** By name and code, not by class: a configuration file may have loaded its own copy of us. */
function isOurs(error: unknown): error is EffectMatchError {
  if (!(error instanceof Error) || error.name !== 'EffectMatchError') return false;
  return ERROR_CODES.some((code) => hasCode(error, code));
}

const MAX_CAUSES = 5;

/** Advice for the first cause in the chain that has any. */
function adviseCause(error: Error): string | undefined {
  let { cause } = error;
  for (let depth = 0; cause instanceof Error && depth < MAX_CAUSES; depth += 1) {
    const advice = isOurs(cause) ? undefined : adviceFor(causeCode(cause));
    if (advice !== undefined) return `${advice}; then run the command again`;
    cause = cause.cause;
  }
  return undefined;
}

/** SQLite's code is numeric and may carry details in its upper bits. */
function causeCode(cause: Error & { errcode?: unknown; code?: unknown }): string {
  if (typeof cause.errcode === 'number') return `SQLITE_${cause.errcode & 0xff}`;
  const isTimeout = /connection timeout|timeout expired/i.test(cause.message);
  return isTimeout ? 'ETIMEDOUT' : String(cause.code);
}

/** Replaces the advice for faults with this code. */
export function withNext<T>(code: ErrorCode, next: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (!isOurs(cause) || cause.code !== code) throw cause;
    throw new GuidedError(code, cause.message, next, cause);
  }
}

/** Adds to any fault of `work`, which only reads or opens, that nothing was changed. */
export async function sayUnchanged<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const { code, message, next } = describeFault(cause);
    if (code === 'ERR_EM_INVARIANT' || message.includes('nothing was')) throw cause;
    throw new GuidedError(code, `${message}; nothing was changed`, next, cause);
  }
}

/** A mistake on the command line: nothing was done, and the verb's help says how to call it. */
export function usageError(message: string, verb?: string): GuidedError<'ERR_EM_USAGE'> {
  const help = verb === undefined ? 'effectmatch help' : `effectmatch ${verb} --help`;
  return new GuidedError('ERR_EM_USAGE', message, `run \`${help}\`; nothing was done`);
}
