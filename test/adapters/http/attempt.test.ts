// Goal: a request leaves only with the credential that its own attempt was certified with, and only
// while its lease lasts, whatever else the process does meanwhile. Method: the payment service on
// loopback; between two steps the credential is rotated and another survey is made, or time passes
// while the clock of the machine is set back.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  draftPaymentOptions,
  opaquePaymentOptions,
  paymentOptions,
} from '../../../examples/payment-service/adapter.ts';
import { draftHttp, mediatedHttp, opaqueHttp } from '../../../src/adapters/http/index.ts';
import type { AdapterFactory } from '../../../src/contract/adapter.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import type { Step } from '../../../src/contract/steps.ts';
import { insert } from '../../../src/protocol/draft.ts';
import { renderTerminal } from '../../../src/protocol/render-terminal.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { openRig, PAYING, PAYMENT, type Rig } from './rig.ts';

const ORDER = { id: 'p-1', payee: 'acme', amount: 35, memo: null };
const DRAFTED = { ...PAYMENT, effects: [insert('payment', ORDER)] };

interface Way {
  readonly name: string;
  readonly make: (rig: Rig, credential: () => string) => AdapterFactory;
  readonly request: typeof PAYMENT;
  readonly action: unknown;
  /** Between the attempt's own survey and the request that it is for. */
  readonly step: Step;
}

const rotating = <O extends { readonly service: object }>(options: O, value: () => string): O => ({
  ...options,
  service: { ...options.service, credential: { header: 'Authorization', value } },
});

const draft = {
  make: (rig: Rig, value: () => string) =>
    draftHttp(rotating(draftPaymentOptions(rig.place), value)),
  request: DRAFTED,
  action: { input: { orders: [ORDER] } },
};

const WAYS: readonly Way[] = [
  {
    name: 'a mediated request',
    make: (rig, value) => mediatedHttp(rotating(paymentOptions(rig.place), value)),
    request: PAYMENT,
    action: {},
    step: 'path:permit-consumed',
  },
  {
    name: 'an opaque request',
    make: (rig, value) => opaqueHttp(rotating(opaquePaymentOptions(rig.place), value)),
    request: PAYMENT,
    action: PAYING,
    step: 'path:permit-consumed',
  },
  { name: 'the publication of a draft', ...draft, step: 'path:gate-passed' },
];

for (const way of [
  ...WAYS,
  { name: 'the creation of a draft', ...draft, step: 'path:certified' as const },
]) {
  test(`${way.name} does not leave with a credential that others had surveyed meanwhile`, async () => {
    await using rig = await openRig();
    let account = 'main';
    let runtime: Runtime | undefined;
    const reached = (step: Step) => {
      if (step !== way.step || runtime === undefined) return;
      account = 'other';
      void runtime.survey('bank');
    };
    const bank = way.make(rig, () => `${rig.service.token}.${account}`);
    runtime = await rig.start({ adapters: { bank } }, { reached });
    const terminal = await runtime.execute(await rig.approve(runtime, way.request), way.action);
    assert.equal(terminal.kind, 'rejected', renderTerminal(terminal));
    assert.match(renderTerminal(terminal), /the credential is not the one that was certified/);
    const other = rig.service.account('other');
    assert.deepEqual([other.arrivals.size, other.payments.size, other.drafts.size], [0, 0, 0]);
    assert.equal(rig.payments.length, 0);
  });
}

for (const way of WAYS) {
  for (const step of [way.step, 'adapter:connected'] as const) {
    test(`${way.name} is not sent when its lease ran out at ${step}, although the clock was set back`, async () => {
      await using rig = await openRig();
      let slept = 0;
      let armed = false;
      const clock = {
        now: () => systemClock.now() - 2 * slept,
        monotonic: () => systemClock.monotonic() + slept,
      };
      const reached = (at: Step) => {
        if (at === way.step) armed = true;
        if (armed && at === step) slept = 60_000;
      };
      const bank = way.make(rig, () => `${rig.service.token}.main`);
      const runtime = await rig.start({ adapters: { bank }, leaseMs: 30_000 }, { reached, clock });
      const terminal = await runtime.execute(await rig.approve(runtime, way.request), way.action);
      assert.equal(
        terminal.kind === 'rejected' && terminal.reason,
        'not-sent',
        renderTerminal(terminal),
      );
      assert.equal(rig.payments.length, 0);
    });
  }

  test(`${way.name} cannot be configured to take longer than the lease`, async () => {
    await using rig = await openRig();
    const bank = way.make(rig, () => `${rig.service.token}.main`);
    for (const leaseMs of [5000, 4999]) {
      await assert.rejects(rig.start({ adapters: { bank }, leaseMs }), {
        code: 'ERR_EM_CONFIG_INVALID',
        message: /timeoutMs \(5000\) must be below leaseMs/,
      });
    }
    await rig.start({ adapters: { bank }, leaseMs: 5001 });
  });
}

