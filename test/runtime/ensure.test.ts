// Goal: `ensure` gives one effect and one verdict, however often and from wherever it is called.
// Method: one world, several processes; each meets the license in another state.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { AdapterFactory } from '../../src/contract/adapter.ts';
import type { Step } from '../../src/contract/steps.ts';
import { row } from '../../src/protocol/draft.ts';
import type { Ensured } from '../../src/runtime/ensure.ts';
import { temporaryLedgers } from '../ledger/temporary.ts';
import { memoryAdapter, overlayAdapter } from '../world/world.ts';
import {
  assertRejected,
  deploy,
  interrupt,
  invoiceWorld,
  LEASE_MS,
  ofKind,
  PAY,
} from './deploy.ts';

/** The verdict without what differs between the call that made it and those that found it. */
function verdictOf({ earlier: _, ...terminal }: Ensured) {
  return terminal;
}

test('an unused license is executed, and later calls return the recorded verdict', async () => {
  const world = invoiceWorld();
  await using first = await deploy(world);
  const license = await first.approve();
  const made = await first.runtime.ensure(license, PAY);
  assert.equal(ofKind('committed', made).reconciled, false);
  assert.equal(made.earlier, false);
  await using second = await deploy(world);
  for (const { runtime } of [first, second]) {
    const again = await runtime.ensure(license, PAY);
    assert.equal(again.earlier, true);
    assert.deepEqual(verdictOf(again), verdictOf(made));
  }
  const kinds = (await first.runtime.ledgers.journal()).map(({ kind }) => kind);
  assert.deepEqual(kinds, ['claim', 'terminal'], 'asking again leaves no trace');
});

test('a license that expired after it was used still has its verdict', async () => {
  const world = invoiceWorld();
  await using process = await deploy(world);
  const license = await process.approve();
  const made = await process.runtime.ensure(license, PAY);
  world.advance(24 * 60 * 60_000);
  assert.deepEqual(verdictOf(await process.runtime.ensure(license, PAY)), verdictOf(made));
});

test('a refusal that spends nothing is not a verdict: the license is tried again', async () => {
  const world = invoiceWorld();
  await using process = await deploy(world);
  const license = await process.approve();
  assertRejected(
    await process.runtime.ensure(license, { writes: 'none' }),
    'action',
    'action-invalid',
  );
  ofKind('committed', await process.runtime.ensure(license, PAY));
});

test('a claimed attempt that was rejected stays rejected, whatever is presented with it', async () => {
  const world = invoiceWorld();
  await using process = await deploy(world);
  const license = await process.approve();
  const twice = { writes: [...PAY.writes, { ...PAY.writes[0], key: { id: 2 } }] };
  const refused = await process.runtime.ensure(license, twice);
  assertRejected(refused, 'comparison', 'diverged');
  const again = await process.runtime.ensure(license, PAY);
  assert.deepEqual(verdictOf(again), verdictOf(refused));
  assert.equal(again.earlier, true);
});

test('calls at the same moment wait for the one that executes', async () => {
  const world = invoiceWorld();
  await using first = await deploy(world);
  await using second = await deploy(world);
  const license = await first.approve();
  const all = await Promise.all(
    [first, second, first, second].map(({ runtime }) => runtime.ensure(license, PAY)),
  );
  const [made, ...found] = all.toSorted((a, b) => Number(a.earlier) - Number(b.earlier));
  assert.ok(made !== undefined && !made.earlier && made.kind === 'committed');
  for (const other of found) assert.deepEqual({ ...other }, { ...made, earlier: true });
});

