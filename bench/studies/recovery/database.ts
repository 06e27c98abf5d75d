// The same on PostgreSQL: the customer migration, whose approval is calculated from the request and
// the initial rows.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Step } from '../../../src/contract/steps.ts';
import { approver } from '../../../src/crypto/approver.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { compareStates } from '../../facts.ts';
import type { RawRecords } from '../../raw.ts';
import { type Cell, exactly, reproduced } from '../../study.ts';
import { loadParser } from '../public-outcomes/call-rules.ts';
import { prepareTask } from '../public-outcomes/database.ts';
import {
  type DatabaseSite,
  digestTables,
  openDatabaseSite,
  protect,
  readTables,
} from '../public-outcomes/database-site.ts';
import { KEYS } from '../public-outcomes/state-conditions.ts';
import { CONTINUATION, databaseConfig, writeCase } from './case-file.ts';
import { type CaseRun, runCase, type Start } from './case-run.ts';

const REPETITIONS = 5;
const TASK = 'customer_data_migration';

/**
 * Where the process ends; of five: states that are the approved one, the paper's releases, and ours
 * after recovery.
 */
const EXITS: readonly {
  readonly name: string;
  readonly exitAt: Step;
  readonly correct: number;
  readonly paper: number;
  readonly recovered: number;
}[] = [
  { name: 'exit before commit', exitAt: 'path:staged', correct: 0, paper: 0, recovered: 0 },
  {
    name: 'exit after commit, before terminal',
    exitAt: 'path:promoted',
    correct: 5,
    paper: 0,
    recovered: 5,
  },
  {
    name: 'exit after terminal',
    exitAt: 'path:terminal-recorded',
    correct: 5,
    paper: 5,
    recovered: 5,
  },
];

type Prepared = Awaited<ReturnType<typeof prepareTask>>;

async function runMigration(
  start: Start,
  site: DatabaseSite,
  { clean, expected, initial }: Prepared,
  exitAt: Step,
): Promise<CaseRun> {
  const { keys, approved, statements } = clean;
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-study-'));
  try {
    await using db = await site.open(TASK, undefined);
    const { options } = await protect(db, keys);
    {
      await using office = await createRuntime(databaseConfig(options, folder, KEYS.publicKey));
      const continuations = [CONTINUATION];
      const request = {
        adapter: 'chinook',
        task: TASK,
        planRevision: 1,
        effects: approved,
        continuations,
      };
      const license = approver(KEYS).sign(await office.prepare(request), { expiresIn: '10m' });
      writeCase(folder, {
        work: { kind: 'database', options, statements },
        license,
        publicKey: KEYS.publicKey,
      });
    }
    return await runCase(start, folder, exitAt, async () => {
      const durable = await readTables(db, keys);
      return compareStates({ initial, approved: expected, durable }, (tables) =>
        digestTables(keys, tables),
      );
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export async function runDatabaseCases(
  data: string,
  raw: RawRecords,
  start: Start,
  { quick, progress }: { readonly quick: boolean; progress(line: string): void },
): Promise<readonly Cell[]> {
  const repetitions = quick ? 1 : REPETITIONS;
  await loadParser();
  await using site = await openDatabaseSite(data);
  const prepared = await prepareTask(site, data, TASK);
  const cells: Cell[] = [];
  for (const { name, exitAt, correct, paper, recovered } of EXITS) {
    const place = `PostgreSQL, ${name}`;
    progress(place);
    const runs: CaseRun[] = [];
    for (let repetition = 1; repetition <= repetitions; repetition += 1) {
      runs.push(
        await raw.run(`${place}|${repetition}`, () => runMigration(start, site, prepared, exitAt)),
      );
    }
    // Every count is none or all of the five.
    const scaled = (count: number) => (count / REPETITIONS) * repetitions;
    const count = (holds: (run: CaseRun) => boolean) => runs.filter(holds).length;
    const released = count(({ releases }) => releases === 1);
    const repeated = count(
      ({ releases, releasesAfterRecovery }) => releases > 1 || releasesAfterRecovery > 1,
    );
    const after = count(({ releasesAfterRecovery }) => releasesAfterRecovery === 1);
    cells.push(
      exactly(
        `${place}: correct state`,
        count(({ isCorrect }) => isCorrect),
        'runs',
        scaled(correct),
      ),
      quick
        ? exactly(`${place}: released`, released, 'runs', scaled(paper))
        : reproduced(`${place}: released`, released, 'runs', paper),
      exactly(`${place}: released more than once`, repeated, 'runs', 0),
      exactly(`${place}: released once, after our recovery`, after, 'runs', scaled(recovered)),
    );
  }
  return cells;
}
