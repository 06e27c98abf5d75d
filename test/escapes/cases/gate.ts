import { insert, update } from '../../../src/protocol/draft.ts';
import type { EscapeCase, EscapeFile, Expectation } from '../case.ts';
import { DETOURS } from './detours.ts';
import { payAnd, planted } from './planted.ts';
import { ACT, NOT_ADMITTED, PAID, PAY, replaceAct, SCHEMA } from './shop.ts';

const LONG = 'shout_'.padEnd(63, 'x');

/**
 * What the application and others left open to every role, which a managed login cannot or need not
 * close.
 */
const OPEN = `
  create extension dblink schema public;
  create extension pgcrypto schema public;
  create extension citext schema public;
  create extension hstore schema public;
  grant execute on function pg_read_file(text) to public;
  set role {app};
  create function app.shout(text) returns text language plpgsql as $$ begin perform pg_notify('leak', $1); return $1; end $$;
  create view app.loud as select app.shout('x') as x;
  create table app.open (id int);
  create sequence app.loose;
  grant select on app.loud to public;
  grant all on app.open to public;
  grant usage, update on sequence app.loose to public;
  reset role;
  create schema away; grant usage on schema away to public;
  create function away.shout(text) returns text language sql as 'select app.shout($1)';
  create function public.${LONG}() returns text language sql as $$ select app.shout('x') $$;
  create function public.initcap(app.invoice) returns text language sql as $$ select app.shout('x') $$;
  create function public.mood(app.invoice) returns text language sql as $$ select app.shout('x') $$;
  create function public.mood(int) returns text language sql as $$ select app.shout('x') $$;
  create function public.same(anyelement) returns anyelement language plpgsql as $$ begin perform app.shout('x'); return $1; end $$;
  create function public.total(variadic int[]) returns int language plpgsql as $$ begin perform app.shout('x'); return 1; end $$;
  create function public.extra(a int, b text default app.shout('x')) returns int language sql as 'select a';
  create function public.many() returns setof int language plpgsql as $$ begin perform app.shout('x'); return next 1; end $$;
  create function public.gather(text, text) returns text language plpgsql as $$ begin perform app.shout('x'); return $1; end $$;
  create aggregate public.collect(text) (sfunc = public.gather, stype = text, initcond = '');`;

const denied = (because: string): Expectation => ({ ...NOT_ADMITTED, because });

/** The approved update, with something hidden in a statement of its own. */
const hidden = (name: string, sql: string, because: string, more: Partial<EscapeCase> = {}) => ({
  name: `gate: ${name}`,
  action: { sql },
  approved: PAID,
  expectation: denied(because),
  ...more,
});

/** The approved update with an expression in its condition. */
const inWhere = (expression: string, because: string, more: Partial<EscapeCase> = {}): EscapeCase =>
  hidden(
    expression.slice(0, 60),
    `update app.invoice set status = 'paid' where id = 1 and (${expression}) is not null`,
    because,
    more,
  );

const NOTIFY = 'pg_notify() is not';
const SHOUT = 'app.shout() is not admitted';

/** Built-ins by every way of writing their names. */
const SPELLED: readonly EscapeCase[] = [
  inWhere("pg_notify('leak', 'x')", NOTIFY),
  inWhere("pg_catalog.pg_notify('leak', 'x')", NOTIFY),
  inWhere(`"pg_notify"('leak', 'x')`, NOTIFY),
  inWhere("PG_Notify/* */\n('leak', 'x')", NOTIFY),
  inWhere(`U&"pg\\005fnotify"('leak', 'x')`, NOTIFY),
  inWhere(`U&"pg!005fnotify" uescape '!' ('leak', 'x')`, NOTIFY),
  inWhere(`U&"\\0070g_notify"('leak', 'x')`, NOTIFY),
  inWhere(`${LONG}tail()`, 'is not a registered entry point'),
  inWhere(`postgres.app.shout('x')`, 'a name with a database in it'),
  inWhere('information_schema._pg_char_octet_length(25, 4)', 'there is no function'),
  inWhere("pg_temp.shout('x')", 'there is no function'),
  inWhere("'x'::pg_temp.kind", 'there is no type'),
];

