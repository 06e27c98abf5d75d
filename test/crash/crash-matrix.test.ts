// Goal: wherever and whenever a process dies, the journal never contradicts what is durable, and
// nobody has to decide. Method: real processes end by SIGKILL at every named step and at random
// moments; fresh ones recover and release.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { STEPS, type Step } from '../../src/contract/steps.ts';
import { chooseSeed, randomOf } from '../random.ts';
import { OPERATION_KINDS, type OperationKind, WORLD_KINDS } from './backends/backend.ts';
import { BACKENDS, MARIADB } from './backends/index.ts';
import { createTemplate, type Installation, type Template } from './installation.ts';
import { runLanes } from './lanes.ts';
import { Pool } from './pool.ts';
import { inGroups, type KillPlan, runKillCases, runStartCase, runStreamCase } from './scenario.ts';
import type { CaseResult } from './scene.ts';
import { RECOVERY_STEPS, RELEASE_STEPS, REMOTE_STEPS } from './steps.ts';

const LANES = 3;
const seed = chooseSeed();
const deaths = new Map<Step, number>();
const templates: Template[] = [];
const inTurnOnly: Template[] = [];
let pool: Pool;
let kills = 0;
let startedAt = 0;

before(async () => {
  pool = new Pool(14);
  for (const backend of BACKENDS) templates.push(await createTemplate(backend, WORLD_KINDS));
  for (const backend of MARIADB) inTurnOnly.push(await createTemplate(backend, WORLD_KINDS));
  startedAt = performance.now();
});

after(async () => {
  const seconds = (performance.now() - startedAt) / 1000;
  console.log(
    `${kills} kills in ${seconds.toFixed(1)} s (${(kills / seconds).toFixed(1)} per second), seed ${seed}`,
  );
  await pool.close();
  for (const template of [...templates, ...inTurnOnly]) await template[Symbol.asyncDispose]();
});

/** A case and the installation that it begins in. */
interface Placed<T> {
  readonly item: T;
  readonly template: Template;
}

/** Runs cases on copies of their templates and fails with the first installation that is not sound. */
async function runAll<T>(
  cases: readonly Placed<T>[],
  run: (installation: Installation, item: T) => Promise<CaseResult>,
): Promise<number> {
  let died = 0;
  await runLanes(cases, LANES, async ({ item, template }) => {
    await using installation = await template.copy();
    const result = await run(installation, item);
    const where = `${installation.backend.name}, seed ${seed}, case ${JSON.stringify(item)}`;
    assert.deepEqual(result.violations, [], where);
    for (const step of result.died) deaths.set(step, (deaths.get(step) ?? 0) + 1);
    died += result.kills;
  });
  kills += died;
  return died;
}

/** Every case once, the backends in turn. */
function inTurn<T>(cases: readonly T[]): readonly Placed<T>[] {
  const all = [...templates, ...inTurnOnly];
  return cases.flatMap((item, index) => {
    const template = all[index % all.length];
    return template === undefined ? [] : [{ item, template }];
  });
}

const killAll = (cases: readonly Placed<readonly KillPlan[]>[]) =>
  runAll(cases, (installation, plans) => runKillCases(pool, installation, plans));

const IN_TURN = ['snapshot', 'postgres'];
const takesTurns = ({ backend }: Template) => IN_TURN.includes(backend.name);

/** The steps that an undisturbed execution takes, in the order of the list. */
async function stepsOf(kind: OperationKind): Promise<readonly Step[]> {
  const template = templates[0];
  assert.ok(template);
  await using installation = await template.copy();
  const child = await pool.take();
  await child.ask('open', { site: installation.site });
  await child.ask('execute', { operation: installation.operationOf(kind) });
  const steps = await child.ask('steps', {});
  await pool.give(child);
  return steps;
}

