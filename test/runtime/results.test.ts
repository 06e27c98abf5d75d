// Goal: what a committed change returned and generated reaches its caller, and nothing of a rejected
// one does. Method: real SQLite files; approvals with labels; every way by which a verdict is read.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { sqlite } from '../../src/adapters/sqlite/index.ts';
import type { Step } from '../../src/contract/steps.ts';
import { approver, generateApprover, generated, insert, update } from '../../src/index.ts';
import type { PrepareRequest } from '../../src/runtime/prepare.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { testKeyring } from '../keyring.ts';
import { ofKind } from './deploy.ts';

const SCHEMA = `create table invoice (id integer primary key, total integer not null);
  create table line (id integer primary key, invoice integer not null, item text not null);
  insert into invoice values (412, 1)`;

/** A database in a folder that is removed, and runtimes on it that share one ledger. */
function openShop() {
  const folder = mkdtempSync(join(tmpdir(), 'results-'));
  const file = join(folder, 'shop.db');
  const key = generateApprover('team');
  const keyring = testKeyring();
  using db = new DatabaseSync(file);
  db.exec(SCHEMA);
  const start = (options: { values?: 'digest'; reached?: (step: Step) => void } = {}) => {
    const { values, reached = () => {} } = options;
    const relations = ['invoice', 'line'];
    return createRuntime(
      {
        store: join(folder, 'effectmatch.db'),
        keyring,
        issuers: { team: { key: key.publicKey, may: ['shop'] } },
        adapters: { shop: sqlite({ file, relations, ...(values && { values }) }) },
      },
      { reached },
    );
  };
  const approve = async (
    runtime: Awaited<ReturnType<typeof start>>,
    effects: PrepareRequest['effects'],
  ) => {
    const request = { adapter: 'shop', task: 'invoice', planRevision: 1, effects };
    return approver(key).sign(await runtime.prepare(request), { expiresIn: '10m' });
  };
  return {
    ...{ start, approve },
    rows(sql: string) {
      using other = new DatabaseSync(file);
      return other
        .prepare(sql)
        .all()
        .map((row) => ({ ...row }));
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

const INVOICE = [
  insert('invoice', { id: generated('invoice'), total: 30 }),
  insert('line', { id: generated('first'), invoice: generated('invoice'), item: 'pen' }),
  insert('line', { id: generated('second'), invoice: generated('invoice'), item: 'ink' }),
];
const WRITE = {
  statements: [
    { sql: 'insert into invoice (total) values (30) returning id, total' },
    {
      sql: `insert into line (invoice, item) values ((select max(id) from invoice), 'pen'),
        ((select max(id) from invoice), 'ink') returning item, id`,
    },
    { sql: 'select count(*) as lines from line' },
  ],
};

test('a committed change returns its generated values and the rows of its statements', async () => {
  using shop = openShop();
  await using runtime = await shop.start();
  const license = await shop.approve(runtime, INVOICE);
  const committed = await runtime.execute(license, WRITE);
  const { generated: values } = ofKind('committed', committed);
  const [pen, ink] = shop.rows('select id from line order by item desc').map(({ id }) => id);
  assert.deepEqual(values, { invoice: 413, first: pen, second: ink });
  assert.deepEqual(committed.results, [
    { rows: [{ id: 413, total: 30 }], omitted: 0 },
    {
      rows: [
        { item: 'pen', id: pen },
        { item: 'ink', id: ink },
      ],
      omitted: 0,
    },
    { rows: [{ lines: 2 }], omitted: 0 },
  ]);

  const recorded = ofKind('committed', await runtime.ledgers.terminal(committed.occurrence));
  assert.deepEqual(recorded.generated, values);
  assert.ok(!('results' in recorded), 'rows are not recorded');
  const receipt = await runtime.receipt(committed.occurrence);
  const payload = Buffer.from(receipt?.payload ?? '', 'base64').toString();
  assert.deepEqual(JSON.parse(payload).predicate.terminal.generated, values);
  const again = await runtime.ensure(license, WRITE);
  assert.deepEqual(ofKind('committed', again).generated, values);
  assert.equal(again.results, undefined, 'an earlier execution returns no rows');
});

test('a rejected change returns nothing of what it read or made', async () => {
  using shop = openShop();
  await using runtime = await shop.start();
  const license = await shop.approve(runtime, INVOICE);
  const secret = { sql: "insert into invoice (total) values (31) returning id, 'secret' as word" };
  const rejected = await runtime.execute(license, secret);
  ofKind('rejected', rejected);
  assert.ok(!('results' in rejected) && !('generated' in rejected));
});

const AFTER_COMMIT: readonly Step[] = ['adapter:commit-returned', 'path:promoted'];
for (const step of AFTER_COMMIT) {
  test(`recovery still knows the generated values of what was interrupted at ${step}`, async () => {
    using shop = openShop();
    let armed = false;
    const dying = await shop.start({
      reached(at) {
        if (armed && at === step) throw new Error('the process dies');
      },
    });
    const license = await shop.approve(dying, INVOICE);
    armed = true;
    const ended = await dying.execute(license, WRITE).catch(() => undefined);
    await dying.close();
    await using runtime = await shop.start();
    const found = ofKind('committed', await runtime.ensure(license, WRITE));
    assert.equal(found.generated?.invoice, 413);
    if (ended?.kind === 'committed') assert.deepEqual(found.generated, ended.generated);
  });
}

test('where values are stored as digests, generated values are not stored', async () => {
  using shop = openShop();
  await using runtime = await shop.start({ values: 'digest' });
  const committed = await runtime.execute(await shop.approve(runtime, INVOICE), WRITE);
  assert.equal(ofKind('committed', committed).generated, undefined);
  assert.equal(committed.results?.[0]?.rows[0]?.id, 413, 'the caller gets its rows');
});

test('returned rows are bounded, and what is left out is counted', async () => {
  using shop = openShop();
  await using runtime = await shop.start();
  const license = await shop.approve(runtime, [update('invoice', { id: 412 }, { total: [1, 2] })]);
  const action = {
    statements: [
      { sql: 'update invoice set total = 2 where id = 412' },
      {
        sql: 'with n(i) as (select 1 union all select i + 1 from n where i < 1500) select i from n',
      },
      { sql: "select x'00ff' as bytes, 9007199254740993 as large, 0.5 as half, null as absent" },
    ],
  };
  const executed = await runtime.execute(license, action);
  ofKind('committed', executed);
  const { results } = executed;
  assert.deepEqual(results?.[0], { rows: [], omitted: 0 });
  assert.equal(results?.[1]?.rows.length, 1000);
  assert.equal(results?.[1]?.omitted, 500);
  assert.deepEqual(results?.[2], { rows: [], omitted: 1 });
  const other = await shop.approve(runtime, [update('invoice', { id: 412 }, { total: [2, 3] })]);
  const second = await runtime.execute(other, {
    statements: [{ sql: 'update invoice set total = 3' }, action.statements[2]],
  });
  assert.deepEqual(second.results?.[1]?.rows, [
    { bytes: '\\x00ff', large: '9007199254740993', half: 0.5, absent: null },
  ]);
});

test('so many generated values as fit are recorded, and the others are counted', async () => {
  using shop = openShop();
  await using runtime = await shop.start();
  const count = 1200;
  const effects = Array.from({ length: count }, (_, index) =>
    insert('invoice', { id: generated(`row ${index}`), total: 1000 + index }),
  );
  const sql = `with n(i) as (select 1000 union all select i + 1 from n where i < ${1000 + count - 1})
    insert into invoice (total) select i from n`;
  const committed = await runtime.execute(await shop.approve(runtime, effects), { sql });
  const { generated: values = {}, generatedOmitted = 0 } = ofKind('committed', committed);
  assert.equal(Object.keys(values).length + generatedOmitted, count);
  assert.ok(generatedOmitted >= count - 1000);
  for (const [label, id] of Object.entries(values).slice(0, 20)) {
    const [row] = shop.rows(`select total from invoice where id = ${id}`);
    assert.equal(row?.total, 1000 + Number(label.slice('row '.length)));
  }
});
