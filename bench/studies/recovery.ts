// Whether a fresh worker decides correctly after the executing process ended, at whichever step.

import { join } from 'node:path';
import type { Step } from '../../src/contract/steps.ts';
import { runLanes } from '../../test/crash/lanes.ts';
import { findData } from '../data/folder.ts';
import { MCPMARK_FILES } from '../data/mcpmark.ts';
import { loadStateTasks, type Snapshot, STATE_FILES, type StateTask } from '../data/state-bench.ts';
import { deskMaker, NATIVE_FILES } from '../data/state-native.ts';
import { compareStates } from '../facts.ts';
import { RawRecords } from '../raw.ts';
import type { ToolKit } from '../state-tools/tools.ts';
import { type Cell, exactly, reproduced, type Study, type StudyOptions } from '../study.ts';
import { temporaryFolder } from '../temporary.ts';
import { replayVariant } from './public-outcomes/replay.ts';
import {
  approveHeld,
  type Execution,
  KEYS,
  openHeld,
  readSnapshot,
} from './public-outcomes/state-conditions.ts';
import { approvedEffects } from './public-outcomes/state-effects.ts';
import { describeApplication } from './public-outcomes/state-runs.ts';
import { runBackendCases } from './recovery/backends.ts';
import { CONTINUATION, writeCase } from './recovery/case-file.ts';
import { type CaseRun, runCase, type Start, starter } from './recovery/case-run.ts';
import { runDatabaseCases } from './recovery/database.ts';

const REPETITIONS = 5;
/** Cases that run at the same time. Each has its own folder and processes. */
const LANES = 2;
/** The number of runs per scenario in the paper. */
const PAPER_RUNS = 90;

interface Scenario {
  readonly name: string;
  readonly variant: 'clean' | 'omitFirstWrite';
  readonly exitAt?: Step;
  /** The paper's counts, out of 90. */
  readonly paper: {
    readonly correct: number;
    readonly terminals: number;
    readonly releases: number;
  };
  /** Releases after our recovery has run, out of 90. */
  readonly recovered: number;
  /** Part of a quick run with our own tools. */
  readonly quickly?: boolean;
}

const SCENARIOS: readonly Scenario[] = [
  {
    name: 'normal',
    variant: 'clean',
    paper: { correct: 90, terminals: 90, releases: 90 },
    recovered: 90,
  },
  {
    name: 'exit after staging',
    variant: 'clean',
    exitAt: 'path:staged',
    paper: { correct: 0, terminals: 0, releases: 0 },
    recovered: 0,
  },
  {
    name: 'exit after state save, before terminal',
    variant: 'clean',
    exitAt: 'path:promoted',
    paper: { correct: 90, terminals: 0, releases: 0 },
    recovered: 90,
  },
  {
    name: 'exit after terminal',
    variant: 'clean',
    exitAt: 'path:terminal-recorded',
    paper: { correct: 90, terminals: 90, releases: 90 },
    recovered: 90,
  },
  {
    name: 'omit first write, exit after staging',
    variant: 'omitFirstWrite',
    exitAt: 'path:staged',
    paper: { correct: 0, terminals: 0, releases: 0 },
    recovered: 0,
  },
  {
    name: 'omit first write, exit after terminal',
    variant: 'omitFirstWrite',
    exitAt: 'path:terminal-recorded',
    paper: { correct: 35, terminals: 90, releases: 35 },
    recovered: 35,
    quickly: true,
  },
];

/** Runs one task: one process executes it, and others inspect it. */
async function runTask(
  start: Start,
  { execution, reference }: Prepared,
  exitAt: Step | undefined,
): Promise<CaseRun> {
  using temporary = temporaryFolder();
  const folder = temporary.path;
  {
    await using office = await openHeld(execution, folder);
    const license = await approveHeld(office, execution, [CONTINUATION]);
    writeCase(folder, { work: { kind: 'state', execution }, license, publicKey: KEYS.publicKey });
  }
  const { initial } = execution;
  return await runCase(start, folder, exitAt, async () =>
    compareStates<unknown>({ initial, approved: reference, durable: readSnapshot(folder) }),
  );
}

async function run(options: StudyOptions): Promise<readonly Cell[]> {
  using compiled = temporaryFolder();
  return await runScenarios(options, starter(compiled.path));
}

