// Goal: what a session cannot speak for is refused when the adapter opens, in words that say what
// to change. Method: one real file per refusal; the message is compared with the remedy, and the
// file must stay untouched.

import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import type { SqliteOptions } from '../../../src/adapters/sqlite/index.ts';
import { change, copyOf, dump, freshFile, freshPath, observe, open } from './database.ts';

const GOOD = 'create table t (id integer primary key, v)';

const REFUSED: readonly (readonly [
  why: RegExp,
  schema: string,
  relations: SqliteOptions['relations'],
])[] = [
  [
    /no such table \(did you mean "invoice"\?\)/,
    'create table invoice (id integer primary key)',
    ['invoise'],
  ],
  [/did you mean "t"\?\); names are case-sensitive/, GOOD, ['T']],
  [/is a view; register the tables/, `${GOOD}; create view v as select 1`, ['v']],
  [/is a virtual table/, 'create virtual table f using fts5(a)', ['f']],
  [/is a shadow table/, 'create virtual table f using fts5(a)', ['f_data']],
  [/no PRIMARY KEY.*declare one/, 'create table n (a unique not null)', ['n']],
  [/key column "a" may be NULL.*NOT NULL/, 'create table n (a text primary key)', ['n']],
  [
    /key column "b" may be NULL/,
    'create table n (a text not null, b text, primary key (a, b))',
    ['n'],
  ],
  [/key column "id" may be NULL/, 'create table n (id integer primary key desc)', ['n']],
  [/key column "id" may be NULL/, 'create table n (id int primary key)', ['n']],
  [/SQLite’s own/, 'create table n (id integer primary key autoincrement)', ['sqlite_sequence']],
  [/belongs to EffectMatch/, GOOD, ['effectmatch_marker']],
  [
    /belongs to EffectMatch/,
    'create table EFFECTMATCH_x (id integer primary key)',
    ['EFFECTMATCH_x'],
  ],
  [/column named __proto__/, 'create table n (id integer primary key, __proto__ text)', ['n']],
  [/registered twice/, GOOD, ['t', 't']],
  [/registered twice/, GOOD, ['t', 'T']],
  [/no column "w" \(did you mean "v"\?\)/, GOOD, [{ name: 't', volatile: ['w'] }]],
  [/key column "id" cannot be volatile/, GOOD, [{ name: 't', volatile: ['id'] }]],
  [
    /"g" is generated/,
    'create table n (id integer primary key, g as (id))',
    [{ name: 'n', volatile: ['g'] }],
  ],
  [
    /another collation than its key columns/,
    'create table n (a text not null collate nocase, primary key (a collate binary))',
    ['n'],
  ],
  [
    /another collation/,
    'create table n (a text collate rtrim, primary key (a collate nocase)) without rowid',
    ['n'],
  ],
  [/no relations are registered/, GOOD, []],
  [/not encoded in UTF-8/, `pragma encoding = 'UTF-16le'; ${GOOD}`, ['t']],
];

test('every relation that a session cannot speak for is refused with a remedy, and nothing is written', async () => {
  for (const [why, schema, relations] of REFUSED) {
    const file = freshFile(schema);
    const before = dump(file);
    await assert.rejects(open({ file, relations }), (error: Error & { code?: string }) => {
      assert.equal(error.code, 'ERR_EM_ADAPTER_REFUSED', schema);
      assert.match(error.message, why, schema);
      return true;
    });
    assert.equal(dump(file), before, schema);
  }
});

