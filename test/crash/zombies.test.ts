// Goal: a process that was taken for dead and wakes up later can neither commit nor contradict what
// was recorded. Method: real processes stop themselves by SIGSTOP at every step, others recover,
// then SIGCONT, in both orders.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { chooseSeed, randomOf } from '../random.ts';
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
const seed = chooseSeed();
const drawn = randomOf(`${seed}/order`);
const firstOrder = drawn.below(ORDERS.length);
const firstBackend = drawn.below(2);
const templates: Template[] = [];
let pool: Pool;

before(async () => {
  pool = new Pool(16);
  for (const backend of [...BACKENDS_AND_LEDGERS, ...MARIADB])
    templates.push(await createTemplate(backend, OPERATION_KINDS));
});

after(async () => {
  await pool.close();
  for (const template of templates) await template[Symbol.asyncDispose]();
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
    assert.deepEqual(
      violations,
      [],
      `${installation.backend.name} ${JSON.stringify(plan)}, seed ${seed}`,
    );
  });
}

/**
 * Every plan on every second backend, the next plan on the others. The orders change as well. Which
 * comes first is drawn: every plan has both orders, and a few runs have everything.
 */
function inBothOrders<Plan>(plans: readonly Plan[]): readonly Placed<Plan>[] {
  return plans.flatMap((plan, index) =>
    templates.flatMap((template, at) => {
      const order = ORDERS[(firstOrder + Math.floor((index + at) / 2)) % ORDERS.length];
      const isItsTurn = (firstBackend + index + at) % 2 === 0;
      return order && isItsTurn ? [{ plan: { ...plan, order }, template }] : [];
    }),
  );
}

test('an execution that is stopped at any step and recovered by another process stays overruled', async () => {
  const committing = EXECUTION_STEPS.filter((step) => step !== 'path:discarded');
  await runAll(
    inBothOrders([
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
  await runAll(inBothOrders([...interrupted, ...committed]), (installation, plan) =>
    runRecoveryZombie(pool, installation, plan),
  );
});

test('a release that is stopped while another worker asks runs its work once between them', async () => {
  await runAll(
    inBothOrders(RELEASE_STEPS.map((stop) => ({ kind: 'append' as const, stop }))),
    (installation, plan) => runReleaseZombie(pool, installation, plan),
  );
});
