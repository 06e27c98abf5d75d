// Goal: what leaves a mediated gateway is what was approved, once, and only what can be found
// counts as an outcome. Method: a real payment service on loopback with injected faults, a real
// ledger file, the public runtime.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { paymentOptions } from '../../../examples/payment-service/adapter.ts';
import { mediatedHttp } from '../../../src/adapters/http/index.ts';
import { generated, insert, read, row, update } from '../../../src/protocol/draft.ts';
import { renderTerminal } from '../../../src/protocol/render-terminal.ts';
import { defineOperation } from '../../../src/runtime/operation.ts';
import { openRig, PAYMENT } from './rig.ts';

test('an approved payment is sent once, found by its key, committed and released once', async () => {
  await using rig = await openRig();
  const runtime = await rig.start();
  const license = await rig.approve(runtime);
  const terminal = await runtime.execute(license, {});
  assert.equal(terminal.kind, 'committed', renderTerminal(terminal));
  assert.deepEqual(rig.payments, [{ payee: 'acme', amount: 35, memo: null }]);
  assert.equal(rig.account.arrivals.get(terminal.occurrence), 1);
  const released = await runtime.continuation(terminal, 'book').release(() => 'booked');
  assert.deepEqual(released, { kind: 'released', value: 'booked' });
  assert.equal((await runtime.execute(license, {})).kind, 'rejected');
  assert.equal(rig.payments.length, 1);
});

test('the approver reads that a mediated change is not held and not rolled back', async () => {
  await using rig = await openRig();
  const runtime = await rig.start();
  const { rendering } = await runtime.prepare(PAYMENT);
  assert.match(rendering, /Sent once by the gateway and compared afterwards/);
});

test('a field that nobody approved never leaves the gateway: the agent cannot say anything about the request', async () => {
  await using rig = await openRig();
  const runtime = await rig.start();
  const license = await rig.approve(runtime);
  for (const action of [
    { memo: 'hidden' },
    { operation: 'pay' },
    [],
    'pay',
    { body: { amount: 1e6 } },
  ]) {
    const refused = await runtime.execute(license, action);
    assert.equal(refused.kind === 'rejected' && refused.reason, 'action-invalid');
  }
  assert.equal(rig.payments.length, 0);
  assert.equal((await runtime.execute(license, {})).kind, 'committed');
  assert.deepEqual(rig.payments, [{ payee: 'acme', amount: 35, memo: null }]);
});

test('an effect that the service adds is diverged and halts what depends on it', async () => {
  await using rig = await openRig();
  const runtime = await rig.start();
  const license = await rig.approve(runtime);
  rig.faults.arm('hidden-effect');
  const terminal = await runtime.execute(license, {});
  assert.equal(terminal.kind, 'diverged');
  assert.match(renderTerminal(terminal), /extra +\+ notice/);
  const released = await runtime.continuation(terminal, 'book').release(() => 'booked');
  assert.deepEqual(released, { kind: 'halted', why: 'diverged' });
});

for (const fault of ['drop-after', 'error-after', 'truncate-answer'] as const) {
  test(`a payment that was made although its answer is lost (${fault}) is found and committed, not sent again`, async () => {
    await using rig = await openRig();
    const runtime = await rig.start();
    const license = await rig.approve(runtime);
    rig.faults.arm(fault);
    const terminal = await runtime.execute(license, {});
    assert.equal(terminal.kind, 'committed');
    assert.equal(rig.payments.length, 1);
    assert.equal(rig.account.arrivals.get(terminal.occurrence), 1);
  });
}

