// Part (a): three MCPMark tasks on PostgreSQL, whose approvals are calculated from request and
// initial rows.

import { approveRows } from '../../approvals/rows.ts';
import { loadCandidate, TASK_NAMES, type TaskName } from '../../data/mcpmark.ts';
import { loadExpectation, meetsExpectation } from '../../data/mcpmark-expected.ts';
import { digestOf } from '../../facts.ts';
import type { RawRecords } from '../../raw.ts';
import { type Cell, exactly, reproduced } from '../../study.ts';
import { loadParser, splitStatements } from './call-rules.ts';
import {
  DATABASE_CONDITIONS,
  type DatabaseCondition,
  type DatabaseExecution,
} from './database-conditions.ts';
import { approvedRowEffects } from './database-effects.ts';
import {
  type DatabaseSite,
  digestTables,
  openDatabaseSite,
  readTables,
  sameTables,
} from './database-site.ts';
import { DATABASE_TASKS, EXPLICIT_WRITE, type Fixture } from './database-tasks.ts';

const REPETITIONS = 3;
const { direct, callRules, effectMatch } = DATABASE_CONDITIONS;

export const FIXTURES: readonly Fixture[] = ['hidden extra write', 'missing row', 'altered value'];
const VARIANTS = ['clean', ...FIXTURES, 'explicit extra write'] as const;
type Variant = (typeof VARIANTS)[number];
/** The task with inserts, updates, deletes and a relation without a key. */
const QUICK_TASKS: readonly TaskName[] = ['employee_hierarchy_management'];

/**
 * The paper's table (a): right states when clean, and wrong commits for each of the three faults.
 */
const PAPER: readonly {
  readonly condition: DatabaseCondition;
  readonly clean: number;
  readonly faults: number;
}[] = [
  { condition: direct, clean: 9, faults: 9 },
  { condition: callRules, clean: 9, faults: 9 },
  { condition: effectMatch, clean: 9, faults: 0 },
];

/** How one run ended. */
export interface DatabaseRun {
  readonly task: TaskName;
  readonly variant: Variant;
  readonly condition: string;
  readonly committed: boolean;
  readonly isApproved: boolean;
  readonly isInitial: boolean;
  /** Whether the benchmark's own check of the task is met by what is durable. */
  readonly isNative: boolean;
  readonly why?: string;
}

export async function runDatabase(
  folder: string,
  raw: RawRecords,
  { quick, progress }: { readonly quick: boolean; progress(line: string): void },
): Promise<readonly Cell[]> {
  const repetitions = quick ? 1 : REPETITIONS;
  const tasks = quick ? QUICK_TASKS : TASK_NAMES;
  const runs: DatabaseRun[] = [];
  await loadParser();
  {
    await using site = await openDatabaseSite(folder);
    for (const task of tasks) {
      progress(`a: ${task}`);
      runs.push(
        ...(await runTask(site, folder, task, {
          raw,
          repetitions,
          variants: VARIANTS,
          conditions: [direct, callRules, effectMatch],
        })),
      );
    }
  }
  const all = tasks.length * repetitions;
  // Every count of the paper is none or all of its nine runs.
  const cell = (name: string, value: number, paper: number) =>
    quick
      ? exactly(`(a) ${name}`, value, 'runs', (paper / 9) * all)
      : reproduced(`(a) ${name}`, value, 'runs', paper);
  const own = (condition: DatabaseCondition, variant: Variant) =>
    runs.filter((run) => run.condition === condition.name && run.variant === variant);
  const explicit = (condition: DatabaseCondition) => own(condition, 'explicit extra write');
  const cells = PAPER.flatMap(({ condition, clean, faults }) => [
    cell(
      `${condition.name}: clean, right state`,
      own(condition, 'clean').filter(({ isApproved }) => isApproved).length,
      clean,
    ),
    ...FIXTURES.map((name) =>
      cell(`${condition.name}: ${name}, wrong commit`, countWrong(own(condition, name)), faults),
    ),
  ]);
  const native = (condition: DatabaseCondition, variant: Variant) =>
    own(condition, variant).filter(({ isNative }) => isNative).length;
  // By what the data says about the checker: it misses the row of a relation that is not the task's.
  const checks = (['clean', ...FIXTURES] as const).map((variant) => {
    const passes = variant === 'clean' || variant === 'hidden extra write';
    const name = `(a) direct: ${variant}, the benchmark's check passes`;
    return exactly(name, native(direct, variant), 'runs', passes ? all : 0);
  });
  const rejected = runs.filter((run) => run.condition === effectMatch.name && !run.committed);
  const preserved = rejected.filter(
    ({ isInitial, why }) => isInitial && why === 'comparison: diverged',
  );
  return [
    ...cells,
    cell(
      'call-level rules: explicit extra write, rejected',
      explicit(callRules).filter(isRejected).length,
      9,
    ),
    // The paper's control is about call-level rules; it has no figure for the others.
    exactly(
      '(a) direct: explicit extra write, wrong commit',
      countWrong(explicit(direct)),
      'runs',
      all,
    ),
    ...[callRules, effectMatch].map((condition) => {
      const name = `(a) ${condition.name}: explicit extra write, wrong commit`;
      return exactly(name, countWrong(explicit(condition)), 'runs', 0);
    }),
    exactly(
      '(a) EffectMatch: faults rejected by comparison, rows kept',
      preserved.length,
      'runs',
      4 * all,
    ),
    ...checks,
    exactly(
      "(a) EffectMatch: clean, the benchmark's check passes",
      native(effectMatch, 'clean'),
      'runs',
      all,
    ),
    // Hidden or submitted, the extra write is to a relation that is not the task's.
    exactly(
      '(a) EffectMatch: rejected where that check passes',
      countRejectedThere(runs),
      'runs',
      2 * all,
    ),
  ];
}

