import type { StageFailure } from '../../backend/candidate.ts';
import { explainByCode, failureFor } from '../../backend/failure.ts';
import { describeError, failedFunction, sqlState } from '../../postgres/connection.ts';

/** Why a stage failed, by SQLSTATE. An error without one means that the server was lost. */
const REASONS: Readonly<Record<string, string>> = {
  '57P01': 'unavailable',
  '57P02': 'unavailable',
  '57P03': 'unavailable',
  '55P03': 'busy',
  '40001': 'serialization',
  '40P01': 'deadlock',
  '42501': 'denied',
  '57014': 'timeout',
  '25P03': 'timeout',
  '25P04': 'timeout',
};

/** Reasons for whole classes of SQLSTATEs. EM is our own class. */
const CLASSES: Readonly<Record<string, string>> = { '23': 'constraint', EM: 'denied' };

export function describeFailure(
  error: unknown,
  what: string,
  values: 'plain' | 'digest',
): StageFailure {
  const state = sqlState(error);
  const known = state === undefined ? 'unavailable' : REASONS[state];
  const reason = known ?? CLASSES[state?.slice(0, 2) ?? ''] ?? 'action-failed';
  // The statement may not mention what was denied to a trigger.
  const place = reason === 'denied' && values === 'plain' ? failedFunction(error) : undefined;
  const inside = place === undefined ? '' : `, in function ${place}`;
  return failureFor(reason, `${what}: ${explainError(error, values)}${inside}`);
}

/**
 * Describes an error. Server messages may quote values of the statement, so if values are private,
 * only the SQLSTATE is given. This includes our own states, because any trigger can raise them with
 * any text.
 */
export function explainError(error: unknown, values: 'plain' | 'digest'): string {
  const state = sqlState(error);
  if (state === undefined || values === 'plain') return describeError(error);
  return explainByCode(state);
}