for (const fault of ['drop-before', 'error-before', 'delay-effect'] as const) {
  test(`"not found" proves nothing (${fault}): indeterminate, halted, and never resent by recovery`, async () => {
    await using rig = await openRig();
    const runtime = await rig.start();
    const license = await rig.approve(runtime);
    rig.faults.arm(fault);
    const terminal = await runtime.execute(license, {});
    assert.equal(terminal.kind, 'indeterminate');
    const released = await runtime.continuation(terminal, 'book').release(() => 'booked');
    assert.deepEqual(released, { kind: 'halted', why: 'indeterminate' });
    for (let times = 0; times < 3; times += 1) {
      const [recovered] = await runtime.recover({ now: true });
      assert.equal(recovered?.kind, 'unresolved');
    }
    assert.equal(rig.account.arrivals.get(terminal.occurrence), 1);
    assert.equal(rig.payments.length, 0);
    rig.faults.settle();
    const [later] = await runtime.recover({ now: true });
    assert.equal(later?.kind, fault === 'delay-effect' ? 'settled' : 'unresolved');
    assert.equal(rig.payments.length, fault === 'delay-effect' ? 1 : 0);
    assert.equal(rig.account.arrivals.get(terminal.occurrence), 1);
  });
}

test('a service that cannot be reached was sent nothing: rejected, and nothing is left to settle', async () => {
  await using rig = await openRig();
  const runtime = await rig.start();
  const license = await rig.approve(runtime);
  await rig.service[Symbol.asyncDispose]();
  const terminal = await runtime.execute(license, {});
  assert.equal(
    terminal.kind === 'rejected' && `${terminal.at} ${terminal.reason}`,
    'dispatch not-sent',
  );
  assert.match(renderTerminal(terminal), /ECONNREFUSED/);
  assert.deepEqual(await runtime.recover({ now: true }), []);
});

test('a read-back that is not available is indeterminate and halts; recovery settles it by look-up', async () => {
  await using rig = await openRig();
  const runtime = await rig.start();
  const license = await rig.approve(runtime);
  rig.faults.readsUnavailable = true;
  const terminal = await runtime.execute(license, {});
  assert.equal(terminal.kind, 'indeterminate');
  assert.equal((await runtime.recover({ now: true }))[0]?.kind, 'unresolved');
  rig.faults.readsUnavailable = false;
  const [recovered] = await runtime.recover({ now: true });
  assert.equal(recovered?.kind, 'settled');
  assert.equal(recovered?.kind === 'settled' && recovered.terminal.kind, 'committed');
  assert.equal(rig.payments.length, 1);
});

test('a request that the service refuses under its key, for good, is rejected: nothing became durable', async () => {
  await using rig = await openRig();
  const runtime = await rig.start();
  const unknown = insert('payment', {
    id: generated('payment'),
    payee: 'nobody',
    amount: 35,
    memo: null,
  });
  const license = await rig.approve(runtime, { ...PAYMENT, effects: [unknown] });
  const terminal = await runtime.execute(license, {});
  assert.equal(terminal.kind, 'rejected');
  assert.equal(terminal.kind === 'rejected' && terminal.reason, 'refused-by-backend');
  assert.equal(rig.payments.length, 0);
});

test('a precondition travels as If-Match, and one that is broken meanwhile changes nothing', async () => {
  await using rig = await openRig();
  let changeNow = false;
  const runtime = await rig.startWatched((step) => {
    if (step === 'adapter:connected' && changeNow)
      rig.account.changePayee('acme', 'NL66', undefined);
  });
  const change = {
    ...PAYMENT,
    effects: [update('payee', { id: 'acme' }, { iban: ['NL01', 'NL09'] })],
    requires: [row('payee', { id: 'acme' }, { etag: '"v1"' })],
  };
  await assert.rejects(
    runtime.prepare({ ...change, requires: [] }),
    /is conditional: require "etag"/,
  );
  changeNow = true;
  const broken = await runtime.execute(await rig.approve(runtime, change), {});
  assert.equal(
    broken.kind === 'rejected' && broken.detail,
    'the service refused it: the payee has changed',
  );
  assert.equal(rig.account.payees.get('acme')?.iban, 'NL66');
  changeNow = false;
  const again = {
    ...change,
    task: 'again',
    effects: [update('payee', { id: 'acme' }, { iban: ['NL66', 'NL09'] })],
    requires: [row('payee', { id: 'acme' }, { etag: '"v2"' })],
  };
  const done = await runtime.execute(await rig.approve(runtime, again), {});
  assert.equal(done.kind, 'committed', renderTerminal(done));
  assert.equal(rig.account.payees.get('acme')?.iban, 'NL09');
});

