import type { QueryRows } from '../contract/adapter.ts';
import { EffectMatchError } from '../errors.ts';
import { adapterNamed, type Deployment } from './deployment.ts';

/** What to read, and within which bounds. */
export interface QueryRequest {
  readonly adapter: string;
  /** One statement, as an action is written: `{ sql, values }`. */
  readonly action: unknown;
  /** Ten seconds unless said otherwise. */
  readonly timeoutMs?: number;
  /** At most so many rows; 100 unless said otherwise, 1000 at most. */
  readonly rows?: number;
}

const TIMEOUT_MS = 10_000;
const MAX_TIMEOUT_MS = 600_000;
const ROWS = 100;
const MAX_ROWS = 1000;

/** Runs one statement for its rows. Needs no license: the adapter lets it write nothing. */
export async function query(deployment: Deployment, request: QueryRequest): Promise<QueryRows> {
  const { timeoutMs = TIMEOUT_MS, rows = ROWS } = request;
  const { adapter } = adapterNamed(deployment, request.adapter);
  if (adapter.query === undefined)
    throw new EffectMatchError(
      'ERR_EM_USAGE',
      `the adapter "${request.adapter}" cannot be queried`,
    );
  demandBound('timeoutMs', timeoutMs, MAX_TIMEOUT_MS);
  demandBound('rows', rows, MAX_ROWS);
  return await adapter.query(adapter.parseAction(request.action), { timeoutMs, rows });
}

function demandBound(name: string, value: number, max: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= max) return;
  throw new EffectMatchError('ERR_EM_USAGE', `${name} must be a whole number from 1 to ${max}`);
}
