// Goal: an approved number matches what a service says about it, however either of them writes it.
// Method: a service on loopback that gives back the very text it was sent, or another text of the
// same number.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mediatedHttp, opaqueHttp } from '../../../src/adapters/http/index.ts';
import { fillPath } from '../../../src/http/content.ts';
import { normaliseRecord } from '../../../src/http/registered.ts';
import { insert, read, row, update } from '../../../src/protocol/draft.ts';
import type { ChangeRecord, Value } from '../../../src/protocol/index.ts';
import { renderTerminal } from '../../../src/protocol/render-terminal.ts';
import { startEchoService } from './echo-service.ts';
import { openRig, PAYMENT } from './rig.ts';

const NUMBERS = [
  0.1 + 0.2,
  52.520006599999995,
  13.404953999999998,
  3.3333333333333335e-11,
  2e-310,
  -0,
  5e-7,
  35.5,
];

/** How others write the same number. */
const SPELLINGS: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => Number(text).toExponential(),
  (text) => (/[.e]/.test(text) ? text : `${text}.0`),
];

const readBack = {
  path: '/requests/{key}',
  found: (body: Value) => {
    const { at, more } = body as { readonly at: Value; readonly more: Value };
    const after = { at, more };
    const records: readonly ChangeRecord[] = [
      { op: 'insert', target: 'place', key: { id: 1 }, before: null, after },
    ];
    return { records };
  },
  covers: ['place'],
};
const targets = { place: { columns: ['id', 'at', 'more'], key: ['id'] } };

for (const [index, spell] of SPELLINGS.entries()) {
  test(`an approved double is found again as it was approved, spelling ${index + 1}`, async () => {
    await using rig = await openRig();
    await using service = await startEchoService(spell);
    const bank = opaqueHttp({
      service: {
        url: service.origin,
        backend: 'places',
        credential: { header: 'x-key', value: 'secret' },
      },
      targets,
      operations: {
        put: {
          method: 'POST',
          path: '/put',
          idempotency: { header: 'key' },
          input: (said) => said,
          readBack,
          request: (input) => ({ body: input }),
        },
      },
    });
    const runtime = await rig.start({ adapters: { bank } });
    for (const number of NUMBERS) {
      const approved = insert('place', {
        id: 1,
        at: number,
        more: { list: [number, { deep: number }] },
      });
      const license = await rig.approve(runtime, {
        ...PAYMENT,
        effects: [approved],
        continuations: [],
      });
      const sent = {
        at: number === 0 ? 0 : number,
        more: { list: [number === 0 ? 0 : number, { deep: number === 0 ? 0 : number }] },
      };
      const terminal = await runtime.execute(license, { operation: 'put', input: sent });
      assert.equal(terminal.kind, 'committed', `${number}: ${renderTerminal(terminal)}`);
    }
  });
}

test('a mediated request carries an approved double as it is, and its read-back is not diverged', async () => {
  await using rig = await openRig();
  await using service = await startEchoService((text) => Number(text).toExponential());
  const bank = mediatedHttp({
    service: {
      url: service.origin,
      backend: 'places',
      credential: { header: 'x-key', value: 'secret' },
    },
    targets,
    operations: {
      put: {
        effects: [{ op: 'insert', target: 'place' }],
        method: 'POST',
        path: '/put',
        idempotency: { header: 'key' },
        request: ({ effect: { after } }) => ({
          body: { at: after.at ?? null, more: after.more ?? null },
        }),
        sample: [
          { op: 'insert', target: 'place', key: {}, before: {}, after: { at: 0, more: null } },
        ],
        identifier: ['id'],
        readBack,
      },
    },
  });
  const runtime = await rig.start({ adapters: { bank } });
  for (const number of NUMBERS) {
    const approved = insert('place', { id: 1, at: number, more: null });
    const license = await rig.approve(runtime, {
      ...PAYMENT,
      effects: [approved],
      continuations: [],
    });
    const terminal = await runtime.execute(license, {});
    assert.equal(terminal.kind, 'committed', `${number}: ${renderTerminal(terminal)}`);
  }
  const whole = {
    ...PAYMENT,
    effects: [insert('place', { id: 1, at: 2n ** 53n + 1n, more: null })],
  };
  await assert.rejects(runtime.prepare(whole), /a body cannot carry \$int 9007199254740993/);
});

test('a whole number beyond 2^53 and a decimal are parts of a path by their digits', () => {
  assert.equal(fillPath('/x/{id}', { id: { $int: '9007199254740993' } }), '/x/9007199254740993');
  assert.equal(
    fillPath('/x/{id}', { id: { $dec: '0.10000000000000001' } }),
    '/x/0.10000000000000001',
  );
  assert.equal(fillPath('/x/{id}', { id: 0.1 + 0.2 }), '/x/0.30000000000000004');
  for (const id of [{ $bytes: 'c0' }, { $$int: '7' }, { a: 1 }, [1]]) {
    assert.throws(() => fillPath('/x/{id}', { id }), { code: 'ERR_EM_MANIFEST_INVALID' });
  }
});

test('a required number is compared as a number, and a key beyond 2^53 can be read', async () => {
  await using rig = await openRig();
  await using service = await startEchoService((text) => text);
  const bank = opaqueHttp({
    service: {
      url: service.origin,
      backend: 'places',
      credential: { header: 'x-key', value: 'secret' },
    },
    targets: {
      place: {
        columns: ['id', 'at', 'more'],
        key: ['id'],
        read: { path: '/places/{id}', row: (body) => body as Readonly<Record<string, Value>> },
      },
    },
    operations: {
      put: {
        method: 'POST',
        path: '/put',
        input: (said) => said,
        request: (input) => ({ body: input }),
        readBack,
      },
    },
  });
  const runtime = await rig.start({ adapters: { bank } });
  service.answers.set(
    '/places/9007199254740993',
    '{"id":9007199254740993,"at":-0.0,"more":3.0000000000000004e-1}',
  );
  const id = 2n ** 53n + 1n;
  const proposal = await runtime.prepare({
    ...PAYMENT,
    effects: [update('place', { id }, { at: [0, 1] })],
    requires: [row('place', { id }, { at: -0, more: 0.1 + 0.2 })],
    watch: [read('place', { id })],
  });
  assert.match(proposal.rendering, /9007199254740993/);
});

test('the numbers of a record are compared as numbers in each of its sides, and a side that is absent stays so', () => {
  const calculated = { amount: { $real: '35' } };
  const plain = { amount: 35 };
  const record = {
    op: 'update',
    target: 'place',
    key: calculated,
    before: calculated,
    after: calculated,
  } as const;
  const told: ChangeRecord = { ...record, key: plain, before: plain, after: plain };
  assert.deepEqual(normaliseRecord(record), told);
  for (const side of ['key', 'before', 'after']) {
    assert.deepEqual(normaliseRecord({ ...record, [side]: null }), { ...told, [side]: null });
  }
});
