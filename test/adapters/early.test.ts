// Goal: what cannot succeed is refused before a person reads it, on every backend that can look at
// its rows. Method: real backends, one impossible outcome of each kind, and the possible one next to
// it; then very many rows of which the last is wrong.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { files } from '../../src/adapters/files/index.ts';
import { sqlite } from '../../src/adapters/sqlite/index.ts';
import type { AdapterFactory } from '../../src/contract/adapter.ts';
import { createRuntime, insert, remove, to, update } from '../../src/index.ts';
import type { ApprovedEffect } from '../../src/protocol/effect.ts';
import { testKeyring } from '../keyring.ts';
import { temporaryLedgers } from '../ledger/temporary.ts';
import { snapshotKit } from './snapshot-kit.ts';

const IMPOSSIBLE = 'ERR_EM_OUTCOME_IMPOSSIBLE';

/** Prepares one outcome after another on a backend. */
async function open(factory: AdapterFactory) {
  let task = 0;
  let reads = 0;
  const counting: AdapterFactory = {
    async open(context) {
      const adapter = await factory.open(context);
      const read: typeof adapter.read = (asked) => {
        reads += 1;
        return adapter.read(asked);
      };
      return { ...adapter, read };
    },
  };
  const runtime = await createRuntime({
    ...{ store: temporaryLedgers(), keyring: testKeyring(), issuers: {} },
    adapters: { db: counting },
  });
  return {
    [Symbol.asyncDispose]: () => runtime.close(),
    takeReads: () => {
      const taken = reads;
      reads = 0;
      return taken;
    },
    async prepare(...effects: readonly ApprovedEffect[]) {
      task += 1;
      return await runtime.prepare({ adapter: 'db', task: `t${task}`, planRevision: 1, effects });
    },
  };
}

function inFolder(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), 'effectmatch-early-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

test('sqlite: what the rows rule out is refused, and what they allow is prepared in one read', async () => {
  using folder = inFolder();
  const file = join(folder.path, 'books.db');
  using db = new DatabaseSync(file);
  db.exec(`create table invoice (id integer primary key, status text not null, total real);
    insert into invoice values (1, 'pending', 3.5), (2, 'paid', null)`);
  await using desk = await open(sqlite({ file, relations: ['invoice'] }));
  const refused: readonly (readonly [readonly ApprovedEffect[], RegExp])[] = [
    [[update('invoice', { id: 2 }, { status: ['pending', 'paid'] })], /status is "paid" now/],
    [[update('invoice', { id: 1 }, { total: [3, 4] })], /total is 3\.5 now/],
    [[update('invoice', { id: 2 }, { status: to('paid') })], /status has this value already/],
    [[update('invoice', { id: 3 }, { status: to('paid') })], /id=3.*there is no such row/],
    [[remove('invoice', { id: 3 })], /there is no such row/],
    [[insert('invoice', { id: 1, status: 'new' })], /the row exists already/],
    [
      [
        update('invoice', { id: 1 }, { status: ['pending', 'open'] }),
        update('invoice', { id: 1 }, { status: ['open', 'paid'] }),
      ],
      /only the net change of a row is compared; state it as one change/,
    ],
  ];
  for (const [effects, message] of refused)
    await assert.rejects(desk.prepare(...effects), { code: IMPOSSIBLE, message });
  desk.takeReads();
  await desk.prepare(
    update('invoice', { id: 1 }, { status: ['pending', 'paid'], total: [3.5, null] }),
    remove('invoice', { id: 2 }, { total: null }),
    insert('invoice', { id: 3, status: 'new' }),
  );
  assert.equal(desk.takeReads(), 1);
});

test('sqlite: of twenty-five thousand changes the wrong one is found, in a few reads', async () => {
  using folder = inFolder();
  const file = join(folder.path, 'books.db');
  using db = new DatabaseSync(file);
  db.exec(`create table stock (id integer primary key, amount integer not null);
    with recursive n (id) as (select 1 union all select id + 1 from n where id < 25000)
    insert into stock select id, 1 from n; update stock set amount = 7 where id = 24999`);
  await using desk = await open(sqlite({ file, relations: ['stock'] }));
  const raise = Array.from({ length: 25_000 }, (_, index) =>
    update('stock', { id: index + 1 }, { amount: [1, 2] }),
  );
  await assert.rejects(desk.prepare(...raise), {
    code: IMPOSSIBLE,
    message:
      /^no execution could have this outcome: ~ stock id=24999 {2}amount: 1 -> 2: amount is 7 now$/,
  });
  assert.equal(desk.takeReads(), 3);
  db.exec('update stock set amount = 8');
  await assert.rejects(desk.prepare(...raise), /amount is 8 now; .*; and 24995 more$/);
});

test('files: a file that exists, one that does not, and one with other content', async () => {
  using folder = inFolder();
  const root = join(folder.path, 'site');
  mkdirSync(root);
  writeFileSync(join(root, 'index.html'), 'old\n', { mode: 0o644 });
  await using desk = await open(files({ root, adopt: true }));
  const path = 'index.html';
  const refused = (effect: ApprovedEffect, message: RegExp) =>
    assert.rejects(desk.prepare(effect), { code: IMPOSSIBLE, message });
  await refused(insert('file', { path, content: 'x' }), /the row exists already/);
  await refused(
    update('file', { path }, { content: ['older\n', 'new\n'] }),
    /content is "old\\n" now/,
  );
  await refused(remove('file', { path: 'nowhere' }), /there is no such row/);
  await desk.prepare(update('file', { path }, { content: ['old\n', 'new\n'] }));
});

test('snapshot: records, and places outside the collections', async () => {
  const site = await snapshotKit.fresh();
  await using desk = await open(site.factory);
  const refused = (effect: ApprovedEffect, message: RegExp) =>
    assert.rejects(desk.prepare(effect), { code: IMPOSSIBLE, message });
  await refused(
    update('orders', { id: 1 }, { status: ['paid', 'shipped'] }),
    /status is "open" now/,
  );
  await refused(update('orders', { id: 9 }, { status: ['open', 'shipped'] }), /no such row/);
  await refused(update('/', { path: '/revision' }, { value: [6, 7] }), /value is 7 now/);
  await desk.prepare(...site.effect.leaves);
});
