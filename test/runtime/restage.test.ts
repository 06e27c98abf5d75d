// Goal: an execution that other transactions prevent is tried again under the same license, for a
// while, with everything checked again, and never once a promotion was issued. Method: a backend in
// memory whose stages fail as often as a case wants.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AdapterFactory, PromotableAdapter, Staged } from '../../src/contract/adapter.ts';
import { memoryAdapter, overlayAdapter, overlayStages, type World } from '../world/world.ts';
import { assertRejected, deploy, invoiceWorld, ofKind, PAY } from './deploy.ts';

const BUSY = {
  kind: 'failed',
  reason: 'busy',
  detail: 'a row is locked',
  transient: true,
} as const;
type Failure = Extract<Staged, { kind: 'failed' }>;

/** Books whose next stages fail like this, one after the other. Admission is left alone. */
function failing(world: World, failures: Failure[], meanwhile: () => void = () => {}) {
  let staged = 0;
  const books = overlayAdapter(memoryAdapter(world.books) as AdapterFactory, (adapter) => ({
    stage: async (...asked: Parameters<PromotableAdapter['stage']>) => {
      const failure = failures.shift();
      if (failure !== undefined) meanwhile();
      staged += 1;
      return failure ?? (await (adapter as PromotableAdapter).stage(...asked));
    },
  }));
  return {
    adapters: { ...world.start().config.adapters, books },
    get staged() {
      return staged;
    },
    reset: () => {
      staged = 0;
    },
  };
}

/** A deployment that fails like this once it is open. */
async function deployFailing(
  world: World,
  failures: readonly Failure[],
  { meanwhile, ...options }: { meanwhile?: () => void; restageMs?: number } = {},
) {
  const queue: Failure[] = [];
  const books = failing(world, queue, meanwhile);
  const deployed = await deploy(world, { adapters: books.adapters, ...options });
  books.reset();
  queue.push(...failures);
  return { ...deployed, books };
}

test('what a lock prevented is committed once the lock is gone, and the tries are recorded', async () => {
  await using books = await deployFailing(invoiceWorld(), [BUSY, BUSY]);
  const committed = ofKind('committed', await books.runtime.execute(await books.approve(), PAY));
  assert.deepEqual(
    committed.tries?.map(({ reason }) => reason),
    ['busy', 'busy'],
  );
  assert.equal(books.books.staged, 3);
  const recorded = ofKind('committed', await books.runtime.ledgers.terminal(committed.occurrence));
  assert.deepEqual(recorded.tries, committed.tries);
  assert.deepEqual(books.world.books.find('invoice', { id: 1 })?.status, 'paid');
});

test('a failure that waiting does not cure is not tried again', async () => {
  const constraint = { kind: 'failed', reason: 'constraint', detail: 'a key exists' } as const;
  await using books = await deployFailing(invoiceWorld(), [constraint]);
  const rejected = assertRejected(
    await books.runtime.execute(await books.approve(), PAY),
    'stage',
    'constraint',
  );
  assert.equal(rejected.tries, undefined);
  assert.equal(books.books.staged, 1);
});

test('when the time is over the last failure is the verdict', async () => {
  const world = invoiceWorld();
  const always = Array.from({ length: 5 }, () => BUSY);
  const meanwhile = () => world.advance(400);
  await using books = await deployFailing(world, always, { meanwhile, restageMs: 1000 });
  const rejected = assertRejected(
    await books.runtime.execute(await books.approve(), PAY),
    'stage',
    'busy',
  );
  assert.equal(rejected.tries?.length, 2, 'the third ends it, 1,200 ms after the first began');
  assert.equal(books.books.staged, 3);
});

test('with restageMs 0 nothing is tried again', async () => {
  await using books = await deployFailing(invoiceWorld(), [BUSY], { restageMs: 0 });
  assertRejected(await books.runtime.execute(await books.approve(), PAY), 'stage', 'busy');
  assert.equal(books.books.staged, 1);
});

const changes: Readonly<
  Record<string, { happens(world: World): void; at: 'stage' | 'boundary'; reason: string }>
> = {
  'the approved state': {
    happens: (world) => world.disturb('state'),
    at: 'stage',
    reason: 'precondition-broken',
  },
  'the validity of the license': {
    happens: (world) => world.advance(11 * 60_000),
    at: 'stage',
    reason: 'expired',
  },
  'the boundary': {
    happens: (world) => {
      world.books.unclassified = 'table notes';
    },
    at: 'boundary',
    reason: 'outlet-unclassified',
  },
};
for (const [what, { happens, at, reason }] of Object.entries(changes)) {
  test(`${what} is checked again before another try`, async () => {
    const world = invoiceWorld();
    const meanwhile = () => happens(world);
    await using books = await deployFailing(world, [BUSY], { meanwhile, restageMs: 86_400_000 });
    const rejected = assertRejected(
      await books.runtime.execute(await books.approve(), PAY),
      at,
      reason,
    );
    assert.equal(rejected.tries?.length, 1);
    assert.equal(books.books.staged, 1, 'the action did not run again');
  });
}

test('a promotion that was refused is never tried again', async () => {
  const world = invoiceWorld();
  let staged = 0;
  let refuses = false;
  const books = overlayAdapter(memoryAdapter(world.books) as AdapterFactory, (adapter) =>
    overlayStages(adapter as PromotableAdapter, (stage) => {
      staged += 1;
      return {
        promote: async (permit) =>
          refuses
            ? { kind: 'refused', reason: 'serialization', detail: 'another transaction won' }
            : stage.promote(permit),
      };
    }),
  );
  const adapters = { ...world.start().config.adapters, books };
  await using process = await deploy(world, { adapters });
  staged = 0;
  refuses = true;
  const license = await process.approve();
  assertRejected(await process.runtime.execute(license, PAY), 'promotion', 'serialization');
  assert.equal(staged, 1);
});

test('sequences that failed tries moved are in the verdict', async () => {
  const moved = (from: string, to: string) => [
    { kind: 'sequence' as const, name: 'invoice_id_seq', from, to },
  ];
  const failures = [
    { ...BUSY, residue: moved('1', '2') },
    { ...BUSY, residue: moved('2', '3') },
  ];
  await using books = await deployFailing(invoiceWorld(), failures);
  const committed = ofKind('committed', await books.runtime.execute(await books.approve(), PAY));
  assert.deepEqual(committed.residue, moved('1', '3'));
});
