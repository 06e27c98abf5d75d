// What each source of evidence adds: the paper's eight scenarios and five more, under six
// conditions, on PostgreSQL, SQLite and loopback HTTP.
import { RawRecords } from '../raw.ts';
import { type Cell, exactly, reproduced, type Study, type StudyOptions } from '../study.ts';
import { CONDITION_NAMES, runOnce } from './mechanism-matrix/run.ts';
import { SCENARIOS } from './mechanism-matrix/scenarios.ts';
import { openSite } from './mechanism-matrix/site.ts';

const REPETITIONS = 20;

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
      for (let repetition = 1; repetition <= repetitions; repetition += 1) {
        const record = await raw.run(`${place} | ${repetition}`, () =>
          runOnce(site, scenario, condition),
        );
        labels.push(record.label);
      }
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
