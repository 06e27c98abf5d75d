import { setImmediate } from 'node:timers/promises';
import type { Step } from '../../src/contract/steps.ts';
import type { Random } from '../random.ts';
import { type OperationKind, WORLD_KINDS } from './backends/backend.ts';
import type { Operation, TaskScript } from './commands.ts';
import { type Installation, taskOf } from './installation.ts';
import type { Pool } from './pool.ts';
import { type CaseResult, claimedTasks, Scene } from './scene.ts';

/**
 * Where the processes of one case die. A recoverer or releaser is started for every step listed,
 * one after another.
 */
export interface KillPlan {
  readonly kind: OperationKind;
  readonly execute: Step | undefined;
  /** How it is executed; in one action unless said. */
  readonly by?: 'execute' | 'task';
  /** How often that step is passed before. */
  readonly passes?: number;
  readonly recover: readonly Step[];
  readonly release: readonly Step[];
}

/**
 * Divides plans for one backend into as few groups as the operations of `WORLD_KINDS` allow.
 * Opening a runtime is most of the work, and a group is recovered and released by the same pair.
 */
export function inGroups<Plan extends Pick<KillPlan, 'kind'>>(
  plans: readonly Plan[],
): readonly (readonly Plan[])[] {
  const groups: Plan[][] = [];
  for (const plan of plans) {
    const { kind } = plan;
    const most = WORLD_KINDS.filter((one) => one === kind).length;
    const hasRoom = (group: readonly Plan[]) =>
      group.filter((one) => one.kind === kind).length < most;
    const group = groups.find(hasRoom);
    if (group === undefined) groups.push([plan]);
    else group.push(plan);
  }
  return groups;
}

/** One operation, killed where the plan says. */
export function runKillCase(
  pool: Pool,
  installation: Installation,
  plan: KillPlan,
): Promise<CaseResult> {
  return runKillCases(pool, installation, [plan]);
}

/**
 * An operation for each plan, killed where the plan says; then all of them recovered, presented
 * again and released by fresh processes.
 */
export async function runKillCases(
  pool: Pool,
  installation: Installation,
  plans: readonly KillPlan[],
): Promise<CaseResult> {
  await using scene = new Scene(pool, installation);
  const operations = installation.operationsOf(plans.map(({ kind }) => kind));
  const cases = plans.map((plan, index) => ({ plan, operation: operations[index] as Operation }));
  for (const { plan, operation } of cases) await killIn(scene, plan, operation);
  for (const step of plans.flatMap(({ recover }) => recover))
    await scene.dieAt(step, 'recover', {});
  await scene.recoverTwice();
  await scene.compare({ stage: 'settled' });

  const { releases } = installation;
  // Whoever died after acknowledging may have taken the only release along: at most once, never
  // twice.
  const undisturbed = new Set(operations.map(({ n }) => n));
  for (const { plan, operation } of cases) {
    for (const step of plan.release)
      if (await scene.dieAt(step, 'release', { operation, releases }))
        undisturbed.delete(operation.n);
  }
  await scene.releaseTwice(...operations);
  await scene.compare({ stage: 'settled', released: [...undisturbed] });
  return scene.result();
}

async function killIn(scene: Scene, plan: KillPlan, operation: Operation): Promise<void> {
  const { execute, by = 'execute', passes = 0 } = plan;
  if (execute === undefined) await scene.execute(operation);
  else await scene.dieAt(execute, by, { operation }, { passes });
}

const ROUNDS_CUT_OFF = 20;
/**
 * So many operations are left alone first: they show how long one takes on a machine as busy as
 * this one is now.
 */
const UNDISTURBED = 3;

/**
 * A stream of operations, cut off at random moments, recovered, and continued by the next process
 * until it is done.
 */
