// Goal: work without an approval runs on a candidate that can only be discarded; what was recorded
// is proposed, and after the signature it must leave the same. Method: real SQLite files.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { sqlite } from '../../src/adapters/sqlite/index.ts';
import { approver, createRuntime, type Draft, generateApprover } from '../../src/index.ts';
import { openRequests } from '../../src/requests/index.ts';
import { testKeyring } from '../keyring.ts';
import { assertRejected, ofKind } from './deploy.ts';

const PLAN = { task: 'order', planRevision: 1 };
const ORDER = { sql: 'insert into orders (total) values (?) returning id', values: [30] };
const TAKE = { sql: 'update stock set left = left - 2 where item = ?', values: ['pen'] };

async function openShop() {
  const folder = mkdtempSync(join(tmpdir(), 'drafts-'));
  const file = join(folder, 'shop.db');
  using db = new DatabaseSync(file);
  db.exec(`create table orders (id integer primary key autoincrement, total integer not null);
    create table stock (item text not null primary key, left integer not null check (left >= 0));
    insert into stock values ('pen', 5)`);
  const key = generateApprover('team');
  const runtime = await createRuntime({
    store: join(folder, 'effectmatch.db'),
    keyring: testKeyring(),
    restageMs: 0,
    issuers: { team: { key: key.publicKey, may: ['shop'], sources: ['rehearsed'] } },
    adapters: { shop: sqlite({ file, relations: ['orders', 'stock'], busyTimeoutMs: 100 }) },
  });
  return {
    runtime,
    folder,
    approver: approver(key),
    write(sql: string) {
      using other = new DatabaseSync(file);
      other.exec(sql);
    },
    rows() {
      using other = new DatabaseSync(file);
      const orders = other.prepare('select id, total from orders').all();
      const [stock] = other.prepare('select left from stock').all();
      return { orders: orders.map((row) => ({ ...row })), left: stock?.left };
    },
    async [Symbol.asyncDispose]() {
      await runtime.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const UNTOUCHED = { orders: [], left: 5 };
const DONE = { orders: [{ id: 1, total: 30 }], left: 3 };

/** Looks, fails, corrects itself, and is done. */
async function work(draft: Draft): Promise<void> {
  const stock = await draft.call({ sql: 'select left from stock' });
  assert.deepEqual(stock, { kind: 'done', results: [{ rows: [{ left: 5 }], omitted: 0 }] });
  const failed = await draft.call({ sql: 'update stock set left = left - 9' });
  assert.equal(failed.kind, 'failed');
  const ordered = await draft.call(ORDER);
  assert.deepEqual(ordered, { kind: 'done', results: [{ rows: [{ id: 1 }], omitted: 0 }] });
  assert.equal((await draft.call({ script: 'select 1; select 2' })).kind, 'done');
  assert.equal((await draft.call(TAKE)).kind, 'done');
  const seen = await draft.call({ sql: 'select left from stock' });
  assert.deepEqual(seen, { kind: 'done', results: [{ rows: [{ left: 3 }], omitted: 0 }] });
}

test('a draft that is submitted shows its changes, and runs again under the license', async () => {
  await using shop = await openShop();
  const draft = await shop.runtime.draft('shop');
  await work(draft);
  assert.deepEqual(shop.rows(), UNTOUCHED);
  const { proposal, action } = await draft.submit(PLAN);
  assert.match(proposal.rendering, /stock/);
  assert.deepEqual(shop.rows(), UNTOUCHED, 'nothing is kept of a draft');
  shop.write("update stock set item = 'pen' where item = 'none'"); // no lock is held meanwhile
  const license = shop.approver.sign(proposal, { expiresIn: '10m' });
  const terminal = ofKind('committed', await shop.runtime.execute(license, action));
  assert.equal(terminal.kind, 'committed');
  assert.deepEqual(shop.rows(), DONE);
});

test('what became different meanwhile is rejected, and another action is refused', async () => {
  await using shop = await openShop();
  const draft = await shop.runtime.draft('shop');
  await work(draft);
  const { proposal, action } = await draft.submit(PLAN);
  const license = shop.approver.sign(proposal, { expiresIn: '10m' });
  assertRejected(await shop.runtime.execute(license, TAKE), 'authority', 'other-action');
  shop.write('update stock set left = 4');
  const rejected = ofKind('rejected', await shop.runtime.execute(license, action));
  assert.ok(['diverged', 'stale-state'].includes(rejected.reason), rejected.reason);
  assert.deepEqual(shop.rows(), { orders: [], left: 4 });
});

test('a recording that leaves something else every time is not proposed', async () => {
  await using shop = await openShop();
  const draft = await shop.runtime.draft('shop');
  const lucky = { sql: 'insert into orders (total) values (abs(random() % 1000000007))' };
  assert.equal((await draft.call(lucky)).kind, 'done');
  await assert.rejects(draft.submit(PLAN), { code: 'ERR_EM_REHEARSAL_REFUSED' });
  assert.deepEqual(shop.rows(), UNTOUCHED);
});

test('what the caller keeps of a call cannot change what was recorded', async () => {
  await using shop = await openShop();
  const draft = await shop.runtime.draft('shop');
  const kept = { ...TAKE, values: ['pen'] };
  assert.equal((await draft.call(kept)).kind, 'done');
  Object.assign(kept, { sql: 'update stock set left = 0 where item = ?' });
  const { proposal, action } = await draft.submit(PLAN);
  const license = shop.approver.sign(proposal, { expiresIn: '10m' });
  ofKind('committed', await shop.runtime.execute(license, action));
  assert.deepEqual(shop.rows(), { orders: [], left: 3 });
});

test('a request is made of a draft, and commits once a person has approved it', async () => {
  await using shop = await openShop();
  const { runtime } = shop;
  await using requests = await openRequests({ runtime, store: join(shop.folder, 'requests.db') });
  const own = requests.forAgent('clerk');
  const draft = await runtime.draft('shop');
  await work(draft);
  const asked = await own.submit(draft, { run: 'one', reason: 'a customer ordered' });
  assert.equal(asked.state, 'pending');
  assert.deepEqual(shop.rows(), UNTOUCHED);
  await requests.answer(asked.id, shop.approver.sign(asked.proposal, { expiresIn: '10m' }));
  assert.equal((await requests.execute(asked.id)).state, 'committed');
  assert.deepEqual(shop.rows(), DONE);
});

test('a draft that is discarded, overdue, empty, only reads or is out of calls proposes nothing', async () => {
  await using shop = await openShop();
  const refused = { code: 'ERR_EM_REHEARSAL_REFUSED' };
  const discarded = await shop.runtime.draft('shop');
  await discarded.call(ORDER);
  await discarded.discard();
  await assert.rejects(discarded.submit(PLAN), refused);
  const late = await shop.runtime.draft('shop', { deadlineMs: 40 });
  await late.call(ORDER);
  await new Promise((resolve) => setTimeout(resolve, 80));
  await assert.rejects(late.submit(PLAN), refused);
  const empty = await shop.runtime.draft('shop');
  await empty.call({ sql: 'nonsense' });
  await assert.rejects(empty.submit(PLAN), refused);
  const reading = await shop.runtime.draft('shop');
  assert.equal((await reading.call({ sql: 'select left from stock' })).kind, 'done');
  await assert.rejects(reading.submit(PLAN), { ...refused, message: /only read/ });
  const spent = await shop.runtime.draft('shop', { maxCalls: 1 });
  await spent.call(ORDER);
  assert.equal((await spent.call(TAKE)).kind, 'failed');
  await assert.rejects(spent.submit(PLAN), refused);
  assert.deepEqual(shop.rows(), UNTOUCHED);
  shop.write('update stock set left = 5'); // no lock is left
});

test('closing the runtime gives open drafts up', async () => {
  await using shop = await openShop();
  const draft = await shop.runtime.draft('shop');
  await draft.call(TAKE);
  await shop.runtime.close();
  assert.deepEqual(shop.rows(), UNTOUCHED);
  shop.write('update stock set left = 5');
});
