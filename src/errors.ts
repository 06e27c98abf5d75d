/**
 * Every code that this package throws. Codes are public API: `docs/errors.md` lists the cause and
 * remedy of each, and a test compares both lists.
 */
export const ERROR_CODES = [
  'ERR_EM_ACCESS_REFUSED',
  'ERR_EM_ACTION_INVALID',
  'ERR_EM_ADAPTER_REFUSED',
  'ERR_EM_ADAPTER_UNAVAILABLE',
  'ERR_EM_ATTEMPT_OPEN',
  'ERR_EM_BOUNDARY_OPEN',
  'ERR_EM_CANON_UNSUPPORTED',
  'ERR_EM_CHANGESET_INVALID',
  'ERR_EM_CLAIM_LOST',
  'ERR_EM_CONFIG_INVALID',
  'ERR_EM_HAND_OVER_FAILED',
  'ERR_EM_INPUT_INVALID',
  'ERR_EM_INVARIANT',
  'ERR_EM_JOURNAL_TAMPERED',
  'ERR_EM_KEYRING_INVALID',
  'ERR_EM_KEYRING_PERMISSIONS',
  'ERR_EM_KEY_UNKNOWN',
  'ERR_EM_LICENSE_REFUSED',
  'ERR_EM_MANIFEST_INVALID',
  'ERR_EM_MARKER_CONFLICT',
  'ERR_EM_MODEL_UNAVAILABLE',
  'ERR_EM_NODE_VERSION',
  'ERR_EM_NOT_FOUND',
  'ERR_EM_OPERATION_FAILED',
  'ERR_EM_OUTCOME_IMPOSSIBLE',
  'ERR_EM_PLAN_SUPERSEDED',
  'ERR_EM_QUERY_REFUSED',
  'ERR_EM_RATE_LIMITED',
  'ERR_EM_RECORD_INVALID',
  'ERR_EM_RECORD_TOO_LARGE',
  'ERR_EM_REHEARSAL_REFUSED',
  'ERR_EM_REQUEST_CLOSED',
  'ERR_EM_RESOLUTION_REFUSED',
  'ERR_EM_SEAL_INVALID',
  'ERR_EM_SHADOW_REFUSED',
  'ERR_EM_SIGNATURE_INVALID',
  'ERR_EM_STORE_BUSY',
  'ERR_EM_STORE_NEWER',
  'ERR_EM_STORE_UNAVAILABLE',
  'ERR_EM_TERMINAL_CONFLICT',
  'ERR_EM_UPSTREAM_UNAVAILABLE',
  'ERR_EM_USAGE',
  'ERR_EM_WORKFLOW_BLOCKED',
  'ERR_EM_WORKFLOW_CHANGED',
  'ERR_EM_WORKFLOW_INVALID',
] as const;

/** One of the codes that docs/errors.md explains, with what to do about each. */
export type ErrorCode = (typeof ERROR_CODES)[number];

/** An error with a stable code. Verdicts are returned as values, never thrown. */
export class EffectMatchError<C extends ErrorCode = ErrorCode> extends Error {
  override readonly name = 'EffectMatchError';
  readonly code: C;

  constructor(code: C, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Makes errors of one code whose messages begin alike. */
export function errorsOf<C extends ErrorCode>(code: C, start = '') {
  return (message: string, cause?: unknown): EffectMatchError<C> =>
    new EffectMatchError(code, start + message, cause === undefined ? {} : { cause });
}

/**
 * Whether this package threw the error, with this code. Errors of other programs decide nothing.
 */
export function isFault<C extends ErrorCode>(
  error: unknown,
  code: C,
): error is EffectMatchError<C> {
  return error instanceof EffectMatchError && error.code === code;
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Whether an error has this code, a system error or one of ours. */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** A broken invariant is our bug, never an outcome: stop before anything else is promoted. */
export function invariant(condition: unknown, rule: string): asserts condition {
  if (!condition) throw new EffectMatchError('ERR_EM_INVARIANT', `broken invariant: ${rule}`);
}

/** Makes a switch exhaustive at compile time and loud at run time. */
export function unreachable(value: never): never {
  throw new EffectMatchError('ERR_EM_INVARIANT', `unreachable case: ${JSON.stringify(value)}`);
}
