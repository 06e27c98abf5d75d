// Goal: a process that was taken for dead and wakes up later can neither commit nor contradict what
// was recorded. Method: real processes stop themselves by SIGSTOP at every step, others recover,
// then SIGCONT, in both orders.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { OPERATION_KINDS } from './backends/backend.ts';
import { BACKENDS_AND_LEDGERS } from './backends/index.ts';
import { createTemplate, type Installation, type Template } from './installation.ts';
import { runLanes } from './lanes.ts';
import { Pool } from './pool.ts';
import type { CaseResult } from './scene.ts';
import { EXECUTION_STEPS, RECOVERY_STEPS, RELEASE_STEPS } from './steps.ts';
import {
  runExecutionZombie,
  runRecoveryZombie,
  runReleaseZombie,
  type ZombiePlan,
} from './zombie.ts';

/**
 * Most of the time is spent waiting for a stopped process, so more cases than cores run at once.
 */
const LANES = 6;
const ORDERS = ['recover-first', 'wake-together'] as const;
const templates: Template[] = [];
let pool: Pool;

before(async () => {
  pool = new Pool(16);
  for (const backend of BACKENDS_AND_LEDGERS)
    templates.push(await createTemplate(backend, OPERATION_KINDS));
});

after(async () => {
  await pool.close();
  for (const template of templates) await template[Symbol.asyncDispose]();
});

async function runAll<Plan>(
  plans: readonly Plan[],
  run: (installation: Installation, plan: Plan) => Promise<CaseResult>,
) {
  await runLanes(plans, LANES, async (plan, index) => {
    const template = templates[index % templates.length];
    assert.ok(template);
    await using installation = await template.copy();
    const { violations } = await run(installation, plan);
    assert.deepEqual(violations, [], `${installation.backend.name} ${JSON.stringify(plan)}`);
  });
}

/** Every plan in every order, in turn on every backend. */
function inEveryOrder<Plan>(plans: readonly Plan[]): readonly (Plan & Pick<ZombiePlan, 'order'>)[] {
  return plans.flatMap((plan) =>
    ORDERS.flatMap((order) => BACKENDS_AND_LEDGERS.map(() => ({ ...plan, order }))),
  );
}

test('an execution that is stopped at any step and recovered by another process stays overruled', async () => {
  const committing = EXECUTION_STEPS.filter((step) => step !== 'path:discarded');
  await runAll(
    inEveryOrder([
      ...committing.map((stop) => ({ kind: 'append' as const, stop })),
      { kind: 'surprise' as const, stop: 'path:observed' as const },
      { kind: 'surprise' as const, stop: 'path:discarded' as const },
      { kind: 'failing' as const, stop: 'adapter:stage-opened' as const },
    ]),
    (installation, plan) => runExecutionZombie(pool, installation, plan),
  );
});

test('a recovery that is stopped at any step and overtaken by another one says the same when it wakes', async () => {
  const interrupted = RECOVERY_STEPS.map((stop) => ({
    kind: 'append' as const,
    stop,
    died: 'path:staged' as const,
  }));
  const committed = RECOVERY_STEPS.filter((step) => step.startsWith('recovery:')).map((stop) => ({
    kind: 'derive' as const,
    stop,
    died: 'adapter:commit-returned' as const,
  }));
  await runAll(inEveryOrder([...interrupted, ...committed]), (installation, plan) =>
    runRecoveryZombie(pool, installation, plan),
  );
});

test('a release that is stopped while another worker asks runs its work once between them', async () => {
  await runAll(
    inEveryOrder(RELEASE_STEPS.map((stop) => ({ kind: 'append' as const, stop }))),
    (installation, plan) => runReleaseZombie(pool, installation, plan),
  );
});
