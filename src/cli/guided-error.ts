import { EffectMatchError, type ErrorCode } from '../errors.ts';
import { adviseCause } from './cause-advice.ts';

/** A fault of which the command line knows better than the table below what to do next. */
export class GuidedError<C extends ErrorCode = ErrorCode> extends EffectMatchError<C> {
  readonly next: string;

  constructor(code: C, message: string, next: string, options?: ErrorOptions) {
    super(code, message, options);
    this.next = next;
  }
}

const NEXT: Record<ErrorCode, string> = {
  ERR_EM_ACTION_INVALID: 'correct the action; nothing was run, and no license was used',
  ERR_EM_ADAPTER_REFUSED:
    'do what the message says; `effectmatch doctor` shows the boundary, `effectmatch provision` prepares a PostgreSQL database',
  ERR_EM_ADAPTER_UNAVAILABLE:
    'check that the backend can be reached and is not locked, then run the command again',
  ERR_EM_ATTEMPT_OPEN: 'run the command again later: it returns the verdict once there is one',
  ERR_EM_BOUNDARY_OPEN: 'run `effectmatch doctor`, close what it lists, and try again',
  ERR_EM_CANON_UNSUPPORTED: 'pass plain JSON values at the place named above',
  ERR_EM_CHANGESET_INVALID:
    'this should not happen: report it with the version of Node and of SQLite',
  ERR_EM_CONFIG_INVALID:
    'correct the configuration and run the command again; `effectmatch help` shows an example',
  ERR_EM_INPUT_INVALID: 'correct the input at the places named above',
  ERR_EM_INVARIANT:
    'this is a defect of EffectMatch: run again with EFFECTMATCH_DEBUG=1 and report what it prints',
  ERR_EM_JOURNAL_TAMPERED:
    'stop using this store, keep a copy as evidence, and restore it from a backup',
  ERR_EM_KEYRING_INVALID:
    'restore the keyring from a backup; a new keyring cannot read what the old one sealed',
  ERR_EM_KEYRING_PERMISSIONS:
    'make the file readable by its owner alone (chmod 600) and run the command again',
  ERR_EM_KEY_UNKNOWN:
    'put the missing key generation back into the keyring; old records need the old keys',
  ERR_EM_MANIFEST_INVALID: 'correct the manifest and prepare it again',
  ERR_EM_MARKER_CONFLICT: 'compare the journal with the backend: `effectmatch show <occurrence>`',
  ERR_EM_NODE_VERSION: 'install Node 24.12 or newer and run the command again',
  ERR_EM_NOT_FOUND: 'check the name or the path; `effectmatch journal` lists what there is',
  ERR_EM_OPERATION_FAILED: 'correct the operation, or the request that it refuses',
  ERR_EM_PLAN_SUPERSEDED:
    'plan with the announced revision or a later one; nothing was announced or changed',
  ERR_EM_RECORD_INVALID:
    'check where the record comes from; it is not in the form this version writes',
  ERR_EM_RECORD_TOO_LARGE: 'split the task into smaller ones',
  ERR_EM_REHEARSAL_REFUSED:
    'make the action repeatable at the cells named above, or approve a manifest instead',
  ERR_EM_RESOLUTION_REFUSED:
    'look at the occurrence with `effectmatch show <occurrence>`; nothing was recorded',
  ERR_EM_SEAL_INVALID:
    'check that keyring and store belong together: `effectmatch journal --verify`',
  ERR_EM_SHADOW_REFUSED:
    'shadow an adapter that can hold a change; for a remote service compare its read-back after a real run',
  ERR_EM_SIGNATURE_INVALID:
    'do not trust what it says; check the key, then get the file again from its sender',
  ERR_EM_STORE_BUSY: 'wait for the other writer to finish and run the command again',
  ERR_EM_STORE_NEWER:
    'install the version of EffectMatch that last wrote this store, or a newer one',
  ERR_EM_STORE_UNAVAILABLE: 'check that the store exists and can be read and written by this user',
  ERR_EM_TERMINAL_CONFLICT: 'look at both verdicts: `effectmatch show <occurrence>`',
  ERR_EM_USAGE: 'run `effectmatch help`',
};

/** Any fault in the form in which every verb reports it: code, what happened, what to do. */
export function describeFault(error: unknown): {
  readonly code: ErrorCode;
  readonly message: string;
  readonly next: string;
} {
  if (hasOurCode(error)) {
    const { code, message } = error;
    return {
      code,
      message,
      next: error instanceof GuidedError ? error.next : (adviseCause(error) ?? NEXT[code]),
    };
  }
  const message = error instanceof Error ? error.message : String(error);
  return {
    code: 'ERR_EM_INVARIANT',
    message: `unexpected: ${message}`,
    next: NEXT.ERR_EM_INVARIANT,
  };
}

/**
 * By name and code, not by class: a configuration file may have loaded its own copy of this
 * package.
 */
function hasOurCode(error: unknown): error is EffectMatchError {
  return (
    error instanceof Error &&
    error.name === 'EffectMatchError' &&
    'code' in error &&
    typeof error.code === 'string' &&
    Object.hasOwn(NEXT, error.code)
  );
}

/**
 * Does something of which a verb knows better than the table what to do next when it fails with
 * this code.
 */
export function withNext<T>(code: ErrorCode, next: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (!hasOurCode(cause) || cause.code !== code) throw cause;
    throw new GuidedError(code, cause.message, next, { cause });
  }
}

/** A mistake on the command line: nothing was done, and the help of the verb says how it goes. */
export function usageError(message: string, verb?: string): GuidedError<'ERR_EM_USAGE'> {
  const help = verb === undefined ? 'effectmatch help' : `effectmatch ${verb} --help`;
  return new GuidedError('ERR_EM_USAGE', message, `run \`${help}\`; nothing was done`);
}
