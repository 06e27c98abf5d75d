import { isDeepStrictEqual } from 'node:util';
import type { PatchStep } from '../../data/patch.ts';
import type { Snapshot, StateTask, VariantName } from '../../data/state-bench.ts';
import { digestOf } from '../../facts.ts';
import type { RawRecords } from '../../raw.ts';
import type { DeskData } from '../../state-tools/desk.ts';
import { temporaryFolder } from '../../temporary.ts';
import type { ReplayedCall } from './replay.ts';
import type { Condition, Execution } from './state-conditions.ts';
import { approvedEffects, schemaOf } from './state-effects.ts';

/** One way to run a task: calls as an agent would make them, with what the simulators did. */
export interface StateVariant {
  readonly name: string;
  calls(task: StateTask): readonly ReplayedCall[];
  /** The recorded variant that it replays, where it does. */
  readonly recorded?: VariantName;
  /** A change of the state that no call shows, for our own tools; recorded calls contain it. */
  fault?(task: StateTask): readonly PatchStep[];
}

export interface StatePlan {
  /** Names the population in raw records. */
  readonly part: string;
  readonly tasks: readonly StateTask[];
  readonly variants: readonly StateVariant[];
  readonly conditions: readonly Condition[];
  readonly repetitions: number;
  /** The complete state that is approved for a task. */
  approve(task: StateTask): Snapshot;
  /** Makes our own tools for a task; without it, recorded consequences are applied. */
  desk?(task: StateTask): DeskData;
}

/** The recorded clean state as the approved one, as the paper has it. */
export const cleanReference: StatePlan['approve'] = ({ packet, variants }) => {
  if (variants.clean === undefined) throw new Error(`${packet.taskId} has no clean reference`);
  return variants.clean.final;
};

/**
 * What became durable, as it was read back; what a condition says of itself only tells two kinds of
 * wrong apart.
 */
export function countRuns(runs: readonly StateRun[], variant: string, condition: Condition) {
  const own = runs.filter((run) => run.variant === variant && run.condition === condition.name);
  return {
    runs: own.length,
    right: own.filter(({ isApproved }) => isApproved).length,
    saved: own.filter(({ committed, isApproved }) => committed && isApproved).length,
    /** Another state than the approved one is durable, or is said to be committed. */
    wrong: own.filter(
      ({ committed, isApproved, isInitial }) => !isApproved && (committed || !isInitial),
    ).length,
    /** Said to be rejected, and nothing is durable. */
    kept: own.filter(({ committed, isInitial }) => !committed && isInitial).length,
    /** Said to be rejected, and yet something is durable. */
    spoilt: own.filter(({ committed, isInitial }) => !committed && !isInitial).length,
  };
}

/** How a table of runs is made. */
export interface TableOptions {
  readonly quick: boolean;
  progress(line: string): void;
  /** Makes our own tools for a task. */
  desk(task: StateTask): DeskData;
}

/** How one run ended. */
export interface StateRun {
  readonly task: string;
  readonly variant: string;
  readonly condition: string;
  readonly committed: boolean;
  /** The tools that were called. */
  readonly calls: readonly string[];
  /** Digests of the states: from them the tables can be made again. */
  readonly states: {
    readonly initial: string;
    readonly approved: string;
    readonly durable: string;
  };
  /** Whether the state that was read back is the approved one, and the initial one. */
  readonly isApproved: boolean;
  readonly isInitial: boolean;
  /** Whether the benchmark's own check passes on that state; null if that was not recorded. */
  readonly isNative: boolean | null;
}

/**
 * Runs all of it, each run in a separate folder, and returns the records. `all` tells what the
 * applications are.
 */
export async function runStatePlan(
  plan: StatePlan,
  all: readonly StateTask[],
  raw: RawRecords,
  progress: (line: string) => void,
): Promise<readonly StateRun[]> {
  const applications = new Map<string, Application>();
  const runs: StateRun[] = [];
  for (const [index, task] of plan.tasks.entries()) {
    if (index % 20 === 0) progress(`${plan.part}: task ${index + 1} of ${plan.tasks.length}`);
    const { domain } = task.packet;
    const application = applications.get(domain) ?? describeApplication(domain, all);
    applications.set(domain, application);
    runs.push(...(await runTask(plan, task, application, raw)));
  }
  return runs;
}

/** What is registered once for a domain. */
type Application = Pick<Execution, 'schema' | 'tools'>;

/** The application of a domain, as all tasks of the domain show it. */
export function describeApplication(domain: string, all: readonly StateTask[]): Application {
  const own = all.filter(({ packet }) => packet.domain === domain);
  const tools = new Set(own.flatMap(({ calls }) => calls.map(({ tool }) => tool)));
  return { schema: schemaOf(own), tools: [...tools].sort() };
}

async function runTask(
  plan: StatePlan,
  task: StateTask,
  application: Application,
  raw: RawRecords,
) {
  const { domain, taskId, initial } = task.packet;
  const target = plan.approve(task);
  const approved = approvedEffects(initial, target);
  const runs: StateRun[] = [];
  for (const variant of plan.variants) {
    const calls = variant.calls(task);
    const steps = variant.fault?.(task);
    const fault = steps && { after: calls.length, steps };
    const desk = plan.desk?.(task);
    const kit = desk && { desk, ...(fault && { fault }) };
    const execution = { ...application, initial, approved, calls, kit };
    const recorded = variant.recorded && task.variants[variant.recorded];
    for (const condition of plan.conditions) {
      const facts = {
        task: `${domain}/${taskId}`,
        variant: variant.name,
        condition: condition.name,
      };
      for (let repetition = 1; repetition <= plan.repetitions; repetition += 1) {
        const name = [plan.part, ...Object.values(facts), repetition].join('|');
        runs.push(
          await raw.run(name, async () => ({
            ...facts,
            repetition,
            ...(await runOnce(condition, execution, target, recorded)),
          })),
        );
      }
    }
  }
  return runs;
}

async function runOnce(
  condition: Condition,
  execution: Execution,
  target: Snapshot,
  recorded: StateTask['variants'][VariantName],
) {
  using temporary = temporaryFolder();
  const folder = temporary.path;
  const decision = await condition.run(execution, folder);
  const durable = condition.readBack(folder);
  const { initial, calls } = execution;
  return {
    ...decision,
    calls: calls.map(({ tool }) => tool),
    states: {
      initial: digestOf(initial),
      approved: digestOf(target),
      durable: digestOf(durable),
    },
    isApproved: isDeepStrictEqual(durable, target),
    isInitial: isDeepStrictEqual(durable, initial),
    isNative: nativePassOf(durable, recorded),
  };
}

function nativePassOf(durable: unknown, recorded: StateTask['variants'][VariantName]) {
  if (recorded === undefined || !isDeepStrictEqual(durable, recorded.final)) return null;
  return recorded.nativeStatePass;
}
