// Goal: no SQL that an agent can submit leaves anything behind that is not observed, and none ends
// the held transaction. Method: a catalogue of escapes against a schema with every kind of bait; an
// independent connection compares the file.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { ALLOWED_FUNCTIONS } from '../../../src/adapters/sqlite/fence.ts';
import { dump, freshFile, freshPath, gapsOf, held, open, stage } from './database.ts';

const SCHEMA = `
  create table account (id integer primary key, name text not null unique on conflict rollback, balance integer);
  create table entry (id integer primary key autoincrement, account integer references account (id), amount);
  create table noted (id integer primary key, what text);
  create table secret (id integer primary key, word text);
  create table outbox (id integer primary key, what text);
  create table orphan (id integer primary key, account integer references account (id) on delete cascade);
  create table named (name text primary key not null, v);
  create table "odd ""name'; --" (id integer primary key, "a b" text);
  create virtual table search using fts5(what);
  create virtual table search4 using fts4(what);
  create view accounts as select id, name from account;
  create view peek as select * from effectmatch_marker;
  create view risky as select load_extension('x') as x;
  create trigger accounts_insert instead of insert on accounts begin insert into outbox (what) values (new.name); end;
  create trigger accounts_delete instead of delete on accounts begin delete from account where id = old.id; end;
  create table link (id integer primary key, what text);
  create trigger chain1 after insert on link begin update named set v = new.what; end;
  create trigger chain2 after update of v on named begin insert into outbox (what) values (new.v); end;
  create trigger loud after update of balance on account begin select sqlite_log(1, 'x'); end;
  create trigger spiteful after insert on entry when new.amount = 'bang'
    begin select raise(rollback, 'rolled back by a trigger'); end;
  create trigger halting after insert on entry when new.amount = 'stop' begin select raise(fail, 'stopped'); end;
  insert into account values (1, 'ann', 10), (2, 'bob', 20);
  insert into entry (account, amount) values (1, 5), (2, 7);
  insert into secret values (1, 'plugh');
  insert into orphan values (1, 1);
  insert into named values ('a', 1);
  insert into search values ('hello');
  analyze;
`;
const REGISTERED = ['account', 'entry', 'noted', 'link', 'named', `odd "name'; --`];

