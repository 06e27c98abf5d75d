import type { DatabaseSync } from 'node:sqlite';
import { invariant } from '../../errors.ts';
import { extendedCode } from '../../sqlite/connection.ts';
import type { CheckedAction, CheckedStatement } from './action.ts';
import type { FenceLog } from './fence.ts';

/** What became of an action: run to its end, or why not. */
export type RunResult =
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly reason: 'action-failed' | 'outlet-denied'; readonly detail: string };

const MAX_DETAIL = 1000;

/**
 * Runs the statements in order, behind the fence, inside the open transaction, and stops at the first thing that is
 * wrong. SQLite's own messages can quote values (a trigger's RAISE, a piece of SQL), so where the journal is to keep
 * no values, `quotesValues: false` keeps only the kind of error.
 */
export function runStatements(
  db: DatabaseSync,
  action: CheckedAction,
  options: { readonly fence: FenceLog; readonly quotesValues: boolean },
): RunResult {
  const { fence, quotesValues } = options;
  for (const [index, statement] of action.statements.entries()) {
    const prefix = action.statements.length > 1 ? `statement ${index + 1}: ` : '';
    const error = runStatement(db, statement, quotesValues);
    // A denial counts even where SQLite found a way on without what was denied.
    const denied = fence.denied[0];
    if (denied !== undefined) return failed('outlet-denied', `${prefix}${denied}`);
    if (error !== undefined) return failed('action-failed', `${prefix}${error}`);
  }
  return { kind: 'done' };
}

/** Returns what went wrong, undefined where nothing did. */
function runStatement(db: DatabaseSync, statement: CheckedStatement, quotesValues: boolean): string | undefined {
  const { sql, positional, named } = statement;
  try {
    const prepared = db.prepare(sql);
    if (!sql.startsWith(prepared.sourceSQL)) return 'SQLite read another text than was submitted';
    if (!isBlank(sql.slice(prepared.sourceSQL.length))) {
      return 'there is text after the first statement; submit several statements as a list';
    }
    prepared.setReadBigInts(true);
    // Every row is fetched, so that a statement that fails late fails here; none is kept.
    for (const _ of prepared.iterate(named, ...positional));
  } catch (error) {
    // ON CONFLICT ROLLBACK and RAISE(ROLLBACK) end the transaction together with the error.
    const ended = db.isTransaction ? '' : ' (which rolled the whole transaction back)';
    return `${quotesValues ? wordsOf(error) : kindOf(error)}${ended}`;
  }
  invariant(db.isTransaction, 'a statement that succeeds leaves the transaction open');
  return undefined;
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function kindOf(error: unknown): string {
  const code = extendedCode(error);
  return code === undefined ? 'the statement could not be bound' : `SQLite error ${code}`;
}

/** Nothing but white space, semicolons and comments. A comment that is never closed reaches to the end. */
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
