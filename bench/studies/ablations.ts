// Shows what each mechanism contributes: the full system stops a fault, and without that one
// mechanism it does not. Mechanisms are switched off through internals, wrapped adapters and
// wrapped ledgers. No public export can switch them off.
import { join } from 'node:path';
import { findData } from '../data/folder.ts';
import { MCPMARK_FILES, TASK_NAMES } from '../data/mcpmark.ts';
import { loadStateTasks, STATE_FILES } from '../data/state-bench.ts';
import { deskMaker, NATIVE_FILES } from '../data/state-native.ts';
import { RawRecords } from '../raw.ts';
import type { Cell, Study, StudyOptions } from '../study.ts';
import { BINDINGS, bindingOnDatabase, bindingOnState } from './ablations/binding.ts';
import { APPROVAL_SOURCES, COMPLETE_OBSERVATION } from './ablations/books.ts';
import { CANDIDATE_BINDING } from './ablations/candidate.ts';
import { certificateReuse } from './ablations/certificate.ts';
import { DURABLE_HAZARD, LOST } from './ablations/hazard.ts';
import { type Pair, runPair } from './ablations/pair.ts';
import * as tasks from './ablations/public-tasks.ts';
import { REPLAY } from './ablations/replay.ts';
import { openSite as openShop } from './boundary/site.ts';
import { loadParser } from './public-outcomes/call-rules.ts';
import { prepareTask } from './public-outcomes/database.ts';
import { openDatabaseSite } from './public-outcomes/database-site.ts';

const DEDICATED_RUNS = 20;
const TASK_RUNS = 3;

async function run({ quick, data, progress }: StudyOptions): Promise<readonly Cell[]> {
  const files = [...STATE_FILES, ...NATIVE_FILES, ...MCPMARK_FILES];
  const folder = findData(data, files);
  const raw = new RawRecords(
    `ablations${quick ? '-quick' : ''}`,
    files.map((file) => join(folder, file)),
  );
  const cells: Cell[] = [];
  const play = async (pair: Pair, repetitions: number) => {
    progress(pair.name);
    cells.push(...(await runPair(pair, quick ? 1 : repetitions, raw, quick)));
  };
  for (const pair of [
    COMPLETE_OBSERVATION,
    ...APPROVAL_SOURCES,
    REPLAY,
    LOST,
    DURABLE_HAZARD,
    CANDIDATE_BINDING,
  ]) {
    await play(pair, DEDICATED_RUNS);
  }
  {
    await using shop = await openShop();
    await play(certificateReuse(shop), DEDICATED_RUNS);
  }
  const all = loadStateTasks(folder);
  const approved = all.filter(({ approved12 }) => approved12);
  const chosen = quick ? approved.filter((_, index) => index % 4 === 0) : approved;
  await play(tasks.comparisonOnState({ all, chosen }), TASK_RUNS);
  const desk = deskMaker(folder, all);
  const bound = { all, chosen: quick ? chosen.slice(0, 1) : chosen };
  for (const binding of BINDINGS) await play(bindingOnState(binding, bound, desk), TASK_RUNS);

  await loadParser();
  await using site = await openDatabaseSite(folder);
  const prepared: tasks.PreparedTask[] = [];
  for (const name of quick ? TASK_NAMES.slice(1, 2) : TASK_NAMES) {
    prepared.push({ name, ...(await prepareTask(site, folder, name)) });
  }
  for (const make of [tasks.comparisonOnDatabase, tasks.recheckOnDatabase])
    await play(make(site, prepared), TASK_RUNS);
  for (const binding of BINDINGS) await play(bindingOnDatabase(binding, site, prepared), TASK_RUNS);
  raw.finish();
  return cells;
}

export const ablationsStudy: Study = {
  name: 'ablations',
  about: 'faults that are stopped, and the same faults with exactly one mechanism switched off',
  run,
};
