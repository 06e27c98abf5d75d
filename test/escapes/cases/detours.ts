import type { EscapeCase } from '../case.ts';
import { payAnd, planted } from './planted.ts';
import { PAID, PAY } from './shop.ts';

/** A trigger of the application on the table that is paid. */
const onUpdate = (body: string) =>
  `create function app.loudly() returns trigger language plpgsql as $$ declare v text; begin ${body}; return new; end $$;
   create trigger t before update on app.invoice for each row execute function app.loudly()`;

const RINGS = `language plpgsql as $$ begin perform pg_notify('leak', 'x'); return $1; end $$`;
const reversing = { sql: `${PAY.sql} and reverse(invoice) is null` };
const REVERSE = `reverse(app.invoice) returns text language plpgsql as $$ begin perform pg_notify('leak', 'x'); return null; end $$`;
const late = (name: string, schema: string, setup?: string): EscapeCase => ({
  name: `gate: ${name}`,
  ...(setup && { setup }),
  approvedThen: `create schema ${schema}; grant usage on schema ${schema} to public; create function ${schema}.${REVERSE}`,
  action: reversing,
  approved: PAID,
  expectation: { kind: 'denied', code: 'not-admitted', because: 'reverse() is not admitted' },
});

/** Names by a detour: parts of other objects, members of extensions, schemas that appear later. */
export const DETOURS: readonly EscapeCase[] = [
  planted(
    'aggregate: a built-in is its step',
    `create aggregate app.put(text, boolean) (sfunc = set_config, stype = text, initcond = 'application_name');
     ${onUpdate("select app.put('leak', false) into v")}`,
    'made of set_config',
  ),
  planted(
    'aggregate: a built-in is its end',
    `create aggregate app.last(oid) (sfunc = oidlarger, stype = oid, finalfunc = lo_create);
     ${onUpdate('select app.last(o) from (values (424242::oid)) x(o) into v')}`,
    'made of lo_create',
  ),
  planted(
    'aggregate: the inverse of a moving one',
    `create function app.less(bigint, bigint) returns bigint immutable strict ${RINGS};
     create aggregate app.moving(bigint) (sfunc = int8pl, stype = bigint, initcond = '0', msfunc = int8pl, minvfunc = app.less, mstype = bigint, minitcond = '0');
     ${onUpdate('perform app.moving(g) over (order by g rows between 1 preceding and current row) from generate_series(1, 5) g')}`,
    'app.less(bigint, bigint)',
  ),
  planted(
    'aggregate: the way to combine a parallel one',
    `create function app.combine(bigint, bigint) returns bigint parallel safe ${RINGS};
     create aggregate app.par(bigint) (sfunc = int8pl, stype = bigint, initcond = '0', combinefunc = app.combine, parallel = safe);
     ${onUpdate('perform app.par(g) from generate_series(1, 5) g')}`,
    'app.combine(bigint, bigint)',
  ),
  planted(
    'operator: straight on a built-in',
    'create operator app.!!! (rightarg = oid, function = lo_create)',
    'a sign for lo_create',
    { action: payAnd('select operator(app.!!!) 424242::oid') },
  ),
  planted(
    'operator: a lock of the session',
    'create operator app.!@ (rightarg = bigint, function = pg_try_advisory_lock)',
    'a sign for pg_try_advisory_lock',
    { action: payAnd('select operator(app.!@) 42::bigint') },
  ),
  planted(
    'operator: a trusted extension that changes the session',
    'create extension pg_trgm schema public; create operator app.!# (rightarg = real, function = public.set_limit)',
    'a sign for set_limit',
    { action: payAnd('select operator(app.!#) 0.9::real') },
  ),
  planted(
    'aggregate: a trusted extension that changes the session',
    `create extension pg_trgm schema public;
     create aggregate app.limit_to(real) (sfunc = float4larger, stype = real, finalfunc = public.set_limit);
     ${onUpdate('select app.limit_to(0.9::real) into v')}`,
    'made of set_limit',
  ),
  planted(
    'extension: a function that joined a trusted one',
    `create function public.joined(text) returns text ${RINGS}; alter extension hstore add function public.joined(text);
     ${onUpdate("v := public.joined('x')")}`,
    'public.joined(text): It names pg_notify',
  ),
  planted(
    'extension: an aggregate that joined a trusted one',
    `create function app.step(text, text) returns text ${RINGS};
     create aggregate public.joined(text) (sfunc = app.step, stype = text); alter extension hstore add aggregate public.joined(text)`,
    'app.step(text, text): It names pg_notify',
    { action: payAnd("select public.joined('x')") },
  ),
  planted(
    'extension: an operator that joined a trusted one',
    'create operator public.!!! (rightarg = oid, function = lo_create); alter extension hstore add operator public.!!! (none, oid)',
    'a sign for lo_create',
    { action: payAnd('select !!! 424242::oid') },
  ),
  planted(
    'extension: a function of a trusted one with another text',
    `create or replace function public.regexp_replace(string public.citext, pattern public.citext, replacement text) returns text language sql immutable strict parallel safe as $$ select pg_notify('leak', 'x')::text $$`,
    'names pg_notify',
    { action: payAnd("select regexp_replace('a'::citext, 'b'::citext, 'c')") },
  ),
  planted(
    'view: settings by a trigger through a view of the application',
    `create view app.knobs as select * from pg_settings; ${onUpdate("update app.knobs set setting = 'x' where name = 'application_name'")}`,
    'names pg_settings',
  ),
  planted(
    'view: the default of a column',
    `alter view app.paid alter column status set default pg_notify('leak', 'x')::text; grant select, insert on app.paid to {exec}`,
    'names pg_notify',
    { views: ['app.paid'], action: payAnd('insert into app.paid (id, amount) values (9, 1)') },
  ),
  planted(
    'partition: a trigger of one partition alone',
    `create function app.loudly() returns trigger language plpgsql as $$ begin perform pg_notify('leak', 'x'); return new; end $$;
     create trigger t before insert on app.event_2026 for each row execute function app.loudly()`,
    'trigger t on app.event_2026',
    { action: payAnd("insert into app.event values ('2026-05-01', 'x')") },
  ),
  planted(
    'range: what it subtracts by',
    `create function app.diff(int, int) returns float8 language plpgsql immutable as $$ begin perform pg_notify('leak', 'x'); return 1; end $$;
     create type app.span as range (subtype = int, subtype_diff = app.diff); alter table app.bag add column s app.span; create index on app.bag using gist (s)`,
    'app.diff(integer, integer)',
    {
      action: payAnd(
        "insert into app.bag select 'x', '[1,2)'::app.span from generate_series(1, 400)",
      ),
    },
  ),
  planted(
    'provider: a queue that its own function fills',
    `create schema net; grant usage on schema net to public; create unlogged table net.queue (what text);
     create function net.post(text) returns void language sql security definer set search_path = net as 'insert into net.queue values ($1)';
     ${onUpdate("perform net.post('x')")}`,
    'is a superuser, and its rights are lent',
  ),
  planted(
    'provider: a queue that a function of the application fills',
    `create schema net authorization {app}; set role {app}; grant usage on schema net to public; create unlogged table net.queue (what text);
     create function net.post(text) returns void language sql security definer set search_path = net as 'insert into net.queue values ($1)';
     ${onUpdate("perform net.post('x')")}; reset role`,
    '',
    { expectation: { kind: 'observed', code: 'INDETERMINATE', because: 'net.queue' } },
  ),
  late('a schema with the name of the login, made after the approval', '{exec}'),
  late(
    'a schema that the path names, made after the approval',
    'ghost',
    'alter role {exec} set search_path = ghost, public',
  ),
];
