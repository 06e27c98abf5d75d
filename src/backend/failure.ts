import { type StageFailure, stageFailed, stagePrevented } from './candidate.ts';

/** How the error messages of a database start. */
export const DATABASE_NOT_OPENED = 'the database could not be opened';
export const STAGE_NOT_OPENED = 'the stage could not be opened';

/** What an administrator should do if something that provisioning creates is missing. */
export const RUN_PROVISION = 'run `effectmatch provision`';

/** The savepoint of one call of a task, so that a failed call leaves nothing. */
export const CALL_SAVEPOINT = {
  open: 'savepoint effectmatch_call',
  undo: 'rollback to savepoint effectmatch_call',
  release: 'release savepoint effectmatch_call',
} as const;

/** Caused by other transactions, so a retry may succeed. */
const TRANSIENT: ReadonlySet<string> = new Set(['busy', 'serialization', 'deadlock']);

/** A failure for this reason; some reasons mean that a retry may succeed. */
export function failureFor(reason: string, detail: string): StageFailure {
  return TRANSIENT.has(reason) ? stagePrevented(reason, detail) : stageFailed(reason, detail);
}

/** Describes a database error without its message, which may quote private values. */
export function explainByCode(code: string | number): string {
  return `the database refused it [${code}]`;
}
