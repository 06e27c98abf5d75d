// Goal: on PostgreSQL, too, a committed change returns generated values and rows. Method: a real
// server; columns of many types, RETURNING, SELECT, a registered function, a rejected action.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { approver, generateApprover, generated, insert } from '../../../src/index.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { testKeyring } from '../../keyring.ts';
import { temporaryLedgers } from '../../ledger/temporary.ts';
import { protectedDatabase } from '../../postgres/protected.ts';

const SCHEMA = `create table invoice (
    id bigint generated always as identity (start 413) primary key, total numeric(10, 2) not null);
  create table line (
    id integer generated always as identity primary key, invoice bigint not null, item text not null)`;

async function openShop() {
  const place = await protectedDatabase(SCHEMA, { relations: ['invoice', 'line'] });
  const key = generateApprover('team');
  const runtime = await createRuntime({
    store: temporaryLedgers(),
    keyring: testKeyring(),
    issuers: { team: { key: key.publicKey, may: ['shop'] } },
    adapters: { shop: place.factory() },
  });
  return {
    runtime,
    async approve() {
      const effects = [
        insert('invoice', { id: generated('invoice'), total: 9.5 }),
        insert('line', { id: generated('line'), invoice: generated('invoice'), item: 'pen' }),
      ];
      const request = { adapter: 'shop', task: 'invoice', planRevision: 1, effects };
      return approver(key).sign(await runtime.prepare(request), { expiresIn: '10m' });
    },
    async [Symbol.asyncDispose]() {
      await runtime.close();
      await place.db.drop();
    },
  };
}

const WRITE = {
  statements: [
    {
      sql: `with made as (insert into invoice (total) values ($1) returning id)
        insert into line (invoice, item) select id, 'pen' from made returning invoice, item`,
      values: [9.5],
    },
    {
      sql: `select id, total, true as paid, 0.5::float8 as half, 9007199254740993 as large,
        null::text as absent, date '2026-01-02' as day from invoice`,
    },
    { sql: 'delete from line where false' },
  ],
};

test('generated values and rows come back, as plain data', async () => {
  await using shop = await openShop();
  const committed = await shop.runtime.execute(await shop.approve(), WRITE);
  assert.equal(committed.kind, 'committed', JSON.stringify(committed));
  assert.deepEqual(committed.kind === 'committed' && committed.generated, {
    invoice: 413,
    line: 1,
  });
  assert.deepEqual(committed.results, [
    { rows: [{ invoice: 413, item: 'pen' }], omitted: 0 },
    {
      rows: [
        {
          id: 413,
          total: '9.50',
          paid: true,
          half: 0.5,
          large: '9007199254740993',
          absent: null,
          day: '2026-01-02',
        },
      ],
      omitted: 0,
    },
    { rows: [], omitted: 0 },
  ]);
});

test('a rejected action returns no rows', async () => {
  await using shop = await openShop();
  const [, reading] = WRITE.statements;
  const rejected = await shop.runtime.execute(await shop.approve(), { statements: [reading] });
  assert.equal(rejected.kind, 'rejected');
  assert.ok(!('results' in rejected));
});
