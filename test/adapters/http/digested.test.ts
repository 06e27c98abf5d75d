// Goal: where values are stored as digests, no message of a service or of a configured function
// brings them back. Method: functions and services that quote a secret value wherever they can say
// something; then every stored byte and every receipt is searched for it.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { draftPaymentOptions } from '../../../examples/payment-service/adapter.ts';
import { draftHttp, mediatedHttp, opaqueHttp } from '../../../src/adapters/http/index.ts';
import type { AdapterFactory } from '../../../src/contract/adapter.ts';
import { EffectMatchError } from '../../../src/errors.ts';
import { insert } from '../../../src/protocol/draft.ts';
import type { Value } from '../../../src/protocol/index.ts';
import { startEchoService } from './echo-service.ts';
import { openRig, PAYMENT, type Rig } from './rig.ts';

const PIN = '4711-8072';
const quoting = () => {
  throw new Error(`the PIN is ${PIN}`);
};

/** Nothing that this deployment kept or says about the attempt contains the secret. */
async function assertUnsaid(rig: Rig, said: unknown): Promise<void> {
  assert.ok(!JSON.stringify(said).includes(PIN), JSON.stringify(said));
  for (const file of readdirSync(rig.folder)) {
    assert.ok(!readFileSync(join(rig.folder, file)).includes(PIN), `${file} contains the value`);
  }
}

const target = { columns: ['id', 'pin'], key: ['id'] };
const approved = { ...PAYMENT, effects: [insert('card', { id: 1, pin: PIN })] };

type Found = Parameters<typeof opaqueHttp>[0]['operations'][string]['readBack']['found'];

function cardsAt(url: string, found: Found, values: 'plain' | 'digest' = 'digest'): AdapterFactory {
  return opaqueHttp({
    service: { url, backend: 'cards', credential: { header: 'x-key', value: 'secret' } },
    targets: { card: target },
    values,
    operations: {
      issue: {
        method: 'POST',
        path: '/cards',
        idempotency: { header: 'key' },
        input: (said) => said,
        request: (input) => ({ body: input }),
        readBack: { path: '/requests/{key}', found, covers: ['card'] },
      },
    },
  });
}

const READINGS: Readonly<Record<string, Found>> = {
  'throws it': quoting,
  'throws it with a code': () => {
    throw new EffectMatchError('ERR_EM_ADAPTER_UNAVAILABLE', `the PIN is ${PIN}`);
  },
  'says that the service refused it': () => ({ records: [], refused: `no card with PIN ${PIN}` }),
  'names a column by it': () => ({
    records: [{ op: 'insert', target: 'card', key: { id: 1 }, before: null, after: { [PIN]: 1 } }],
  }),
};

for (const [name, found] of Object.entries(READINGS)) {
  test(`a read-back that ${name} leaves no value behind`, async () => {
    await using rig = await openRig();
    await using service = await startEchoService();
    const runtime = await rig.start({ adapters: { bank: cardsAt(service.origin, found) } });
    const license = await rig.approve(runtime, approved);
    const terminal = await runtime.execute(license, { operation: 'issue', input: { pin: 1 } });
    assert.match(terminal.kind, /indeterminate|rejected/);
    await runtime.recover({ now: true });
    await runtime.close();
    await assertUnsaid(rig, [terminal]);
  });
}

test('where values are stored, the message of a read-back is kept, because it says what to repair', async () => {
  await using rig = await openRig();
  await using service = await startEchoService();
  const runtime = await rig.start({
    adapters: { bank: cardsAt(service.origin, quoting, 'plain') },
  });
  const license = await rig.approve(runtime, approved);
  const terminal = await runtime.execute(license, { operation: 'issue', input: { pin: 1 } });
  assert.ok(JSON.stringify(terminal).includes(PIN));
});

test('a request that cannot be built leaves no value behind', async () => {
  await using rig = await openRig();
  await using service = await startEchoService();
  let executing = false;
  const bank = mediatedHttp({
    service: {
      url: service.origin,
      backend: 'cards',
      credential: { header: 'x-key', value: 'secret' },
    },
    targets: { card: target },
    values: 'digest',
    operations: {
      issue: {
        effects: [{ op: 'insert', target: 'card' }],
        method: 'POST',
        path: '/cards',
        idempotency: { header: 'key' },
        request: ({ effect: { after } }) => {
          if (executing)
            throw new EffectMatchError(
              'ERR_EM_MANIFEST_INVALID',
              `no card has PIN ${String(after.pin)}`,
            );
          return { body: { pin: after.pin ?? null } };
        },
        sample: [{ op: 'insert', target: 'card', key: {}, before: {}, after: { pin: 'x' } }],
        identifier: ['id'],
        readBack: { path: '/requests/{key}', found: () => undefined, covers: ['card'] },
      },
    },
  });
  const runtime = await rig.start({ adapters: { bank } });
  const license = await rig.approve(runtime, approved);
  executing = true;
  const terminal = await runtime.execute(license, {});
  assert.equal(terminal.kind === 'rejected' && terminal.reason, 'request-impossible');
  await runtime.close();
  await assertUnsaid(rig, [terminal]);
});

const ORDER = { id: 'p-1', payee: 'acme', amount: 35, memo: PIN };

for (const place of ['standing', 'base', 'base and standing'] as const) {
  test(`a draft whose ${place} quotes a value leaves none behind`, async () => {
    await using rig = await openRig();
    const options = draftPaymentOptions(rig.place);
    let executing = false;
    const standing = (body: Value) =>
      executing && place !== 'base' ? quoting() : options.publication.standing(body);
    const content = (body: Value) => {
      const read = options.draft.content(body);
      return executing && place !== 'standing'
        ? { ...read, base: { before: PIN, now: place === 'base' ? 'x' : PIN } }
        : read;
    };
    const bank = draftHttp({
      ...options,
      values: 'digest',
      draft: { ...options.draft, content },
      publication: { ...options.publication, standing },
    });
    const runtime = await rig.start({ adapters: { bank } });
    const license = await rig.approve(runtime, { ...PAYMENT, effects: [insert('payment', ORDER)] });
    executing = true;
    const terminal = await runtime.execute(license, { input: { orders: [ORDER] } });
    assert.notEqual(terminal.kind, 'committed');
    await runtime.recover({ now: true });
    await runtime.close();
    await assertUnsaid(rig, [terminal]);
  });
}