test('relations of every supported kind are admitted with their stored columns and key', async () => {
  const file = freshFile(`
    create table a (id integer primary key, v text);
    create table b (x text not null, y int not null, z, primary key (y, x));
    create table c (k text primary key, v) without rowid;
    create table d (k text primary key, v any) strict;
    create table e (id integer primary key, s as (hex(b)) stored, b blob, v as (length(b)));
    create table f (k text primary key not null collate nocase, seen text);`);
  const relations = ['a', 'b', 'c', 'd', 'e', { name: 'f', volatile: ['seen'] }];
  await using adapter = await open({ file, relations, values: 'digest' });
  assert.deepEqual(adapter.registration, {
    profile: 'net-state',
    values: 'digest',
    targets: [
      { name: 'a', columns: ['id', 'v'], key: ['id'], volatile: [] },
      { name: 'b', columns: ['x', 'y', 'z'], key: ['y', 'x'], volatile: [] },
      { name: 'c', columns: ['k', 'v'], key: ['k'], volatile: [] },
      { name: 'd', columns: ['k', 'v'], key: ['k'], volatile: [] },
      { name: 'e', columns: ['id', 'b'], key: ['id'], volatile: [] },
      { name: 'f', columns: ['k', 'seen'], key: ['k'], volatile: ['seen'] },
    ],
  });
  const evidence = await observe(adapter, { sql: "insert into e (id, b) values (1, x'ff')" });
  assert.deepEqual([...evidence.records][0]?.after, { b: { $bytes: 'ff' } });
});

test('what is not a writable database file is refused', async () => {
  const relations = ['t'];
  const refused = { code: 'ERR_EM_ADAPTER_REFUSED' };
  await assert.rejects(open({ file: ':memory:', relations }), refused);
  await assert.rejects(open({ file: 'file:x.db?mode=memory', relations }), refused);
  await assert.rejects(open({ file: freshPath(), relations }), {
    ...refused,
    message: /create it with its tables first/,
  });
  const folder = freshPath();
  mkdirSync(folder);
  await assert.rejects(open({ file: folder, relations }), refused);
  const text = freshPath();
  writeFileSync(
    text,
    'this is certainly not a database file, but long enough to be taken for one at first sight'.repeat(
      20,
    ),
  );
  await assert.rejects(open({ file: text, relations }), {
    ...refused,
    message: /not a SQLite database/,
  });
  if (process.getuid?.() !== 0) {
    const readOnly = freshFile(GOOD);
    chmodSync(readOnly, 0o444);
    await assert.rejects(open({ file: readOnly, relations }), {
      ...refused,
      message: /write access/,
    });
  }
});

test('options that make no sense are refused', async () => {
  const file = freshFile(GOOD);
  const refuse = async (options: object, why: RegExp) =>
    await assert.rejects(open({ file, relations: ['t'], ...options }), {
      code: 'ERR_EM_ADAPTER_REFUSED',
      message: why,
    });
  await refuse({ profile: 'row-event' }, /needs recorders/);
  await refuse({ profile: 'relation-write' }, /needs recorders/);
  await refuse({ values: 'hashed' }, /neither plain nor digest/);
  await refuse({ busyTimeoutMs: -1 }, /busyTimeoutMs/);
  await refuse({ busyTimeoutMs: Number.NaN }, /busyTimeoutMs/);
});

test('a copy has the id of its original until the id is removed, then it gets one of its own', async () => {
  const file = freshFile(GOOD);
  await using original = await open({ file, relations: ['t'] });
  const copy = copyOf(file);
  const same = await open({ file: copy, relations: ['t'] });
  assert.equal(same.identity.backend, original.identity.backend);
  await same.close();
  change(copy, "delete from effectmatch_meta where name = 'backend'");
  await using own = await open({ file: copy, relations: ['t'] });
  assert.match(own.identity.backend, /^[0-9a-f]{32}$/);
  assert.notEqual(own.identity.backend, original.identity.backend);
});

test('the backend id stays with the file, and control tables of a newer release are refused', async () => {
  const file = freshFile(GOOD);
  const first = await open({ file, relations: ['t'] });
  await first.close();
  await using again = await open({ file, relations: ['t'] });
  assert.deepEqual(again.identity, first.identity);
  assert.match(again.identity.code, /^\d+\.\d+\.\d+/);
  change(file, "update effectmatch_meta set value = '2' where name = 'version'");
  await assert.rejects(open({ file, relations: ['t'] }), { code: 'ERR_EM_STORE_NEWER' });
  change(
    file,
    "update effectmatch_meta set value = '1' where name = 'version'; update effectmatch_meta set value = 'x' where name = 'backend'",
  );
  await assert.rejects(open({ file, relations: ['t'] }), {
    code: 'ERR_EM_ADAPTER_REFUSED',
    message: /damaged/,
  });
});
