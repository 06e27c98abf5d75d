// The paper's cost figures. This run measures both sides of each figure in turn.
import { join } from 'node:path';
import { findData } from '../data/folder.ts';
import { loadStateTasks, STATE_FILES, type StateTask } from '../data/state-bench.ts';
import { deskMaker, NATIVE_FILES } from '../data/state-native.ts';
import { RawRecords } from '../raw.ts';
import {
  atMost,
  type Cell,
  DEFAULT_SEED,
  drawing,
  figure,
  type Study,
  type StudyOptions,
} from '../study.ts';
import { timeComparisons } from './compare.ts';
import { certificationCells, measureCertification } from './cost/certification.ts';
import { PAPER_COMPARISON } from './cost/paper.ts';
import { measureState } from './cost/state.ts';

const FULL = { state: { pairs: 30, warmups: 2 }, certification: { pairs: 30, warmups: 2 } };
const QUICK: typeof FULL = {
  state: { pairs: 3, warmups: 1 },
  certification: { pairs: 3, warmups: 1 },
};
const EFFECTS = [1, 5, 10, 50, 100, 250, 500];

async function run({
  quick,
  data,
  seed = DEFAULT_SEED,
  progress,
}: StudyOptions): Promise<readonly Cell[]> {
  const files = [...STATE_FILES, ...NATIVE_FILES];
  const folder = findData(data, files);
  const inputs = files.map((file) => join(folder, file));
  const raw = new RawRecords(`cost${quick ? '-quick' : ''}`, inputs, seed);
  const size = quick ? QUICK : FULL;
  const all = loadStateTasks(folder);
  const timing = all.filter(({ timing18 }) => timing18);
  const tasks = quick ? oneOfEachDomain(timing) : timing;
  const how = { raw, draw: drawing(seed), progress };
  const desk = deskMaker(folder, all);
  const cells = [
    ...(await measureState(all, tasks, size.state, how)),
    ...(await measureState(all, tasks, size.state, { ...how, draw: drawing(seed), desk })),
  ];

  progress(`PostgreSQL: certification off and on, ${size.certification.pairs} pairs`);
  const { pairs, warmups } = size.certification;
  const certified = await raw.run('certification', () => measureCertification(pairs, warmups));
  cells.push(...certificationCells(certified));

  progress(`comparison of ${EFFECTS.join(', ')} effects`);
  for (const effects of EFFECTS) {
    const { us } = await raw.run(`comparison|${effects}`, async () => ({
      us: timeComparisons(effects, quick),
    }));
    const name = `comparison of ${effects} effects`;
    const ms = { statistic: 'median', of: us, times: 0.001 } as const;
    cells.push(
      effects < 500
        ? figure(name, ms, 'ms')
        : { ...atMost(name, ms, 'ms', 0.5), paper: PAPER_COMPARISON },
    );
  }
  raw.finish();
  return cells;
}

function oneOfEachDomain(tasks: readonly StateTask[]): readonly StateTask[] {
  return [...new Map(tasks.map((task) => [task.packet.domain, task])).values()];
}

export const costStudy: Study = {
  name: 'cost',
  about:
    '18 STATE tasks held and direct, certification on PostgreSQL off and on, comparison of 1 to 500 effects',
  seeded: 'the order of the executions in each direct/held pair',
  run,
};
