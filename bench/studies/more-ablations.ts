// What the mechanisms beyond the paper contribute: each is removed alone, and the fault that it
// stops then gets through.
import { RawRecords } from '../raw.ts';
import type { Cell, Study, StudyOptions } from '../study.ts';
import { runPair } from './ablations/pair.ts';
import { PROMOTION_PAIRS } from './more-ablations/promotion.ts';
import { REMOTE_PAIRS } from './more-ablations/remote.ts';

const RUNS = 20;

export const MORE_PAIRS = [...PROMOTION_PAIRS, ...REMOTE_PAIRS];

async function run({ quick, progress }: StudyOptions): Promise<readonly Cell[]> {
  const raw = new RawRecords(`more-ablations${quick ? '-quick' : ''}`, []);
  const cells: Cell[] = [];
  for (const pair of MORE_PAIRS) {
    progress(pair.name);
    cells.push(...(await runPair(pair, quick ? 1 : RUNS, raw, quick)));
  }
  raw.finish();
  return cells;
}

export const moreAblationsStudy: Study = {
  name: 'more-ablations',
  about: 'markers, lease, second witness, remote fence and group commit, each removed alone',
  run,
};
