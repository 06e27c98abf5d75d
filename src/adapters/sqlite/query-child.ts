import { Worker } from 'node:worker_threads';
import { NO_ROWS } from '../../backend/query.ts';
import { ResultCollector } from '../../backend/results.ts';
import type { QueryRows } from '../../contract/adapter.ts';
import { messageOf } from '../../errors.ts';
import { isBusy, openDatabase, retryWhileBusy, setPragma } from '../../sqlite/connection.ts';
import type { DatabaseSync } from '../../sqlite/engine.ts';
import type { BoundStatement } from './action.ts';
import { Fence, FenceLog } from './fence.ts';
import { compileStatement, plainRow } from './statements.ts';

/** A request to the query process: one statement and the number of rows to keep. */
export interface QueryOrder {
  readonly statement: BoundStatement;
  readonly rows: number;
}

/** The answer of the query process. */
export type QueryAnswer =
  | { readonly kind: 'rows'; readonly found: QueryRows }
  | { readonly kind: 'refused'; readonly why: string };

const RULES = {
  writable: new Map(),
  views: new Set<string>(),
  triggers: new Set<string>(),
  isProbe: false,
};

/** Answers on a read-only connection, where the fence also denies every write. */
function answer(db: DatabaseSync, fence: Fence, { statement, rows }: QueryOrder): QueryAnswer {
  const log = new FenceLog();
  fence.turn = { rules: RULES, log };
  try {
    const tools = { db, log, compiled: undefined };
    const compiled = compileStatement(statement.sql, tools);
    if (typeof compiled === 'string') return { kind: 'refused', why: compiled };
    const [denied] = log.denied;
    if (denied !== undefined) return { kind: 'refused', why: describeDenied(denied) };
    const { prepared, returnsRows } = compiled;
    if (!returnsRows) return { kind: 'refused', why: NO_ROWS };
    const collector = new ResultCollector();
    collector.begin(true);
    let count = 0;
    for (const row of prepared.iterate(statement.named, ...statement.positional)) {
      count += 1;
      if (count > rows) break;
      collector.add(() => plainRow(row));
      if ((collector.results?.[0]?.omitted ?? 0) > 0) break;
    }
    const [kept] = collector.results ?? [];
    const more = count > rows || (kept?.omitted ?? 0) > 0;
    return { kind: 'rows', found: { rows: kept?.rows ?? [], more } };
  } catch (error) {
    if (isBusy(error)) throw error;
    const [denied] = log.denied;
    if (denied !== undefined) return { kind: 'refused', why: describeDenied(denied) };
    return { kind: 'refused', why: messageOf(error) };
  } finally {
    fence.turn = 'none';
  }
}

/** A query can write no table, registered or not. */
function describeDenied(denied: string): string {
  return denied.startsWith('writes to ') ? 'it writes, and a query only reads' : denied;
}

/** Even one row can have thousands of large values, which are all in memory at once. */
const MAX_MEMORY = 1024 * 1024 * 1024;
const WATCH = `setInterval(() => {
  if (process.memoryUsage.rss() > ${MAX_MEMORY}) process.kill(process.pid, 'SIGKILL');
}, 20)`;

// SQLite cannot be interrupted, so another thread kills the process.
new Worker(WATCH, { eval: true, execArgv: [] }).unref();
const [, , file = ''] = process.argv;
const db = openDatabase(file, { readOnly: true });
setPragma(db, { name: 'query_only', value: 'on', reads: 1 });
const fence = new Fence(db);
fence.turn = 'none';
process.on('message', async (order: QueryOrder) => {
  process.send?.(await retryWhileBusy(() => answer(db, fence, order), { deadlineMs: 5000 }));
});
process.on('disconnect', () => process.exit());
