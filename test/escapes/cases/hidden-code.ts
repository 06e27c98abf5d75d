import { insert } from '../../../src/protocol/draft.ts';
import type { EscapeCase } from '../case.ts';
import { ACT, act, boundary, DIVERGED, owned, PAID, PAY, replaceAct } from './shop.ts';

/** A function of the application that signals, out of reach of the execution login itself. */
const evil = (name: string) =>
  `create function app.${name}() returns int language plpgsql as $e$ begin notify leak; return 1; end $e$; alter function app.${name}() owner to {app}; revoke execute on function app.${name}() from public`;
const LONG = `f${'o'.repeat(62)}`;

/** A domain, and a view, that signal whenever a value is stored or a row is read. */
const SLY = `create function app.leak(text) returns boolean language plpgsql as $e$ begin notify leak; return true; end $e$; alter function app.leak(text) owner to {app}; revoke execute on function app.leak(text) from public; create domain app.sly as text check (app.leak(value))`;
const VIEWED = `${SLY.replace(/; create domain.*/, '')}; create view app.sly as select app.leak(status) from app.invoice; alter view app.sly owner to {app}`;

/**
 * Code that hides from whoever reads bodies: behind the lexer, behind names, behind other people's
 * rights.
 */
export const HIDDEN_CODE: readonly EscapeCase[] = [
  act("perform $😀$ ' $😀$; notify leak; perform $😀$ ' $😀$", boundary('NOTIFY'), {
    name: 'lexer: a dollar quote whose tag is no letter',
  }),
  act("perform E'a'\n'\\' '; notify leak; perform E'a'\n'\\' '", boundary('NOTIFY'), {
    name: 'lexer: an escape string that goes on in the next line',
  }),
  act('-- comment\r notify leak', boundary('NOTIFY'), {
    name: 'lexer: a comment that ends at a carriage return',
  }),
  act("execute E'\\x6eotify leak'", boundary('EXECUTE'), {
    name: 'lexer: an escape in the text of EXECUTE',
  }),
  act("execute E'\\156otify leak' using 1", boundary('EXECUTE'), {
    name: 'lexer: an octal escape in EXECUTE',
  }),
  {
    name: 'lexer: a local setting changes what strings are',
    setup: `set standard_conforming_strings = off; set check_function_bodies = off;
      create function app.evil() returns void language plpgsql as $e$ declare x text; begin x := '\\' '; notify leak; x := '\\' '; end $e$;
      set standard_conforming_strings = on; alter function app.evil() owner to {app}; revoke execute on function app.evil() from public;
      ${replaceAct('set local standard_conforming_strings = off; perform app.evil()', 'security definer set search_path = app, pg_temp')}; alter function app.act() owner to {app}`,
    action: ACT,
    approved: PAID,
    expectation: boundary('SET'),
  },
  owned(`perform app.${LONG}xyz()`, boundary('NOTIFY'), {
    name: 'names: one that the server cuts to 63 bytes',
    setup: evil(LONG),
  }),
  owned('perform app.É()', boundary('NOTIFY'), {
    name: 'names: a capital that is none to the server',
    setup: evil('É'),
  }),
  owned("perform 'x'::app.sly", boundary('NOTIFY'), {
    name: 'types: a domain in a body whose check signals',
    setup: `${evil('evil')}; create domain app.sly as text check (app.evil() = 1); alter domain app.sly owner to {app}`,
  }),
  {
    name: 'types: a domain as a result whose check signals',
    setup: `${evil('evil')}; create domain app.sly as int check (app.evil() = 1); alter domain app.sly owner to {app};
      create function app.gives() returns app.sly language plpgsql as $e$ begin return 1; end $e$; alter function app.gives() owner to {app};
      revoke execute on function app.gives() from public;
      ${replaceAct('perform app.gives()', 'security definer set search_path = app, pg_temp')}; alter function app.act() owner to {app}`,
    action: ACT,
    approved: PAID,
    expectation: boundary('NOTIFY'),
  },
  owned("perform row('x')::app.pair", boundary('NOTIFY'), {
    name: 'types: a field of a composite whose check signals',
    setup: `${evil('evil')}; create domain app.sly as text check (app.evil() = 1); alter domain app.sly owner to {app};
      create type app.pair as (a app.sly); alter type app.pair owner to {app}`,
  }),
  owned("perform app.ping('leak', '')", boundary('second name for a built-in'), {
    name: 'internal: a signal under another name that calls itself immutable',
    setup: `create function app.ping(text, text) returns void language internal immutable as 'pg_notify'; revoke execute on function app.ping(text, text) from public; grant execute on function app.ping(text, text) to {app}`,
  }),
  owned("perform app.shout('leak')", boundary('signals'), {
    name: 'aggregate: the rights of its owner, and a built-in that signals',
    setup: `create aggregate app.shout(text) (sfunc = textcat, stype = text, finalfunc = pg_notify, finalfunc_extra); revoke execute on function app.shout(text) from public; grant execute on function app.shout(text) to {app}`,
  }),
  owned("perform 'app.free'::regclass operator(app.<<<) 99::bigint", boundary('setval'), {
    name: 'operator: a sequence moved by a sign',
    setup: `create operator app.<<< (function = pg_catalog.setval, leftarg = regclass, rightarg = bigint)`,
  }),
  {
    name: 'foreign key: its check runs code as the owner of the referenced table',
    setup: `create table app.kind (id int primary key); alter table app.kind owner to postgres;
      create function app.signal() returns int language plpgsql volatile as $e$ begin perform pg_notify('leak', current_user); return 1; end $e$;
      create function app.fold(int) returns int language plpgsql immutable as $e$ begin if current_user = 'postgres' and session_user <> 'postgres' then return app.signal(); end if; return 1; end $e$;
      insert into app.kind values (1);
      create index on app.kind ((id + app.fold(1)));
      revoke execute on function app.signal() from public; revoke execute on function app.fold(int) from public;
      alter table app.bag add column kind int references app.kind`,
    action: { sql: "insert into app.bag values ('x', 1)" },
    approved: [insert('app.bag', { what: 'x', kind: 1 })],
    expectation: boundary('check runs as the owner'),
  },
  owned(
    "set local track_counts = off; insert into app.hidden values (9, 'z'); set local track_counts = on",
    boundary('track_counts'),
    {
      name: 'parameter: an owner that may stop the counters',
      setup: 'grant set on parameter track_counts to {app}',
      cleanup: 'revoke set on parameter track_counts from {app}',
    },
  ),
  owned('perform 1 from app.mover', boundary('setval'), {
    name: 'view: a sequence moved by looking',
    setup:
      "create view app.mover as select setval('app.free', 99); alter view app.mover owner to {app}",
  }),
  owned('insert into app.bag values (default)', boundary('setval'), {
    name: 'default: a sequence moved by an insert',
    setup: "alter table app.bag alter what set default setval('app.free', 99)::text",
  }),
  owned('null', boundary('NOTIFY'), {
    name: 'trigger: a condition that signals',
    setup: `${evil('evil')}; create function app.calm() returns trigger language plpgsql as $e$ begin return null; end $e$; alter function app.calm() owner to {app}; revoke execute on function app.calm() from public;
      set role {app}; create trigger calm after update on app.invoice for each row when (app.evil() = 2) execute function app.calm(); reset role`,
  }),
  owned('insert into app.bag values (default)', boundary('NOTIFY'), {
    name: 'default: a cast to a domain whose check signals',
    setup: `${evil('evil')}; create domain app.sly as text check (app.evil() = 1); alter domain app.sly owner to {app};
      alter table app.bag alter what set default 'x'::app.sly`,
    approved: [...PAID, insert('app.bag', { what: 'x' })],
  }),
  {
    name: 'names: a deferrable trigger that calls itself one of ours',
    setup: `create function app.late() returns trigger language plpgsql as $e$ begin insert into app.bag values ('x'); return null; end $e$; alter function app.late() owner to {app}; revoke execute on function app.late() from public;
      create constraint trigger effectmatch_late after update on app.invoice deferrable initially deferred for each row execute function app.late()`,
    action: { sql: "update app.invoice set status = 'paid' where id = 1" },
    approved: PAID,
    expectation: DIVERGED,
  },
  {
    name: 'index: a constant that our own reads would compute',
    setup: `create function app.fold(int) returns int language plpgsql immutable as $e$ begin return 1; end $e$; create index on app.invoice ((id + app.fold(1)))`,
    action: { sql: "update app.invoice set status = 'paid' where id = 1" },
    approved: PAID,
    expectation: boundary('rights of trusted logins'),
  },
  {
    name: 'control: an index expression on a column',
    setup: `create function app.plain(text) returns text language sql immutable as $e$ select lower($1) $e$; create index on app.invoice (app.plain(status))`,
    action: { sql: "update app.invoice set status = 'paid' where id = 1" },
    approved: PAID,
    expectation: { kind: 'committed' },
  },
  owned('perform app.f()', boundary('NOTIFY'), {
    name: 'domain: in the default of an argument',
    setup: `${SLY}; create function app.f(x text default 'a'::app.sly) returns void language sql as 'select'; alter function app.f(text) owner to {app}; revoke execute on function app.f(text) from public`,
  }),
  owned("insert into app.bag (what) values ('q')", boundary('NOTIFY'), {
    name: 'domain: in the default of a domain',
    setup: `${SLY}; create domain app.wide as text default ('a'::app.sly)::text; alter table app.bag add z app.wide`,
    approved: [...PAID, insert('app.bag', { what: 'q', z: 'a' })],
  }),
  owned("insert into app.bag values ('q', 'a')", boundary('NOTIFY'), {
    name: 'domain: in the check of a domain',
    setup: `${SLY}; create domain app.wide as text check ((value::app.sly) is not null); alter table app.bag add z app.wide`,
    approved: [...PAID, insert('app.bag', { what: 'q', z: 'a' })],
  }),
  owned("perform pg_input_is_valid('a', 'app.sl' || 'y')", boundary('NOTIFY'), {
    name: 'domain: with a name that is put together',
    since: 16,
    setup: SLY,
  }),
  owned(
    "perform table_to_xml(('app.sl' || 'y')::regclass, true, true, '')",
    boundary('table_to_xml'),
    {
      name: 'view: read by a name that is put together',
      setup: VIEWED,
    },
  ),
  owned("perform schema_to_xml('app', true, true, '')", boundary('schema_to_xml'), {
    name: 'view: read as one of its schema',
    setup: VIEWED,
  }),
  owned("insert into app.bag values ('x')", boundary('table_to_xml'), {
    name: 'view: read by a name that is put together, in a check',
    setup: `${VIEWED}; alter table app.bag add check (table_to_xml(('app.sl' || 'y')::regclass, true, true, '') is not null)`,
    approved: [...PAID, insert('app.bag', { what: 'x' })],
  }),
  {
    name: 'extension: a trusted one that adopted a function of the application',
    setup: `grant create on database {db} to {app}; set role {app}; create extension citext schema app; revoke execute on all functions in schema app from public;
      create function app.tell() returns trigger language plpgsql as $e$ begin notify leak; return null; end $e$; revoke execute on function app.tell() from public;
      alter extension citext add function app.tell(); create trigger tell after update on app.invoice for each row execute function app.tell(); reset role`,
    action: PAY,
    approved: PAID,
    expectation: boundary('NOTIFY'),
  },
  {
    name: 'control: a trusted extension with functions in SQL',
    setup: `create extension citext schema app; create extension cube schema app; create extension earthdistance schema app; alter table app.bag add c app.citext, add e app.earth`,
    action: { sql: "insert into app.bag values ('x', 'Y', null)" },
    approved: [insert('app.bag', { what: 'x', c: 'Y', e: null })],
    expectation: { kind: 'committed' },
  },
];