/** Built-ins that rights would close, one of every kind. */
const BUILTINS: readonly EscapeCase[] = [
  ...(
    [
      ["set_config('search_path', 'app', false)", 'set_config()'],
      ["set_config('effectmatch.stage', '(0,1)', true)", 'set_config()'],
      ['setseed(0.5)', 'setseed()'],
      ['lo_create(0)', 'lo_create()'],
      ["lo_from_bytea(0, 'x')", 'lo_from_bytea()'],
      ["lo_import('/etc/hostname')", 'lo_import()'],
      ['(12345::oid).lo_unlink', '"lo_unlink"'],
      ['(row(1)).pg_notify', '"pg_notify"'],
      ["pg_read_file('/etc/hostname')", 'pg_read_file()'],
      ["pg_ls_dir('.')", 'pg_ls_dir()'],
      ["pg_logical_emit_message(false, 'leak', 'x')", 'pg_logical_emit_message()'],
      ['pg_advisory_lock(1)', 'pg_advisory_lock()'],
      ['pg_advisory_xact_lock(1)', 'pg_advisory_xact_lock()'],
      ['pg_terminate_backend(pg_backend_pid())', 'pg_terminate_backend()'],
      ['pg_stat_reset()', 'pg_stat_reset()'],
      ['pg_export_snapshot()', 'pg_export_snapshot()'],
      ["nextval('app.loose')", 'nextval()'],
      ["setval('app.loose', 9)", 'setval()'],
      ["pg_create_restore_point('x')", 'pg_create_restore_point()'],
      ["pg_input_is_valid('x', 'text')", 'pg_input_is_valid()'],
      ["query_to_xml('delete from app.open', true, false, '')", 'query_to_xml()'],
      ["query_to_xml(format('select %s', 1), true, false, '')", 'query_to_xml()'],
      ["cursor_to_xml('c', 1, true, false, '')", 'cursor_to_xml()'],
      ["table_to_xml('app.loud', true, false, '')", 'table_to_xml()'],
      ["schema_to_xml('app', true, false, '')", 'schema_to_xml()'],
      ["database_to_xml(true, false, '')", 'database_to_xml()'],
      ["ts_rewrite('a'::tsquery, 'select app.shout(1)')", 'ts_rewrite()'],
      ["dblink_exec('dbname=postgres', 'select 1')", 'dblink_exec()'],
      ["public.dblink_connect('x', 'dbname=postgres')", 'dblink_connect()'],
    ] as const
  ).map(([expression, because]) => inWhere(expression, because)),
  hidden(
    'ts_stat in FROM',
    "select * from ts_stat('select app.shout(1)::text::tsvector')",
    'ts_stat()',
  ),
  hidden(
    'dblink with a column list',
    "select * from dblink('dbname=postgres', 'select 1') as t(a int)",
    'dblink()',
  ),
  hidden(
    'xmltable',
    "select * from xmltable('/a' passing '<a/>' columns x text)",
    'Range Table Func',
  ),
  hidden('xmlelement', "select xmlelement(name a, pg_notify('leak', 'x'))", NOTIFY),
  hidden('xmlforest', 'select xmlforest(1 as a)', 'Xml Expr'),
];

/** Functions of the application by every way to call one. */
const CALLS: readonly EscapeCase[] = [
  inWhere("app.shout('x')", SHOUT),
  inWhere("shout('x')", 'there is no function'),
  inWhere("away.shout('x')", 'away.shout() is not admitted'),
  inWhere(`"app"."shout"('x')`, SHOUT),
  inWhere('same(1)', 'same() is not admitted'),
  inWhere('total(1, 2, 3)', 'total() is not admitted'),
  inWhere('total(variadic array[1, 2])', 'total() is not admitted'),
  inWhere('extra(a => 1)', 'extra() is not admitted'),
  inWhere('initcap(invoice)', 'initcap() is not admitted'),
  inWhere('initcap(invoice.*)', 'initcap() is not admitted'),
  inWhere('invoice.mood', '"mood"'),
  inWhere('(invoice).mood', '"mood"'),
  inWhere('app.invoice.mood', '"mood"'),
  inWhere('(id).mood', '"mood"'),
  inWhere('(select i from app.invoice i limit 1).mood', '"mood"'),
  inWhere('(array[invoice])[1].mood', '"mood"'),
  hidden('set-returning in FROM', 'select * from many()', 'many() is not admitted'),
  hidden(
    'ROWS FROM',
    'select * from rows from (generate_series(1, 2), many())',
    'many() is not admitted',
  ),
  hidden('LATERAL', 'select * from app.invoice i, lateral mood(i.id) m', 'mood() is not admitted'),
  hidden('aggregate', 'select collect(status) from app.invoice', 'collect() is not admitted'),
  hidden(
    'aggregate as a window function',
    'select collect(status) over () from app.invoice',
    'collect()',
  ),
  hidden('FILTER', "select count(*) filter (where app.shout('x') = 'x') from app.invoice", SHOUT),
];

