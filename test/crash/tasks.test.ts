// Goal: a task that dies between any two calls, sleeps through its recovery, or meets others with the
// same license leaves the approved outcome once, or nothing. Method: real processes work in tasks on
// every backend; SIGKILL and SIGSTOP at every step; fresh processes recover and release.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Step } from '../../src/contract/steps.ts';
import { chooseSeed, randomOf } from '../random.ts';
import { type OperationKind, WORLD_KINDS } from './backends/backend.ts';
import { BACKENDS, MARIADB } from './backends/index.ts';
import { createTemplate, type Installation, type Template } from './installation.ts';
import { runLanes } from './lanes.ts';
import { Pool } from './pool.ts';
import { inGroups, type KillPlan, runKillCases, runTaskCase } from './scenario.ts';
import { type CaseResult, Scene } from './scene.ts';
import { EXECUTION_STEPS } from './steps.ts';
import { runZombies } from './zombie.ts';

const LANES = 4;
const CONTENDERS = 4;
/** Random cases on each backend; more with `EFFECTMATCH_RUNS`. */
const RUNS = Number(process.env.EFFECTMATCH_RUNS ?? 1);
const seed = chooseSeed();
const chance = randomOf(`${seed}/tasks`);
const templates: Template[] = [];
let pool: Pool;

before(async () => {
  pool = new Pool(12);
  for (const backend of [...BACKENDS, ...MARIADB])
    templates.push(await createTemplate(backend, WORLD_KINDS));
});

after(async () => {
  await pool.close();
  for (const template of templates) await template[Symbol.asyncDispose]();
});

async function runAll<Plan>(
  cases: readonly { readonly plan: Plan; readonly template: Template }[],
  run: (installation: Installation, plan: Plan) => Promise<CaseResult>,
): Promise<void> {
  await runLanes(cases, LANES, async ({ plan, template }) => {
    await using installation = await template.copy();
    const { violations } = await run(installation, plan);
    const where = `${installation.backend.name} ${JSON.stringify(plan)}, seed ${seed}`;
    assert.deepEqual(violations, [], where);
  });
}

const isCommitting = (step: Step) => step !== 'path:discarded';
const PASSED = ['path:validated', 'path:claimed', 'path:certified'];

test('a task killed at any step, or between two calls, leaves the approved outcome or nothing', async () => {
  const by = 'task' as const;
  const end = { by, recover: [], release: [] };
  const steps = EXECUTION_STEPS.filter((step) => isCommitting(step) && !PASSED.includes(step));
  const offset = chance.below(3);
  const cases = templates.flatMap((template, at) => {
    const plans: KillPlan[] = steps
      // Every step on one backend at least, and on all within a few runs.
      .filter((_, index) => (index + at + offset) % 3 === 0)
      .map((execute) => ({ kind: 'append', execute, ...end }));
    const calls = template.backend.name === 'snapshot' ? 1 : 3;
    for (let passes = 0; passes < calls; passes += 1)
      plans.push({ kind: 'derive', execute: 'adapter:action-done', passes, ...end });
    plans.push({ kind: 'surprise', execute: 'path:discarded', ...end });
    return inGroups(plans).map((plan) => ({ plan, template }));
  });
  await runAll(cases, async (installation, plans) => {
    const result = await runKillCases(pool, installation, plans);
    const where = `${installation.backend.name} ${JSON.stringify(plans)}`;
    assert.equal(result.kills, plans.length, where);
    return result;
  });
});

test('tasks at once, of random calls and ends and killed at random, leave what was approved or nothing', async () => {
  const cases = templates.flatMap((template) =>
    Array.from({ length: RUNS }, (_, index) => ({
      template,
      plan: `${seed}/${template.backend.name}/${index}`,
    })),
  );
  await runAll(cases, (installation, label) => runTaskCase(pool, installation, randomOf(label)));
});

test('a task that sleeps while it is recovered stays overruled', async () => {
  const stops: readonly Step[] = [
    'adapter:stage-opened',
    'adapter:action-done',
    'path:gate-passed',
  ];
  const plans = templates.map((template, index) => {
    const order = (['recover-first', 'wake-together'] as const)[chance.below(2)] ?? 'recover-first';
    const stop = stops[index % stops.length] ?? 'adapter:action-done';
    return { template, plan: { kind: 'append' as const, stop, order, by: 'task' as const } };
  });
  await runAll(plans, (installation, plan) => runZombies(pool, installation, [plan]));
});

test(`${CONTENDERS} processes that open a task under one license have one effect`, async () => {
  await runLanes(templates, 2, async (template) => {
    await using installation = await template.copy();
    await using scene = new Scene(pool, installation);
    const operation = installation.operationOf('append' satisfies OperationKind);
    const children = await Promise.all(Array.from({ length: CONTENDERS }, () => scene.fresh()));
    const ended = await Promise.all(children.map((child) => child.ask('task', { operation })));
    const kinds = ended.map(({ kind }) => kind).sort();
    const expected = ['committed', ...Array(CONTENDERS - 1).fill('rejected')];
    assert.deepEqual(kinds, expected, installation.backend.name);
    await scene.done(...children);
    await scene.releaseTwice(operation);
    await scene.compare({ stage: 'settled', released: [operation.n] });
    assert.deepEqual(scene.result().violations, [], installation.backend.name);
  });
});
