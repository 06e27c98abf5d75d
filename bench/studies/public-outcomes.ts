// The paper's comparison on public tasks: do wrong results become durable, and do right ones still?
import { join } from 'node:path';
import { findData } from '../data/folder.ts';
import { MCPMARK_FILES } from '../data/mcpmark.ts';
import { EXPECTED_FILES } from '../data/mcpmark-expected.ts';
import { loadStateTasks, STATE_FILES } from '../data/state-bench.ts';
import { deskMaker, NATIVE_FILES } from '../data/state-native.ts';
import { RawRecords } from '../raw.ts';
import type { Cell, Study, StudyOptions } from '../study.ts';
import { runDatabase } from './public-outcomes/database.ts';
import { runIndependent } from './public-outcomes/independent.ts';
import { runReference } from './public-outcomes/reference.ts';

async function run(options: StudyOptions): Promise<readonly Cell[]> {
  const files = [...STATE_FILES, ...NATIVE_FILES, ...MCPMARK_FILES, ...EXPECTED_FILES];
  const folder = findData(options.data, files);
  const raw = new RawRecords(
    `public-outcomes${options.quick ? '-quick' : ''}`,
    files.map((file) => join(folder, file)),
  );
  const tasks = loadStateTasks(folder);
  const table = { ...options, desk: deskMaker(folder, tasks) };
  const cells = [
    ...(await runDatabase(folder, raw, options)),
    ...(await runIndependent(tasks, raw, table)),
    ...(await runReference(tasks, raw, table)),
  ];
  raw.finish();
  return cells;
}

export const publicOutcomesStudy: Study = {
  name: 'public-outcomes',
  about: 'public tasks, clean and with faults: which results become durable under each condition',
  run,
};
