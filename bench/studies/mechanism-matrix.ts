// What each source of evidence adds: the paper's eight scenarios and five more, under six
// conditions, on PostgreSQL, SQLite and loopback HTTP.
import { runLanes } from '../../test/crash/lanes.ts';
import { RawRecords } from '../raw.ts';
import { type Cell, exactly, reproduced, type Study, type StudyOptions } from '../study.ts';
import { CONDITION_NAMES, runOnce } from './mechanism-matrix/run.ts';
import { SCENARIOS } from './mechanism-matrix/scenarios.ts';
import { openSite } from './mechanism-matrix/site.ts';

const REPETITIONS = 20;
/** Runs at the same time. Each has its own database, files and customer; some only wait. */
const LANES = 4;

async function run({ quick, progress }: StudyOptions): Promise<readonly Cell[]> {
  const repetitions = quick ? 1 : REPETITIONS;
  const raw = new RawRecords(`mechanism-matrix${quick ? '-quick' : ''}`, []);
  await using site = await openSite();
  const cells: Cell[] = [];
  for (const scenario of SCENARIOS) {
    for (const [index, condition] of CONDITION_NAMES.entries()) {
      const place = `${scenario.name} | ${condition}`;
      const paper = scenario.labels[index] ?? '';
      progress(place);
      const labels: string[] = [];
      const numbers = Array.from({ length: repetitions }, (_, index) => index + 1);
      await runLanes(numbers, LANES, async (repetition) => {
        const record = await raw.run(`${place} | ${repetition}`, () =>
          runOnce(site, scenario, condition),
        );
        labels.push(record.label);
      });
      const others = new Set(labels.filter((label) => label !== paper));
      if (others.size > 0) progress(`NOT AS EXPECTED (${paper}): ${[...others].join(', ')}`);
      const count = labels.filter((label) => label === paper).length;
      const name = `${place}: ${paper}`;
      cells.push(
        quick || scenario.isOurs
          ? exactly(name, count, 'runs', repetitions)
          : reproduced(name, count, 'runs', REPETITIONS),
      );
    }
  }
  raw.finish();
  return cells;
}

export const mechanismMatrixStudy: Study = {
  name: 'mechanism-matrix',
  about: 'thirteen scenarios under six conditions, each defined by the evidence it reads',
  run,
};