const DENIED: { readonly [what: string]: readonly string[] } = {
  'writes to "outbox", which is not registered': [
    "insert into outbox (what) values ('x')",
    "INSERT INTO OUTBOX (what) VALUES ('x')",
    'insert into main."OutBox" (what) values (1)',
    'insert into [outbox] default values',
    'replace into outbox values (1, 2)',
    'insert into outbox (id) values (1) on conflict do nothing',
    'with x (a) as (values (1)) insert into outbox (id) select a from x returning id',
    'explain insert into outbox values (1, 2)',
    "insert into accounts (name) values ('through a view')",
    "insert into link (what) values ('chain')",
    "update named set v = 2 where name = 'nobody'",
  ],
  'writes to "secret", which is not registered': [
    "update secret set word = 'xyzzy'",
    'delete from secret',
    'delete from secret where false',
    'update secret set word = account.name from account where account.id = secret.id',
  ],
  'writes to "orphan", which is not registered': [
    'delete from account where id = 1',
    'delete from accounts',
    'replace into account values (9, 1, 1)',
  ],
  'writes to "search", which is not registered': [
    "insert into search (what) values ('x')",
    "insert into search (search) values ('rebuild')",
  ],
  'which is not registered': [
    'insert into search_data values (1, 2)',
    "insert into search4 (search4) values ('optimize')",
    'update sqlite_sequence set seq = 99',
    'delete from sqlite_sequence',
    'analyze',
    'analyze account',
    "update sqlite_stat1 set stat = '1'",
    "insert into sqlite_sequence values ('entry', 1)",
  ],
  'changes the schema': [
    'create table t (a)',
    'insert into sqlite_schema default values',
    'create table t as select * from secret',
    'create index i on account (name)',
    'create unique index i on account (balance)',
    'create view v as select 1',
    'create temp table t (a)',
    'create temp table account as select * from main.account',
    'create temp view v as select 1',
    'create virtual table t using fts5(a)',
    'create virtual table temp.t using dbstat',
    'drop table secret',
    'drop view accounts',
  ],
  'DROP TRIGGER': ['drop trigger chain1'],
  'CREATE TRIGGER': ['create trigger t after insert on noted begin select 1; end'],
  'CREATE TEMP TRIGGER': [
    'create temp trigger t after insert on account begin delete from secret; end',
  ],
  'ALTER TABLE': [
    'alter table account rename to accnt',
    'alter table account add column extra',
    'alter table account drop column balance',
    'alter table account rename column name to label',
  ],
  REINDEX: ['reindex', 'reindex account'],
  ATTACH: [
    "attach ':memory:' as other",
    "attach 'OTHER' as main2",
    "attach 'file:OTHER?mode=rwc' as other",
  ],
  DETACH: ['detach main'],
  PRAGMA: [
    'pragma user_version = 5',
    'pragma user_version',
    'pragma application_id = 5',
    'pragma schema_version = 5',
    'pragma writable_schema = on',
    'pragma foreign_keys = off',
    'pragma defer_foreign_keys = on',
    'pragma ignore_check_constraints = on',
    'pragma recursive_triggers = on',
    'pragma trusted_schema = on',
    'pragma synchronous = off',
    'pragma journal_mode = off',
    'pragma journal_mode',
    'pragma locking_mode = exclusive',
    'pragma wal_checkpoint(truncate)',
    'pragma optimize',
    'pragma incremental_vacuum',
    'pragma auto_vacuum = full',
    'pragma encoding = "UTF-16"',
    "pragma temp_store_directory = '/'",
    'pragma database_list',
    'pragma table_xinfo(secret)',
    'pragma main.integrity_check',
    'select optimize(search4) from search4',
    'select * from search', // full-text search asks for a pragma of its own
    'select * from pragma_user_version',
    'select * from pragma_database_list',
    "select * from pragma_table_info('secret')",
    'select * from pragma_journal_mode',
    "select * from pragma_table_xinfo('effectmatch_marker')",
  ],
  'not the agent’s to control': [
    'begin',
    'begin exclusive',
    'commit',
    'end transaction',
    'rollback',
    'savepoint s',
    'release s',
    'rollback to s',
  ],
  'calls the function': [
    "select load_extension('evil.so')",
    "select LOAD_EXTENSION('evil.so', 'main')",
    "select fts3_tokenizer('simple')",
    "select fts3_tokenizer('simple', x'0000000000000000')",
    "select sqlite_log(1, 'x')",
    'select optimize(1)',
    "select highlight(search, 0, '', '') from search",
    'select rtreecheck(1)',
    "insert into noted (what) select fts3_tokenizer('simple')",
    "select 1 where exists (select 1 from secret where load_extension('x'))",
    'update account set balance = 1',
  ],
  'which belongs to EffectMatch': [
    'select * from effectmatch_marker',
    'select count(*) from effectmatch_marker',
    'select exists (select 1 from EFFECTMATCH_MARKER)',
    'select text from "effectmatch_marker" as harmless',
    'select * from peek',
    'insert into noted (what) select value from effectmatch_meta',
    "insert into effectmatch_marker values ('occ', 'void', '', '', '')",
    "insert into EffectMatch_Marker values ('occ', 'void', '', '', '')",
    "insert or ignore into effectmatch_probe values ('x')",
    'delete from effectmatch_marker',
    "update effectmatch_meta set value = 'x'",
    'update account set name = (select value from effectmatch_meta) where id = 1',
  ],
  'changes the hidden rowid': [
    'update named set rowid = 9',
    'update named set _rowid_ = 9',
    'update named set OID = 9 where false',
  ],
};

const FAILED: { readonly [why: string]: readonly string[] } = {
  'text after the first statement': [
    'select 1; select 2',
    "update noted set what = 'x'; commit",
    'select 1;;; delete from noted',
    'select 1; -- harmless\ndelete from noted',
    'select 1 /* ; */; /* x */ delete from noted /*',
    "select ';'; delete from noted",
  ],
  'rolled the whole transaction back': [
    "insert into account values (3, 'ann', 0)",
    'insert or rollback into entry (id) values (1)',
    "insert into entry (amount) values ('bang')",
    "insert into entry (amount) values (1), (2), ('bang')",
  ],
  'cannot VACUUM from within a transaction': ['vacuum', "vacuum into 'OTHER'"],
  'may not be modified': ["update sqlite_schema set sql = 'x'", 'delete from sqlite_master'],
  stopped: ["insert into entry (amount) values (1), ('stop'), (2)"],
  'UNIQUE constraint failed': ['insert or fail into entry (id, account) values (50, 1), (1, 1)'],
  'FOREIGN KEY constraint failed': ['insert into entry (account) values (99)'],
  'unsafe use': ['select * from risky'],
  'string or blob too big': [
    'insert into noted (what) values (zeroblob(1000000000))',
    "select printf('%900000000d', 1)",
  ],
  'integer overflow': ['select abs(-9223372036854775807 - 1)'],
  'no such table': ['select * from temp.account', "insert into temp.account values (1, 'x', 1)"],
  'no such column': ['select "a string that is none"'],
  'no such function': [
    "select eval('x')",
    "select readfile('/etc/passwd')",
    "select writefile('OTHER', 'x')",
    "select edit('x')",
  ],
  'syntax error': ['selec 1', '.shell ls', 'copy noted from stdin'],
  'contains no statements': ['-- only a comment', ';', '/* open'],
};

