// What the benchmark expects of the three tasks: rows of the relations that a task is about. Like
// the benchmark's checker, it ignores all other relations.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Tables, TextRow } from '../approvals/rows.ts';
import { TASK_NAMES, type TaskName } from './mcpmark.ts';

export const EXPECTED_FILES = TASK_NAMES.map((name) => `mcpmark/expected/${name}.json`);

const values = z.array(z.union([z.string(), z.number(), z.null()]));
const rows = z.array(values);
const relation = z.looseObject({
  columns: z.array(z.string()).optional(),
  /** Rows that the relation must contain. */
  inserted_rows: rows.optional(),
  /** All rows of the relation. */
  final_rows: rows.optional(),
  rows: rows.optional(),
  rows_C_collation: rows.optional(),
  rows_en_US_collation: rows.optional(),
  changed: z
    .array(z.looseObject({ CustomerId: z.number(), SupportRepId_after: z.number() }))
    .optional(),
});
const expectation = z.record(z.string(), z.union([z.string(), relation]));

type ExpectedRelation = z.infer<typeof relation>;

/** What the benchmark expects of a task. */
export type TaskExpectation = ReadonlyMap<string, ExpectedRelation>;

export function loadExpectation(folder: string, task: TaskName): TaskExpectation {
  const file = join(folder, `mcpmark/expected/${task}.json`);
  const read = expectation.safeParse(JSON.parse(readFileSync(file, 'utf8')));
  if (!read.success) throw new Error(`${file}: ${z.prettifyError(read.error)}`);
  const relations = Object.entries(read.data).flatMap(([name, found]) =>
    typeof found === 'string' ? [] : [[name, found] as const],
  );
  return new Map(relations);
}

/** Whether the benchmark would count the task as solved. */
export function meetsExpectation(expected: TaskExpectation, durable: Tables): boolean {
  return [...expected].every(([name, wanted]) => meets(wanted, durable[name] ?? []));
}

function meets(wanted: ExpectedRelation, found: readonly TextRow[]): boolean {
  const { columns = [], inserted_rows, changed } = wanted;
  const texts = found.map((row) => rowText(columns.map((column) => row[column] ?? null)));
  const list = (some: z.infer<typeof rows>) => some.map(rowText);
  if (inserted_rows !== undefined) return list(inserted_rows).every((row) => texts.includes(row));
  if (changed !== undefined)
    return changed.every(({ CustomerId, SupportRepId_after }) =>
      found.some(
        (row) =>
          row.CustomerId === String(CustomerId) && row.SupportRepId === String(SupportRepId_after),
      ),
    );
  const whole = [
    wanted.final_rows,
    wanted.rows,
    wanted.rows_C_collation,
    wanted.rows_en_US_collation,
  ].filter((one) => one !== undefined);
  return whole.some((some) => list(some).sort().join('\n') === [...texts].sort().join('\n'));
}

function rowText(row: z.infer<typeof values>): string {
  return JSON.stringify(row.map((value) => (value === null ? null : String(value))));
}
