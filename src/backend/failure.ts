import { type StageFailure, stageFailed, stagePrevented } from './candidate.ts';

/** What the errors of a database begin with. */
export const DATABASE_NOT_OPENED = 'the database could not be opened';
export const STAGE_NOT_OPENED = 'the stage could not be opened';

/** What an administrator does if something that provisioning makes is missing. */
export const RUN_PROVISION = 'run `effectmatch provision`';

/** One call of a task, so that a failed one leaves nothing. */
export const CALL_SAVEPOINT = {
  open: 'savepoint effectmatch_call',
  undo: 'rollback to savepoint effectmatch_call',
  release: 'release savepoint effectmatch_call',
} as const;

/** Other transactions caused it. It may not happen again. */
const TRANSIENT: ReadonlySet<string> = new Set(['busy', 'serialization', 'deadlock']);

/** A failure by its reason, which says whether waiting may cure it. */
export function failureFor(reason: string, detail: string): StageFailure {
  return TRANSIENT.has(reason) ? stagePrevented(reason, detail) : stageFailed(reason, detail);
}

/** An error of a database without its words, which may quote private values. */
export function explainByCode(code: string | number): string {
  return `the database refused it [${code}]`;
}
