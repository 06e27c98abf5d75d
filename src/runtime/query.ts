import type { QueryRows } from '../contract/adapter.ts';
import { EffectMatchError } from '../errors.ts';
import { adapterNamed, type Deployment } from './deployment.ts';

/** What to read, and the limits. */
export interface QueryRequest {
  readonly adapter: string;
  /** One statement, written like an action: `{ sql, values }`. */
  readonly action: unknown;
  /** The default is ten seconds. */
  readonly timeoutMs?: number;
  /** The maximum number of rows: 100 by default, at most 1000. */
  readonly rows?: number;
}

const TIMEOUT_MS = 10_000;
const MAX_TIMEOUT_MS = 600_000;
const ROWS = 100;
const MAX_ROWS = 1000;

/**
 * Runs one statement and returns its rows. Needs no license, because the adapter prevents it from
 * writing.
 */
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
