// Goal: whatever is thrown after the claim, the attempt ends with a terminal that says what is
// true. Method: each port method of the path throws in turn; where nothing can be established, the
// backend answers nobody.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Gate } from '../../src/protocol/terminal.ts';
import { type Call, type Fault, FaultStruck } from '../world/world.ts';
import {
  assertRejected,
  claimedOccurrence,
  deploy,
  interrupt,
  invoiceWorld,
  ofKind,
  onlyOne,
  PAY,
} from './deploy.ts';

const throws = (call: Call, nth = 1, when: 'before' | 'after' = 'before'): Fault => ({
  kind: 'call',
  ending: 'throw',
  call,
  nth,
  when,
});

/**
 * Where each port method is called between the claim and the promotion, and the gate that its fault
 * belongs to.
 */
const BEFORE_PROMOTION: readonly (readonly [Fault, Gate])[] = [
  [throws('adapter.survey'), 'boundary'],
  [throws('ledgers.keep'), 'boundary'],
  [throws('adapter.stage'), 'stage'],
  [throws('stage.observe'), 'comparison'],
  [throws('adapter.survey', 2), 'final-gate'],
  [throws('ledgers.standing'), 'final-gate'],
  [throws('stage.recheck'), 'final-gate'],
  [throws('stage.read'), 'final-gate'],
  [{ kind: 'step', step: 'path:gate-passed', ending: 'throw' }, 'final-gate'],
];

for (const [fault, at] of BEFORE_PROMOTION) {
  test(`held: ${JSON.stringify(fault)} is a rejection at ${at}, with what was thrown`, async () => {
    const world = invoiceWorld();
    const { terminal, license } = await interrupt(world, fault);
    const rejected = assertRejected(terminal, at, 'fault');
    assert.match(rejected.detail, /something was thrown/);
    assert.ok(rejected.claim);
    await using fresh = await deploy(world);
    assert.deepEqual(await fresh.runtime.terminal(rejected.occurrence), rejected);
    assert.deepEqual(await fresh.runtime.recover({ now: true }), [], 'nothing is left to recover');
    assert.equal(world.books.rows().invoice?.[0]?.status, 'pending');
    assertRejected(await fresh.runtime.execute(license, PAY), 'authority', 'spent');
  });
}

const BEFORE_DISPATCH: readonly (readonly [Fault, Gate])[] = [
  [throws('adapter.survey'), 'boundary'],
  [throws('adapter.survey', 2), 'final-gate'],
  [throws('adapter.read', 2), 'final-gate'],
  [throws('ledgers.consumePermit'), 'final-gate'],
  [{ kind: 'step', step: 'path:request-built', ending: 'throw' }, 'final-gate'],
];

for (const [fault, at] of BEFORE_DISPATCH) {
  test(`remote: ${JSON.stringify(fault)} is a rejection at ${at}, and nothing was sent`, async () => {
    const world = invoiceWorld();
    const { terminal } = await interrupt(world, fault, { adapter: 'bank' });
    const rejected = assertRejected(terminal, at, 'fault');
    await using fresh = await deploy(world);
    assert.equal(
      (await fresh.runtime.ledgers.permit(rejected.occurrence))?.kind,
      at === 'boundary' ? undefined : 'void',
    );
    assert.deepEqual(await fresh.runtime.recover({ now: true }), []);
    assert.equal(world.bank.backend.rows().invoice?.[0]?.status, 'pending');
  });
}

test('remote: a fault after the permit was consumed and before the request could leave is a rejection', async () => {
  for (const [fault, at] of [
    [throws('ledgers.consumePermit', 1, 'after'), 'final-gate'],
    [{ kind: 'step', step: 'path:permit-consumed', ending: 'throw' }, 'dispatch'],
  ] as const) {
    const world = invoiceWorld();
    const { terminal } = await interrupt(world, fault, { adapter: 'bank' });
    assertRejected(terminal, at, 'fault');
    await using fresh = await deploy(world);
    assert.deepEqual(await fresh.runtime.recover({ now: true }), []);
    assert.equal(world.bank.backend.rows().invoice?.[0]?.status, 'pending');
  }
});

test('remote: a fault after the request left is indeterminate, and recovery reads back at once', async () => {
  const world = invoiceWorld();
  const { terminal } = await interrupt(
    world,
    { kind: 'step', step: 'path:dispatched', ending: 'throw' },
    { adapter: 'bank' },
  );
  assert.match(ofKind('indeterminate', terminal).gap, /something was thrown/);
  await using fresh = await deploy(world);
  const recovered = onlyOne(await fresh.runtime.recover());
  assert.equal(recovered.kind === 'settled' && recovered.terminal.kind, 'committed');
});