export async function runStreamCase(
  pool: Pool,
  installation: Installation,
  chance: Random,
): Promise<CaseResult> {
  await using scene = new Scene(pool, installation);
  const { releases } = installation;
  let left = installation.operations;
  for (let round = 0; left.length > 0 && scene.violations.length === 0; round += 1) {
    const child = await scene.fresh({ toDie: true });
    const progress = new Progress();
    const running = child.call('stream', { operations: left, releases }, () => progress.count());
    // After many rounds the rest may run in peace, so that the case ends.
    if (round < ROUNDS_CUT_OFF) {
      await progress.reached(chance.below(UNDISTURBED), running);
      await waitMicroseconds(chance.spread(50, Math.max(progress.lastMs * 1500, 3000)));
      child.signal('SIGKILL');
    }
    scene.buried(await running);
    await scene.done(child);
    await scene.recoverTwice();
    const claimed = claimedTasks(await scene.compare({ stage: 'settled' }));
    left = left.filter((operation) => !claimed.has(taskOf(operation)));
  }
  const { journals } = await scene.compare({ stage: 'settled' });
  const acknowledged = new Set(
    journals.flat().flatMap((line) => (line.record.state === 'released' ? [line.occurrence] : [])),
  );
  const waiting = installation.operations.filter(
    (operation) => !acknowledged.has(operation.occurrence),
  );
  await scene.releaseTwice(...waiting);
  await scene.compare({ stage: 'settled', released: waiting.map((operation) => operation.n) });
  return scene.result();
}

/** Calls and an end, each chosen by chance. */
function chooseScript(chance: Random): TaskScript {
  const calls = Array.from({ length: chance.below(4) }, () => {
    return chance.pick(['action', 'action', 'failing'] as const);
  });
  return { calls, end: chance.pick(['finish', 'finish', 'finish', 'discard', 'wait']) };
}

/**
 * Three processes work in tasks at once, two of them under one license, and some are killed at
 * random moments. What they leave is recovered and released by fresh ones.
 */
export async function runTaskCase(
  pool: Pool,
  installation: Installation,
  chance: Random,
): Promise<CaseResult> {
  await using scene = new Scene(pool, installation);
  const [first, second] = [installation.operationOf('append'), installation.operationOf('derive')];
  const children = await Promise.all(
    [first, first, second].map(() => scene.fresh({ toDie: true })),
  );
  const running = children.map((child, index) => {
    const operation = index < 2 ? first : second;
    return child.call('play', { operation, script: chooseScript(chance) });
  });
  const doomed = children.filter(() => chance.below(2) === 0);
  for (const child of doomed) {
    await waitMicroseconds(chance.spread(500, 100_000));
    child.signal('SIGKILL');
  }
  for (const answer of await Promise.all(running)) scene.buried(answer);
  await scene.done(...children);
  await scene.recoverTwice();
  await scene.compare({ stage: 'settled' });
  await scene.releaseTwice(first, second);
  await scene.compare({ stage: 'settled', released: [first.n, second.n] });
  return scene.result();
}

/**
 * A process that is killed while it opens its runtime leaves nothing that keeps the next one from
 * working.
 */
export async function runStartCase(
  pool: Pool,
  installation: Installation,
  chance: Random,
): Promise<CaseResult> {
  await using scene = new Scene(pool, installation);
  const operation = installation.operationOf('append');
  for (let round = 0; round < 3; round += 1) {
    const child = await scene.borrow({ toDie: true });
    const opening = child.call('open', { site: installation.site });
    await waitMicroseconds(chance.spread(50, 40_000));
    child.signal('SIGKILL');
    const opened = await opening;
    if (opened.kind === 'failed') scene.buried(opened);
    scene.buried({ kind: 'died', exit: await child.exit });
  }
  await scene.execute(operation);
  await scene.releaseTwice(operation);
  await scene.compare({ stage: 'settled', released: [operation.n] });
  return scene.result();
}

/** How far a stream has come, and how long its last operation took. */
class Progress {
  lastMs = 0;
  #ended = 0;
  #at = performance.now();
  #notify = () => {};

  count(): void {
    const now = performance.now();
    this.lastMs = now - this.#at;
    this.#at = now;
    this.#ended += 1;
    this.#notify();
  }

  /** Returns when so many operations have ended, or the whole stream has. */
  async reached(operations: number, running: Promise<unknown>): Promise<void> {
    while (this.#ended < operations) {
      const notified = new Promise<boolean>((resolve) => {
        this.#notify = () => resolve(true);
      });
      if (!(await Promise.race([notified, running.then(() => false)]))) return;
    }
  }
}

/**
 * Timers are too coarse for this; turning the loop lets the command leave before the time is up.
 */
async function waitMicroseconds(microseconds: number): Promise<void> {
  const until = process.hrtime.bigint() + BigInt(Math.round(microseconds * 1000));
  while (process.hrtime.bigint() < until) await setImmediate();
}