test('state that changed since approval is found before anything is sent', async () => {
  await using rig = await openRig();
  const runtime = await rig.start();
  const license = await rig.approve(runtime, {
    ...PAYMENT,
    requires: [row('payee', { id: 'acme' }, { iban: 'NL01' })],
  });
  rig.account.changePayee('acme', 'NL99', undefined);
  const terminal = await runtime.execute(license, {});
  assert.equal(terminal.kind === 'rejected' && terminal.reason, 'precondition-broken');
  assert.equal(rig.payments.length, 0);
});

test('an outcome that no operation has, or that leaves a needed value open, cannot be prepared', async () => {
  await using rig = await openRig();
  const runtime = await rig.start();
  const notice = insert('notice', { id: generated('n'), payee: 'acme', text: 'x' });
  await assert.rejects(
    runtime.prepare({ ...PAYMENT, effects: [notice] }),
    /no operation has these effects/,
  );
  await assert.rejects(
    runtime.prepare({ ...PAYMENT, effects: [...PAYMENT.effects, ...PAYMENT.effects] }),
    {
      code: 'ERR_EM_MANIFEST_INVALID',
    },
  );
});

test('an operation contract computes the approval from what the service says, and is released by it', async () => {
  await using rig = await openRig();
  const refill = defineOperation({
    name: 'change-iban',
    adapter: 'bank',
    input: {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate: (value: unknown) => ({ value: value as string }),
      },
    },
    reads: (id) => [read('payee', { id })],
    approve: (id, [payee]) => ({
      effects: [update('payee', { id }, { iban: [String(payee?.iban), 'NL42'] })],
      requires: [row('payee', { id }, { etag: String(payee?.etag) })],
    }),
    action: () => ({}),
  });
  const runtime = await rig.start({ operations: { 'change-iban': refill } });
  const proposal = await runtime.propose('change-iban', 'acme', { task: 'iban', planRevision: 1 });
  const terminal = await runtime.execute(rig.sign(proposal), {});
  assert.equal(terminal.kind, 'committed', renderTerminal(terminal));
  assert.equal(rig.account.payees.get('acme')?.iban, 'NL42');
  await assert.rejects(runtime.prepare({ ...PAYMENT, effects: [] }), {
    code: 'ERR_EM_MANIFEST_INVALID',
  });
});

test('admission refuses a service without exclusive credential, by name', async () => {
  await using rig = await openRig('MEDIATED', { open: true });
  await assert.rejects(rig.start(), /failed the admission probe exclusive-credential/);
});

test('admission refuses a service that does not honour the key, by name', async () => {
  await using rig = await openRig('MEDIATED', { honoursKeys: false });
  await assert.rejects(rig.start(), /failed the admission probe idempotent-service/);
});

test('admission refuses requests that are not derived from the outcome alone, by name', async () => {
  await using rig = await openRig();
  const options = paymentOptions(rig.place);
  const { pay } = options.operations;
  assert.ok(pay);
  let calls = 0;
  const request: typeof pay.request = (plan) => {
    calls += 1;
    return { ...pay.request(plan), headers: { 'x-call': String(calls) } };
  };
  const adapters = { bank: mediatedHttp({ ...options, operations: { pay: { ...pay, request } } }) };
  await assert.rejects(rig.start({ adapters }), /failed the admission probe deterministic-request/);
});

test('an operation without idempotency mechanism is refused before anything is sent', async () => {
  await using rig = await openRig();
  const options = paymentOptions(rig.place);
  const { pay } = options.operations;
  assert.ok(pay);
  const { idempotency: _, ...without } = pay;
  const adapters = {
    bank: mediatedHttp({ ...options, operations: { pay: without as typeof pay } }),
  };
  await assert.rejects(rig.start({ adapters }), /"pay" has no idempotency mechanism/);
  assert.equal(rig.account.requests.size, 0);
});

test('however often a deployment starts, a service is tried once and keeps one control entry', async () => {
  await using rig = await openRig();
  for (let times = 0; times < 3; times += 1) await (await rig.start()).close();
  assert.equal(rig.account.payments.size, 1);
  assert.equal(rig.service.strangers, 2);
});
