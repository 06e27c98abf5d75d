// Goal: what a session states otherwise than it is stored is observed as it is stored. Method:
// schemas on which sessions are known to go wrong, real executions, and the rows read by another
// connection.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { sqlite } from '../../../src/adapters/sqlite/index.ts';
import {
  approver,
  createRuntime,
  generateApprover,
  generated,
  insert,
  remove,
  to,
  update,
} from '../../../src/index.ts';
import { blind } from '../blind.ts';

type Effects = Parameters<Awaited<ReturnType<typeof createRuntime>>['prepare']>[0]['effects'];

/**
 * Runs statements under an approval of these effects on a fresh database, and reads the tables
 * afterwards.
 */
async function attempt(
  schema: string,
  relations: string[],
  effects: Effects,
  statements: string[],
) {
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-restate-'));
  const file = join(folder, 'books.db');
  const db = new DatabaseSync(file);
  db.exec(schema);
  const key = generateApprover('team');
  const runtime = await createRuntime({
    store: join(folder, 'ledger.db'),
    keyring: join(folder, 'keys.json'),
    issuers: { team: { key: key.publicKey, may: ['books'] } },
    adapters: { books: blind(sqlite({ file, relations })) },
  });
  try {
    const proposal = await runtime.prepare({
      adapter: 'books',
      task: 't',
      planRevision: 1,
      effects,
    });
    const license = approver(key).sign(proposal, { expiresIn: '1m' });
    const terminal = await runtime.execute(license, {
      statements: statements.map((sql) => ({ sql })),
    });
    const rows = relations.map((name) =>
      db
        .prepare(`select * from ${name}`)
        .all()
        .map((row) => ({ ...row })),
    );
    return { terminal, rows };
  } finally {
    await runtime.close();
    db.close();
    rmSync(folder, { recursive: true });
  }
}

const REAL_KEY = 'create table t(k real primary key not null, v); insert into t values (5.0, 1)';

test('a row that is removed and put back under a REAL key is no insertion', async () => {
  const same = ['delete from t', 'insert into t values (5, 1)'];
  const claimed = await attempt(REAL_KEY, ['t'], [insert('t', { k: 5, v: 1 })], same);
  assert.equal(claimed.terminal.kind, 'rejected');
  const honest = await attempt(REAL_KEY, ['t'], [], same);
  assert.equal(honest.terminal.kind, 'committed');
});

test('a row that never was cannot be approved as removed, under any kind of numeric key', async () => {
  for (const type of ['real', 'numeric', 'integer']) {
    const schema = `create table t(k ${type} not null, j text not null, v, primary key (k, j))`;
    const passing = ["insert into t values (2, 'a', 1)", 'delete from t'];
    const { terminal } = await attempt(schema, ['t'], [remove('t', { k: 2, j: 'a' })], passing);
    assert.equal(terminal.kind, 'rejected', type);
  }
});

test('ordinary work on REAL keys commits: replace, and a trigger that updates the new row', async () => {
  const replaced = await attempt(
    REAL_KEY,
    ['t'],
    [update('t', { k: 5 }, { v: [1, 2] })],
    ['replace into t values (5.0, 2)'],
  );
  assert.deepEqual(replaced.rows, [[{ k: 5, v: 2 }]]);
  assert.equal(replaced.terminal.kind, 'committed');
  const trigger = `${REAL_KEY}; create trigger after_insert after insert on t begin update t set v = 9 where k = new.k; end`;
  const touched = await attempt(
    trigger,
    ['t'],
    [insert('t', { k: 7, v: 9 })],
    ['insert into t values (7, 1)'],
  );
  assert.equal(touched.terminal.kind, 'committed');
});

test('rows older than a REAL column with a whole default change only where they were changed', async () => {
  const schema =
    'create table t(id integer primary key, s text); insert into t values (1, ?); alter table t add column price real default 0'.replace(
      '?',
      "'a'",
    );
  const other = await attempt(
    schema,
    ['t'],
    [update('t', { id: 1 }, { s: ['a', 'b'] })],
    ["update t set s = 'b'"],
  );
  assert.equal(other.terminal.kind, 'committed');
  const priced = await attempt(
    schema,
    ['t'],
    [update('t', { id: 1 }, { price: [0, 5] })],
    ['update t set price = 5'],
  );
  assert.equal(priced.terminal.kind, 'committed');
  const phantom = await attempt(
    schema,
    ['t'],
    [update('t', { id: 1 }, { s: ['a', 'b'], price: to(0) })],
    ["update t set s = 'b'"],
  );
  assert.equal(phantom.terminal.kind, 'rejected');
});