const shout = "app.shout('x')";

/** Every place of a statement that can hold an expression. */
const PLACES: readonly EscapeCase[] = (
  [
    ['SET', `update app.invoice set status = ${shout} where id = 1`],
    ['multiple SET', `update app.invoice set (status, amount) = (${shout}, 1) where id = 1`],
    [
      'multiple SET from a query',
      `update app.invoice set (status) = (select ${shout}) where id = 1`,
    ],
    ['UPDATE FROM', `update app.invoice set status = 'paid' from (select ${shout}) x where id = 1`],
    ['RETURNING', `${PAY.sql} returning ${shout}`],
    ['DELETE USING', `delete from app.line using (select ${shout}) x where id = 9`],
    ['VALUES', `insert into app.bag values (${shout})`],
    ['a subscript', `select (array[1])[length(${shout})]`],
    [
      'ON CONFLICT target',
      `insert into app.invoice values (1) on conflict ((${shout})) do nothing`,
    ],
    [
      'ON CONFLICT predicate',
      `insert into app.invoice values (1) on conflict (id) where ${shout} = 'x' do nothing`,
    ],
    [
      'DO UPDATE SET',
      `insert into app.invoice values (1) on conflict (id) do update set status = ${shout}`,
    ],
    [
      'DO UPDATE WHERE',
      `insert into app.invoice values (1) on conflict (id) do update set status = 'paid' where ${shout} = 'x'`,
    ],
    [
      'MERGE ON',
      `merge into app.invoice i using app.line l on ${shout} = 'x' when matched then delete`,
    ],
    [
      'MERGE WHEN',
      `merge into app.invoice i using app.line l on i.id = l.id when matched and ${shout} = 'x' then delete`,
    ],
    [
      'MERGE SET',
      `merge into app.invoice i using app.line l on i.id = l.id when matched then update set status = ${shout}`,
    ],
    [
      'MERGE VALUES',
      `merge into app.bag b using app.line l on false when not matched then insert values (${shout})`,
    ],
    ['a common table expression', `with x as (select ${shout}) select * from x`],
    [
      'a recursive one',
      `with recursive x as (select ${shout} union all select * from x) select * from x`,
    ],
    ['a writable one', `with x as (insert into app.bag values (${shout}) returning 1) ${PAY.sql}`],
    ['DISTINCT ON', `select distinct on (${shout}) id from app.invoice`],
    ['GROUP BY', `select count(*) from app.invoice group by ${shout}`],
    ['GROUPING SETS', `select count(*) from app.invoice group by grouping sets ((), (${shout}))`],
    ['GROUPING', `select grouping(${shout}) from app.invoice group by ${shout}`],
    ['HAVING', `select 1 from app.invoice having ${shout} = 'x'`],
    ['ORDER BY', `select 1 from app.invoice order by ${shout}`],
    ['LIMIT', `select 1 from app.invoice limit length(${shout})`],
    ['OFFSET', `select 1 from app.invoice offset length(${shout})`],
    ['WINDOW', `select rank() over w from app.invoice window w as (partition by ${shout})`],
    [
      'a frame',
      `select sum(id) over (order by id rows between length(${shout}) preceding and current row) from app.invoice`,
    ],
    ['WITHIN GROUP', `select mode() within group (order by ${shout}) from app.invoice`],
    ['an ordered aggregate', `select array_agg(id order by ${shout}) from app.invoice`],
    ['JOIN ON', `select 1 from app.invoice i join app.line l on ${shout} = 'x'`],
    ['UNION', `select 'x' union select ${shout}`],
    ['CASE', `select case ${shout} when 'x' then 1 end`],
    ['COALESCE', `select coalesce(null, ${shout})`],
    ['GREATEST', `select greatest('a', ${shout})`],
    ['ARRAY', `select array[${shout}]`],
    ['ROW', `select row(${shout}) is null`],
    ['IN', `select 1 where 'x' in (${shout})`],
    ['ANY', `select 1 where 'x' = any (array[${shout}])`],
    ['EXISTS', `select exists (select ${shout})`],
    ['COLLATE', `select ${shout} collate "C"`],
    ['a cast', `select ${shout}::int`],
    ['a named argument', `select make_interval(secs => length(${shout}))`],
    ['format', `select format('%s', ${shout})`],
    ['an argument of a variadic call', `select concat(variadic array[${shout}])`],
    ['TABLESAMPLE', `select 1 from app.invoice tablesample bernoulli (length(${shout}))`],
    [
      'REPEATABLE',
      `select 1 from app.invoice tablesample system (1) repeatable (length(${shout}))`,
    ],
    [
      'JSON path variables',
      `select jsonb_path_query('{}', '$', jsonb_build_object('a', ${shout}))`,
    ],
    ['the parameter of a CALL', `call app.work(${shout})`],
  ] as const
).map(([name, sql]) => hidden(`in ${name}`, sql, SHOUT));

