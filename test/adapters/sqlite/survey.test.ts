// Goal: a survey lists every route out of the database, fresh, and calls open what it cannot vouch
// for. Method: real schema changes by another connection between two surveys of one adapter.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { change, freshFile, open, type SqliteAdapter } from './database.ts';

const SCHEMA = `
  create table t (id integer primary key, v, seen);
  create table other (id integer primary key);
  create view shown as select * from t;
  create virtual table words using fts5(w);
  create trigger noted after insert on t begin delete from other; end;
`;

async function openOutlets(adapter: SqliteAdapter): Promise<string[]> {
  const { outlets } = await adapter.survey();
  return outlets
    .filter((outlet) => outlet.disposition === 'unclassified')
    .map(({ outlet, by }) => `${outlet}: ${by}`);
}

test('every table, view and trigger is listed with what observes or denies it', async () => {
  const file = freshFile(SCHEMA);
  await using adapter = await open({ file, relations: [{ name: 't', volatile: ['seen'] }] });
  const { outlets, backend } = await adapter.survey();
  const found = new Map(
    outlets.map(({ outlet, disposition, by }) => [outlet, `${disposition}: ${by}`]),
  );
  assert.equal(backend, adapter.identity.backend);
  assert.equal(
    found.get('relation t'),
    'observed: session changeset, volatile and not compared: seen',
  );
  assert.equal(found.get('relation other'), 'denied: authorizer: not registered');
  assert.match(found.get('relation words') ?? '', /^denied/);
  assert.match(found.get('relation words_data') ?? '', /^denied/);
  assert.match(
    found.get('trigger noted on t') ?? '',
    /^observed: its writes to registered relations/,
  );
  assert.match(found.get('view shown') ?? '', /^denied/);
  for (const route of [
    'ATTACH',
    'PRAGMA',
    'VACUUM',
    'temporary',
    'transaction control',
    'extension loading',
  ]) {
    assert.ok(
      [...found].some(([outlet, how]) => outlet.startsWith(route) && /^(denied)/.test(how)),
      route,
    );
  }
  assert.equal(found.size, outlets.length, 'no outlet is listed twice');
});

test('an unchanged schema gives the very same survey, any change another configuration', async () => {
  const file = freshFile(SCHEMA);
  await using adapter = await open({ file, relations: ['t'] });
  const first = await adapter.survey();
  change(file, 'insert into other values (5); insert into t values (1, 2, 3)');
  assert.equal(await adapter.survey(), first, 'rows are not configuration');
  assert.ok(Object.isFrozen(first.outlets));
  const seen = new Set([first.configuration]);
  for (const sql of [
    'create table more (a)',
    'drop trigger noted',
    'create index i on t (v)',
    'pragma user_version = 7',
    'pragma application_id = 7',
    'pragma journal_mode = wal',
  ]) {
    change(file, sql);
    const next = await adapter.survey();
    assert.ok(!seen.has(next.configuration), sql);
    seen.add(next.configuration);
    assert.deepEqual(await openOutlets(adapter), [], sql);
  }
  assert.equal((await adapter.survey()).enforcement, first.enforcement);
});

test('a registered relation that is no longer what was registered is open', async () => {
  for (const [sql, why] of [
    ['drop table t', /no such table/],
    ['alter table t rename to u', /no such table/],
    ['alter table t add column extra', /columns or key changed/],
    ['alter table t drop column v', /columns or key changed/],
    ['drop table t; create table t (id, v, seen)', /no PRIMARY KEY/],
    [
      'drop table t; create table t (id integer, v text not null primary key, seen)',
      /columns or key changed/,
    ],
    ['drop table t; create view t as select 1 as id, 2 as v, 3 as seen', /is a view/],
    ['drop table t; create virtual table t using fts5(id, v, seen)', /virtual/],
  ] as const) {
    const file = freshFile(SCHEMA);
    await using adapter = await open({ file, relations: ['t'] });
    change(file, sql);
    const found = await openOutlets(adapter);
    assert.equal(found.length, 1, sql);
    assert.match(found[0] ?? '', why, sql);
  }
});

test('anything that was done to the control tables is open', async () => {
  for (const sql of [
    'create trigger sneak after insert on effectmatch_marker begin delete from t; end',
    'create index slow on effectmatch_marker (text)',
    'create view effectmatch_view as select 1',
    'create table effectmatch_more (a)',
    'alter table effectmatch_marker add column extra text',
    'drop table effectmatch_probe',
  ]) {
    const file = freshFile(SCHEMA);
    await using adapter = await open({ file, relations: ['t'] });
    assert.deepEqual(await openOutlets(adapter), []);
    change(file, sql);
    assert.notDeepEqual(await openOutlets(adapter), [], sql);
  }
});
