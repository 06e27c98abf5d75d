// Goal: the shared SQLite driver opens hardened connections and never blocks, loses or invents a
// transaction. Method: real files, two connections in each other's way, and an independent
// connection that looks at the result.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import {
  immediate,
  immediateUnflushed,
  openDatabase,
  pinDurability,
  primaryCode,
  quoteName,
  readPragma,
} from '../../src/sqlite/connection.ts';

const folder = mkdtempSync(join(tmpdir(), 'em-sqlite-'));
after(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const freshFile = () => join(folder, `${files++}.db`);

function look(file: string, sql: string): unknown[] {
  using db = new DatabaseSync(file, { readOnly: true });
  return db
    .prepare(sql)
    .all()
    .map((row) => ({ ...row }));
}

test('a connection has every hardening switched on', () => {
  using db = openDatabase(freshFile());
  assert.equal(readPragma(db, 'trusted_schema'), 0);
  assert.equal(readPragma(db, 'foreign_keys'), 1);
  assert.equal(readPragma(db, 'busy_timeout'), 0);
  assert.throws(() => db.exec('select "a string"'), /no such column/);
  assert.throws(() => db.exec("attach ':memory:' as other"), /too many attached/);
  assert.throws(() => db.exec("select load_extension('x')"), /not authorized/);
  db.exec('create table t (a)');
  db.exec('pragma writable_schema = on');
  assert.throws(() => db.exec("update sqlite_schema set sql = ''"), /may not be modified/);
});

test('what is not a plain file is refused', () => {
  for (const file of ['', ':memory:', 'file:x.db?mode=memory', 'FILE:x', 'a\0b']) {
    assert.throws(
      () => openDatabase(file),
      { code: 'ERR_EM_CONFIG_INVALID' },
      JSON.stringify(file),
    );
  }
});

test('durability is EXTRA with a rollback journal and FULL with a write-ahead log', () => {
  const file = freshFile();
  using db = openDatabase(file);
  assert.equal(pinDurability(db), 'delete');
  assert.equal(readPragma(db, 'synchronous'), 3);
  db.exec('pragma journal_mode = wal; pragma synchronous = off');
  assert.equal(pinDurability(db), 'wal');
  assert.equal(readPragma(db, 'synchronous'), 2);
  db.exec('pragma synchronous = off');
  assert.equal(pinDurability(db), 'wal');
  assert.equal(readPragma(db, 'synchronous'), 2, 'also when it was pinned for this mode before');
});

test('a commit without its flush leaves the connection flushing, however it ends', async () => {
  const file = freshFile();
  using db = openDatabase(file);
  db.exec('pragma journal_mode = wal; create table t (a primary key)');
  pinDurability(db);
  const insert = (value: number) => () => {
    assert.equal(readPragma(db, 'synchronous'), 1, 'inside it does not flush');
    return db.prepare('insert into t values (?)').run(value).changes;
  };
  assert.equal(await immediateUnflushed(db, insert(1), { deadlineMs: 0 }), 1);
  assert.equal(readPragma(db, 'synchronous'), 2);
  await assert.rejects(immediateUnflushed(db, insert(1), { deadlineMs: 0 }), /UNIQUE/);
  assert.equal(readPragma(db, 'synchronous'), 2);
  using other = openDatabase(file);
  other.exec('begin immediate');
  await assert.rejects(immediateUnflushed(db, insert(2), { deadlineMs: 10 }), {
    code: 'ERR_EM_STORE_BUSY',
  });
  assert.equal(readPragma(db, 'synchronous'), 2);
  assert.deepEqual(look(file, 'select a from t'), [{ a: 1 }]);
});

test('a connection that does not go back to flushing is closed', async () => {
  const db = openDatabase(freshFile());
  db.exec('pragma journal_mode = wal; create table t (a)');
  pinDurability(db);
  const exec = db.exec.bind(db);
  db.exec = (sql) => {
    if (sql !== 'pragma synchronous = full') exec(sql);
  };
  const work = () => db.prepare('insert into t values (1)').run();
  await assert.rejects(immediateUnflushed(db, work, { deadlineMs: 0 }), {
    code: 'ERR_EM_STORE_UNAVAILABLE',
  });
  assert.equal(db.isOpen, false);
});

test('a busy file is waited for with the event loop free, and the body runs once it is free', async () => {
  const file = freshFile();
  using db = openDatabase(file);
  db.exec('create table t (a)');
  using other = openDatabase(file);
  other.exec('begin immediate');
  let ticks = 0;
  const ticking = setInterval(() => {
    ticks += 1;
    if (ticks === 3) other.exec('commit');
  }, 5);
  const result = await immediate(db, () => db.prepare('insert into t values (1)').run().changes, {
    deadlineMs: 5000,
  });
  clearInterval(ticking);
  assert.equal(result, 1);
  assert.ok(ticks >= 3);
  assert.deepEqual(look(file, 'select a from t'), [{ a: 1 }]);
});

test('a file that stays busy ends in ERR_EM_STORE_BUSY with no transaction left open', async () => {
  const file = freshFile();
  using db = openDatabase(file);
  db.exec('create table t (a)');
  using other = openDatabase(file);
  other.exec('begin immediate');
  await assert.rejects(
    immediate(db, () => assert.fail('the body must not run'), { deadlineMs: 20 }),
    { code: 'ERR_EM_STORE_BUSY' },
  );
  assert.equal(db.isTransaction, false);
});

test('a reader that blocks COMMIT of a rollback journal delays it, and the body is repeated from the start', async () => {
  const file = freshFile();
  using db = openDatabase(file);
  db.exec('create table t (a); insert into t values (0), (1)');
  using reader = openDatabase(file);
  const rows = reader.prepare('select a from t').iterate();
  rows.next();
  let runs = 0;
  const done = immediate(
    db,
    () => {
      runs += 1;
      db.exec('insert into t values (2)');
    },
    { deadlineMs: 5000 },
  );
  assert.equal(db.isTransaction, false, 'no transaction stays open between tries');
  rows.return?.();
  await done;
  assert.ok(runs >= 2);
  assert.deepEqual(look(file, 'select count(*) as n from t'), [{ n: 3 }]);
});

test('an error of the body is rethrown as it is and leaves nothing behind', async () => {
  const file = freshFile();
  using db = openDatabase(file);
  db.exec('create table t (a primary key)');
  const mine = new Error('mine');
  const failing = immediate(
    db,
    () => {
      db.exec('insert into t values (1)');
      throw mine;
    },
    { deadlineMs: 0 },
  );
  await assert.rejects(failing, (error) => error === mine);
  assert.deepEqual(look(file, 'select * from t'), []);
});

test('a deferred constraint that fails at COMMIT rolls back and says so', async () => {
  const file = freshFile();
  using db = openDatabase(file);
  db.exec('create table p (id integer primary key)');
  db.exec('create table c (p references p deferrable initially deferred)');
  const failing = immediate(db, () => db.exec('insert into c values (1)'), { deadlineMs: 0 });
  await assert.rejects(failing, (error) => primaryCode(error) === 19);
  assert.equal(db.isTransaction, false);
  assert.deepEqual(look(file, 'select * from c'), []);
});

test('a quoted name stays one name', () => {
  using db = openDatabase(freshFile());
  const odd = `a"b'; drop table x; --\u0001`;
  db.exec(`create table ${quoteName(odd)} (a)`);
  assert.equal(db.prepare('select name from sqlite_schema').get()?.name, odd);
});