async function runScenarios(
  { quick, data, progress }: StudyOptions,
  start: Start,
): Promise<readonly Cell[]> {
  const files = [...STATE_FILES, ...NATIVE_FILES, ...MCPMARK_FILES];
  const folder = findData(data, files);
  const raw = new RawRecords(
    `recovery${quick ? '-quick' : ''}`,
    files.map((file) => join(folder, file)),
  );
  const all = loadStateTasks(folder);
  const timing = all.filter(({ timing18 }) => timing18);
  const tasks = quick ? oneOfEach(timing) : timing;
  const desk = deskMaker(folder, all);
  const cells: Cell[] = [];
  for (const scenario of SCENARIOS) {
    for (const tools of TOOLS) {
      // Our own tools are deterministic, so only the recorded calls are repeated.
      const repetitions = quick || tools === 'own' ? 1 : REPETITIONS;
      if (quick && tools === 'own' && scenario.quickly !== true) continue;
      progress([scenario.name, ...(tools === 'own' ? ['own tools'] : [])].join(', '));
      const runs: CaseRun[] = [];
      const cases = tasks.flatMap((task) =>
        Array.from({ length: repetitions }, (_, index) => ({ task, repetition: index + 1 })),
      );
      await runLanes(cases, LANES, async ({ task, repetition }) => {
        const kit = tools === 'own' ? { desk: desk(task) } : undefined;
        const prepared = prepareCase(task, all, scenario.variant, kit);
        const name = nameRun(scenario, tools, task, repetition);
        runs.push(await raw.run(name, () => runTask(start, prepared, scenario.exitAt)));
      });
      cells.push(...countCases(scenario, runs, { tasks, tools }));
    }
  }
  cells.push(...(await runDatabaseCases(folder, raw, start, { quick, progress })));
  cells.push(...(await runBackendCases(raw, start, { quick, progress })));
  raw.finish();
  return cells;
}

/** Whether recorded consequences are applied, or our own tools run the calls. */
type Tools = 'recorded' | 'own';
const TOOLS: readonly Tools[] = ['recorded', 'own'];

function nameRun(scenario: Scenario, tools: Tools, task: StateTask, repetition: number): string {
  const { domain, taskId } = task.packet;
  const name = [scenario.name, `${domain}/${taskId}`, repetition].join('|');
  return tools === 'own' ? `own tools|${name}` : name;
}

/** One task whose first write can be left out without effect, and one whose result changes. */
function oneOfEach(tasks: readonly StateTask[]): readonly StateTask[] {
  return [true, false].flatMap(
    (isHarmless) =>
      tasks.find(({ variants }) => variants.omitFirstWrite?.equalsClean === isHarmless) ?? [],
  );
}

interface Prepared {
  readonly execution: Execution;
  readonly reference: Snapshot;
}

function prepareCase(
  task: StateTask,
  all: readonly StateTask[],
  variant: Scenario['variant'],
  kit: ToolKit | undefined,
): Prepared {
  const { domain, initial } = task.packet;
  const reference = task.variants.clean?.final;
  if (reference === undefined) throw new Error(`${task.packet.taskId} has no clean reference`);
  const execution: Execution = {
    ...describeApplication(domain, all),
    initial,
    calls: replayVariant(task, variant),
    approved: approvedEffects(initial, reference),
    kit,
  };
  return { reference, execution };
}

function countCases(
  scenario: Scenario,
  runs: readonly CaseRun[],
  ran: { readonly tasks: readonly StateTask[]; readonly tools: Tools },
): Cell[] {
  const { variant, paper, recovered } = scenario;
  const { tasks } = ran;
  const name = ran.tools === 'own' ? `own tools, ${scenario.name}` : scenario.name;
  // With fewer runs, derive the counts from the recorded flags: an omission that changes nothing is
  // released like the clean calls.
  const harmless = tasks.filter(({ variants }) => variants[variant]?.equalsClean === true).length;
  const expected = (count: number) => {
    if (count === 0) return 0;
    return count === PAPER_RUNS ? runs.length : (harmless * runs.length) / tasks.length;
  };
  const isWhole = runs.length === PAPER_RUNS;
  const cell = (words: string, value: number, count: number) =>
    isWhole
      ? reproduced(`${name}: ${words}`, value, 'runs', count)
      : exactly(`${name}: ${words}`, value, 'runs', expected(count));
  const count = (holds: (run: CaseRun) => boolean) => runs.filter(holds).length;
  return [
    cell(
      'correct state',
      count(({ isCorrect }) => isCorrect),
      paper.correct,
    ),
    cell(
      'terminal',
      count(({ hasTerminal }) => hasTerminal),
      paper.terminals,
    ),
    cell(
      'released',
      count(({ releases }) => releases === 1),
      paper.releases,
    ),
    exactly(
      `${name}: released more than once`,
      count(({ releases, releasesAfterRecovery }) => releases > 1 || releasesAfterRecovery > 1),
      'runs',
      0,
    ),
    exactly(
      `${name}: released once, after our recovery`,
      count(({ releasesAfterRecovery }) => releasesAfterRecovery === 1),
      'runs',
      isWhole ? recovered : expected(recovered),
    ),
  ];
}

export const recoveryStudy: Study = {
  name: 'recovery',
  about:
    'a process dies before, between or after state and terminal: what fresh processes may continue',
  run,
};