/** Counts rejections of what the benchmark accepts under direct execution, though not approved. */
function countRejectedThere(runs: readonly DatabaseRun[]): number {
  const of = (condition: DatabaseCondition) =>
    runs.filter((run) => run.condition === condition.name);
  const accepted = of(direct).filter(({ isNative, isApproved }) => isNative && !isApproved);
  const isAccepted = (run: DatabaseRun) =>
    accepted.some(({ task, variant }) => task === run.task && variant === run.variant);
  return of(effectMatch).filter((run) => isAccepted(run) && isRejected(run)).length;
}

/**
 * Other rows than the approved ones are durable, whatever was said, or are said to be committed.
 */
export function countWrong(
  runs: readonly Pick<DatabaseRun, 'committed' | 'isApproved' | 'isInitial'>[],
): number {
  return runs.filter(
    ({ committed, isApproved, isInitial }) => !isApproved && (committed || !isInitial),
  ).length;
}

function isRejected({ committed, isInitial }: DatabaseRun): boolean {
  return !committed && isInitial;
}

/** A task with its approval, ready to be run. */
export async function prepareTask(site: DatabaseSite, folder: string, task: TaskName) {
  const { keys, policy } = DATABASE_TASKS[task];
  const packet = await site.packet(task);
  const expected = approveRows(packet);
  const approved = approvedRowEffects(keys, packet.initial, expected);
  const statements = splitStatements(loadCandidate(folder, task));
  const clean: DatabaseExecution = { keys, policy, approved, statements };
  return { clean, expected, initial: packet.initial };
}

export interface DatabasePlan {
  readonly raw: RawRecords;
  readonly repetitions: number;
  readonly variants: readonly Variant[];
  readonly conditions: readonly DatabaseCondition[];
}

/** Runs a task in every way, each time on a fresh copy of the database. */
export async function runTask(
  site: DatabaseSite,
  folder: string,
  task: TaskName,
  { raw, repetitions, variants, conditions }: DatabasePlan,
): Promise<readonly DatabaseRun[]> {
  const { clean, expected, initial } = await prepareTask(site, folder, task);
  const { keys, statements } = clean;
  const expectation = loadExpectation(folder, task);
  const runs: DatabaseRun[] = [];
  for (const variant of variants) {
    const isExplicit = variant === 'explicit extra write';
    const fixture: Fixture | undefined = variant === 'clean' || isExplicit ? undefined : variant;
    const execution = {
      ...clean,
      statements: isExplicit ? [...statements, EXPLICIT_WRITE] : statements,
    };
    for (const condition of conditions) {
      for (let repetition = 1; repetition <= repetitions; repetition += 1) {
        const facts = { task, variant, condition: condition.name };
        const run = await raw.run(
          ['a', ...Object.values(facts), repetition].join('|'),
          async () => {
            await using db = await site.open(task, fixture);
            const decision = await condition.run(execution, db);
            const durable = await readTables(db, keys);
            return {
              ...facts,
              repetition,
              statements: execution.statements.map(digestOf),
              ...decision,
              states: {
                initial: digestTables(keys, initial),
                approved: digestTables(keys, expected),
                durable: digestTables(keys, durable),
              },
              isApproved: sameTables(keys, durable, expected),
              isInitial: sameTables(keys, durable, initial),
              isNative: meetsExpectation(expectation, durable),
            };
          },
        );
        runs.push(run);
      }
    }
  }
  return runs;
}
