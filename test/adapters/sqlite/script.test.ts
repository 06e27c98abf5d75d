// Goal: a script is divided exactly where its statements end, or refused. Method: texts in which
// semicolons do not end a statement; then pieces of every kind in random order, compared with where
// SQLite itself ends each statement; then whole scripts through a stage.
import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import fc from 'fast-check';
import { describeAction, parseAction } from '../../../src/adapters/sqlite/action.ts';
import { splitScript } from '../../../src/adapters/sqlite/script.ts';
import { freshFile, observe, open } from './database.ts';

for (const [script, expected] of [
  ['select 1', ['select 1']],
  [' select 1 ;\n select 2; ', ['select 1', 'select 2']],
  [";;select ';';;", ["select ';'"]],
  ["select 'a''; b'; select 2", ["select 'a''; b'", 'select 2']],
  ['select 1 as "a;b", 2 as [c;d], 3 as `e;f`', ['select 1 as "a;b", 2 as [c;d], 3 as `e;f`']],
  ['-- pay; now\nselect 1; -- done;', ['-- pay; now\nselect 1']],
  ['/* a; b */ select 1 /* ; */; /* end', ['/* a; b */ select 1 /* ; */']],
  ["select 1 -- ; '\n; select 2", ["select 1 -- ; '", 'select 2']],
  ['select case when 1 then 2 end; select 3', ['select case when 1 then 2 end', 'select 3']],
  [
    'WITH a AS (SELECT 1) SELECT * FROM a; Values (1)',
    ['WITH a AS (SELECT 1) SELECT * FROM a', 'Values (1)'],
  ],
] as const) {
  test(`divides: ${JSON.stringify(script)}`, () => {
    assert.deepEqual(splitScript(script), expected);
  });
}

for (const [script, why] of [
  ['begin; select 1; commit', /^statement 1 begins with BEGIN; a script may have SELECT/],
  ['select 1; commit', /^statement 2 begins with COMMIT/],
  [
    'create trigger t after update on a begin update b set c = 1; delete from d; end; select 1',
    /^statement 1 begins with CREATE/,
  ],
  ['select 1; end', /^statement 2 begins with END/],
  ['pragma writable_schema = on', /^statement 1 begins with PRAGMA/],
  ["attach 'x' as y", /begins with ATTACH/],
  ['-- nothing;', /has no statement/],
  [' ; ;', /has no statement/],
  ['select ?', /statement 1: the statement takes 1 value, but 0 were given/],
] as const) {
  test(`refuses: ${JSON.stringify(script)}`, () => {
    assert.throws(() => parseAction({ script }), { code: 'ERR_EM_ACTION_INVALID', message: why });
  });
}

test('property: every piece is what SQLite itself takes for one statement', () => {
  const db = new DatabaseSync(':memory:');
  const pieces = fc.constantFrom(
    ...["select 'a;b'", "select 'it''s;'", 'select 1 as "x;y"', 'select 1 as [z;]', 'select 2'],
    ...['values (1)', 'select case 1 when 1 then 2 end', 'with a as (select 1) select * from a'],
  );
  const gaps = fc.constantFrom(';', ' ;\n', '; -- note; more\n', ';/* a; b */', ';;', ';\n\n');
  fc.assert(
    fc.property(fc.array(fc.tuple(pieces, gaps), { minLength: 1, maxLength: 8 }), (parts) => {
      const script = parts.map((part) => part.join('')).join('');
      const found = splitScript(script);
      assert.equal(found.length, parts.length);
      for (const sql of found) assert.equal(db.prepare(sql).sourceSQL, sql);
    }),
    { numRuns: 300 },
  );
  db.close();
});

test('a script is the same action as the list of its statements, and runs in order', async () => {
  const script = `-- both invoices
    insert into t (id, a) values (10, 'first; second');
    update t set a = a || '!' where id = 10;`;
  const statements = splitScript(script).map((sql) => ({ sql }));
  assert.deepEqual(
    describeAction(parseAction({ script })),
    describeAction(parseAction({ statements })),
  );
  const file = freshFile('create table t (id integer primary key, a text)');
  await using adapter = await open({ file, relations: ['t'] });
  const { records } = await observe(adapter, { script });
  assert.deepEqual(
    [...records].map(({ after }) => after),
    [{ a: 'first; second!' }],
  );
});
