// Goal: the adapter itself sends only what its permit is bound to, and a read-back says why it
// established nothing. Method: the adapter's own methods against a service on loopback that counts
// what arrives.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { draftPaymentOptions, paymentOptions } from '../../../examples/payment-service/adapter.ts';
import { draftHttp, mediatedHttp } from '../../../src/adapters/http/index.ts';
import type { Approval, PromotableAdapter, RemoteAdapter } from '../../../src/contract/adapter.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import { requestDigest } from '../../../src/crypto/digest.ts';
import type { OccurrenceId } from '../../../src/protocol/record.ts';
import { RawServer } from '../../http/raw-server.ts';
import { openRig, type Rig } from './rig.ts';

const OCCURRENCE = `occ_${'1'.repeat(40)}` as OccurrenceId;

const paying = (amount: number) => {
  const after = { payee: { is: 'acme' }, amount: { is: amount }, memo: { is: null } };
  const effect = {
    op: 'insert',
    target: 'payment',
    key: { id: { generated: 'payment' } },
    after,
    count: 1,
  };
  return { effects: [effect], requires: [] } as unknown as Approval;
};

async function openBank({ service: { origin, token } }: Rig) {
  const options = paymentOptions({ origin, token, account: 'main' });
  const opened = await mediatedHttp(options).open({
    name: 'bank',
    clock: systemClock,
    reached: unobserved,
  });
  return opened as RemoteAdapter;
}

test('only the request that its permit is bound to is sent, and no candidate is', async () => {
  await using rig = await openRig();
  const bank = await openBank(rig);
  const request = bank.buildRequest(paying(35), {});
  const { credentials } = await bank.survey();
  const send = (bound: object) =>
    bank.dispatch({ record: { occurrence: OCCURRENCE, bound }, credentials } as never, request);
  const stage = { candidate: requestDigest(request), evidence: 'e', observed: 'o' };
  for (const bound of [{ request: requestDigest(bank.buildRequest(paying(36), {})) }, stage]) {
    const { mayHaveSent } = await send(bound);
    assert.equal(mayHaveSent, false, JSON.stringify(bound));
  }
  assert.equal(rig.payments.length, 0);
  assert.deepEqual(await send({ request: requestDigest(request) }), { mayHaveSent: true });
  assert.equal(rig.payments.length, 1);
});

test('a read-back of an operation that is no longer configured says so', async () => {
  await using rig = await openRig();
  const bank = await openBank(rig);
  const request = { content: { operation: 'refund' } } as never;
  const { channels } = await bank.readBack(OCCURRENCE, request, paying(35));
  assert.ok(channels.length > 0);
  for (const report of channels) {
    assert.equal(
      report.kind === 'silent' && report.why,
      'which operation was requested is no longer known',
    );
  }
});

test('a time that was approved as "now" is checked by who sent the request, and is unknown to others', async () => {
  await using rig = await openRig();
  const [sender, other] = [await openBank(rig), await openBank(rig)];
  const { effects } = paying(35);
  const memo = { now: { withinMs: 1000 } };
  const timed = {
    effects: effects.map((effect) => ({ ...effect, after: { ...effect.after, memo } })),
    requires: [],
  } as unknown as Approval;
  const request = sender.buildRequest(paying(35), {});
  const { credentials } = await sender.survey();
  const record = { occurrence: OCCURRENCE, bound: { request: requestDigest(request) } };
  await sender.dispatch({ record, credentials } as never, request);
  const whys = async (bank: RemoteAdapter, approved: Approval) =>
    (await bank.readBack(OCCURRENCE, request, approved)).channels.map((report) =>
      report.kind === 'silent' ? report.why : 'answered',
    );
  const unknown = await whys(other, timed);
  assert.deepEqual(new Set(unknown), new Set(['when the request ran is no longer known']));
  for (const known of [await whys(sender, timed), await whys(other, paying(35))]) {
    assert.deepEqual(new Set(known), new Set(['answered']));
  }
});

test('a draft whose answer is lost is unknown, and not one that the service refused', async () => {
  await using server = await RawServer.start((socket) => socket.destroy());
  const options = draftPaymentOptions({
    origin: server.origin,
    token: 'pay-token',
    account: 'main',
  });
  const opened = await draftHttp(options).open({
    name: 'bank',
    clock: systemClock,
    reached: unobserved,
  });
  const bank = opened as PromotableAdapter;
  const { credentials } = await bank.survey();
  const action = { input: { orders: [{ id: 'p-1', payee: 'acme', amount: 35 }] } };
  const staged = await bank.stage(
    { sealed: { record: { occurrence: OCCURRENCE } } } as never,
    { credentials } as never,
    bank.parseAction(action),
  );
  assert.equal(staged.kind === 'failed' && staged.reason, 'draft-unknown');
  assert.equal(server.received.length, 1);
});
