import type { Staged } from '../../contract/adapter.ts';
import { describeError, sqlState } from '../../postgres/connection.ts';

/** Whether messages may quote values. */
export interface Telling {
  readonly quotesValues: boolean;
}

/** Why a stage failed, by the state that the server reports. */
export function describeFailure(
  tools: Telling,
  error: unknown,
  what: string,
): Extract<Staged, { kind: 'failed' }> {
  return {
    kind: 'failed',
    reason: reasonOf(sqlState(error)),
    detail: `${what}: ${explain(tools, error)}`,
  };
}

/**
 * Messages of the server may quote values of the statement; where values are private, only the
 * state is told. That holds for our own states too: any trigger can raise them, with words of its
 * own.
 */
export function explain({ quotesValues }: Telling, error: unknown): string {
  const state = sqlState(error);
  if (state === undefined || quotesValues) return describeError(error);
  return `the database refused it [${state}]`;
}

function reasonOf(state: string | undefined): string {
  switch (state) {
    case undefined:
    case '57P01':
    case '57P02':
    case '57P03':
      return 'unavailable';
    case '55P03':
      return 'busy';
    case '40001':
      return 'serialization';
    case '40P01':
      return 'deadlock';
    case '42501':
      return 'denied';
    case '57014':
    case '25P03':
    case '25P04':
      return 'timeout';
    default:
      return state.startsWith('23')
        ? 'constraint'
        : state.startsWith('EM')
          ? 'denied'
          : 'action-failed';
  }
}
