// Goal: a service with drafts pays exactly what was approved or nothing, also when the answer to
// publishing is lost. Method: the payment service's drafts through the public runtime, with
// injected faults and changes by others.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { draftPaymentOptions } from '../../../examples/payment-service/adapter.ts';
import { draftHttp } from '../../../src/adapters/http/index.ts';
import type { Step } from '../../../src/contract/steps.ts';
import { insert } from '../../../src/protocol/draft.ts';
import { renderTerminal } from '../../../src/protocol/render-terminal.ts';
import { openRig, PAYMENT, type Rig } from './rig.ts';

const ORDER = { id: 'p-1', payee: 'acme', amount: 35, memo: null };
const REQUEST = { ...PAYMENT, effects: [insert('payment', ORDER)] };
const ACTION = { input: { orders: [ORDER] } };

async function start(rig: Rig, reached: (step: Step) => void = () => {}) {
  return await rig.start(
    { adapters: { bank: draftHttp(draftPaymentOptions(rig.place)) } },
    { reached },
  );
}

test('what was approved is drafted, compared, published and released', async () => {
  await using rig = await openRig();
  const runtime = await start(rig);
  const terminal = await runtime.execute(await rig.approve(runtime, REQUEST), ACTION);
  assert.equal(terminal.kind, 'committed', renderTerminal(terminal));
  assert.deepEqual([...rig.account.payments.keys()], ['p-1']);
  assert.equal(rig.account.drafts.size, 0);
  const released = await runtime.continuation(terminal, 'book').release(() => 'booked');
  assert.equal(released.kind, 'released');
});

test('anything else is rejected before it has any effect, and its draft is gone', async () => {
  await using rig = await openRig();
  const runtime = await start(rig);
  const more = { input: { orders: [ORDER, { ...ORDER, id: 'p-2' }] } };
  const terminal = await runtime.execute(await rig.approve(runtime, REQUEST), more);
  assert.equal(terminal.kind, 'rejected');
  assert.match(renderTerminal(terminal), /1 extra/);
  assert.deepEqual([rig.account.payments.size, rig.account.drafts.size], [0, 0]);
});

test('a change by others beneath the draft is refused by the service, and nothing is paid', async () => {
  await using rig = await openRig();
  const runtime = await start(rig, (step) => {
    if (step === 'path:gate-passed') rig.account.changePayee('globex', 'NL77', undefined);
  });
  const terminal = await runtime.execute(await rig.approve(runtime, REQUEST), ACTION);
  assert.equal(terminal.kind === 'rejected' && terminal.reason, 'not-published');
  assert.equal(rig.account.payments.size, 0);
});

for (const fault of ['drop-before', 'drop-after'] as const) {
  test(`a lost answer to publishing (${fault}) is settled by the publication key`, async () => {
    await using rig = await openRig();
    const runtime = await start(rig, (step) => {
      if (step === 'adapter:marker-written') rig.faults.arm(fault);
    });
    const terminal = await runtime.execute(await rig.approve(runtime, REQUEST), ACTION);
    assert.equal(
      terminal.kind,
      fault === 'drop-after' ? 'committed' : 'rejected',
      renderTerminal(terminal),
    );
    assert.equal(rig.account.payments.size, fault === 'drop-after' ? 1 : 0);
  });
}

test('a voided occurrence is never published, however late its process wakes up', async () => {
  await using rig = await openRig();
  const other = await start(rig);
  let recovering: Promise<unknown> = Promise.resolve();
  const runtime = await start(rig, (step) => {
    if (step === 'path:staged') recovering = other.recover({ now: true });
  });
  const license = await rig.approve(runtime, REQUEST);
  const terminal = await runtime.execute(license, ACTION);
  await recovering;
  const verdict = await other.terminal(terminal.occurrence);
  assert.equal(rig.account.payments.size, verdict?.kind === 'committed' ? 1 : 0);
  assert.equal(terminal.kind, verdict?.kind);
});

test('a draft that is gone, or that cannot be read, when it is observed is no outcome, and the verdict says so', async () => {
  for (const [says, harm] of [
    [/the draft is gone/, (rig: Rig) => rig.account.drafts.clear()],
    [/answered 503/, (rig: Rig) => Object.assign(rig.faults, { readsUnavailable: true })],
  ] as const) {
    await using rig = await openRig();
    const runtime = await start(rig, (step) => {
      if (step === 'path:staged') harm(rig);
    });
    const terminal = await runtime.execute(await rig.approve(runtime, REQUEST), ACTION);
    assert.equal(terminal.kind, 'rejected');
    assert.match(renderTerminal(terminal), says);
    assert.equal(rig.account.payments.size, 0);
  }
});

test('an order whose number JavaScript may have rounded is refused, and costs no license', async () => {
  await using rig = await openRig();
  const runtime = await start(rig);
  const license = await rig.approve(runtime, REQUEST);
  const rounded = { input: { orders: [{ ...ORDER, amount: 2 ** 53 }] } };
  const refused = await runtime.execute(license, rounded);
  assert.equal(refused.kind === 'rejected' && refused.reason, 'action-invalid');
  assert.match(renderTerminal(refused), /beyond 2\^53/);
  assert.equal((await runtime.execute(license, ACTION)).kind, 'committed');
});

test('a draft that was not even sent is told apart from one that the service refused', async () => {
  await using rig = await openRig();
  let account = 'main';
  const place = { origin: rig.service.origin, token: rig.service.token, account };
  const { service, ...options } = draftPaymentOptions(place);
  const value = () => `${rig.service.token}.${account}`;
  const bank = draftHttp({
    ...options,
    service: { ...service, credential: { header: 'Authorization', value } },
  });
  const reached = (step: Step) => {
    if (step === 'adapter:stage-opened') account = 'other';
  };
  const runtime = await rig.start({ adapters: { bank } });
  const license = await rig.approve(runtime, REQUEST);
  await runtime.close();
  const watched = await rig.open({ adapters: { bank } }, { reached });
  const terminal = await watched.execute(license, ACTION);
  assert.equal(
    terminal.kind === 'rejected' && terminal.reason,
    'not-sent',
    renderTerminal(terminal),
  );
});