/** Syntax and tables that the gate does not let through. */
const TABLES: readonly EscapeCase[] = [
  hidden('a view that calls', 'select * from app.loud', 'app.loud is not admitted'),
  hidden('TABLE', 'table app.loud', 'app.loud is not admitted'),
  hidden(
    'a name that hides a view',
    'with loud as (select 1) select * from loud, app.loud',
    'app.loud is not admitted',
  ),
  hidden(
    'a common table expression that reads the view of its name',
    'with open as (select * from open) select * from open',
    'there is no table',
  ),
  hidden(
    'a table that is open to all',
    'insert into app.open values (1)',
    'app.open is not admitted',
  ),
  hidden(
    'settings by an update',
    "update pg_settings set setting = 'x' where name = 'application_name'",
    'the server owns it',
  ),
  hidden(
    'settings by an update behind a name',
    "with pg_settings as (select 1) update pg_settings set setting = 'x'",
    'the server owns it',
  ),
  hidden('a catalogue', 'delete from pg_catalog.pg_class', 'the server owns it'),
  hidden('a temporary table', 'insert into pg_temp.t values (1)', 'there is no table'),
  hidden(
    'WHERE CURRENT OF',
    "update app.invoice set status = 'paid' where current of c",
    'Current Of',
  ),
  hidden('a sampling method', 'select 1 from app.invoice tablesample mine (1)', 'TABLESAMPLE mine'),
  hidden(
    'JSON_TABLE',
    "select * from json_table('{}'::jsonb, '$' columns (a text path '$.a'))",
    'Json Table',
    { since: 17 },
  ),
  hidden(
    'JSON_VALUE with a variable',
    `select json_value('{}'::jsonb, '$.a' passing ${shout} as v)`,
    SHOUT,
    { since: 17 },
  ),
];