test('a live attempt is waited for as long as was said, and is not disturbed', async () => {
  const resume = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  let armed = false;
  const world = invoiceWorld({
    pause: async (call) => {
      if (!armed || call !== 'stage.observe') return;
      held.resolve();
      await resume.promise;
    },
  });
  await using first = await deploy(world);
  await using second = await deploy(world);
  const license = await first.approve();
  armed = true;
  const executing = first.runtime.execute(license, PAY);
  await held.promise;
  await assert.rejects(second.runtime.ensure(license, PAY, { waitMs: 0 }), {
    code: 'ERR_EM_ATTEMPT_OPEN',
    message: /another process is executing it/,
  });
  const waiting = second.runtime.ensure(license, PAY);
  resume.resolve();
  const made = ofKind('committed', await executing);
  assert.deepEqual(verdictOf(await waiting), made);
});

const INTERRUPTED: readonly Step[] = ['path:claimed', 'path:staged', 'path:gate-passed'];
for (const step of INTERRUPTED) {
  test(`an attempt that died at ${step} is recovered once its lease is over`, async () => {
    const world = invoiceWorld();
    const { license } = await interrupt(world, { kind: 'step', step, ending: 'die' });
    await using fresh = await deploy(world, { recoverAtStart: false });
    await assert.rejects(fresh.runtime.ensure(license, PAY, { waitMs: 0 }), {
      code: 'ERR_EM_ATTEMPT_OPEN',
    });
    world.advance(LEASE_MS);
    const found = await fresh.runtime.ensure(license, PAY);
    assertRejected(found, 'recovery', 'interrupted');
    assert.equal(found.earlier, true);
  });
}

test('an attempt that died after its commit is committed, and nothing is done again', async () => {
  const world = invoiceWorld();
  const fault = { kind: 'step', step: 'adapter:commit-returned', ending: 'die' } as const;
  const { license } = await interrupt(world, fault);
  const after = world.books.rows();
  await using fresh = await deploy(world, { recoverAtStart: false });
  world.advance(LEASE_MS);
  const found = ofKind('committed', await fresh.runtime.ensure(license, PAY));
  assert.equal(found.reconciled, true);
  assert.deepEqual(world.books.rows(), after);
});

test('a license for several executions needs to be told which one', async () => {
  const world = invoiceWorld();
  await using process = await deploy(world);
  const { runtime } = process;
  const license = await process.approve({ occurrences: 2, requires: [] });
  for (const use of [undefined, 0, 3, 1.5]) {
    const options = use === undefined ? {} : { use };
    await assert.rejects(runtime.ensure(license, PAY, options), { code: 'ERR_EM_USAGE' });
  }
  const early = await runtime.ensure(license, PAY, { use: 2 });
  assertRejected(early, 'authority', 'out-of-turn');
  const first = ofKind('committed', await runtime.ensure(license, PAY, { use: 1 }));
  const again = ofKind('committed', await runtime.ensure(license, PAY, { use: 1 }));
  assert.equal(again.execution, first.execution);
  const second = await runtime.ensure(license, PAY, { use: 2 });
  assert.notEqual(second.occurrence, first.occurrence);
});

test('waiting can be given up, and the attempt goes on', async () => {
  const world = invoiceWorld();
  const fault = { kind: 'step', step: 'path:claimed', ending: 'die' } as const;
  const { license } = await interrupt(world, fault);
  await using fresh = await deploy(world, { recoverAtStart: false });
  const signal = AbortSignal.timeout(30);
  await assert.rejects(fresh.runtime.ensure(license, PAY, { signal }), { name: 'AbortError' });
});

const MOVES = ['execute', 'ensure', 'ensure twice', 'crash', 'crash late', 'recover'] as const;

