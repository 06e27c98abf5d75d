import type { Step } from '../../src/contract/steps.ts';
import type { OperationKind } from './backends/backend.ts';
import type { CommandName, Commands, Operation } from './commands.ts';
import { type Facts, readFacts } from './facts.ts';
import { type Installation, taskOf } from './installation.ts';
import type { Answer, Child, Pool } from './pool.ts';
import { type CaseResult, Scene, toldBy } from './scene.ts';

/**
 * A process that is stopped in the middle, and when the others act: while it sleeps, or as it
 * wakes.
 */
export interface ZombiePlan {
  readonly kind: OperationKind;
  readonly stop: Step;
  readonly order: 'recover-first' | 'wake-together';
  /** What it does: an execution in one action unless said. */
  readonly by?: 'execute' | 'task' | 'recover' | 'release';
  /** Where the execution ended that a stopped recovery has found. */
  readonly died?: Step;
}

/** Plans on one installation, one after another, each with an operation and a stopped process. */
export async function runZombies(
  pool: Pool,
  installation: Installation,
  plans: readonly ZombiePlan[],
): Promise<CaseResult> {
  await using scene = new Scene(pool, installation);
  const operations = installation.operationsOf(plans.map(({ kind }) => kind));
  for (const [index, operation] of operations.entries()) {
    const plan = plans[index] as ZombiePlan;
    if (plan.by === 'recover') await stopRecovery(scene, operation, plan);
    else if (plan.by === 'release') await stopRelease(scene, operation, plan);
    else await stopExecution(scene, operation, plan, plan.by);
    await scene.recoverTwice();
    await scene.releaseTwice(operation);
    await scene.compare({ stage: 'settled', released: [operation.n] });
  }
  return scene.result();
}

/**
 * An execution that is stopped, recovered by another process, and woken: it can neither commit late
 * nor contradict.
 */
async function stopExecution(
  scene: Scene,
  operation: Operation,
  plan: ZombiePlan,
  by: 'execute' | 'task' = 'execute',
): Promise<void> {
  const [zombie, [other]] = await Promise.all([scene.fresh(), scene.openPair()]);
  const running = await stopAt(scene, zombie, plan.stop, by, { operation });
  const told = await recoverAround(scene, operation, plan, { zombie, other });
  const woken = expectAnswer(scene, await running.answer);
  if (woken !== undefined && told !== undefined && told !== `${woken.kind} by ${woken.execution}`) {
    scene.complain(
      `recovery said ${told}, and the woken process ended as ${woken.kind} by ${woken.execution}`,
    );
  }
  await scene.done(zombie);
}

/** A recovery that is stopped, overtaken by another one, and woken: both say the same. */
async function stopRecovery(scene: Scene, operation: Operation, plan: ZombiePlan): Promise<void> {
  await scene.dieAt(plan.died ?? 'path:staged', 'execute', { operation });
  const [zombie, [other]] = await Promise.all([scene.fresh(), scene.openPair()]);
  const running = await stopAt(scene, zombie, plan.stop, 'recover', {});
  const told = await recoverAround(scene, operation, plan, { zombie, other });
  for (const result of expectAnswer(scene, await running.answer) ?? []) {
    if (result.kind === 'unresolved')
      scene.complain(`the woken recovery left ${result.task}: ${result.why}`);
    if (result.kind === 'settled' && told !== undefined && told !== toldBy(result)) {
      scene.complain(`one recovery said ${told}, the woken one ${toldBy(result)}`);
    }
  }
  await scene.done(zombie);
}

/**
 * A release that is stopped while another worker asks for the same: the work runs once, by one of
 * the two.
 */
async function stopRelease(scene: Scene, operation: Operation, plan: ZombiePlan): Promise<void> {
  const { releases } = scene.installation;
  await scene.execute(operation);
  const [zombie, [other]] = await Promise.all([scene.fresh(), scene.openPair()]);
  const running = await stopAt(scene, zombie, plan.stop, 'release', { operation, releases });
  if (plan.order === 'wake-together') zombie.signal('SIGCONT');
  const asked = await other.ask('release', { operation, releases });
  zombie.signal('SIGCONT');
  const woken = expectAnswer(scene, await running.answer);
  const released = [asked, woken].filter((result) => result?.kind === 'released').length;
  if (released !== 1) scene.complain(`released to ${released} of two workers`);
  const before = plan.stop === 'continuation:checked';
  if (plan.order === 'recover-first' && (asked.kind === 'released') !== before) {
    scene.complain(
      `a worker asking while another was stopped at ${plan.stop} got ${JSON.stringify(asked)}`,
    );
  }
  await scene.done(zombie);
}

/**
 * Starts the command and returns once the process is stopped at the step; the answer comes after it
 * is woken.
 */
async function stopAt<Name extends CommandName>(
  scene: Scene,
  child: Child,
  step: Step,
  name: Name,
  asks: Commands[Name]['asks'],
): Promise<{ readonly answer: Promise<Answer<Commands[Name]['answers']>> }> {
  await child.ask('arm', { arming: { step, signal: 'SIGSTOP', log: scene.installation.deaths } });
  const answer = child.call(name, asks);
  if (!(await child.stopped(answer))) scene.complain(`the process was not stopped at ${step}`);
  return { answer };
}

/**
 * Another process recovers while the first is stopped, or just as it wakes. Returns what it said
 * about the operation. Where the stopped process is in the way, recovery says so and changes
 * nothing.
 */
async function recoverAround(
  scene: Scene,
  operation: Operation,
  plan: ZombiePlan,
  { zombie, other }: { readonly zombie: Child; readonly other: Child },
): Promise<string | undefined> {
  if (plan.order === 'wake-together') zombie.signal('SIGCONT');
  const before = await readFacts(scene.installation);
  const results = await other.ask('recover', {});
  if (plan.order === 'recover-first') {
    const blocked = scene.installation.backend.blocksAt.includes(plan.stop);
    const expected = !isPending(before, operation) ? '' : blocked ? 'running' : 'settled';
    const kinds = results.map((result) => result.kind).join();
    if (kinds !== expected)
      scene.complain(`stopped at ${plan.stop}: recovery says "${kinds}" and not "${expected}"`);
    const changed = JSON.stringify(await readFacts(scene.installation)) !== JSON.stringify(before);
    if (blocked && changed)
      scene.complain(`recovery changed something while it was blocked at ${plan.stop}`);
    await scene.compare({ stage: 'unsettled' });
    zombie.signal('SIGCONT');
  }
  for (const result of results) {
    if (result.kind === 'unresolved')
      scene.complain(`${result.task} was left for a person: ${result.why}`);
  }
  const settled = results.find((result) => result.kind === 'settled');
  return settled && toldBy(settled);
}

/** Whether somebody has claimed and nothing has been recorded about the end. */
function isPending(facts: Facts, operation: Operation): boolean {
  const task = taskOf(operation);
  const lines = facts.journals.flat().filter(({ record }) => record.task === task);
  return (
    lines.some(({ kind }) => kind === 'claim') && !lines.some(({ kind }) => kind === 'terminal')
  );
}

/** A woken process must answer: a fault there would be a contradiction that it ran into. */
function expectAnswer<T>(scene: Scene, answer: Answer<T>): T | undefined {
  if (answer.kind === 'done') return answer.value;
  scene.complain(`the woken process ended with ${JSON.stringify(answer)}`);
  return undefined;
}
