// Goal: a process that was taken for dead and wakes up later can neither commit nor contradict what
// was recorded. Method: real processes stop themselves by SIGSTOP at every step, others recover,
// then SIGCONT, in both orders.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { chooseSeed, randomOf } from '../random.ts';
import { WORLD_KINDS } from './backends/backend.ts';
import { BACKENDS_AND_LEDGERS, MARIADB } from './backends/index.ts';
import { createTemplate, type Template } from './installation.ts';
import { runLanes } from './lanes.ts';
import { Pool } from './pool.ts';
import { inGroups } from './scenario.ts';
import { EXECUTION_STEPS, RECOVERY_STEPS, RELEASE_STEPS } from './steps.ts';
import { runZombies, type ZombiePlan } from './zombie.ts';

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
    templates.push(await createTemplate(backend, WORLD_KINDS));
});

after(async () => {
  await pool.close();
  for (const template of templates) await template[Symbol.asyncDispose]();
});

/** Plans and the backend on which they run. */
interface Placed {
  readonly plan: ZombiePlan;
  readonly template: Template;
}

async function runAll(placed: readonly Placed[]): Promise<void> {
  const groups = templates.flatMap((template) => {
    const plans = placed.filter((one) => one.template === template).map(({ plan }) => plan);
    return inGroups(plans).map((group) => ({ group, template }));
  });
  await runLanes(groups, LANES, async ({ group, template }) => {
    await using installation = await template.copy();
    const { violations } = await runZombies(pool, installation, group);
    const where = `${installation.backend.name} ${JSON.stringify(group)}, seed ${seed}`;
    assert.deepEqual(violations, [], where);
  });
}

/**
 * Every plan on every second backend, the next plan on the others. The orders change as well. Which
 * comes first is drawn: every plan has both orders, and a few runs have everything.
 */
function inBothOrders(plans: readonly Omit<ZombiePlan, 'order'>[]): readonly Placed[] {
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
      { kind: 'surprise', stop: 'path:observed' },
      { kind: 'surprise', stop: 'path:discarded' },
      { kind: 'failing', stop: 'adapter:stage-opened' },
    ]),
  );
});

test('a recovery that is stopped at any step and overtaken by another one says the same when it wakes', async () => {
  const by = 'recover' as const;
  const interrupted = RECOVERY_STEPS.map((stop) => {
    return { kind: 'append' as const, by, stop, died: 'path:staged' as const };
  });
  const committed = RECOVERY_STEPS.filter((step) => step.startsWith('recovery:')).map((stop) => {
    return { kind: 'derive' as const, by, stop, died: 'adapter:commit-returned' as const };
  });
  await runAll(inBothOrders([...interrupted, ...committed]));
});

test('a release that is stopped while another worker asks runs its work once between them', async () => {
  const by = 'release' as const;
  await runAll(inBothOrders(RELEASE_STEPS.map((stop) => ({ kind: 'append', by, stop }))));
});
