// Goal: one statement that reads or writes rows is admitted, everything else is refused by the name
// people know it by. Method: statements of every kind through PostgreSQL's own grammar; hostile
// shapes and nesting.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { loadGate, type StatementGate } from '../../../src/adapters/postgres/statement-gate.ts';

let gate: StatementGate;
before(async () => {
  gate = await loadGate();
});

const procedures = new Set(['app.transfer', 'close_day']);

for (const [sql, parameters] of [
  ['select 1', 0],
  ['select 1;', 0],
  ['select * from t where a = $2 and b = $1 for update', 2],
  ['values ($1), ($2)', 2],
  ['table t', 0],
  ['select a from t union all (select b from u limit 1)', 0],
  ['insert into app.t (a) values ($1) on conflict (a) do update set b = excluded.b returning *', 1],
  ['update "T x" set a = (select max(b) from u) where c in (select $1)', 1],
  ['delete from t using u where t.a = u.a', 0],
  [
    'merge into t using s on t.a = s.a when matched then update set b = 1 when not matched then insert values (1)',
    0,
  ],
  ['with moved as (delete from a where x = $1 returning *) insert into b select * from moved', 1],
  [
    'with recursive r as (select 1 as n union all select n + 1 from r where n < 3) select * from r',
    0,
  ],
  ['select app.transfer_now($1, $2, $3)', 3],
  ["select app.nextval('x')", 0],
  ["select 'commit; drop table t'", 0],
  ['select $$; commit $$ as "set"', 0],
  ['/* commit */ select 1 -- ; commit', 0],
  ['call app.transfer($1, 2)', 1],
  ['call public.close_day()', 0],
  ['CALL Close_Day()', 0],
  ['select show_limit(), isn_weak from t where set_limit > $1', 1],
] as const) {
  test(`admits: ${sql}`, () => {
    const returnsRows =
      !/^(?:insert|update|delete|merge|with moved)/.test(sql) || /returning \*$/.test(sql);
    assert.deepEqual(gate.check(sql, procedures), { kind: 'admitted', parameters, returnsRows });
  });
}

