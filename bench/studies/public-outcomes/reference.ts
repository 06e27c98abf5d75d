// Part (c): 206 STATE tasks against the saved clean reference, as the paper has it. What is
// approved here was taken from a clean execution, so this part shows what comparison does, not
// where approvals come from.
import type { StateTask, VariantName } from '../../data/state-bench.ts';
import type { RawRecords } from '../../raw.ts';
import { type Cell, exactly, reproduced } from '../../study.ts';
import { replayVariant } from './replay.ts';
import { CONDITIONS } from './state-conditions.ts';
import {
  cleanReference,
  countRuns,
  runStatePlan,
  type StateRun,
  type StateVariant,
  type TableOptions,
} from './state-runs.ts';

const REPETITIONS = 3;
/** A quick run takes one task of so many. */
const QUICK_SHARE = 20;
/** And of those, our own tools take one of so many. */
const OWN_SHARE = 3;
const { direct, errorReject, effectMatch, noComparison } = CONDITIONS;

const RECORDED = {
  clean: 'clean',
  omit: 'omitFirstWrite',
  duplicate: 'duplicateFirstWrite',
} as const;
const VARIANTS: readonly StateVariant[] = (['clean', 'omit', 'duplicate'] as const).map((name) => ({
  name,
  recorded: RECORDED[name],
  calls: (task: StateTask) => replayVariant(task, RECORDED[name]),
}));

/**
 * The paper's full table of the 206 tasks: right states when clean, saved ones where it tells, then
 * wrong commits.
 */
export const PAPER = [
  { condition: direct, clean: 618, saved: undefined, omit: 354, duplicate: 138 },
  { condition: errorReject, clean: 597, saved: 591, omit: 138, duplicate: 138 },
  { condition: effectMatch, clean: 618, saved: undefined, omit: 0, duplicate: 0 },
  { condition: noComparison, clean: 618, saved: undefined, omit: 354, duplicate: 138 },
] as const;

type Figures = { readonly [name in 'clean' | 'saved' | 'omit' | 'duplicate']: number };

/** What the recorded flags say must come out for these tasks, without running any of them. */
export function predict(
  tasks: readonly StateTask[],
  condition: (typeof PAPER)[number]['condition'],
): Figures {
  const count = (holds: (task: StateTask) => boolean) => tasks.filter(holds).length;
  const variant = (task: StateTask, name: VariantName) => {
    const found = task.variants[name];
    if (found === undefined) throw new Error(`${task.packet.taskId} has no variant ${name}`);
    return found;
  };
  const saves = (task: StateTask, name: VariantName) =>
    condition !== errorReject || variant(task, name).errors.size === 0;
  const wrong = (name: VariantName) =>
    condition === effectMatch
      ? 0
      : count((task) => saves(task, name) && !variant(task, name).equalsClean);
  return {
    clean: count((task) => saves(task, 'clean') || variant(task, 'clean').equalsInitial),
    saved: count((task) => saves(task, 'clean')),
    omit: wrong(RECORDED.omit),
    duplicate: wrong(RECORDED.duplicate),
  };
}

export async function runReference(
  all: readonly StateTask[],
  raw: RawRecords,
  { quick, progress, desk }: TableOptions,
): Promise<readonly Cell[]> {
  const repetitions = quick ? 1 : REPETITIONS;
  const choose = (share: number) =>
    all.filter(({ cohort206 }, index) => cohort206 && (!quick || index % share === 0));
  const plan = {
    variants: VARIANTS,
    conditions: PAPER.map(({ condition }) => condition),
    repetitions,
    approve: cleanReference,
  };
  const tasks = choose(QUICK_SHARE);
  const recorded = await runStatePlan({ ...plan, part: 'c', tasks }, all, raw, progress);
  const some = choose(QUICK_SHARE * OWN_SHARE);
  const part = 'c, own tools';
  // Once is enough: three repetitions of the recorded calls say how steady the runs are.
  const once = { ...plan, part, tasks: some, repetitions: 1, desk };
  const own = await runStatePlan(once, all, raw, progress);
  return [
    ...tabulate('(c)', recorded, { tasks, repetitions, isPaper: !quick }),
    ...tabulate('(c) own tools,', own, { tasks: some, repetitions: 1, isPaper: false }),
  ];
}

function tabulate(
  title: string,
  runs: readonly StateRun[],
  ran: {
    readonly tasks: readonly StateTask[];
    readonly repetitions: number;
    /** Whether these are as many runs as the paper's. */
    readonly isPaper: boolean;
  },
): readonly Cell[] {
  const tables = PAPER.flatMap((paper) => {
    const { condition } = paper;
    const predicted = predict(ran.tasks, condition);
    const ours: Figures = {
      clean: countRuns(runs, 'clean', condition).right,
      saved: countRuns(runs, 'clean', condition).saved,
      omit: countRuns(runs, 'omit', condition).wrong,
      duplicate: countRuns(runs, 'duplicate', condition).wrong,
    };
    const spoilt = VARIANTS.reduce(
      (sum, { name }) => sum + countRuns(runs, name, condition).spoilt,
      0,
    );
    const figures = Object.entries(WORDS).map(([key, words]) => {
      const figure = key as keyof Figures;
      const name = `${title} ${condition.name}: ${words}`;
      const published = ran.isPaper ? paper[figure] : undefined;
      return published === undefined
        ? exactly(name, ours[figure], 'runs', predicted[figure] * ran.repetitions)
        : reproduced(name, ours[figure], 'runs', published);
    });
    const lost = `${title} ${condition.name}: rejected, but durable`;
    return [...figures, exactly(lost, spoilt, 'runs', 0)];
  });
  return [...tables, ...nativeCells(title, runs, ran)];
}

/** States that are not the approved one, and that the benchmark's own check accepts. */
function nativeCells(
  title: string,
  runs: readonly StateRun[],
  { tasks, repetitions }: { readonly tasks: readonly StateTask[]; readonly repetitions: number },
): readonly Cell[] {
  const placeOf = ({ task, variant }: StateRun) => `${task}|${variant}`;
  const of = (condition: string) => runs.filter((run) => run.condition === condition);
  const passed = of(direct.name).filter(({ isNative, isApproved }) => isNative && !isApproved);
  const places = new Set(passed.map(placeOf));
  const kept = of(effectMatch.name).filter(
    (run) => places.has(placeOf(run)) && !run.committed && run.isInitial,
  );
  const variants = tasks.flatMap((task) =>
    VARIANTS.map(({ recorded = 'clean' }) => task.variants[recorded]),
  );
  const known = variants.filter((one) => one?.nativeStatePass && !one.equalsClean).length;
  const cell = (words: string, value: number) =>
    exactly(`${title} ${words}`, value, 'runs', known * repetitions);
  return [
    cell("direct: wrong commit, and the benchmark's check passes", passed.length),
    cell('EffectMatch: rejected where that check passes', kept.length),
  ];
}

const WORDS: { readonly [name in keyof Figures]: string } = {
  clean: 'clean, right state',
  saved: 'clean, saved',
  omit: 'omit, wrong commit',
  duplicate: 'duplicate, wrong commit',
};
