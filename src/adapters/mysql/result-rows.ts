import { bytesAsText } from '../../backend/results.ts';
import type { ResultRow } from '../../contract/adapter.ts';

/** The driver returns dates, and numbers that JavaScript would round, as text. */
export function readReturned(row: Readonly<Record<string, unknown>>): ResultRow {
  const cells = Object.entries(row).map(([name, value]) => {
    if (value instanceof Uint8Array) return [name, bytesAsText(value)] as const;
    if (value === null || typeof value === 'number') return [name, value] as const;
    return [name, String(value)] as const;
  });
  return Object.fromEntries(cells);
}
