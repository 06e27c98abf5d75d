/** SHA-256 in lower-case hex. */
export const DIGEST = /^[0-9a-f]{64}$/;
export const OCCURRENCE = /^occ_[0-9a-f]{40}$/;
export const EXECUTION = /^exe_[0-9a-f]{32}$/;
export const NAME = /^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}$/;
export const NONCE = /^[A-Za-z0-9_-]{16,64}$/;
/** ISO 8601 in UTC with milliseconds. */
export const INSTANT =
  /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/;

/**
 * What fits one of these is printable ASCII without quote and backslash, so that it stands in JSON
 * as it is. Most of what records carry does, and need not be looked through a second time.
 */
export const PLAIN_PATTERNS: ReadonlySet<RegExp> = new Set([
  DIGEST,
  OCCURRENCE,
  EXECUTION,
  NAME,
  NONCE,
  INSTANT,
]);
