// Goal: a live service gets samples only on request or before the first claim, once per
// fingerprint; a service that fails its trial is refused without spending a license. Method:
// services on loopback that count every request; runtimes that are opened again and again on one
// ledger.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { draftPaymentOptions, paymentOptions } from '../../../examples/payment-service/adapter.ts';
import { draftHttp, mediatedHttp } from '../../../src/adapters/http/index.ts';
import type { Step } from '../../../src/contract/steps.ts';
import { insert } from '../../../src/protocol/draft.ts';
import { renderTerminal } from '../../../src/protocol/render-terminal.ts';
import { type EchoService, startEchoService } from './echo-service.ts';
import { openRig, PAYMENT, type Rig } from './rig.ts';

const trialsOf = (rig: Rig) => ({
  strangers: rig.service.strangers,
  samples: rig.account.arrivals.size,
});
const reasonOf = (terminal: {
  readonly kind: string;
  readonly at?: string;
  readonly reason?: string;
}) => (terminal.kind === 'rejected' ? `${terminal.at} ${terminal.reason}` : terminal.kind);

test('opening, preparing and recovering send a service nothing; the first execution has it tried, and no later one', async () => {
  await using rig = await openRig();
  const first = await rig.open();
  const licenses = [await rig.approve(first), await rig.approve(first), await rig.approve(first)];
  await first.recover({ now: true });
  assert.deepEqual(trialsOf(rig), { strangers: 0, samples: 0 });
  const [one, two] = await Promise.all(
    licenses.slice(0, 2).map((license) => first.execute(license, {})),
  );
  assert.deepEqual([one?.kind, two?.kind], ['committed', 'committed']);
  // Two operations without the credential; two samples and two payments with it.
  assert.deepEqual(trialsOf(rig), { strangers: 2, samples: 4 });
  await first.close();
  const second = await rig.open();
  assert.equal((await second.execute(licenses[2], {})).kind, 'committed');
  assert.deepEqual(await second.prove('bank'), { kind: 'proven', tried: 'earlier' });
  assert.deepEqual(trialsOf(rig), { strangers: 2, samples: 5 });
});

test('another credential or another operation has the service tried again, and the old ones stay proven', async () => {
  await using rig = await openRig();
  const options = paymentOptions(rig.place);
  const { pay } = options.operations;
  assert.ok(pay);
  const renamed = {
    ...options,
    operations: { ...options.operations, pay: { ...pay, identifier: ['id' as const] } },
  };
  const reworded = {
    ...options,
    operations: {
      pay: { ...pay, request: (plan: Parameters<typeof pay.request>[0]) => pay.request(plan) },
    },
  };
  const tries = async (bank: ReturnType<typeof mediatedHttp>) => {
    const before = rig.service.strangers;
    const runtime = await rig.open({ adapters: { bank } });
    assert.equal((await runtime.prove('bank')).kind, 'proven');
    await runtime.close();
    return rig.service.strangers - before;
  };
  assert.equal(await tries(mediatedHttp(options)), 2);
  assert.equal(await tries(mediatedHttp(renamed)), 0, 'the same in other words');
  assert.equal(await tries(mediatedHttp(paymentOptions({ ...rig.place, account: 'other' }))), 2);
  assert.equal(await tries(mediatedHttp(reworded)), 1);
  assert.equal(await tries(mediatedHttp(options)), 0);
});

for (const [name, broken] of Object.entries({
  open: { open: true },
  forgetful: { honoursKeys: false },
})) {
  test(`a service that is ${name} is refused before the claim, and executions do not send it samples again and again`, async () => {
    await using rig = await openRig('MEDIATED', broken);
    const runtime = await rig.open();
    const license = await rig.approve(runtime);
    const first = await runtime.execute(license, {});
    assert.equal(reasonOf(first), 'authority service-unproven');
    assert.match(
      renderTerminal(first),
      /failed the admission probe (exclusive-credential|idempotent-service)/,
    );
    const payments = rig.account.payments.size;
    for (let times = 0; times < 3; times += 1) {
      assert.equal(reasonOf(await runtime.execute(license, {})), 'authority service-unproven');
    }
    const later = await rig.open();
    assert.match(
      renderTerminal(await later.execute(license, {})),
      /have it tried again: effectmatch doctor/,
    );
    assert.equal(rig.account.payments.size, payments);
    assert.equal(rig.payments.length, 0);
    assert.equal((await later.prove('bank')).kind, 'unproven');
  });
}

