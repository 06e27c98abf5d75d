import type { ApprovedEffect, Cell, CellRow } from '../../src/protocol/effect.ts';
import type { Durable, ReadRow } from './readback.ts';

/**
 * What became durable between two readings and was not approved, in words; without `approved`
 * nothing may. Positions of sequences that registered columns draw from may go forward: that
 * residue is documented. Everything else counts, whatever the terminal says.
 */
export function unapprovedChanges(
  before: Durable,
  after: Durable,
  approved?: readonly ApprovedEffect[],
): readonly string[] {
  return [
    ...changedRows(before, after, approved ?? []),
    ...changedSequences(before, after),
    ...changedFacts(before.facts, after.facts),
    ...changedMarkers(before.committed, after.committed, approved !== undefined),
  ];
}

function changedRows(
  before: Durable,
  after: Durable,
  approved: readonly ApprovedEffect[],
): readonly string[] {
  const changes: string[] = [];
  const expected = new Map([...before.rows].map(([table, rows]) => [table, [...rows]]));
  for (const effect of approved) {
    const missing = applyEffect(expected, effect);
    if (missing !== undefined) changes.push(missing);
  }
  for (const table of new Set([...expected.keys(), ...after.rows.keys()])) {
    const wanted = expected.get(table)?.map(sortedText);
    const found = after.rows.get(table)?.map(sortedText);
    if (wanted === undefined || found === undefined) {
      changes.push(`table ${table} ${found === undefined ? 'is gone' : 'is new'}`);
      continue;
    }
    for (const row of without(found, wanted)) changes.push(`${table} has ${row}`);
    for (const row of without(wanted, found)) changes.push(`${table} lacks ${row}`);
  }
  return changes;
}

/** Does to the rows what was approved, so that they read as they must afterwards. */
function applyEffect(tables: Map<string, ReadRow[]>, effect: ApprovedEffect): string | undefined {
  const rows = tables.get(leafOf(tables, effect.target));
  if (rows === undefined) return `there is no table ${effect.target}`;
  const { key = {}, before = {}, after = {} } = effect;
  if (effect.op === 'insert') {
    rows.push(
      Object.fromEntries(Object.entries(after).map(([column, cell]) => [column, textOf(cell)])),
    );
    return undefined;
  }
  const at = rows.findIndex((row) => holds(row, key) && holds(row, before));
  const old = rows[at];
  if (old === undefined) return `${effect.target} had no row ${JSON.stringify(key)}`;
  if (effect.op === 'delete') rows.splice(at, 1);
  else
    rows[at] = {
      ...old,
      ...Object.fromEntries(Object.entries(after).map(([column, cell]) => [column, textOf(cell)])),
    };
  return undefined;
}

/** Rows of a partitioned table are in its only partition here. */
function leafOf(tables: ReadonlyMap<string, unknown>, target: string): string {
  return tables.has(target)
    ? target
    : ([...tables.keys()].find((table) => table.startsWith(`${target}_`)) ?? target);
}

function holds(row: ReadRow, cells: CellRow): boolean {
  return Object.entries(cells).every(([column, cell]) => row[column] === textOf(cell));
}

/** The approved value as the server prints it; the controls use plain values only. */
function textOf(cell: Cell): string | null {
  if (!('is' in cell) || (cell.is !== null && typeof cell.is === 'object'))
    throw new Error(`a control needs plain values: ${JSON.stringify(cell)}`);
  return cell.is === null ? null : String(cell.is);
}

function sortedText(row: ReadRow): string {
  return JSON.stringify(
    Object.fromEntries(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1))),
  );
}

/** What the first list has more than the second. */
function without(list: readonly string[], other: readonly string[]): readonly string[] {
  const left = [...other];
  return list.filter((text) => {
    const at = left.indexOf(text);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}

function changedSequences(before: Durable, after: Durable): readonly string[] {
  return [...new Set([...before.sequences.keys(), ...after.sequences.keys()])].flatMap((name) => {
    const [was, is] = [before.sequences.get(name), after.sequences.get(name)];
    if (was?.at === is?.at) return [];
    const isResidue =
      was?.residue && is !== undefined && Number.parseInt(is.at, 10) >= Number.parseInt(was.at, 10);
    return isResidue
      ? []
      : [`sequence ${name} went from ${was?.at ?? 'nothing'} to ${is?.at ?? 'nothing'}`];
  });
}

function changedFacts(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): readonly string[] {
  return [...new Set([...before.keys(), ...after.keys()])]
    .filter((what) => before.get(what) !== after.get(what))
    .map((what) => `${what} changed`);
}

function changedMarkers(before: number, after: number, isCommitted: boolean): readonly string[] {
  const expected = before + (isCommitted ? 1 : 0);
  return after === expected
    ? []
    : [`${after - before} markers say committed instead of ${expected - before}`];
}