for (const [sql, why] of [
  ['commit', /^COMMIT is not admitted;/],
  ['begin', /^BEGIN is not admitted;/],
  ['rollback to savepoint a', /^ROLLBACK TO is not admitted;/],
  ['savepoint a', /^SAVEPOINT is not admitted;/],
  ["prepare transaction 'x'", /^PREPARE is not admitted;/],
  ['set synchronous_commit = off', /^SET is not admitted;/],
  ['reset all', /^SET is not admitted;/],
  ['show all', /^SHOW is not admitted;/],
  ['set constraints all immediate', /^SET CONSTRAINTS is not admitted;/],
  ['notify a', /^NOTIFY is not admitted;/],
  ['listen a', /^LISTEN is not admitted;/],
  ['copy t from stdin', /^COPY is not admitted;/],
  ["copy (select 1) to program 'x'", /^COPY is not admitted;/],
  ['create table t (a int)', /^CREATE TABLE is not admitted;/],
  ['create table t as select 1', /^CREATE TABLE AS is not admitted;/],
  ['create index on t (a)', /^CREATE INDEX is not admitted;/],
  ['create function f() returns int language sql return 1', /^CREATE FUNCTION is not admitted;/],
  ['alter table t disable trigger all', /^ALTER TABLE is not admitted;/],
  ['alter role current_user set x = 1', /^ALTER ROLE SET is not admitted;/],
  ['drop table t', /^DROP is not admitted;/],
  ['drop owned by current_user', /^DROP OWNED is not admitted;/],
  ['truncate t', /^TRUNCATE is not admitted;/],
  ['grant select on t to u', /^GRANT is not admitted;/],
  ['do $$ begin end $$', /^DO is not admitted;/],
  ['lock table t', /^LOCK is not admitted;/],
  ['explain analyze delete from t', /^EXPLAIN is not admitted;/],
  ['prepare x as delete from t', /^PREPARE is not admitted;/],
  ['execute x', /^EXECUTE is not admitted;/],
  ['deallocate all', /^DEALLOCATE is not admitted;/],
  ['discard all', /^DISCARD is not admitted;/],
  ['declare c cursor with hold for select 1', /^DECLARE CURSOR is not admitted;/],
  ['vacuum', /^VACUUM is not admitted;/],
  ['call app.other()', /^CALL of app\.other is not admitted: it is not a registered/],
  ['call transfer()', /^CALL of transfer is not admitted: it is not a registered/],
  ['select 1 into x', /^SELECT INTO/],
  ['with a as (select 1) select * into x from a', /^SELECT INTO/],
  ['select 1; select 2', /2 statements/],
  ['select 1; commit', /2 statements/],
  ['-- nothing', /no statement/],
  ['selec 1', /cannot be parsed: syntax error at or near "selec"$/],
  [
    "select '\u00fc',\n  1;\nupdtae t",
    /cannot be parsed: syntax error at or near "updtae" in line 3$/,
  ],
  [
    "select currval('s')",
    /currval\(\) is not admitted; to use a new key, write WITH new AS \(INSERT/,
  ],
  ["select 'open", /cannot be parsed/],
  ['insert into effectmatch.probe values (1)', /schema effectmatch/],
  ['with x as (delete from effectmatch.marker returning *) select 1', /schema effectmatch/],
  ['select "effectmatch".promote()', /function of the schema effectmatch/],
  ["select pg_notify('a', 'b')", /^pg_notify\(\) is not admitted: it acts outside/],
  ['select PG_CATALOG."nextval"(\'x\')', /^nextval\(\)/],
  ["update t set a = (select setval('s', 1))", /^setval\(\)/],
  ["insert into t select * from public.dblink('x', 'y') as d (a int)", /^dblink\(\)/],
  ["select * from query_to_xml('delete from t', true, true, '')", /^query_to_xml\(\)/],
  ["select * from ts_stat('select v from t')", /^ts_stat\(\)/],
  ['select pg_advisory_lock(1)', /^pg_advisory_lock\(\)/],
  ['select pg_try_advisory_xact_lock(1)', /^pg_try_advisory_xact_lock\(\)/],
  ["select set_config('role', 'x', true)", /^set_config\(\)/],
  ['call app.transfer(lo_create(0)::text::int, 2)', /^lo_create\(\)/],
  ['select set_limit(0.1)', /^set_limit\(\) is not admitted: it changes the session$/],
  ['update t set a = extensions."set_limit"(0.1)', /^set_limit\(\) .* changes the session$/],
  ['select isn_weak(true)', /^isn_weak\(\) is not admitted: it changes the session$/],
  ['delete from t where public.ISN_WEAK(false)', /^isn_weak\(\) .* changes the session$/],
] as const) {
  test(`refuses: ${sql}`, () => {
    const finding = gate.check(sql, procedures);
    assert.ok(finding.kind === 'refused', JSON.stringify(finding));
    assert.match(finding.why, why);
  });
}

test('nesting without end is refused, and the parser works afterwards', () => {
  for (const sql of [
    `select ${'('.repeat(30_000)}1${')'.repeat(30_000)}`,
    `select ${'1+'.repeat(200_000)}1`,
  ]) {
    assert.equal(gate.check(sql, procedures).kind, 'refused');
    assert.equal(gate.check('select 1', procedures).kind, 'admitted');
  }
});

for (const [script, expected] of [
  ['select 1', ['select 1']],
  [' select 1 ;\n select 2; ', ['select 1', 'select 2']],
  ["select 'ä;€ 𝄞'; select 'ö'", ["select 'ä;€ 𝄞'", "select 'ö'"]],
  ['select $a$ ; $b$ ; $a$; select $$;$$', ['select $a$ ; $b$ ; $a$', 'select $$;$$']],
  ["select E'\\';'; select 'a''; b'", ["select E'\\';'", "select 'a''; b'"]],
  ['select 1 as "a;b"; select 2', ['select 1 as "a;b"', 'select 2']],
  ['/* a; /* b; */ */ select 1; -- ;\nselect 2 -- ; end', ['select 1', 'select 2 -- ; end']],
  ['-- nothing;', []],
  [';;', []],
] as const) {
  test(`divides: ${JSON.stringify(script)}`, () => {
    const found = gate.split(script);
    assert.deepEqual(found, { kind: 'script', statements: expected });
    if (found.kind !== 'script') return;
    for (const sql of found.statements)
      assert.equal(gate.check(sql, procedures).kind, 'admitted', sql);
  });
}

test('a body with semicolons stays one statement, and is refused as what it is', () => {
  const sql =
    'create function f() returns int begin atomic select 1; select 2; end; create or replace rule r as on insert to t do also (delete from a; delete from b)';
  const found = gate.split(sql);
  assert.equal(found.kind === 'script' ? found.statements.length : found.why, 2);
});

test('a script that does not parse is refused as a whole', () => {
  for (const script of [
    'select 1; selec 2',
    '\\set x 1',
    "select 'open",
    'copy t from stdin;\n1\t2\n\\.',
  ])
    assert.match(JSON.stringify(gate.split(script)), /"refused".*cannot be parsed/);
});
