import type { QueryRows } from '../contract/adapter.ts';
import { EffectMatchError } from '../errors.ts';
import { demandWhole } from './calls.ts';
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
  demandWhole('timeoutMs', timeoutMs, MAX_TIMEOUT_MS);
  demandWhole('rows', rows, MAX_ROWS);
  return await adapter.query(adapter.parseAction(request.action), { timeoutMs, rows });
}