const CODE: readonly EscapeCase[] = [
  planted(
    'operator: a sign for a function that signals',
    `create operator app.!! (rightarg = text, function = app.shout)`,
    'pg_notify',
  ),
  planted(
    'operator: a sign for a built-in that signals',
    `create function app.send(text, text) returns void language internal as 'pg_notify';
     create operator app.~> (leftarg = text, rightarg = text, function = app.send)`,
    'second name for a built-in',
  ),
  planted(
    'cast: a function that signals',
    `create type app.kind as enum ('a'); create function app.kind_text(app.kind) returns text language plpgsql as $$ begin perform pg_notify('leak', 'x'); return 'a'; end $$;
     create cast (app.kind as text) with function app.kind_text(app.kind) as implicit`,
    'pg_notify',
  ),
  planted(
    'domain: its check',
    'create domain app.word as text check (app.shout(value) is not null)',
    'pg_notify',
  ),
  planted(
    'default: a built-in',
    `alter table app.bag alter what set default pg_notify('leak', 'x')::text`,
    'names pg_notify',
    { action: payAnd('insert into app.bag default values') },
  ),
  planted(
    'default: settings',
    `alter table app.bag alter what set default set_config('a.b', 'x', false)`,
    'names set_config',
    { action: payAnd('insert into app.bag default values') },
  ),
  planted(
    'default of a domain: a built-in',
    `create domain app.word as text default pg_notify('leak', 'x')::text`,
    'names pg_notify',
  ),
  planted(
    'check: a built-in',
    `alter table app.invoice add check (pg_notify('leak', 'x') is not null) not valid`,
    'names pg_notify',
  ),
  planted(
    'policy: a built-in',
    `alter table app.invoice enable row level security; create policy p on app.invoice using (pg_notify('leak', 'x') is not null)`,
    'names pg_notify',
  ),
  planted(
    'trigger: its condition',
    `create function app.quiet() returns trigger language plpgsql as 'begin return new; end';
     create trigger t before update on app.invoice for each row when (pg_notify('leak', 'x') is not null) execute function app.quiet()`,
    'names pg_notify',
  ),
  planted(
    'trigger: a body with a quoted name',
    `create function app.loudly() returns trigger language plpgsql as $$ begin perform "pg_notify"('leak', 'x'); return new; end $$;
     create trigger t before update on app.invoice for each row execute function app.loudly()`,
    'names pg_notify',
  ),
  planted(
    'trigger: a body that runs a text',
    `create function app.loudly() returns trigger language plpgsql as $$ begin execute 'select pg_notify(''leak'', ''x'')'; return new; end $$;
     create trigger t before update on app.invoice for each row execute function app.loudly()`,
    'names pg_notify',
  ),
  planted(
    'trigger: a body that calls an extension',
    `create function app.loudly() returns trigger language plpgsql as $$ begin perform public.dblink_exec('dbname=postgres', 'select 1'); return new; end $$;
     create trigger t before update on app.invoice for each row execute function app.loudly()`,
    'dblink_exec',
  ),
  planted(
    'trigger: a body that updates the settings',
    `create function app.loudly() returns trigger language plpgsql as $$ begin update pg_settings set setting = 'x' where name = 'application_name'; return new; end $$;
     create trigger t before update on app.invoice for each row execute function app.loudly()`,
    'names pg_settings',
  ),
  planted(
    'trigger: a body that changes a setting of the transaction',
    `create function app.loudly() returns trigger language plpgsql as $$ begin set local session_replication_role = replica; return new; end $$;
     create trigger t before update on app.invoice for each row execute function app.loudly()`,
    'session_replication_role',
  ),
  planted(
    'trigger: a body in standard SQL',
    `create function app.ring(text) returns void begin atomic select pg_notify('leak', $1); end;
     create function app.loudly() returns trigger language plpgsql as $$ begin perform app.ring('x'); return new; end $$;
     create trigger t before update on app.invoice for each row execute function app.loudly()`,
    'names pg_notify',
  ),
  planted(
    'aggregate in a trigger: made of a built-in',
    `create function app.step(text, text) returns text language sql as $$ select pg_notify($1, $2)::text $$;
       create aggregate app.ringing(text) (sfunc = app.step, stype = text, initcond = 'leak');
       create function app.loudly() returns trigger language plpgsql as $$ begin perform app.ringing('x'); return new; end $$;
       create trigger t before update on app.invoice for each row execute function app.loudly()`,
    'names pg_notify',
  ),
  planted(
    'function: the default of an argument',
    `create or replace function app.tell(a text default pg_notify('leak', 'x')::text) returns text language sql as 'select a';
     create function app.loudly() returns trigger language plpgsql as $$ begin perform app.tell(); return new; end $$;
     create trigger t before update on app.invoice for each row execute function app.loudly()`,
    'names pg_notify',
  ),
  planted(
    'entry point: a body that signals',
    replaceAct("perform pg_notify('leak', 'x')"),
    'names pg_notify',
    { action: ACT },
  ),
  planted('entry point: large objects', replaceAct('perform lo_create(0)'), 'names lo_create', {
    action: ACT,
  }),
  planted(
    'view: a registered one that signals',
    `create or replace view app.paid as select id, status, amount from app.invoice where status = 'paid' and pg_notify('leak', 'x') is not null;
     grant select, update on app.paid to {exec}`,
    'names pg_notify',
    { views: ['app.paid'], action: payAnd('select id from app.paid') },
  ),
  planted(
    'entry point: a name behind doubled quotes in a dollar-quoted text',
    replaceAct("execute $q$select '--''', pg_notify('leak', 'x')$q$"),
    'names pg_notify',
    { action: ACT },
  ),
  planted(
    'entry point: a text that goes on in the next lines',
    replaceAct("execute 'select 1'\n';'\n'select pg_not'\n'ify(''leak'', ''x'')'"),
    'EXECUTE',
    { action: ACT },
  ),
  planted(
    'entry point: an encoding in which the next statement reads differently',
    `create or replace function app.act() returns void language plpgsql as $$ begin set local client_encoding = 'SJIS'; end $$;
     create or replace procedure app.work() language plpgsql as $$ begin set local client_encoding = 'UTF8'; end $$`,
    'SET LOCAL client_encoding',
    {
      action: {
        // In SJIS the backslash is the second byte of a character, and the string ends after it.
        statements: [
          ACT,
          {
            sql: `${PAY.sql} and E'Á\\' is not null and pg_notify($$leak$$, $$x$$) is not null --' is not null`,
          },
          { call: 'app.work' },
        ],
      },
    },
  ),
  {
    name: 'gate: an overload made after the approval',
    approvedThen: `create function public.reverse(app.invoice) returns text language sql as $$ select app.shout('x') $$`,
    action: { sql: `${PAY.sql} and reverse(invoice) is null` },
    approved: PAID,
    expectation: { kind: 'denied', code: 'not-admitted', because: 'reverse() is not admitted' },
  },
];

