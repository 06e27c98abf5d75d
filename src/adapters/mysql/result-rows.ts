import { bytesAsText, type ResultCollector } from '../../backend/results.ts';
import type { ResultRow } from '../../contract/adapter.ts';
import type { RowReceiver } from './connection.ts';

/** The driver returns dates, and numbers that JavaScript would round, as text. */
export function readReturned(row: Readonly<Record<string, unknown>>): ResultRow {
  const cells = Object.entries(row).map(([name, value]) => {
    if (value instanceof Uint8Array) return [name, bytesAsText(value)] as const;
    if (value === null || typeof value === 'number') return [name, value] as const;
    return [name, String(value)] as const;
  });
  return Object.fromEntries(cells);
}

/** Puts the first rows into the collector as they arrive, so that what it omits is not kept. */
export function receiverOf(
  collected: ResultCollector,
  most = Number.POSITIVE_INFINITY,
): RowReceiver {
  let count = 0;
  return {
    begin: (returnsRows) => collected.begin(returnsRows),
    add: (row) => {
      count += 1;
      if (count <= most) collected.add(() => readReturned(row));
    },
  };
}
