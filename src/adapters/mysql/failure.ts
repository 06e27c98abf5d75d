import type { StageFailure } from '../../backend/candidate.ts';
import { explainByCode, failureFor } from '../../backend/failure.ts';
import { messageOf } from '../../errors.ts';
import { errorNumber } from './connection.ts';

/** The reason for a stage failure, by the server's error number. */
const REASONS: Readonly<Record<number, string>> = {
  // All connections of the server or of the account are in use.
  1040: 'busy',
  1203: 'busy',
  1226: 'busy',
  1205: 'busy',
  1213: 'deadlock',
  // Under innodb_snapshot_isolation, a row that another session changed after the branch began.
  1020: 'serialization',
  1969: 'timeout',
  3024: 'timeout',
  1044: 'denied',
  1142: 'denied',
  1143: 'denied',
  1227: 'denied',
  1370: 'denied',
  1048: 'constraint',
  1062: 'constraint',
  1451: 'constraint',
  1452: 'constraint',
  4025: 'constraint',
  1927: 'unavailable',
  1053: 'unavailable',
};

export function describeFailure(
  error: unknown,
  what: string,
  values: 'plain' | 'digest',
): StageFailure {
  const number = errorNumber(error);
  const reason = number === undefined ? 'unavailable' : (REASONS[number] ?? 'action-failed');
  return failureFor(reason, `${what}: ${explainError(error, values)}`);
}

/** Server messages may quote values. If values are private, only the error number is shown. */
export function explainError(error: unknown, values: 'plain' | 'digest'): string {
  const number = errorNumber(error);
  if (number !== undefined && values === 'digest') return explainByCode(number);
  return messageOf(error);
}