const putAt = ({ origin }: EchoService) =>
  mediatedHttp({
    service: { url: origin, backend: 'places', credential: { header: 'x-key', value: 'secret' } },
    targets: { place: { columns: ['id', 'at'], key: ['id'] } },
    operations: {
      put: {
        effects: [{ op: 'insert', target: 'place' }],
        method: 'POST',
        path: '/put',
        idempotency: { header: 'key' },
        request: ({ effect: { after } }) => ({ body: { at: after.at ?? null } }),
        sample: [{ op: 'insert', target: 'place', key: {}, before: {}, after: { at: 0 } }],
        identifier: ['id'],
        readBack: {
          path: '/requests/{key}',
          found: (body) => ({
            records: [
              { op: 'insert', target: 'place', key: { id: 1 }, before: null, after: body as never },
            ],
          }),
          covers: ['place'],
        },
      },
    },
  });

for (const trouble of ['open', 'silent'] as const) {
  test(`a license that was refused because its service was ${trouble} is good when the service is repaired`, async () => {
    await using rig = await openRig();
    await using service = await startEchoService();
    const runtime = await rig.open({ adapters: { bank: putAt(service) } });
    const license = await rig.approve(runtime, {
      ...PAYMENT,
      effects: [insert('place', { id: 1, at: 1 })],
    });
    service.trouble = trouble;
    assert.equal(reasonOf(await runtime.execute(license, {})), 'authority service-unproven');
    service.trouble = 'none';
    if (trouble === 'open')
      assert.deepEqual(await runtime.prove('bank'), { kind: 'proven', tried: 'now' });
    const terminal = await runtime.execute(license, {});
    assert.equal(terminal.kind, 'committed', renderTerminal(terminal));
  });
}

test('a credential that comes after the trial and before certification is not used', async () => {
  await using rig = await openRig();
  let account = 'main';
  const { service, ...options } = paymentOptions(rig.place);
  const value = () => `${rig.service.token}.${account}`;
  const bank = mediatedHttp({
    ...options,
    service: { ...service, credential: { header: 'Authorization', value } },
  });
  const reached = (step: Step) => {
    if (step === 'path:claimed') account = 'other';
  };
  const runtime = await rig.open({ adapters: { bank } }, { reached });
  const terminal = await runtime.execute(await rig.approve(runtime), {});
  assert.equal(reasonOf(terminal), 'boundary service-unproven', renderTerminal(terminal));
  assert.equal(rig.service.account('other').arrivals.size, 0);
});

test('a service with drafts keeps none of a runtime that is only opened, and is tried once', async () => {
  await using rig = await openRig();
  const order = { id: 'p-1', payee: 'acme', amount: 35, memo: null };
  let created = 0;
  const options = draftPaymentOptions(rig.place);
  const { create } = options.draft;
  const counting = {
    ...create,
    request: (input: Parameters<typeof create.request>[0]) => {
      created += 1;
      return create.request(input);
    },
  };
  const bank = draftHttp({ ...options, draft: { ...options.draft, create: counting } });
  const first = await rig.open({ adapters: { bank } });
  const license = await rig.approve(first, { ...PAYMENT, effects: [insert('payment', order)] });
  assert.equal(created, 0);
  const terminal = await first.execute(license, { input: { orders: [order] } });
  assert.equal(terminal.kind, 'committed', renderTerminal(terminal));
  const tried = created;
  assert.ok(tried > 1);
  await first.close();
  const second = await rig.open({ adapters: { bank } });
  const again = { ...order, id: 'p-2' };
  const next = await rig.approve(second, {
    ...PAYMENT,
    task: 'again',
    effects: [insert('payment', again)],
  });
  assert.equal((await second.execute(next, { input: { orders: [again] } })).kind, 'committed');
  assert.equal(created, tried + 1);
});

for (const [statuses, says] of [
  [[401], /answered 401 to the sample of operation "put"; check the credential$/],
  [[403], /answered 403 to the sample of operation "put"; check the credential$/],
  [
    [422],
    /answered 422 to the sample of operation "put"; its sample must be a request that the service accepts$/,
  ],
  [[300], /answered 300 to the sample/],
  [[201, 409], /failed the admission probe idempotent-service: (?!the service answered)/],
] as const) {
  test(`a service that answers the same sample with ${statuses.join(' and then ')} is unproven for that reason`, async () => {
    await using rig = await openRig();
    await using service = await startEchoService();
    service.statuses.push(...statuses);
    const runtime = await rig.open({ adapters: { bank: putAt(service) } });
    const proof = await runtime.prove('bank');
    assert.match(proof.kind === 'unproven' ? proof.why : proof.kind, says);
  });
}
