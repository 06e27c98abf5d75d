// Goal: which sequences moved is reported with the verdict, wherever an attempt ended, and nothing
// where nothing moved. Method: a backend in memory that says a sequence moved, and one that says
// nothing moved; every place where an attempt ends.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AdapterFactory, PromotableAdapter, Stage } from '../../src/contract/adapter.ts';
import type { Residue } from '../../src/protocol/residue.ts';
import { memoryAdapter, overlayAdapter, overlayStages, type World } from '../world/world.ts';
import { assertRejected, deploy, invoiceWorld, ofKind, PAY } from './deploy.ts';

const MOVED: readonly Residue[] = [
  { kind: 'sequence', name: 'invoice_id_seq', from: '7', to: '9' },
];
const PAY_BOTH = {
  writes: [1, 2].map((id) => ({
    op: 'update',
    target: 'invoice',
    key: { id },
    set: { status: 'paid' },
  })),
};

/** Books whose stages report this residue, and are changed in whatever else a case wants. */
function booksWith(
  world: World,
  residue: readonly Residue[] | undefined,
  change: (adapter: PromotableAdapter) => Partial<PromotableAdapter> = (adapter) =>
    withStages(adapter, residue),
) {
  const books = overlayAdapter(memoryAdapter(world.books) as AdapterFactory, (adapter) =>
    change(adapter as PromotableAdapter),
  );
  return { adapters: { ...world.start().config.adapters, books } };
}

function withStages(
  adapter: PromotableAdapter,
  residue: readonly Residue[] | undefined,
  more: (stage: Stage) => Partial<Stage> = () => ({}),
) {
  return overlayStages(adapter, (stage) => ({
    observe: async () => ({ ...(await stage.observe()), ...(residue && { residue }) }),
    ...more(stage),
  }));
}

test('a rejection at the comparison reports it', async () => {
  const world = invoiceWorld();
  await using books = await deploy(world, booksWith(world, MOVED));
  const rejected = assertRejected(
    await books.runtime.execute(await books.approve(), PAY_BOTH),
    'comparison',
    'diverged',
  );
  assert.deepEqual(rejected.residue, MOVED);
});

test('a rejection at the final gate reports it', async () => {
  const world = invoiceWorld();
  const at = { 'path:observed': () => world.disturb('schema') } as const;
  await using books = await deploy(world, { ...booksWith(world, MOVED), at });
  const rejected = assertRejected(
    await books.runtime.execute(await books.approve(), PAY),
    'final-gate',
    'boundary-changed',
  );
  assert.deepEqual(rejected.residue, MOVED);
});

test('a rejection at the promotion reports it', async () => {
  const world = invoiceWorld();
  // Admission promotes as well, and must be able to.
  let refuses = false;
  const refusing = (adapter: PromotableAdapter) =>
    withStages(adapter, MOVED, (stage) => ({
      promote: async (permit) =>
        refuses
          ? { kind: 'refused', reason: 'serialization', detail: 'try later' }
          : stage.promote(permit),
    }));
  await using books = await deploy(world, booksWith(world, MOVED, refusing));
  refuses = true;
  const rejected = assertRejected(
    await books.runtime.execute(await books.approve(), PAY),
    'promotion',
    'serialization',
  );
  assert.deepEqual(rejected.residue, MOVED);
});

test('a stage that failed reports it', async () => {
  const world = invoiceWorld();
  let fails = false;
  const failing = (adapter: PromotableAdapter): Partial<PromotableAdapter> => ({
    stage: async (...asked) =>
      fails
        ? { kind: 'failed', reason: 'constraint', detail: 'a key exists', residue: MOVED }
        : adapter.stage(...asked),
  });
  await using books = await deploy(world, booksWith(world, MOVED, failing));
  fails = true;
  const rejected = assertRejected(
    await books.runtime.execute(await books.approve(), PAY),
    'stage',
    'constraint',
  );
  assert.deepEqual(rejected.residue, MOVED);
});

for (const [name, residue] of Object.entries({
  'nothing to say about it': undefined,
  'an empty list': [],
})) {
  test(`a backend with ${name} leaves the field out`, async () => {
    const world = invoiceWorld();
    await using books = await deploy(world, booksWith(world, residue));
    const rejected = assertRejected(
      await books.runtime.execute(await books.approve(), PAY_BOTH),
      'comparison',
      'diverged',
    );
    assert.equal('residue' in rejected, false);
  });
}

test('a commit says what moved, and is recorded with it', async () => {
  const world = invoiceWorld();
  await using books = await deploy(world, booksWith(world, MOVED));
  const committed = ofKind('committed', await books.runtime.execute(await books.approve(), PAY));
  assert.deepEqual(committed.residue, MOVED);
  assert.deepEqual((await books.runtime.ledgers.attempts(committed.occurrence)).at(-1), committed);
});
