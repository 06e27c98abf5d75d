// Ablations on public tasks: result comparison and the final recheck.

import { isDeepStrictEqual } from 'node:util';
import { quoteName } from '../../../src/postgres/identifier.ts';
import { approveState } from '../../approvals/index.ts';
import type { TaskName } from '../../data/mcpmark.ts';
import type { StateTask } from '../../data/state-bench.ts';
import { compareStates } from '../../facts.ts';
import { temporaryFolder } from '../../temporary.ts';
import { type Watch, watched } from '../boundary/watch.ts';
import type { prepareTask } from '../public-outcomes/database.ts';
import { FIXTURES } from '../public-outcomes/database.ts';
import {
  approveRowsAt,
  DATABASE_CONDITIONS,
  executeStatements,
  openHeldDatabase,
} from '../public-outcomes/database-conditions.ts';
import { type DatabaseSite, digestTables, readTables } from '../public-outcomes/database-site.ts';
import { VARIANTS } from '../public-outcomes/independent.ts';
import {
  CONDITIONS,
  type Decision,
  type Execution,
  readSnapshot,
} from '../public-outcomes/state-conditions.ts';
import { approvedEffects } from '../public-outcomes/state-effects.ts';
import { describeApplication } from '../public-outcomes/state-runs.ts';
import type { Ending, Pair } from './pair.ts';

/** A database task with its approval. */
export interface PreparedTask extends Awaited<ReturnType<typeof prepareTask>> {
  readonly name: TaskName;
}

interface Found {
  readonly decision: Decision;
  readonly isApproved: boolean;
  readonly isInitial: boolean;
}

/** Judges a wrong result. It was stopped if the comparison rejected it and nothing changed. */
function judgeWrong({ decision, isApproved, isInitial }: Found): Ending {
  if (decision.committed) return isApproved ? 'neither' : 'admitted';
  return isInitial && decision.why === 'comparison: diverged' ? 'stopped' : 'neither';
}

/** Judges a right result that must still be rejected, for the reason `why`. */
function judgeRight({ decision, isApproved, isInitial }: Found, why: string): Ending {
  if (decision.committed) return isApproved ? 'admitted' : 'neither';
  return isInitial && decision.why === why ? 'stopped' : 'neither';
}

/** The statements are unchanged, but hidden faults make the rows differ from the approved ones. */
export function comparisonOnDatabase(site: DatabaseSite, tasks: readonly PreparedTask[]): Pair {
  const { effectMatch, noComparison } = DATABASE_CONDITIONS;
  const runOn = async (
    task: PreparedTask,
    removed: boolean,
    fixture: (typeof FIXTURES)[number] | undefined,
  ) => {
    await using db = await site.open(task.name, fixture);
    const decision = await (removed ? noComparison : effectMatch).run(task.clean, db);
    return await lookAt(db, task, decision);
  };
  return {
    name: 'result comparison, PG tasks',
    paper: 27,
    runs: (removed) =>
      tasks.flatMap((task) =>
        FIXTURES.map((fixture) => ({
          name: `${task.name} ${fixture}`,
          run: async () => judgeWrong(await runOn(task, removed, fixture)),
        })),
      ),
    controls: (removed) =>
      tasks.map((task) => ({
        name: task.name,
        run: async () => (await runOn(task, removed, undefined)).isApproved,
      })),
  };
}

/**
 * A privilege is granted while the candidate is held, and the final gate does or does not recheck.
 */
export function recheckOnDatabase(site: DatabaseSite, tasks: readonly PreparedTask[]): Pair {
  const run = async (task: PreparedTask, removed: boolean, isFault: boolean) => {
    await using db = await site.open(task.name, undefined);
    const grant = `grant temporary on database ${quoteName(db.name)} to ${quoteName(db.role('em_exec'))}`;
    const watch: Watch = { surveys: [], reuses: removed ? 'recheck' : undefined };
    await using runtime = await openHeldDatabase(task.clean, db, {}, (factory) =>
      watched(factory, watch),
    );
    const license = await approveRowsAt(runtime, task.clean);
    if (isFault) watch.held = async () => void (await db.run(grant));
    return await lookAt(db, task, await executeStatements(runtime, license, task.clean));
  };
  return {
    name: 'final boundary check, PG recheck',
    paper: 9,
    runs: (removed) =>
      tasks.map((task) => ({
        name: task.name,
        run: async () => judgeRight(await run(task, removed, true), 'final-gate: boundary-changed'),
      })),
    controls: (removed) =>
      tasks.map((task) => ({
        name: task.name,
        run: async () => (await run(task, removed, false)).isApproved,
      })),
  };
}

async function lookAt(
  db: Parameters<typeof readTables>[0],
  task: PreparedTask,
  decision: Decision,
): Promise<Found> {
  const { clean, expected, initial } = task;
  const durable = await readTables(db, clean.keys);
  const found = compareStates({ initial, approved: expected, durable }, (tables) =>
    digestTables(clean.keys, tables),
  );
  return { decision, ...found };
}

interface StateCase {
  readonly name: string;
  readonly execution: Execution;
  readonly target: unknown;
}

/** The tasks to run, and all tasks, which show what each application has. */
export interface StateTasks {
  readonly all: readonly StateTask[];
  readonly chosen: readonly StateTask[];
}

function stateCases({ all, chosen }: StateTasks, variants: typeof VARIANTS): readonly StateCase[] {
  return chosen.flatMap((task) => {
    const { domain, taskId, initial } = task.packet;
    const target = approveState(task.packet);
    const common = {
      ...describeApplication(domain, all),
      initial,
      approved: approvedEffects(initial, target),
    };
    return variants.map((variant) => ({
      name: `${domain}/${taskId} ${variant.name}`,
      execution: { ...common, calls: variant.calls(task) },
      target,
    }));
  });
}

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  using folder = temporaryFolder();
  return await work(folder.path);
}

function lookIn(folder: string, { execution, target }: StateCase, decision: Decision): Found {
  const { initial } = execution;
  const durable: unknown = readSnapshot(folder);
  return { decision, ...compareStates({ initial, approved: target, durable }) };
}

/** The 39 of the twelve tasks' 48 faults whose result differs from the approved one. */
export function comparisonOnState(tasks: StateTasks): Pair {
  const { effectMatch, noComparison } = CONDITIONS;
  const run = (one: StateCase, removed: boolean) =>
    inFolder(async (folder) =>
      lookIn(folder, one, await (removed ? noComparison : effectMatch).run(one.execution, folder)),
    );
  const faults = stateCases(
    tasks,
    VARIANTS.filter(({ name }) => name !== 'clean'),
  ).filter(({ execution, target }) => {
    const final =
      execution.calls.findLast(({ after }) => after !== undefined)?.after ?? execution.initial;
    return !isDeepStrictEqual(final, target);
  });
  const clean = stateCases(
    tasks,
    VARIANTS.filter(({ name }) => name === 'clean'),
  );
  return {
    name: 'result comparison, STATE tasks',
    paper: 117,
    runs: (removed) =>
      faults.map((one) => ({
        name: one.name,
        run: async () => judgeWrong(await run(one, removed)),
      })),
    controls: (removed) =>
      clean.map((one) => ({
        name: one.name,
        run: async () => (await run(one, removed)).isApproved,
      })),
  };
}
