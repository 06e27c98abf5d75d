// Goal: a process that was taken for dead and wakes up later can neither commit nor contradict what
// was recorded. Method: real processes stop themselves by SIGSTOP at every step, others recover,
// then SIGCONT, in both orders.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { OPERATION_KINDS } from './backends/backend.ts';
import { BACKENDS_AND_LEDGERS, MARIADB } from './backends/index.ts';
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
/** Every plan in one order only, and the next plan in the other. */
const inTurnOnly: Template[] = [];
let pool: Pool;

before(async () => {
  pool = new Pool(16);
  for (const backend of BACKENDS_AND_LEDGERS)
    templates.push(await createTemplate(backend, OPERATION_KINDS));
  for (const backend of MARIADB) inTurnOnly.push(await createTemplate(backend, OPERATION_KINDS));
});

after(async () => {
  await pool.close();
  for (const template of [...templates, ...inTurnOnly]) await template[Symbol.asyncDispose]();
});

/** A plan and the installation that it begins in. */
interface Placed<Plan> {
  readonly plan: Plan & Pick<ZombiePlan, 'order'>;
  readonly template: Template;
}

async function runAll<Plan>(
  placed: readonly Placed<Plan>[],
  run: (installation: Installation, plan: Plan & Pick<ZombiePlan, 'order'>) => Promise<CaseResult>,
) {
  await runLanes(placed, LANES, async ({ plan, template }) => {
    await using installation = await template.copy();
    const { violations } = await run(installation, plan);
    assert.deepEqual(violations, [], `${installation.backend.name} ${JSON.stringify(plan)}`);
  });
}

/** Every plan in every order on every backend; MariaDB has the orders in turn. */
function inEveryOrder<Plan>(plans: readonly Plan[]): readonly Placed<Plan>[] {
  return plans.flatMap((plan, index) =>
    ORDERS.flatMap((order, at) => {
      const used = index % ORDERS.length === at ? [...templates, ...inTurnOnly] : templates;
      return used.map((template) => ({ plan: { ...plan, order }, template }));
    }),
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
