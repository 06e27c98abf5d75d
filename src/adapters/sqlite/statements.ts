import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite';
import { bytesAsText, ResultCollector } from '../../backend/results.ts';
import type { ResultRow, StatementResult } from '../../contract/adapter.ts';
import { invariant, messageOf } from '../../errors.ts';
import { extendedCode } from '../../sqlite/connection.ts';
import type { BoundStatement, CheckedSqliteAction } from './action.ts';
import type { CompiledWrite, FenceLog } from './fence.ts';

/** The result of an action: done, or why it failed. */
export type RunResult =
  | { readonly kind: 'done'; readonly results?: readonly StatementResult[] }
  | {
      readonly kind: 'failed';
      readonly reason: 'action-failed' | 'outlet-denied';
      readonly detail: string;
    };

const MAX_DETAIL = 1000;

/** A statement of an action, compiled behind the fence. */
export interface CompiledStatement {
  readonly prepared: StatementSync;
  /** The writes that the fence logged at compile time. SQLite asks again only if it recompiles. */
  readonly writes: readonly CompiledWrite[];
  readonly returnsRows: boolean;
}

/** What is needed to run statements. */
export interface RunTools {
  readonly db: DatabaseSync;
  readonly log: FenceLog;
  /**
   * SQLite's messages can quote values, such as a trigger's RAISE or a piece of SQL. `false` keeps
   * only the kind of error.
   */
  readonly quotesValues: boolean;
  /** Statements compiled on this connection under the same rules; undefined if none may be kept. */
  readonly compiled: Map<string, CompiledStatement> | undefined;
  /** Called after a statement is compiled and its writes are logged, but before it runs. */
  readonly beforeRun: () => void;
}

/** Longer statements are compiled again. */
const MAX_KEPT_CHARACTERS = 10_000;

/**
 * Runs the statements in order, behind the fence, in the open transaction. Stops at the first
 * failure.
 */
export function runStatements(action: CheckedSqliteAction, tools: RunTools): RunResult {
  const collector = new ResultCollector();
  for (const [index, statement] of action.statements.entries()) {
    const error = runStatement(statement, tools, collector);
    // A denial counts even if SQLite continued without what was denied.
    const denied = tools.log.denied[0];
    if (denied === undefined && error === undefined) continue;
    const prefix = action.statements.length > 1 ? `statement ${index + 1}: ` : '';
    if (denied !== undefined) return failed('outlet-denied', `${prefix}${denied}`);
    return failed('action-failed', `${prefix}${error}`);
  }
  const { results } = collector;
  return { kind: 'done', ...(results && { results }) };
}

/** Returns what went wrong, if anything. */
function runStatement(
  statement: BoundStatement,
  tools: RunTools,
  collector: ResultCollector,
): string | undefined {
  const { db, quotesValues } = tools;
  const { positional, named } = statement;
  try {
    const compiled = compileStatement(statement.sql, tools);
    if (typeof compiled === 'string') return compiled;
    if (tools.log.denied.length > 0) return undefined;
    tools.beforeRun();
    const { prepared, returnsRows } = compiled;
    collector.begin(returnsRows);
    // A statement without result rows completes in its first step. Otherwise every row is fetched,
    // so that a statement that fails late fails here.
    if (!returnsRows) prepared.run(named, ...positional);
    else
      for (const row of prepared.iterate(named, ...positional)) collector.add(() => plainRow(row));
  } catch (error) {
    // ON CONFLICT ROLLBACK and RAISE(ROLLBACK) also end the transaction.
    const ended = db.isTransaction ? '' : ' (which rolled the whole transaction back)';
    return `${quotesValues ? messageOf(error) : kindOf(error)}${ended}`;
  }
  invariant(db.isTransaction, 'a statement that succeeds leaves the transaction open');
  return undefined;
}

/** Converts a row to plain data. */
export function plainRow(row: Readonly<Record<string, SQLOutputValue>>): ResultRow {
  const cells = Object.entries(row).map(([column, value]) => [column, plainCell(value)] as const);
  return Object.fromEntries(cells);
}

function plainCell(value: SQLOutputValue): ResultRow[string] {
  if (value instanceof Uint8Array) return bytesAsText(value);
  if (typeof value !== 'bigint') return value;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : String(value);
}

/** Compiles a statement and logs what it may write, or returns what is wrong with the text. */
export function compileStatement(
  sql: string,
  { db, log, compiled }: Pick<RunTools, 'db' | 'log' | 'compiled'>,
): CompiledStatement | string {
  const known = compiled?.get(sql);
  if (known !== undefined) {
    for (const write of known.writes) log.enter(write);
    return known;
  }
  const before = log.writes.length;
  const prepared = db.prepare(sql);
  if (!sql.startsWith(prepared.sourceSQL)) return 'SQLite read another text than was submitted';
  if (!isBlank(sql.slice(prepared.sourceSQL.length))) {
    return 'there is text after the first statement; submit several statements as a list';
  }
  prepared.setReadBigInts(true);
  const returnsRows = prepared.columns().length > 0;
  const made = { prepared, writes: log.writes.slice(before), returnsRows };
  if (log.denied.length === 0 && sql.length <= MAX_KEPT_CHARACTERS) compiled?.set(sql, made);
  return made;
}

function kindOf(error: unknown): string {
  const code = extendedCode(error);
  return code === undefined ? 'the statement could not be bound' : `SQLite error ${code}`;
}

/**
 * Whether the text has only white space, semicolons and comments. An unclosed comment extends to
 * the end.
 */
function isBlank(sql: string): boolean {
  let at = 0;
  while (at < sql.length) {
    if (/[\s;]/.test(sql.charAt(at))) {
      at += 1;
      continue;
    }
    const closing = sql.startsWith('--', at) ? '\n' : sql.startsWith('/*', at) ? '*/' : undefined;
    if (closing === undefined) return false;
    const end = sql.indexOf(closing, at + 2);
    at = end < 0 ? sql.length : end + closing.length;
  }
  return true;
}

function failed(reason: 'action-failed' | 'outlet-denied', detail: string): RunResult {
  return { kind: 'failed', reason, detail: detail.slice(0, MAX_DETAIL).toWellFormed() };
}
