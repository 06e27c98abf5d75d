// Goal: an opaque service is asked once, within limits, and judged by evidence; nothing more is
// promised. Method: the payment service without the gateway's promises, with injected faults,
// through the public runtime.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { renderTerminal } from '../../../src/protocol/render-terminal.ts';
import { openRig, PAYING, PAYMENT } from './rig.ts';

test('what the agent asks for is sent once, and committed when it is what was approved', async () => {
  await using rig = await openRig('OPAQUE', { open: true });
  const runtime = await rig.start();
  const terminal = await runtime.execute(await rig.approve(runtime), PAYING);
  assert.equal(terminal.kind, 'committed', renderTerminal(terminal));
  assert.equal(rig.payments.length, 1);
});

test('the approver reads that nothing is rolled back', async () => {
  await using rig = await openRig('OPAQUE');
  const runtime = await rig.start();
  const { rendering } = await runtime.prepare(PAYMENT);
  assert.match(rendering, /not controlled here, and compared afterwards: no promise of rollback/);
});

test('an amount that may have been rounded is refused before the claim, and nothing is sent', async () => {
  await using rig = await openRig('OPAQUE');
  const runtime = await rig.start();
  const license = await rig.approve(runtime);
  const rounded = { operation: 'pay', input: { payee: 'acme', amount: 2 ** 53 } };
  const refused = await runtime.execute(license, rounded);
  assert.ok(refused.kind === 'rejected');
  assert.deepEqual([refused.at, refused.reason], ['action', 'action-invalid']);
  assert.match(refused.detail, /BigInt/);
  assert.equal(rig.payments.length, 0);
  assert.equal((await runtime.execute(license, PAYING)).kind, 'committed');
});

test('another amount than the approved one is diverged: it happened, and halts', async () => {
  await using rig = await openRig('OPAQUE');
  const runtime = await rig.start();
  const terminal = await runtime.execute(await rig.approve(runtime), {
    operation: 'pay',
    input: { payee: 'acme', amount: 3500 },
  });
  assert.equal(terminal.kind, 'diverged');
  assert.equal(rig.payments[0]?.amount, 3500);
  const released = await runtime.continuation(terminal, 'book').release(() => 'booked');
  assert.deepEqual(released, { kind: 'halted', why: 'diverged' });
});

test('an extra effect is diverged and halts dependents', async () => {
  await using rig = await openRig('OPAQUE');
  const runtime = await rig.start();
  const license = await rig.approve(runtime);
  rig.faults.arm('hidden-effect');
  const terminal = await runtime.execute(license, PAYING);
  assert.equal(terminal.kind, 'diverged');
  assert.match(renderTerminal(terminal), /1 difference: 1 extra/);
  const released = await runtime.continuation(terminal, 'book').release(() => 'booked');
  assert.deepEqual(released, { kind: 'halted', why: 'diverged' });
});

test('fields, operations and forms that were not registered are refused before the claim', async () => {
  await using rig = await openRig('OPAQUE');
  const runtime = await rig.start();
  const license = await rig.approve(runtime);
  const inputs = [
    {},
    { operation: 'refund', input: {} },
    { operation: 'pay', input: { payee: 'acme', amount: 35, callback: 'http://elsewhere' } },
    { operation: 'pay', input: { payee: 'acme', amount: 35 }, url: 'http://elsewhere' },
    { operation: '__proto__', input: {} },
    { operation: 'pay', input: { payee: 'acme', amount: () => 1 } },
  ];
  for (const input of inputs) {
    const refused = await runtime.execute(license, input);
    assert.equal(refused.kind === 'rejected' && refused.reason, 'action-invalid');
  }
  assert.equal(rig.account.arrivals.size, 0);
  assert.equal((await runtime.execute(license, PAYING)).kind, 'committed');
});

test('a lost response and an unavailable read-back are indeterminate, and recovery finds out without sending', async () => {
  await using rig = await openRig('OPAQUE');
  const runtime = await rig.start();
  const license = await rig.approve(runtime);
  rig.faults.arm('drop-after');
  rig.faults.readsUnavailable = true;
  const terminal = await runtime.execute(license, PAYING);
  assert.equal(terminal.kind, 'indeterminate');
  rig.faults.readsUnavailable = false;
  const [recovered] = await runtime.recover({ now: true });
  assert.equal(recovered?.kind === 'settled' && recovered.terminal.kind, 'committed');
  assert.equal(rig.account.arrivals.get(terminal.occurrence), 1);
});
