// The cost of holding on STATE tasks: the same calls on the same state are saved by one durable
// write, executed under a license with the ledger on disk, or held by a minimal path with the same
// flushes. All stores are SQLite files with WAL and synchronous = full.
import { isDeepStrictEqual } from 'node:util';
import type { SignedLicense } from '../../../src/protocol/license.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import type { Snapshot, StateTask } from '../../data/state-bench.ts';
import type { RawRecords } from '../../raw.ts';
import type { DeskData } from '../../state-tools/desk.ts';
import { RESET } from '../../state-tools/tools.ts';
import type { Samples } from '../../statistics.ts';
import { atMost, type Cell, exactly, figure, median, medianCell, reproduced } from '../../study.ts';
import { temporaryFolder } from '../../temporary.ts';
import { replayVariant, runnerFor } from '../public-outcomes/replay.ts';
import {
  approveHeld,
  type Execution,
  executeHeld,
  openHeld,
  openPlain,
  readPlain,
  readSnapshot,
} from '../public-outcomes/state-conditions.ts';
import { approvedEffects } from '../public-outcomes/state-effects.ts';
import { describeApplication } from '../public-outcomes/state-runs.ts';
import { openBare } from './bare.ts';
import { PAPER_ROWS, PAPER_STATE } from './paper.ts';

export interface StateSize {
  readonly pairs: number;
  readonly warmups: number;
}

/**
 * Times of one task in milliseconds, by pair, and how many executions left the right state.
 */
interface TaskTimes {
  readonly direct: readonly number[];
  readonly held: readonly number[];
  readonly bare: readonly number[];
  /** The time to open a runtime on existing stores. The other times do not include it. */
  readonly opening: number;
  readonly right: number;
}

/** How the tasks are measured, and with which tools. */
export interface StateMeasurement {
  readonly raw: RawRecords;
  /** Decides the order of the executions. */
  draw(): number;
  progress(line: string): void;
  /** Builds our own tools for a task. Without it, recorded consequences are applied. */
  readonly desk?: (task: StateTask) => DeskData;
}

/**
 * Measures every task. `draw` decides the order of direct and held, and whether the bare path comes
 * before or after them.
 */
export async function measureState(
  all: readonly StateTask[],
  tasks: readonly StateTask[],
  size: StateSize,
  { raw, draw, progress, desk }: StateMeasurement,
): Promise<readonly Cell[]> {
  const title = desk === undefined ? 'STATE' : 'STATE own tools';
  const measured: { readonly name: string; readonly times: TaskTimes }[] = [];
  for (const task of tasks) {
    const name = nameOf(task);
    progress(`${title} ${name}: ${size.pairs} pairs`);
    // Draw even if the task was measured before an interruption, so that the order of the other
    // tasks does not change.
    const orders = Array.from({ length: size.warmups + size.pairs }, () => drawOrder(draw));
    const kind = desk === undefined ? 'state' : 'state, own tools';
    const times = await raw.run(`${kind}|${name}`, () =>
      measureTask(prepare(task, all, desk?.(task)), orders, size.warmups),
    );
    measured.push({ name, times });
  }
  return [
    ...measured.flatMap(({ name, times }) => cellsOf(title, name, times)),
    ...summarise(title, measured, size),
  ];
}

type Way = 'direct' | 'held' | 'bare';

function drawOrder(draw: () => number): readonly Way[] {
  const pair: readonly Way[] = draw() < 0.5 ? ['direct', 'held'] : ['held', 'direct'];
  return draw() < 0.5 ? ['bare', ...pair] : [...pair, 'bare'];
}

function nameOf({ packet }: StateTask): string {
  return `${packet.domain}/${packet.taskId}`;
}

interface Prepared {
  readonly execution: Execution;
  readonly reference: Snapshot;
}

function prepare(task: StateTask, all: readonly StateTask[], desk: DeskData | undefined): Prepared {
  const { domain, initial } = task.packet;
  const reference = task.variants.clean?.final;
  if (reference === undefined) throw new Error(`${task.packet.taskId} has no clean reference`);
  const calls = replayVariant(task, 'clean');
  const approved = approvedEffects(initial, reference);
  return {
    reference,
    execution: {
      ...describeApplication(domain, all),
      ...{ initial, calls, approved },
      kit: desk && { desk, reset: initial },
    },
  };
}

/**
 * Runs all pairs on the same stores, which are reset in between. Stores, runtime and license exist
 * before the clock starts. Separate connections read the states of a pair after it stops.
 */
