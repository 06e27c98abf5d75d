// Goal: an attempt that is refused after its promotion began, or whose stage does not end, says
// only what is shown. Method: adapters whose promotion is refused and whose discard fails, in a
// world in memory; texts handed to the recorder.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type {
  AdapterFactory,
  PromotableAdapter,
  Promotion,
  Stage,
} from '../../src/contract/adapter.ts';
import { EffectMatchError } from '../../src/errors.ts';
import { count, update } from '../../src/protocol/draft.ts';
import { storableFault } from '../../src/runtime/attempt.ts';
import { asOpenBoundary } from '../../src/runtime/boundary.ts';
import { openContinuations } from '../../src/runtime/continuation.ts';
import { passRequestGate } from '../../src/runtime/gate.ts';
import { readBack } from '../../src/runtime/remote.ts';
import { temporaryLedgers } from '../ledger/temporary.ts';
import { memoryAdapter, overlayAdapter, overlayStages, type World } from '../world/world.ts';
import { assertRejected, deploy, invoiceWorld, ofKind, PAY, reseal } from './deploy.ts';

const REFUSED: Promotion = {
  kind: 'refused',
  reason: 'not-ready',
  detail: 'the backend is in recovery',
};

/** An execution on books whose stages are changed once they were admitted. */
async function executeWith(world: World, change: (stage: Stage) => Partial<Stage>) {
  let admitted = false;
  const { adapters } = world.start().config;
  const books = overlayAdapter(memoryAdapter(world.books) as AdapterFactory, (adapter) =>
    overlayStages(adapter as PromotableAdapter<unknown>, (stage) =>
      admitted ? change(stage) : {},
    ),
  );
  await using deployed = await deploy(world, { adapters: { ...adapters, books } });
  const license = await deployed.approve();
  admitted = true;
  return await deployed.runtime.execute(license, PAY);
}

test('a refused promotion is a rejection for its reason once the stage has ended', async () => {
  const terminal = await executeWith(invoiceWorld(), () => ({ promote: async () => REFUSED }));
  assertRejected(terminal, 'promotion', 'not-ready');
});

test('a refused promotion whose stage does not end is settled by a marker, and the reason is kept', async () => {
  const world = invoiceWorld();
  const stuck = await executeWith(world, () => ({
    promote: async () => REFUSED,
    discard: (): Promise<void> => Promise.reject(new Error('the connection is stuck')),
  }));
  assert.match(
    ofKind('indeterminate', stuck).gap,
    /the backend is in recovery.*a candidate is held/,
  );
  const ended = invoiceWorld();
  const terminal = await executeWith(ended, (stage) => ({
    promote: async () => REFUSED,
    async discard() {
      await stage.discard();
      throw new Error('the reply was lost');
    },
  }));
  const rejected = assertRejected(terminal, 'promotion', 'commit-failed');
  assert.match(rejected.detail, /nothing became durable: the backend is in recovery/);
  assert.equal(ended.books.markers.get(rejected.occurrence)?.disposition, 'void');
});

test('an attempt whose stage never opened and that is refused needs no marker', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world);
  const wrong = {
    writes: [{ op: 'update', target: 'invoice', key: { id: 99 }, set: { status: 'paid' } }],
  };
  const rejected = assertRejected(
    await deployed.runtime.execute(await deployed.approve(), wrong),
    'stage',
    'action-failed',
  );
  assert.equal(world.books.markers.get(rejected.occurrence), undefined);
});

test('how many changes one request may make is a limit for services, and not for a backend that holds them', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world);
  const effects = [count(update('invoice', { id: 1 }, { status: ['pending', 'paid'] }), 10_001)];
  const terminal = await deployed.runtime.execute(await deployed.approve({ effects }), PAY);
  assertRejected(terminal, 'comparison', 'diverged');
  await assert.rejects(deployed.approve({ adapter: 'bank', effects }), {
    code: 'ERR_EM_MANIFEST_INVALID',
    message: /10001 changes are more than the 10000 that one request may make; approve fewer/,
  });
});

