// Goal: processes that execute, recover and release at the same time decide an occurrence once.
// Method: fast-check's scheduler chooses which process makes its next call to store or backend, in
// every order.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Terminal } from '../../src/protocol/terminal.ts';
import { referenceLedgers } from '../ledger/reference.ts';
import { runsOf } from '../random.ts';
import type { World } from '../world/world.ts';
import { deploy, invoiceWorld, ofKind, PAY } from './deploy.ts';

/** How many turns the second execution and the two recoveries wait before they begin. */
const delays = fc.tuple(fc.nat(14), fc.nat(14), fc.nat(14));
const adapters = fc.constantFrom('books' as const, 'bank' as const);

/**
 * A world whose processes move one call at a time, in the order that the scheduler chooses, once it
 * is started.
 */
function scheduledWorld(scheduler: fc.Scheduler): {
  readonly world: World;
  start(): void;
  stop(): void;
} {
  let running = false;
  const world = invoiceWorld({
    ledgers: referenceLedgers,
    pause: async (call) => {
      if (running) await scheduler.schedule(Promise.resolve(), call);
    },
  });
  return {
    world,
    start: () => {
      running = true;
    },
    stop: () => {
      running = false;
    },
  };
}

test('property: one license, two executions and two recoveries at once', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      adapters,
      delays,
      async (scheduler, adapter, [delayB, ...late]) => {
        const { world, start, stop } = scheduledWorld(scheduler);
        const wait = async (turns: number) => {
          for (let turn = 0; turn < turns; turn += 1)
            await scheduler.schedule(Promise.resolve(), 'wait');
        };
        await using a = await deploy(world);
        await using b = await deploy(world);
        await using c = await deploy(world);
        const license = await a.approve({ adapter });
        start();
        const executions = [
          a.runtime.execute(license, PAY),
          wait(delayB).then(() => b.runtime.execute(license, PAY)),
        ];
        const recoveries = late.map((turns) =>
          wait(turns).then(() => c.runtime.recover({ now: true })),
        );
        await scheduler.waitFor(Promise.allSettled([...executions, ...recoveries]));
        stop();
        const terminals = await Promise.all(executions);
        for (const one of (await Promise.all(recoveries)).flat()) {
          if ('why' in one)
            assert.doesNotMatch(one.why, /invariant|CONFLICT|TypeError|does not agree/);
        }
        const backend = adapter === 'books' ? world.books : world.bank.backend;
        const paid = backend.rows().invoice?.[0]?.status === 'paid';
        const [first] = terminals as [Terminal];
        const settled = await a.runtime
          .recover({ now: true })
          .then(() => a.runtime.terminal(first.occurrence));
        assert.equal(settled?.kind === 'committed', paid, 'committed if and only if paid');
        assert.ok(terminals.filter(({ kind }) => kind === 'committed').length <= 1);
        assert.equal(new Set(terminals.map(({ execution }) => execution)).size, 2);
        const holders = terminals.filter(({ execution }) => execution === settled?.execution);
        assert.equal(holders.length, 1, 'one of the two held the claim');
        for (const loser of terminals) {
          if (loser.execution === settled?.execution) continue;
          // Whoever comes after the payment no longer matches the state it read, or finds the
          // occurrence spent.
          assert.ok(loser.kind === 'rejected' && loser.at === 'authority', JSON.stringify(loser));
        }
        const attempts = await a.runtime.ledgers.attempts(first.occurrence);
        assert.equal(attempts.filter(({ kind }) => kind === 'committed').length, paid ? 1 : 0);
        assert.equal((await a.runtime.verifyJournal()).kind, 'intact');
      },
    ),
    { numRuns: runsOf(200) },
  );
});

test('property: many workers ask for one release, while a recovery runs', async () => {
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), adapters, async (scheduler, adapter) => {
      const { world, start, stop } = scheduledWorld(scheduler);
      await using a = await deploy(world);
      await using b = await deploy(world);
      const license = await a.approve({ adapter });
      const terminal = ofKind('committed', await a.runtime.execute(license, PAY));
      let ran = 0;
      start();
      const asked = [a, b, a, b].map(({ runtime }) =>
        runtime.continuation(terminal, 'reconcile').release(() => {
          ran += 1;
        }),
      );
      await scheduler.waitFor(Promise.all([...asked, b.runtime.recover({ now: true })]));
      stop();
      assert.equal(ran, 1);
    }),
    { numRuns: runsOf(70) },
  );
});

test('property: two licenses on one row at once leave the row as one of them approved', async () => {
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), async (scheduler) => {
      const { world, start, stop } = scheduledWorld(scheduler);
      await using a = await deploy(world);
      await using b = await deploy(world);
      const first = await a.approve();
      const second = await b.approve({ task: 'another' });
      start();
      const executions = [a.runtime.execute(first, PAY), b.runtime.execute(second, PAY)];
      await scheduler.waitFor(Promise.allSettled(executions));
      stop();
      const kinds = (await Promise.all(executions)).map(({ kind }) => kind).sort();
      assert.deepEqual(kinds, ['committed', 'rejected']);
      assert.equal(world.books.rows().invoice?.[0]?.status, 'paid');
      assert.equal(world.books.markers.size, 1);
    }),
    { numRuns: runsOf(70) },
  );
});
