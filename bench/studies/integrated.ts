// Certification together with held transactions. A superuser who took no part reads back the
// durable rows.
import { RawRecords } from '../raw.ts';
import { type Cell, exactly, type Study, type StudyOptions } from '../study.ts';
import { openSite } from './boundary/site.ts';
import * as scenarios from './integrated/scenarios.ts';

const TRIALS = 20;

/**
 * The paper's scenarios, then ours, then the paper's fresh-certificate pair with its control.
 */
const SCENARIOS: readonly { readonly scenario: scenarios.Scenario; readonly inPaper: boolean }[] = [
  { scenario: scenarios.CLEAN, inPaper: true },
  { scenario: scenarios.EXTRA, inPaper: true },
  { scenario: scenarios.EXPOSED, inPaper: true },
  { scenario: scenarios.GRANTED, inPaper: true },
  { scenario: scenarios.REPLAYED, inPaper: true },
  { scenario: scenarios.PRESENTED, inPaper: false },
  { scenario: scenarios.TEMP, inPaper: true },
  { scenario: scenarios.TEMP_REUSED, inPaper: true },
  { scenario: scenarios.CLEAN_REUSED, inPaper: true },
];

async function run({ quick, progress }: StudyOptions): Promise<readonly Cell[]> {
  const trials = quick ? 1 : TRIALS;
  const raw = new RawRecords(`integrated${quick ? '-quick' : ''}`, []);
  await using site = await openSite();
  const cells: Cell[] = [];
  for (const { scenario, inPaper } of SCENARIOS) {
    progress(scenario.name);
    let count = 0;
    for (let trial = 0; trial < trials; trial += 1) {
      const { wrong } = await raw.run(`${scenario.name}|${trial + 1}`, async () => ({
        scenario: scenario.name,
        wrong: (await scenarios.runScenario(site, scenario)) ?? null,
      }));
      if (wrong === null) count += 1;
      else progress(`NOT AS EXPECTED: ${wrong}`);
    }
    const cell = exactly(scenario.name, count, 'trials', trials);
    cells.push(quick || !inPaper ? cell : { ...cell, paper: TRIALS });
  }
  raw.finish();
  return cells;
}

export const integratedStudy: Study = {
  name: 'integrated',
  about:
    'held transactions under certification on PostgreSQL, with read-back: commits, refusals, replays, stale certificates',
  run,
};