test('property: execute, ensure, crash and recover in any order leave one effect and one verdict', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom(...MOVES), { maxLength: 6 }), async (moves) => {
      const world = invoiceWorld();
      await using origin = await deploy(world);
      const license = await origin.approve();
      const verdicts = new Set<string>();
      const note = (terminal: { kind: string; execution: string; claim?: unknown } | undefined) => {
        if (terminal?.claim !== undefined) verdicts.add(`${terminal.kind} ${terminal.execution}`);
      };
      for (const move of moves) {
        const process = await deploy(world, { recoverAtStart: false });
        const { runtime } = process;
        if (move === 'crash' || move === 'crash late') {
          const step = move === 'crash' ? 'path:staged' : 'adapter:commit-returned';
          world.arm(process.process, { kind: 'step', step, ending: 'die' });
          note(await runtime.ensure(license, PAY, { waitMs: 0 }).catch(() => undefined));
        }
        if (move === 'execute') note(await runtime.execute(license, PAY));
        if (move === 'recover') world.advance(LEASE_MS);
        if (move === 'recover') await runtime.recover();
        if (move.startsWith('ensure')) {
          world.advance(LEASE_MS);
          const calls = Array.from({ length: move === 'ensure' ? 1 : 2 }, () =>
            runtime.ensure(license, PAY),
          );
          for (const found of await Promise.all(calls)) note(found);
        }
        await process[Symbol.asyncDispose]();
      }
      world.advance(LEASE_MS);
      await using last = await deploy(world);
      const final = await last.runtime.ensure(license, PAY);
      note(final);
      assert.equal(verdicts.size, 1, [...verdicts].join(', '));
      const paid = JSON.stringify(world.books.rows()).includes('paid');
      assert.equal(paid, final.kind === 'committed');
    }),
    { numRuns: 60 },
  );
});

test('a caller that is refused because another one has just committed gets that verdict', async () => {
  const world = invoiceWorld();
  await using first = await deploy(world);
  const license = await first.approve({
    requires: [row('invoice', { id: 1 }, { status: 'pending' })],
  });
  let meanwhile = async () => {};
  const books = overlayAdapter(memoryAdapter(world.books) as AdapterFactory, (adapter) => ({
    read: async (reads) => {
      await meanwhile();
      return await adapter.read(reads);
    },
  }));
  const adapters = { ...world.start().config.adapters, books };
  await using second = await deploy(world, { adapters });
  let made: Ensured | undefined;
  meanwhile = async () => {
    meanwhile = async () => {};
    made = await first.runtime.ensure(license, PAY);
  };
  const found = await second.runtime.ensure(license, PAY);
  assert.equal(made?.kind, 'committed');
  assert.equal(found.earlier, true);
  assert.deepEqual(verdictOf(found), made && verdictOf(made));
});

test('another action under a used license is refused, and the verdict is not its own', async () => {
  const world = invoiceWorld();
  await using process = await deploy(world);
  const license = await process.approve({ action: PAY });
  ofKind('committed', await process.runtime.ensure(license, PAY));
  const other = { writes: [{ ...PAY.writes[0], key: { id: 2 } }] };
  const refused = await process.runtime.ensure(license, other);
  assertRejected(refused, 'authority', 'other-action');
  assert.equal((await process.runtime.ensure(license, PAY)).kind, 'committed');
});

test('a ledger that knows nothing of a commit does not say that nothing was changed', async () => {
  const world = invoiceWorld();
  await using first = await deploy(world);
  const license = await first.approve();
  ofKind('committed', await first.runtime.ensure(license, PAY));
  using store = temporaryLedgers(world.clock);
  await using restored = await deploy(world, { store });
  world.advance(24 * 60 * 60_000);
  const late = await restored.runtime.ensure(license, PAY);
  assertRejected(late, 'authority', 'already-committed');
});

test('a time to wait that is no number is refused', async () => {
  await using process = await deploy(invoiceWorld());
  const license = await process.approve();
  for (const waitMs of [Number.NaN, -1, 'x' as never])
    await assert.rejects(process.runtime.ensure(license, PAY, { waitMs }), {
      code: 'ERR_EM_USAGE',
    });
  const signal = AbortSignal.abort();
  await assert.rejects(process.runtime.ensure(license, PAY, { signal }), { name: 'AbortError' });
  assert.equal((await process.runtime.ledgers.journal()).length, 0);
});
