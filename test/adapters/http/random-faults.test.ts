// Goal: whatever goes wrong with connections, answers, read-backs and processes, no payment is made
// twice and no verdict contradicts the service. Method: hundreds of executions under random
// faults and simulated process ends, with a printed seed; the service itself counts what arrived
// and what it did.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FAULTS } from '../../../examples/payment-service/faults.ts';
import type { Step } from '../../../src/contract/steps.ts';
import { generated, insert } from '../../../src/protocol/draft.ts';
import type { OccurrenceId } from '../../../src/protocol/record.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { runLanes } from '../../crash/lanes.ts';
import { chooseSeed, type Random, randomOf, runsOf } from '../../random.ts';
import { openRig, PAYMENT, type Rig } from './rig.ts';

const RUNS = runsOf(300);
const RUNS_PER_RIG = 50;
/** Executions wait for the disk most of the time. */
const LANES = 5;
const STEPS: readonly Step[] = [
  'path:validated',
  'path:claimed',
  'path:certified',
  'path:request-built',
  'path:permit-consumed',
  'adapter:connected',
  'adapter:response-read',
  'path:dispatched',
  'path:read-back',
  'path:terminal-recorded',
  'recovery:found',
  'recovery:settled',
  'recovery:terminal-recorded',
];

class Death extends Error {}

/**
 * A process that ends by a throw at one step: everything after it in that process counts as not
 * having happened.
 */
class Mortal {
  at: Step | undefined;
  readonly reached = (step: Step): void => {
    if (step !== this.at) return;
    this.at = undefined;
    throw new Death(step);
  };
}

interface Order {
  readonly memo: string;
  readonly occurrences: Set<string>;
}

async function playRig(
  rig: Rig,
  chance: Random,
  orders: Map<string, Order>,
  tally: Map<string, number>,
): Promise<void> {
  const mortal = new Mortal();
  let runtime = await rig.start({}, { reached: mortal.reached });
  const surviving = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof Death)) throw error;
      await runtime.close();
      rig.faults.readsUnavailable = false;
      runtime = await rig.start({}, { reached: mortal.reached });
      return undefined;
    }
  };
  for (let run = 0; run < RUNS_PER_RIG; run += 1) {
    const memo = `order ${run}`;
    const effects = [insert('payment', { id: generated('p'), payee: 'acme', amount: run, memo })];
    const license = await rig.approve(runtime, { ...PAYMENT, task: memo, effects });
    const action =
      rig.capability === 'MEDIATED'
        ? {}
        : { operation: 'pay', input: { payee: 'acme', amount: run, memo } };
    const order: Order = { memo, occurrences: new Set() };
    orders.set(memo, order);
    if (chance.below(3) > 0) rig.faults.arm(chance.pick(FAULTS));
    rig.faults.readsUnavailable = chance.below(5) === 0;
    mortal.at = chance.below(3) === 0 ? chance.pick(STEPS) : undefined;
    const terminal = await surviving(() => runtime.execute(license, action));
    if (terminal !== undefined) order.occurrences.add(terminal.occurrence);
    if (chance.below(3) === 0) rig.faults.readsUnavailable = false;
    if (chance.below(4) === 0) rig.faults.settle();
    if (chance.below(3) === 0) await surviving(() => runtime.recover({ now: true }));
    mortal.at = undefined;
    // Whoever did not get an answer tries the same license again: it must not buy anything twice.
    if (chance.below(2) === 0) await surviving(() => runtime.execute(license, action));
    rig.faults.disarm();
    if (chance.below(4) === 0) rig.faults.settle();
  }
  rig.faults.readsUnavailable = false;
  rig.faults.settle();
  await runtime.recover({ now: true });
  await judge(rig, runtime, orders, tally);
}

/** Compares every verdict with what the service did. */
async function judge(
  rig: Rig,
  runtime: Runtime,
  orders: Map<string, Order>,
  tally: Map<string, number>,
): Promise<void> {
  const { account } = rig;
  for (const [key, arrivals] of account.arrivals) {
    const probe = account.requests.get(key)?.effects[0]?.after?.memo === 'probe';
    const known = (await runtime.ledgers.holder(key as OccurrenceId)) !== undefined;
    if (known) assert.equal(arrivals, 1, `${key} arrived ${arrivals} times`);
    else
      assert.ok(
        probe || account.requests.get(key)?.state === 'refused',
        `${key} was sent without a claim`,
      );
  }
  const entries = await runtime.ledgers.journal({ limit: 100_000 });
  const claims = entries.filter((entry) => entry.kind === 'claim');
  for (const { record } of claims) {
    const paid = [...account.payments.values()].filter(({ memo }) => memo === record.task);
    const notices =
      account.requests
        .get(record.occurrence)
        ?.effects.filter(({ target }) => target === 'notice') ?? [];
    const kind = (await runtime.terminal(record.occurrence))?.kind ?? 'none';
    tally.set(kind, 1 + (tally.get(kind) ?? 0));
    assert.ok(paid.length <= 1, `${record.task} was paid ${paid.length} times`);
    assert.ok(orders.has(record.task));
    if (kind === 'committed') assert.deepEqual([paid.length, notices.length], [1, 0], record.task);
    if (kind === 'diverged') assert.deepEqual([paid.length, notices.length], [1, 1], record.task);
    if (kind === 'rejected') assert.equal(paid.length, 0, record.task);
    assert.notEqual(kind, 'none', `${record.task} has no verdict after recovery`);
    if (kind === 'indeterminate')
      assert.equal(account.requests.has(record.occurrence), false, record.task);
  }
  assert.equal((await runtime.verifyJournal()).kind, 'intact');
}

test('no duplicate effect in hundreds of executions under random faults', async () => {
  const seed = chooseSeed();
  console.log(`seed ${seed}`);
  const tally = new Map<string, number>();
  let orders = 0;
  let paid = 0;
  const rigs = Array.from({ length: RUNS / RUNS_PER_RIG }, (_, index) => index);
  await runLanes(rigs, LANES, async (index) => {
    await using rig = await openRig(index % 2 === 0 ? 'MEDIATED' : 'OPAQUE');
    const known = new Map<string, Order>();
    await playRig(rig, randomOf(`${seed}/${index}`), known, tally);
    orders += known.size;
    paid += rig.payments.length;
  });
  console.log(
    `${orders} orders, ${paid} payments, verdicts ${JSON.stringify(Object.fromEntries(tally))}`,
  );
  assert.equal(orders, RUNS);
  for (const kind of ['committed', 'diverged', 'indeterminate', 'rejected']) {
    assert.ok(
      (tally.get(kind) ?? 0) > 3,
      `hardly any run ended as ${kind}: the faults do not reach it`,
    );
  }
});
