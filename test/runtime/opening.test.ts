// Goal: opening a runtime does not wait for backends that do not answer, and nothing is lost by
// that. Method: several processes die after they have sent; the service then answers late, or not
// before the test says so.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { World } from '../world/world.ts';
import { deploy, interrupt, invoiceWorld, LEASE_MS } from './deploy.ts';

const OPEN = 12;

/**
 * A world with requests whose outcome nobody has read back yet, and a service whose answers can be
 * held up.
 */
async function lateWorld() {
  let hold: Promise<void> | undefined;
  const asking = { now: 0, most: 0 };
  const pause = async (call: string) => {
    if (call !== 'adapter.readBack' || hold === undefined) return;
    asking.now += 1;
    asking.most = Math.max(asking.most, asking.now);
    await hold;
    asking.now -= 1;
  };
  const world = invoiceWorld({ pause });
  for (let at = 0; at < OPEN; at += 1) {
    const sign = { adapter: 'bank', task: `payment ${at}` };
    await interrupt(world, { kind: 'step', step: 'path:dispatched', ending: 'die' }, sign);
    world.bank.backend.write({
      op: 'update',
      target: 'invoice',
      key: { id: 1 },
      set: { status: 'pending' },
    });
  }
  world.advance(LEASE_MS);
  const { promise, resolve } = Promise.withResolvers<void>();
  hold = promise;
  return { world, asking, answer: resolve };
}

const openIn = (world: World) => deploy(world, { recoverAtStart: true });

test('opening waits neither for the sum of what hangs nor for one of it, and recover waits for all', {
  timeout: 60_000,
}, async () => {
  const { world, asking, answer } = await lateWorld();
  const startedMs = performance.now();
  await using opened = await openIn(world);
  assert.ok(
    performance.now() - startedMs < 10_000,
    'it does not wait for an answer that never comes',
  );
  assert.ok(asking.most > 1 && asking.most <= 8, `${asking.most} were asked at the same time`);
  assert.equal((await opened.runtime.ledgers.unsettled({ includeLeased: true })).length, OPEN);

  const recovered = opened.runtime.recover();
  answer();
  assert.deepEqual(await recovered, [], 'what was begun at the start has settled everything');
  assert.deepEqual(await opened.runtime.ledgers.unsettled({ includeLeased: true }), []);
});

test('what answers in time is settled when the runtime is open', async () => {
  const { world, answer } = await lateWorld();
  answer();
  await using opened = await openIn(world);
  assert.deepEqual(await opened.runtime.ledgers.unsettled({ includeLeased: true }), []);
});

test('closing stops what was begun at the start: no further occurrence is asked about', {
  timeout: 60_000,
}, async () => {
  const { world, asking, answer } = await lateWorld();
  const opened = await openIn(world);
  const closed = opened.runtime.close();
  answer();
  await closed;
  assert.equal(asking.now, 0);
  assert.ok(asking.most <= 8);
  await using fresh = await deploy(world);
  const left = await fresh.runtime.ledgers.unsettled({ includeLeased: true });
  assert.ok(left.length >= OPEN - 8, `${left.length} are left for the next one`);
});

test('a store that cannot list what is open is refused at opening', async () => {
  const world = invoiceWorld();
  const { process, config } = world.start();
  const store = {
    open: async (context: Parameters<typeof config.store.open>[0]) => {
      const ledgers = await config.store.open(context);
      world.arm(process, {
        kind: 'call',
        call: 'ledgers.unsettled',
        when: 'before',
        ending: 'throw',
        nth: 1,
      });
      return ledgers;
    },
  };
  await assert.rejects(deploy(world, { store, recoverAtStart: true }), /something was thrown/);
});