test('a counter that SQLite enters at zero for a trigger that does not fire is no change', async () => {
  const schema = `create table t(id integer primary key, s text); insert into t values (1, 'a');
    create table audit(id integer primary key autoincrement, s text);
    create trigger paid after update on t when new.s = 'paid' begin insert into audit(s) values (new.s); end`;
  const { terminal } = await attempt(
    schema,
    ['t', 'audit'],
    [update('t', { id: 1 }, { s: ['a', 'b'] })],
    ["update t set s = 'b'"],
  );
  assert.equal(terminal.kind, 'committed');
});

test('keys that AUTOINCREMENT assigned to rows that are gone again are used up, and no row that stayed accounts for them', async () => {
  const schema = (how: string) =>
    `create table t(id integer primary key ${how}, s text); insert into t values (1, 'a')`;
  const burn = [
    "insert into t(s) values ('x'), ('y')",
    "delete from t where s <> 'a'",
    "insert into t(s) values ('b')",
  ];
  const added = [insert('t', { id: generated('b'), s: 'b' })];
  const counted = await attempt(schema('autoincrement'), ['t'], added, burn);
  assert.equal(counted.terminal.kind, 'rejected', 'keys 2 and 3 are never given out again');
  assert.equal(
    (await attempt(schema(''), ['t'], added, burn)).terminal.kind,
    'committed',
    'without it they are free',
  );
  const twice = ["insert into t(s) values ('x')", "update t set s = 'b' where s = 'x'"];
  assert.equal(
    (await attempt(schema('autoincrement'), ['t'], added, twice)).terminal.kind,
    'committed',
  );
});

test('a counter with two entries is watched in both', async () => {
  const schema = `create table t(id integer primary key autoincrement, s text); insert into t values (2, 'a');
    insert into sqlite_sequence values ('t', 2)`;
  const { terminal } = await attempt(
    schema,
    ['t'],
    [update('t', { id: 2 }, { s: ['a', 'b'] })],
    ["insert into t values (50, 'x')", 'delete from t where id = 50', "update t set s = 'b'"],
  );
  assert.equal(terminal.kind, 'rejected');
});

test('a column that is really named rowid can be updated, and parameters may have any name', async () => {
  const schema =
    "create table t(name text primary key not null, rowid text); insert into t values ('a', 'x')";
  const { terminal } = await attempt(
    schema,
    ['t'],
    [update('t', { name: 'a' }, { rowid: ['x', 'y'] })],
    ["update t set rowid = 'y'"],
  );
  assert.equal(terminal.kind, 'committed');
});

const LATER_REAL = `create table word (w text primary key not null collate nocase, n integer) without rowid;
  insert into word values ('One', 1), ('Two', 2); alter table word add column price real default 3`;

test('a NOCASE key with a REAL column that came later is observed as it is stored', async () => {
  const changed = await attempt(
    LATER_REAL,
    ['word'],
    [update('word', { w: 'One' }, { n: [1, 5] })],
    ["update word set n = 5 where w = 'ONE'"],
  );
  assert.equal(changed.terminal.kind, 'committed', JSON.stringify(changed.terminal));
  const replaced = await attempt(
    LATER_REAL,
    ['word'],
    [remove('word', { w: 'One' }), insert('word', { w: 'one', n: 1, price: 3 })],
    ["replace into word (w, n) values ('one', 1)"],
  );
  assert.equal(replaced.terminal.kind, 'committed', JSON.stringify(replaced.terminal));
});

test('a key that is respelled is another row, and one that is respelled and back is none', async () => {
  for (const schema of [
    LATER_REAL,
    "create table word (w text primary key not null collate nocase, n integer); insert into word values ('One', 1)",
  ]) {
    const price = schema === LATER_REAL ? { price: 3 } : {};
    const respelled = ["update word set w = 'one' where w = 'One'"];
    const other = [remove('word', { w: 'One' }), insert('word', { w: 'one', n: 1, ...price })];
    assert.equal((await attempt(schema, ['word'], other, respelled)).terminal.kind, 'committed');
    assert.equal((await attempt(schema, ['word'], [], respelled)).terminal.kind, 'rejected');
    const back = [...respelled, "update word set w = 'One', n = 7 where w = 'one'"];
    const same = [update('word', { w: 'One' }, { n: [1, 7] })];
    assert.equal((await attempt(schema, ['word'], same, back)).terminal.kind, 'committed');
  }
});
