import { ResultCollector } from '../../backend/results.ts';
import type { ResultRow, StatementResult } from '../../contract/adapter.ts';
import type { Reply, ResultColumn } from '../../postgres/connection.ts';

/** The results of an action's statements, from the server's replies. */
export function collectResults(replies: readonly Reply[]): readonly StatementResult[] | undefined {
  const collector = new ResultCollector();
  for (const { columns, rows } of replies) {
    collector.begin(columns !== undefined);
    if (columns === undefined) continue;
    for (const row of rows) collector.add(() => readRow(columns, row));
  }
  return collector.results;
}

function readRow(columns: readonly ResultColumn[], row: readonly (string | null)[]): ResultRow {
  const cells = columns.map(({ name, type }, index) => [name, readCell(type, row[index] ?? null)]);
  return Object.fromEntries(cells);
}

/** Object ids of types that have a JavaScript counterpart. */
const BOOLEAN = 16;
const INTEGERS: readonly number[] = [20, 21, 23];
const FLOATS: readonly number[] = [700, 701];

/**
 * Decimals, times and everything else stay text, because a number could not represent them exactly.
 */
function readCell(type: number, text: string | null): ResultRow[string] {
  if (text === null) return null;
  if (type === BOOLEAN) return text === 't';
  if (!INTEGERS.includes(type) && !FLOATS.includes(type)) return text;
  const number = Number(text);
  const isExact = FLOATS.includes(type) ? Number.isFinite(number) : Number.isSafeInteger(number);
  return isExact ? number : text;
}