test('a discard that throws once is asked again, and the rejection keeps what was seen', async () => {
  for (const when of ['before', 'after'] as const) {
    const world = invoiceWorld();
    world.books.logic = (write) => [
      write,
      { op: 'insert', target: 'audit', row: { id: 'x', text: 'y' } },
    ];
    const { terminal } = await interrupt(world, throws('stage.discard', 1, when));
    const rejected = assertRejected(terminal, 'comparison', 'diverged');
    assert.equal(rejected.outcome?.kind, 'DIVERGED');
  }
});

test('an attempt that could not be staged is fenced by a void marker before it is rejected', async () => {
  const world = invoiceWorld();
  const { terminal } = await interrupt(world, throws('adapter.stage'));
  const { occurrence } = assertRejected(terminal, 'stage', 'fault');
  assert.equal(world.books.markers.get(occurrence)?.disposition, 'void');
});

test('a candidate that was opened and lost is indeterminate until it has ended, and then rejected', async () => {
  const world = invoiceWorld();
  const first = await deploy(world);
  const license = await first.approve();
  world.arm(first.process, throws('adapter.stage', 1, 'after'));
  const open = ofKind('indeterminate', await first.runtime.execute(license, PAY));
  assert.match(open.gap, /a candidate is held/);
  await first.runtime.close();
  await using fresh = await deploy(world);
  const recovered = onlyOne(await fresh.runtime.recover());
  assert.ok(recovered.kind === 'settled', JSON.stringify(recovered));
  assertRejected(recovered.terminal, 'recovery', 'interrupted');
});

test('where the backend answers nobody the attempt is indeterminate, and recovery settles it without waiting for a lease', async () => {
  let gone: 'no' | 'soon' | 'now' = 'no';
  const pause = async (call: string) => {
    if (gone === 'soon' && call === 'stage.observe') gone = 'now';
    if (gone === 'now' && /^(adapter|stage|markers)\./.test(call))
      throw new FaultStruck('the server is gone');
  };
  const world = invoiceWorld({ pause });
  await using deployed = await deploy(world);
  const license = await deployed.approve();
  gone = 'soon';
  const open = ofKind('indeterminate', await deployed.runtime.execute(license, PAY));
  assert.equal(open.permit, undefined, 'nothing was ever to be promoted');
  assert.match(open.gap, /the server is gone/);
  assert.equal(onlyOne(await deployed.runtime.recover()).kind, 'unresolved');
  gone = 'no';
  if (world.books.writer !== undefined) world.books.drop(world.books.writer); // as a server does with what a lost client held
  const recovered = onlyOne(await deployed.runtime.recover());
  assert.ok(recovered.kind === 'settled', JSON.stringify(recovered));
  assertRejected(recovered.terminal, 'recovery', 'interrupted');
});

test('a ledger that cannot record throws, and the lease is over: recovery need not be told to hurry', async () => {
  const world = invoiceWorld();
  await using first = await deploy(world);
  const license = await first.approve();
  world.arm(first.process, throws('ledgers.record'));
  world.books.logic = (write) => [
    write,
    { op: 'insert', target: 'audit', row: { id: 'x', text: 'y' } },
  ];
  await assert.rejects(first.runtime.execute(license, PAY), FaultStruck);
  const occurrence = await claimedOccurrence(first.runtime);
  assert.equal(await first.runtime.terminal(occurrence), undefined);
  const replay = assertRejected(await first.runtime.execute(license, PAY), 'authority', 'spent');
  assert.doesNotMatch(replay.detail, /its outcome is in the journal/, 'it has no outcome yet');
  const recovered = onlyOne(await first.runtime.recover());
  assert.ok(recovered.kind === 'settled', JSON.stringify(recovered));
});

test('where values are not stored, what was thrown is not stored either', async () => {
  const world = invoiceWorld({ values: 'digest' });
  const { terminal } = await interrupt(world, throws('stage.observe'));
  assert.doesNotMatch(assertRejected(terminal, 'comparison', 'fault').detail, /thrown/);
});

test('a lease that cannot be ended hides neither the verdict nor what was thrown', async () => {
  let asked = 0;
  const pause = async (call: string) => {
    if (call !== 'ledgers.abandon') return;
    asked += 1;
    throw new FaultStruck('the store is busy');
  };
  const world = invoiceWorld({ pause });
  const first = await deploy(world);
  const license = await first.approve();
  world.arm(first.process, throws('adapter.stage', 1, 'after'));
  assert.match(
    ofKind('indeterminate', await first.runtime.execute(license, PAY)).gap,
    /a candidate is held/,
  );
  assert.equal(asked, 1);
  await first.runtime.close();
});