const control = (name: string, sql: string, approved: readonly unknown[] = PAID): EscapeCase => ({
  name: `gate control: ${name}`,
  action: { sql },
  approved,
  expectation: { kind: 'committed' },
});

/** Ordinary statements, which the gate must not refuse. */
const ADMITTED: readonly EscapeCase[] = [
  control(
    'functions, operators and casts',
    `update app.invoice set status = lower('PAID')::text || '' where id = 1 and amount between 1 and 1e3 and now() > '2020-01-01'::date`,
  ),
  control(
    'an extension that is trusted',
    `update app.invoice set status = 'paid' where id = 1 and digest('x', 'sha256') is not null and 'A'::citext = 'a' and 'a=>1'::hstore ? 'a'`,
  ),
  control(
    'a common table expression named like a table',
    `with invoice as (select id from app.invoice where id = 1) update app.invoice i set status = 'paid' from invoice where i.id = invoice.id`,
  ),
  control(
    'windows, groups and JSON',
    `update app.invoice set status = 'paid' where id = (select min(id) over (order by id rows between 1 preceding and current row) from (select id, count(*), jsonb_agg(status) -> 0 from app.invoice group by grouping sets ((id))) x where id = 1)`,
  ),
  control(
    'ON CONFLICT',
    `insert into app.invoice (id, status) values (1, 'x') on conflict (id) do update set status = 'paid' where invoice.status <> excluded.amount::text returning old_status(1)`.replace(
      ' returning old_status(1)',
      ' returning id, status',
    ),
  ),
  control(
    'MERGE',
    `merge into app.invoice i using (values (1)) v(id) on i.id = v.id when matched then update set status = 'paid'`,
  ),
  control(
    'an identity and a sample',
    `insert into app.note (body) select coalesce(max(status), 'x') || 'y' from app.invoice tablesample bernoulli (100)`,
    [insert('app.note', { id: 1, body: 'pendingy' })],
  ),
  control(
    'the catalogue can be read',
    `update app.invoice set status = 'paid' where id = 1 and exists (select from pg_catalog.pg_class c join information_schema.tables t on t.table_name = c.relname)`,
  ),
  control(
    'arrays, subqueries and CASE',
    `update app.invoice set status = case when id = any (array[1, 2]) then 'paid' end, amount = (select 35.00) where id in (select unnest('{1}'::int[]))`,
    [update('app.invoice', { id: 1 }, { status: ['pending', 'paid'] })],
  ),
];

export const ESCAPES: EscapeFile = {
  boundary: 'managed',
  schema: `${SCHEMA} ${OPEN}`,
  relations: [
    'app.invoice',
    'app.line',
    'app.note',
    'app.event',
    'app.bag',
    { name: 'app.bulk', bulk: true },
  ],
  entryPoints: ['app.act', 'app.work'],
  cases: [
    ...SPELLED,
    ...BUILTINS,
    ...CALLS,
    ...PLACES,
    ...TABLES,
    ...CODE,
    ...DETOURS,
    ...ADMITTED,
  ],
};