for (const [reason, catalogue] of Object.entries({
  'outlet-denied': DENIED,
  'action-failed': FAILED,
})) {
  test(`${reason}: the whole catalogue is refused for the reason stated, and the file stays as it was`, async () => {
    const file = freshFile(SCHEMA);
    await using adapter = await open({ file, relations: REGISTERED });
    const before = dump(file);
    const other = freshPath();
    const surprises: string[] = [];
    let checked = 0;
    for (const [why, statements] of Object.entries(catalogue)) {
      for (const text of statements) {
        checked += 1;
        const staged = await stage(adapter, { sql: text.replace('OTHER', other) });
        if (staged.kind === 'held') {
          surprises.push(`${text}: was held`);
          await staged.stage.discard();
        } else if (staged.reason !== reason || !staged.detail.includes(why)) {
          surprises.push(`${text}: ${staged.reason}, ${staged.detail}`);
        }
      }
    }
    assert.deepEqual(surprises, []);
    assert.equal(dump(file), before);
    assert.equal(existsSync(other), false, 'no file was created beside the database');
    assert.ok(checked > 20);
  });
}

test('what fails half way leaves nothing, with either journal', async () => {
  for (const mode of ['wal', 'delete']) {
    const file = freshFile(`pragma journal_mode = ${mode}; ${SCHEMA}`);
    await using adapter = await open({ file, relations: REGISTERED });
    const before = dump(file);
    const write = { sql: "insert into noted (what) values ('half')" };
    for (const last of [
      'commit',
      'selec',
      'insert into outbox default values',
      "insert into entry (amount) values ('bang')",
    ]) {
      const staged = await stage(adapter, { statements: [write, { sql: last }, write] });
      assert.equal(staged.kind, 'failed');
      assert.match(staged.kind === 'failed' ? staged.detail : '', /^statement 2: /);
    }
    assert.equal(dump(file), before);
    await using candidate = await held(adapter, write);
    assert.equal((await candidate.observe()).records.length, 1, 'the adapter goes on working');
  }
});

test('reading is free, and what only reads leaves no record', async () => {
  const file = freshFile(SCHEMA);
  await using adapter = await open({ file, relations: REGISTERED });
  for (const sql of [
    'select * from secret',
    'select count(*), max(balance), json_group_array(name) from account',
    "select value from json_each('[1,2,3]')",
    'with recursive n (i) as (values (1) union all select i + 1 from n where i < 100) select sum(i) from n',
    'select row_number() over (order by id) from account',
    "select * from account where name like 'a%' and name glob 'a*'",
    'explain query plan select * from account',
    'values (1), (2)',
    'select 1 ; -- a comment\n/* and another */ ;',
    "select datetime('now'), random(), hex(randomblob(4)), 1 -> '$', typeof(1.5)",
  ]) {
    await using candidate = await held(adapter, { sql });
    const evidence = await candidate.observe();
    assert.deepEqual(evidence.records, [], sql);
    assert.deepEqual(gapsOf(adapter, evidence), [], sql);
  }
});

test('names with quotes, spaces and other case are one relation each', async () => {
  const file = freshFile(SCHEMA);
  await using adapter = await open({ file, relations: REGISTERED });
  const sql = `insert into "ODD ""NAME'; --" ("A B") values ('x')`;
  await using candidate = await held(adapter, { sql });
  const evidence = await candidate.observe();
  assert.deepEqual(evidence.records, [
    { op: 'insert', target: `odd "name'; --`, key: { id: 1 }, before: null, after: { 'a b': 'x' } },
  ]);
  assert.deepEqual(gapsOf(adapter, evidence), []);
});

test('a trigger of an old schema with a string in double quotes fails closed', async () => {
  using old = new DatabaseSync(freshPath(), { enableDoubleQuotedStringLiterals: true });
  const file = old.location() ?? assert.fail();
  old.exec(
    'create table t (id integer primary key, v); create trigger q after insert on t begin update t set v = "x"; end',
  );
  old.close();
  await using adapter = await open({ file, relations: ['t'] });
  const staged = await stage(adapter, { sql: 'insert into t (v) values (1)' });
  assert.match(staged.kind === 'failed' ? staged.detail : '', /no such column: "x"/);
});

test('every function of this SQLite is allowed on purpose or denied on purpose', () => {
  using db = new DatabaseSync(':memory:');
  const rows = db.prepare('select distinct name, builtin from pragma_function_list').all();
  const known = rows.map((row) => String(row.name));
  const outside = [
    'load_extension',
    'sqlite_log',
    'sqlite_compileoption_get',
    'sqlite_compileoption_used',
  ];
  const unlisted = rows.filter(
    (row) => row.builtin === 1 && !ALLOWED_FUNCTIONS.has(String(row.name)),
  );
  assert.deepEqual(unlisted.map((row) => row.name).sort(), outside.sort());
  const ofExtensions = rows.filter(
    (row) => row.builtin === 0 && ALLOWED_FUNCTIONS.has(String(row.name)),
  );
  assert.deepEqual(ofExtensions, [], 'nothing that an extension brings is allowed');
  assert.deepEqual(
    [...ALLOWED_FUNCTIONS].filter((name) => !known.includes(name)),
    [],
  );
});