test('a process killed at any step of an execution leaves the approved outcome once, or nothing', async () => {
  const plans: KillPlan[] = [];
  for (const kind of OPERATION_KINDS) {
    for (const execute of await stepsOf(kind))
      plans.push({ kind, execute, recover: [], release: [] });
  }
  // `derive` and `bulk` take the same steps as `append`: one backend has them at every step, and
  // streams and recoveries have them on all. Backends that take long to open have one kind at each
  // step, and at the next step the next kind that reaches it.
  const [first, ...others] = templates.filter((template) => !takesTurns(template));
  assert.ok(first);
  const some = plans.filter(({ kind }) => kind !== 'derive' && kind !== 'bulk');
  const placed = [
    ...inGroups(plans).map((item) => ({ item, template: first })),
    ...others.flatMap((template) => inGroups(some).map((item) => ({ item, template }))),
  ];
  const steps = await stepsOf('append');
  for (const [at, template] of [...templates.filter(takesTurns), ...inTurnOnly].entries()) {
    const drawn = steps.flatMap((execute, index) => {
      const reaching = plans.filter((one) => one.execute === execute);
      return reaching[(index + at) % reaching.length] ?? [];
    });
    placed.push(...inGroups(drawn).map((item) => ({ item, template })));
  }
  assert.equal(await killAll(placed), placed.flatMap(({ item }) => item).length);
});

test('a recovery killed at any of its steps is finished by the next one', async () => {
  const steps = await stepsOf('append');
  const unsettled = steps
    .slice(steps.indexOf('path:claimed'))
    .filter((step) => step !== 'path:terminal-recorded');
  // A recovery that does not reach its step runs to the end and leaves nothing to the next. So the
  // steps that every recovery takes come first: they settle the first operation, and those of void
  // markers, which a committed operation does not take, meet the second.
  const isTakenByAll = (step: Step) => step.startsWith('recovery:');
  const recover = [
    ...RECOVERY_STEPS.filter(isTakenByAll),
    ...RECOVERY_STEPS.filter((step) => !isTakenByAll(step)),
  ];
  const twice = unsettled.map((execute): readonly KillPlan[] => [
    { kind: 'append', execute, recover, release: [] },
    { kind: 'append', execute, recover: [], release: [] },
  ]);
  const mixed = RECOVERY_STEPS.map((step): readonly KillPlan[] => {
    const end = { recover: [], release: [] };
    return [
      { kind: 'surprise', execute: 'path:discarded', ...end },
      { kind: 'failing', execute: 'adapter:stage-opened', ...end },
      { kind: 'bulk', execute: 'adapter:marker-written', ...end },
      { kind: 'derive', execute: 'adapter:commit-returned', ...end, recover: [step, ...recover] },
    ];
  });
  await killAll(inTurn([...twice, ...mixed]));
});

test('dependent work runs at most once, whoever dies while releasing it', async () => {
  const plans = RELEASE_STEPS.flatMap((step): readonly KillPlan[] => [
    { kind: 'append', execute: undefined, recover: [], release: [step] },
    {
      kind: 'derive',
      execute: 'adapter:commit-returned',
      recover: [],
      release: ['continuation:checked', step],
    },
    { kind: 'append', execute: 'path:staged', recover: [], release: [step] },
  ]);
  await killAll(
    templates.flatMap((template) => inGroups(plans).map((item) => ({ item, template }))),
  );
});

test('a stream of operations cut off at random moments loses and repeats nothing', async () => {
  const cases = Array.from({ length: 20 }, (_, index) => `${seed}/stream/${index}`);
  await runAll(inTurn(cases), (installation, label) =>
    runStreamCase(pool, installation, randomOf(label)),
  );
});

test('a process killed while it starts does not keep the next one from working', async () => {
  const cases = Array.from({ length: 12 }, (_, index) => `${seed}/start/${index}`);
  await runAll(inTurn(cases), (installation, label) =>
    runStartCase(pool, installation, randomOf(label)),
  );
});

test('every step was died at, except those of the remote path, in at least 400 real kills', () => {
  assert.deepEqual([...new Set([...deaths.keys(), ...REMOTE_STEPS])].sort(), [...STEPS].sort());
  assert.deepEqual(
    REMOTE_STEPS.filter((step) => deaths.has(step)),
    [],
  );
  // About 500; a stream on a busy machine is cut off less often.
  assert.ok(kills >= 400, `only ${kills} kills`);
});
