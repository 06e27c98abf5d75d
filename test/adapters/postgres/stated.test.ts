// Goal: options and manifests are refused for what can be seen without a server, and nothing is
// asked of it in vain. Method: options and manifests written by hand; sessions that count what they
// are asked.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { admitRegistration } from '../../../src/adapters/postgres/boundary.ts';
import {
  type NormaliseTools,
  normaliseManifest,
} from '../../../src/adapters/postgres/normalise.ts';
import { type PostgresOptions, readOptions } from '../../../src/adapters/postgres/options.ts';
import type { PostgresRelation } from '../../../src/adapters/postgres/relation.ts';
import { absent, draftManifest, row, update } from '../../../src/protocol/draft.ts';

const OPTIONS: PostgresOptions = {
  control: 'postgres://c',
  execution: 'postgres://e',
  relations: ['invoice'],
};

test('views and entry points are read as SQL names them, and are none unless they are named', () => {
  const { views, entryPoints } = readOptions(OPTIONS);
  assert.deepEqual([views, entryPoints], [[], []]);
  const named = readOptions({
    ...OPTIONS,
    views: ['app.pending'],
    entryPoints: ['app.pay(int)', 'move'],
  });
  assert.deepEqual(named.views, [{ schema: 'app', name: 'pending' }]);
  assert.deepEqual(named.entryPoints, [
    { schema: 'app', name: 'pay', signature: ['integer'] },
    { schema: 'public', name: 'move' },
  ]);
  assert.throws(() => readOptions({ ...OPTIONS, entryPoints: ['pay('] }), {
    code: 'ERR_EM_ADAPTER_REFUSED',
    message:
      /"pay\(" is not a name; write it as SQL does: schema\.name or schema\.name\(type, type\)/,
  });
});

const type = {
  ...{ oid: 23, text: 'integer', domain: false, base: 'int4', baseSchema: 'pg_catalog', kind: 'b' },
  reading: { kind: 'built-in', text: 'integer' },
};
const column = (name: string) => ({ name, type, notNull: false, defaultBuiltIn: true, draws: [] });
const INVOICE = {
  ...{
    schema: 'public',
    name: 'invoice',
    oid: 1,
    target: 'invoice',
    key: ['id'],
    leaves: [],
    partitioned: false,
  },
  columns: [column('id'), column('amount')],
} as unknown as PostgresRelation;

function toolsOf(isolation: NormaliseTools['isolation'], asked: string[] = []): NormaliseTools {
  const target = { name: 'invoice', columns: ['id', 'amount'], key: ['id'], volatile: [] };
  const answer = async (_: string, values: readonly unknown[] = []) => {
    asked.push('cast');
    const [indexes, texts] = values as readonly (readonly string[])[];
    return { rows: (indexes ?? []).map((index, at) => [index, texts?.[at] ?? '']) };
  };
  return {
    registration: { profile: 'net-state', values: 'plain', targets: [target] },
    relations: new Map([['invoice', INVOICE]]),
    isolation,
    withExecution: (use) => use({ query: answer, script: async () => {} } as never),
    read: async (reads) => reads.map(({ target: name, key }) => ({ target: name, key, row: null })),
  };
}

const stated = (more: object = {}) =>
  draftManifest({ adapter: 'books', task: 'pay', planRevision: 1, effects: [], ...more });

test('under read committed no row can be required to be absent, under serializable it can', async () => {
  const requires = [row('invoice', { id: 1 }, { amount: 5 }), absent('invoice', { id: 2 })];
  await assert.rejects(normaliseManifest(toolsOf('read committed'), stated({ requires })), {
    code: 'ERR_EM_MANIFEST_INVALID',
    message: /requires\[1\] \(invoice\).*cannot be locked.*isolation: 'serializable'/,
  });
  const { requires: kept } = await normaliseManifest(toolsOf('serializable'), stated({ requires }));
  assert.equal(kept.length, 2);
  const [present] = requires;
  assert.equal(
    (await normaliseManifest(toolsOf('read committed'), stated({ requires: [present] }))).requires
      .length,
    1,
  );
});

test('values are cast in one round trip, and where there are none the server is not asked', async () => {
  const asked: string[] = [];
  const effects = [update('invoice', { id: '1' }, { amount: ['5', '6'] })];
  const { effects: cast } = await normaliseManifest(
    toolsOf('read committed', asked),
    stated({ effects }),
  );
  assert.deepEqual(cast[0]?.after, { amount: { is: 6 } });
  assert.deepEqual(asked, ['cast']);
  await normaliseManifest(toolsOf('read committed', asked), stated());
  assert.deepEqual(asked, ['cast']);
});

test('very many effects are cast in parts, with the same result and the same places in messages', async () => {
  const asked: string[] = [];
  const effects = Array.from({ length: 5002 }, (_, id) =>
    update('invoice', { id: String(id) }, { amount: ['5', '6'] }),
  );
  const requires = [row('invoice', { id: '7' }, { amount: '5' })];
  const many = await normaliseManifest(
    toolsOf('read committed', asked),
    stated({ effects, requires }),
  );
  assert.deepEqual(asked, ['cast', 'cast', 'cast']);
  assert.equal(many.effects.length, effects.length);
  many.effects.forEach(({ key, before, after }, id) => {
    assert.deepEqual(
      [key, before, after],
      [{ id: { is: id } }, { amount: { is: 5 } }, { amount: { is: 6 } }],
    );
  });
  assert.deepEqual(many.requires, [{ target: 'invoice', key: { id: 7 }, row: { amount: 5 } }]);
  const wrong = [...effects.slice(0, 5001), update('invoice', { id: '1' }, { sum: [1, 2] })];
  const refused = normaliseManifest(toolsOf('read committed'), stated({ effects: wrong }));
  await assert.rejects(refused, { message: /effects\[5001\] \(update invoice\)/ });
});

test('a relation is registered with its columns and key, unless it cannot be observed as it is stated', () => {
  const settings = { profile: 'net-state', values: 'plain' } as Parameters<
    typeof admitRegistration
  >[0];
  const register = (more: object) =>
    admitRegistration(
      settings,
      [{ ...INVOICE, volatile: [], bulk: false, ...more }],
      [{ oid: 7, name: 'a_seq' }],
    );
  const refused = (message: RegExp) => ({ code: 'ERR_EM_ADAPTER_REFUSED', message });
  assert.deepEqual(register({ volatile: ['amount'], bulk: true }).targets, [
    { name: 'invoice', columns: ['id', 'amount'], key: ['id'], volatile: ['amount'] },
    { name: 'a_seq', columns: ['unused'], key: [], volatile: [] },
  ]);
  assert.equal(register({ key: [] }).targets.length, 2);
  assert.equal(register({ partitioned: true }).targets.length, 2);
  assert.throws(
    () => register({ volatile: ['id'] }),
    refused(/the key column "id" cannot be volatile/),
  );
  assert.throws(
    () => register({ volatile: ['amont'] }),
    refused(/has no column "amont" \(did you mean "amount"/),
  );
  assert.throws(() => register({ key: [], volatile: ['amount'] }), refused(/has no primary key/));
  assert.throws(() => register({ bulk: true, partitioned: true }), refused(/is partitioned/));
});