async function measureTask(
  prepared: Prepared,
  orders: readonly (readonly Way[])[],
  warmups: number,
): Promise<TaskTimes> {
  const { execution, reference } = prepared;
  const { calls, initial } = execution;
  const reset: Execution = {
    ...execution,
    calls: [{ tool: RESET, args: {}, after: initial }],
    approved: approvedEffects(reference, initial),
  };
  const deployed: Execution = {
    ...execution,
    tools: [...execution.tools, RESET],
    calls: orders.flatMap(() => [...calls, ...reset.calls]),
  };
  using temporary = temporaryFolder();
  const folder = temporary.path;
  const times = { direct: [] as number[], held: [] as number[], bare: [] as number[], right: 0 };
  {
    using plain = openPlain(folder, initial);
    using bare = openBare(folder, initial);
    await using runtime = await openHeld(deployed, folder);
    for (const [index, order] of orders.entries()) {
      const license = structuredClone(await approveHeld(runtime, execution));
      const approval = bare.approve(JSON.stringify(license));
      const ways: { readonly [way in Way]: () => Promise<void> } = {
        direct: async () => runDirect(plain, execution),
        held: () => demandCommit(runtime, license, execution),
        bare: async () => bare.run(approval, execution),
      };
      for (const way of order) {
        const spent = await time(ways[way]);
        if (index >= warmups) times[way].push(spent);
      }
      const states = [readPlain(folder), readSnapshot(folder)];
      if (!isDeepStrictEqual(bare.read(), reference))
        throw new Error('the bare path left another state');
      plain.write(JSON.stringify(initial));
      bare.reset();
      await demandCommit(runtime, await approveHeld(runtime, reset), reset);
      if (index >= warmups)
        times.right += states.filter((state) => isDeepStrictEqual(state, reference)).length;
    }
  }
  const begun = performance.now();
  await using _again = await openHeld(deployed, folder);
  return { ...times, opening: performance.now() - begun };
}

async function demandCommit(
  runtime: Runtime,
  license: SignedLicense,
  execution: Execution,
): Promise<void> {
  const decision = await executeHeld(runtime, license, execution);
  if (!decision.committed) throw new Error(`not committed: ${decision.why}`);
}

/**
 * Runs the calls as an application that trusts its tools: on one copy in memory, with one durable
 * write.
 */
function runDirect(plain: ReturnType<typeof openPlain>, { calls, kit }: Execution): void {
  const runner = runnerFor({ calls, kit });
  const state = plain.load();
  for (const { tool, args } of calls) runner.run(state, tool, args);
  plain.write(JSON.stringify(state));
}

async function time(work: () => Promise<void>): Promise<number> {
  // Each request arrives in a new event loop turn.
  await new Promise((resolve) => setImmediate(resolve));
  const started = performance.now();
  await work();
  return performance.now() - started;
}

function cellsOf(title: string, name: string, { direct, held }: TaskTimes): readonly Cell[] {
  const paper = PAPER_ROWS[name];
  const beside = (cell: Cell, published: number | undefined) =>
    published === undefined ? cell : { ...cell, paper: published };
  return [
    beside(medianCell(`${title} ${name}: direct`, direct, 'ms'), paper?.direct),
    beside(medianCell(`${title} ${name}: held`, held, 'ms'), paper?.held),
    beside(
      figure(
        `${title} ${name}: held over direct`,
        { statistic: 'ratio', of: held, to: direct },
        'x',
      ),
      paper?.ratio,
    ),
  ];
}

function summarise(
  title: string,
  measured: readonly { readonly times: TaskTimes }[],
  { pairs }: StateSize,
): readonly Cell[] {
  const over = (figureOf: (times: TaskTimes) => number): Samples => ({
    statistic: 'middle',
    of: measured.map(({ times }) => figureOf(times)),
  });
  const right = measured.reduce((sum, { times }) => sum + times.right, 0);
  const executions = measured.length * pairs * 2;
  const name = `${title}: executions with the right state`;
  return [
    {
      ...atMost(
        `${title}: median of held over direct`,
        over(({ direct, held }) => median(held) / median(direct)),
        'x',
        3.6,
      ),
      paper: PAPER_STATE.ratio,
    },
    {
      ...figure(
        `${title}: median of the added time`,
        over(({ direct, held }) => median(held) - median(direct)),
        'ms',
      ),
      paper: PAPER_STATE.added,
    },
    figure(
      `${title}: the barest path with the same flushes, over direct`,
      over(({ direct, bare }) => median(bare) / median(direct)),
      'x',
    ),
    figure(
      `${title}: opening a runtime, in no other figure`,
      over(({ opening }) => opening),
      'ms',
    ),
    executions === PAPER_STATE.executions
      ? reproduced(name, right, 'runs', PAPER_STATE.executions)
      : exactly(name, right, 'runs', executions),
  ];
}
