import assert from 'node:assert/strict';
import { readRaw } from '../../bench/raw.ts';
import { compareFigures, recompute } from '../../bench/recompute.ts';
import type { Cell } from '../../bench/study.ts';

/** Every figure of a quick run follows from the records that the run left. */
export function demandRecomputed(study: string, cells: readonly Cell[]): void {
  const again = recompute(study, readRaw(study, true) ?? []);
  const { differing, unsupported } = compareFigures(cells, again);
  assert.deepEqual([...differing, ...unsupported], [], `${study}: records and figures`);
}