test('the timeout that is used unless said otherwise must be below the lease too', async () => {
  await using rig = await openRig();
  const { service, ...options } = paymentOptions(rig.place);
  const { timeoutMs: _, ...without } = service;
  const bank = mediatedHttp({ ...options, service: without });
  await assert.rejects(rig.start({ adapters: { bank }, leaseMs: 10_000 }), {
    code: 'ERR_EM_CONFIG_INVALID',
  });
});

test('a publication whose answer was lost is not settled on the account of another credential', async () => {
  await using rig = await openRig();
  let account = 'main';
  const reached = (step: Step) => {
    if (step === 'path:gate-passed') rig.faults.arm('drop-after');
    if (step === 'path:promoted') account = 'other';
  };
  const bank = draft.make(rig, () => `${rig.service.token}.${account}`);
  const runtime = await rig.start({ adapters: { bank } }, { reached });
  const terminal = await runtime.execute(await rig.approve(runtime, draft.request), draft.action);
  assert.equal(rig.payments.length, 1);
  assert.equal(terminal.kind, 'indeterminate', renderTerminal(terminal));
  const [open] = await runtime.recover({ now: true });
  assert.notEqual(open?.kind, 'settled', JSON.stringify(open));
  account = 'main';
  const [settled] = await runtime.recover({ now: true });
  assert.ok(settled?.kind === 'settled');
  assert.equal(settled.terminal.kind, 'committed');
});

test('a draft is read and deleted with no other credential than it was created with', async () => {
  await using rig = await openRig();
  let account = 'main';
  const reached = (at: Step) => {
    if (at !== 'path:staged') return;
    account = 'other';
    const [[id, drafted] = assert.fail()] = rig.account.drafts;
    rig.service.account('other').drafts.set(id, drafted);
  };
  const bank = draft.make(rig, () => `${rig.service.token}.${account}`);
  const runtime = await rig.start({ adapters: { bank } }, { reached });
  const terminal = await runtime.execute(await rig.approve(runtime, draft.request), draft.action);
  assert.equal(terminal.kind === 'rejected' && terminal.at, 'comparison', renderTerminal(terminal));
  assert.equal(
    rig.service.account('other').drafts.size,
    1,
    'the draft of the other account is left alone',
  );
  assert.equal(rig.payments.length, 0);
  await runtime.close();
});

for (const way of WAYS) {
  test(`${way.name}: whenever the credential cannot be had, the attempt ends with a verdict or spends nothing`, async () => {
    for (let nth = 1; nth <= 8; nth += 1) {
      await using rig = await openRig();
      let asked = Number.NEGATIVE_INFINITY;
      const bank = way.make(rig, () => {
        asked += 1;
        if (asked === nth) throw new Error('the vault is closed');
        return `${rig.service.token}.main`;
      });
      const runtime = await rig.start({ adapters: { bank } });
      const license = await rig.approve(runtime, way.request);
      asked = 0;
      const terminal = await runtime.execute(license, way.action).catch(() => undefined);
      const claims = (await runtime.ledgers.journal()).filter(({ kind }) => kind === 'claim');
      assert.equal(claims.length, terminal === undefined ? 0 : 1, `at call ${nth}`);
      if (terminal?.kind === 'rejected') assert.equal(rig.payments.length, 0);
    }
  });
}

test('a service that takes longer to be tried than a lease lasts does not cost the license', async () => {
  await using rig = await openRig();
  let slept = 0;
  const clock = {
    now: () => systemClock.now() + slept,
    monotonic: () => systemClock.monotonic() + slept,
  };
  const reached = (step: Step) => {
    if (step === 'adapter:connected' && slept === 0) slept = 60_000;
  };
  const runtime = await rig.open({ leaseMs: 30_000 }, { reached, clock });
  const terminal = await runtime.execute(await rig.approve(runtime), {});
  assert.equal(slept, 60_000);
  assert.equal(terminal.kind, 'committed', renderTerminal(terminal));
});
