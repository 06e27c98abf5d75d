// Goal: a function body that acts outside its transaction is recognised however it is written, and
// ordinary code passes. Method: bodies as people and attackers write them; each reason is stated by
// hand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judgeBody, namesIn } from '../../../../src/adapters/postgres/certify/body.ts';

const REFUSED: readonly (readonly [body: string, reason: RegExp])[] = [
  ['begin notify c; end', /NOTIFY/],
  ['begin NoTiFy c; end', /NOTIFY/],
  ['notify c', /NOTIFY/],
  ['select 1; notify c', /NOTIFY/],
  ['begin if x then notify c; end if; end', /NOTIFY/],
  ['begin if x then null; else notify c; end if; end', /NOTIFY/],
  ['begin loop notify c; end loop; end', /NOTIFY/],
  ['begin <<l>> notify c; end', /NOTIFY/],
  ['begin /* x */ notify /* y */ c; end', /NOTIFY/],
  ['begin -- x\n notify c; end', /NOTIFY/],
  [String.raw`begin perform 'a\'; notify c; perform 'b'; end`, /NOTIFY/],
  [`begin perform $x$ ' $x$; notify c; end`, /NOTIFY/],
  [String.raw`begin perform E'a\''; notify c; end`, /NOTIFY/],
  ['begin /* /* */ */ notify c; end', /NOTIFY/],
  [`begin execute 'notify c'; end`, /NOTIFY/],
  ['begin execute $$notify c$$; end', /NOTIFY/],
  [`begin execute 'execute ''notify c'''; end`, /NOTIFY/],
  [`begin execute $q$select ''; notify c; select ''$q$; end`, /NOTIFY/],
  [`begin execute 'select 1'\n';'\n'notify c'; end`, /EXECUTE/],
  [`begin execute 'select 1'\n'using' '; notify c'; end`, /EXECUTE/],
  ['begin execute a; end', /EXECUTE/],
  ['begin execute function; end', /EXECUTE/],
  [`begin execute 'a' || 'b'; end`, /EXECUTE/],
  ['begin for r in execute q loop null; end loop; end', /EXECUTE/],
  ['begin return query execute q; end', /EXECUTE/],
  ['begin open c for execute q; end', /EXECUTE/],
  ['begin listen c; end', /LISTEN/],
  ['begin set a = 1; end', /SET/],
  ['begin reset a; end', /RESET/],
  ['begin set constraints all deferred; end', /CONSTRAINTS/],
  ['begin declare c cursor with hold for select 1; end', /WITH HOLD/],
  [`begin perform setval('s', 1); end`, /setval/],
  [`begin perform "setval"('s', 1); end`, /setval/],
  [String.raw`begin perform u&"pg\005Fnotify"(1, 2); end`, /Unicode/],
  [`begin set local client_encoding = 'SJIS'; end`, /how strings are read/],
  [`begin set local NAMES 'SJIS'; end`, /how strings are read/],
  ['begin set local statement_timeout = 0; end', /time limit/],
  ['begin set local Transaction_Timeout to 0; end', /time limit/],
  ['begin perform public.set_limit(0.1); end', /changes the session/],
  ['begin commit; end', /COMMIT/],
  [`begin copy t to '/tmp/x'; end`, /COPY/],
];

for (const [body, reason] of REFUSED)
  test(`refused: ${body}`, () => assert.match(judgeBody(body).join('; '), reason));

const ADMITTED: readonly string[] = [
  `begin insert into t values ('notify c; execute x'); return null; end`,
  'begin update t set notify = true where id = new.id; return new; end',
  'begin new.copy := 1; return new; end',
  'declare notify text; begin notify := 1; end',
  'begin insert into t values (1) on conflict do nothing; end',
  'begin -- notify c;\n return null; end',
  'begin set local lock_timeout = 100; end',
  'begin grant execute on function f() to r; end',
  `begin execute 'insert into t values (1)'; end`,
  `begin execute 'insert into t values ($1)' using new.id; end`,
  'begin select reset from t; end',
];

for (const body of ADMITTED) test(`admitted: ${body}`, () => assert.deepEqual(judgeBody(body), []));

test('every name a body could mean is found: words, quoted names, names in strings', () => {
  const names = namesIn(
    `begin perform "My Fn"(1); insert into App.T values ('x.seq'::regclass, $$inner_one$$); end`,
  );
  for (const name of ['My Fn', 'app', 't', 'seq', 'inner_one', 'perform'])
    assert.ok(names.has(name), name);
});

test('doubled quotes are two in a dollar-quoted string and one in an ordinary string', () => {
  const names = namesIn(
    `execute $q$select '--''', inner_one()$q$; execute 'select ''--'', inner_two()'`,
  );
  for (const name of ['inner_one', 'inner_two']) assert.ok(names.has(name), name);
});