test('what was thrown is told with its code, if that is one, whatever was thrown', () => {
  const admitted = { registration: { values: 'plain' } } as Parameters<typeof storableFault>[0];
  const told = (thrown: unknown) => storableFault(admitted, thrown);
  assert.equal(told(new Error('no room')), 'no room');
  assert.equal(told(Object.assign(new Error('no room'), { code: 'ENOSPC' })), 'no room (ENOSPC)');
  for (const code of [57, ['ENOSPC'], 'lower case', '', 'X'.repeat(65)]) {
    assert.equal(told(Object.assign(new Error('no room'), { code })), 'no room');
  }
  assert.equal(told('no room'), 'no room');
  assert.equal(told(undefined), 'undefined');
  assert.equal(told(null), 'null');
});

test('an attempt without a lease does not come through the gate of a request', async () => {
  const deployment = { leases: { deadline: () => undefined } };
  const asked = passRequestGate(deployment as never, { attempt: {} } as never, 'd' as never);
  await assert.rejects(asked, { code: 'ERR_EM_INVARIANT', message: /has a lease/ });
});

test('what is too large to be compared is not even read back', async () => {
  const admitted = { adapter: { readBack: () => assert.fail('it was read back') } };
  const approved = { effects: [{ count: 10_000 }, { count: 1 }] };
  const { outcome } = await readBack(admitted as never, 'o' as never, approved as never, undefined);
  assert.match(
    outcome.kind === 'INDETERMINATE' ? outcome.gaps.join() : outcome.kind,
    /^not read back: 10001 changes/,
  );
});

test('only an adapter that says that its boundary is open is refused for that', () => {
  const open = new EffectMatchError('ERR_EM_BOUNDARY_OPEN', 'a server can be reached');
  assert.deepEqual(asOpenBoundary(open), {
    kind: 'refused',
    reason: 'outlet-unclassified',
    detail: 'a server can be reached',
  });
  const others = [
    new EffectMatchError('ERR_EM_ADAPTER_UNAVAILABLE', 'gone'),
    Object.assign(new Error('not ours'), { code: 'ERR_EM_BOUNDARY_OPEN' }),
  ];
  for (const error of others) assert.throws(() => asOpenBoundary(error), error);
});

test('released work without a claim in the ledger is listed all the same', async () => {
  const released = {
    occurrence: 'o',
    lineage: 'l',
    continuation: 'reconcile',
    at: '2026-01-01T10:00:00.000Z',
  };
  const ledgers = { uncompleted: async () => [released], holder: async () => undefined };
  const [open] = await openContinuations(ledgers as never);
  assert.deepEqual([open?.continuation, open?.task], ['reconcile', '']);
});

test('a fault on an occurrence that another execution committed is a rejection: this attempt left nothing', async () => {
  const world = invoiceWorld();
  await using here = await deploy(world, { store: temporaryLedgers(world.clock) });
  await using there = await deploy(world, { store: temporaryLedgers(world.clock) });
  const license = await here.approve();
  ofKind('committed', await here.runtime.execute(license, PAY));
  world.arm(there.process, {
    kind: 'call',
    ending: 'throw',
    call: 'adapter.stage',
    nth: 1,
    when: 'before',
  });
  assertRejected(await there.runtime.execute(license, PAY), 'stage', 'fault');
});

test('a backend that says it committed what was never promoted leaves the attempt open, and the gap says so', async () => {
  const world = invoiceWorld();
  const { adapters } = world.start().config;
  let admitted = false;
  const books = overlayAdapter(memoryAdapter(world.books) as AdapterFactory, (adapter) => ({
    async stage(...asked: Parameters<PromotableAdapter['stage']>) {
      if (!admitted) return await (adapter as PromotableAdapter<unknown>).stage(...asked);
      const [claim] = asked;
      const { occurrence, execution, approved } = claim.sealed.record;
      const digests = {
        certificate: claim.digest,
        permit: claim.digest,
        observed: claim.digest,
        claim: claim.digest,
      };
      const said = {
        version: 1,
        disposition: 'committed',
        occurrence,
        execution,
        approved,
        ...digests,
      };
      world.books.markers.set(
        occurrence,
        reseal(world, { ...said, consumedAt: '2026-01-01T10:00:00.000Z' }),
      );
      throw new Error('the connection broke');
    },
  }));
  await using deployed = await deploy(world, { adapters: { ...adapters, books } });
  const license = await deployed.approve();
  admitted = true;
  const { gap } = ofKind('indeterminate', await deployed.runtime.execute(license, PAY));
  assert.match(
    gap,
    /the connection broke.*could not be ended: the backend says that it was committed/,
  );
});
