import { any, insert, remove, update } from '../../../src/protocol/draft.ts';
import type { EscapeCase } from '../case.ts';
import {
  ACT,
  act,
  boundary,
  DIVERGED,
  INCOMPLETE,
  owned,
  PAID,
  PAY,
  replaceAct,
  state,
  statement,
} from './shop.ts';

/** A plpgsql function of the application that nobody but its owner may call. */
const routine = (signature: string, body: string, more = '') =>
  `create function app.${signature} language plpgsql ${more} as $r$ begin ${body} end $r$; alter function app.${signature.replace(/ returns .*/, '')} owner to {app}; revoke execute on function app.${signature.replace(/ returns .*/, '')} from public`;
const DEFINER = 'security definer set search_path = app, pg_temp';
const SHOUT = `perform pg_notify('leak', session_user);`;
const MAY_SHOUT = 'grant execute on function pg_catalog.pg_notify(text, text) to {app}';
/** An operator class for whole numbers whose comparison is code of the application. */
const compare = (body: string) =>
  `${routine('cmp(int, int) returns int', `${body} return sign($1 - $2);`)}; create operator class app.slow for type int4 using btree as
    operator 1 pg_catalog.<, operator 2 pg_catalog.<=, operator 3 pg_catalog.=, operator 4 pg_catalog.>=, operator 5 pg_catalog.>, function 1 app.cmp(int, int)`;
const LOOPBACK = `create extension postgres_fdw; revoke execute on all functions in schema public from public;
  create server elsewhere foreign data wrapper postgres_fdw options (dbname 'postgres', port '{port}', host '127.0.0.1');
  create user mapping for {app} server elsewhere options (user 'postgres', password_required 'false')`;

/** Comparison, planning and input of values: code that runs where nobody wrote a call. */
const COMPARISONS: readonly EscapeCase[] = [
  {
    name: 'range: a key whose comparison is code of the application',
    setup: `${compare('')}; create type app.span as range (subtype = int4, subtype_opclass = app.slow); alter type app.span owner to {app};
      delete from app.bulk; alter table app.bulk alter id type app.span using 'empty'`,
    action: { sql: "insert into app.bulk values ('[1,2)', 'x')" },
    approved: [insert('app.bulk', { id: any(), what: 'x' })],
    expectation: boundary('rights of trusted logins'),
  },
  {
    name: 'range: an approved value whose bounds the application compares',
    setup: `${compare('')}; create type app.span as range (subtype = int4, subtype_opclass = app.slow); alter type app.span owner to {app};
      alter table app.bag add column span app.span`,
    action: { sql: "insert into app.bag values ('x', '[1,2)')" },
    approved: [insert('app.bag', { what: 'x', span: '[1,2)' })],
    expectation: {
      kind: 'refused',
      code: 'ERR_EM_MANIFEST_INVALID',
      because: 'functions of the application for its bounds',
    },
  },
  {
    name: 'range: a comparison that signals, in a column that is no key',
    setup: `${compare('notify leak;')}; create type app.span as range (subtype = int4, subtype_opclass = app.slow); alter type app.span owner to {app};
      alter table app.bag add column span app.span`,
    action: PAY,
    approved: PAID,
    expectation: boundary('NOTIFY'),
  },
  {
    name: 'index: an operator class of the application on a table that trusted logins read',
    setup: `${compare('')}; create index on app.invoice (id app.slow)`,
    action: PAY,
    approved: PAID,
    expectation: boundary('rights of trusted logins'),
  },
  {
    name: 'statistics: a constant that our own reads would compute',
    setup: `create function app.fold(int) returns int language plpgsql immutable as $e$ begin return 1; end $e$; create statistics app.s on ((id + app.fold(1))), status from app.invoice`,
    action: PAY,
    approved: PAID,
    expectation: boundary('rights of trusted logins'),
  },
  {
    name: 'partition key: a constant that every reader of the table computes',
    setup: `create function app.fold(int) returns int language plpgsql immutable as $e$ begin return 1; end $e$;
      create table app.event_2027 partition of app.event for values from ('2027-01-01') to ('2028-01-01') partition by list ((length(what) + app.fold(1)));
      create table app.event_2027_1 partition of app.event_2027 default`,
    action: { statements: [PAY, { sql: 'select what from app.event' }] },
    approved: PAID,
    expectation: boundary('rights of trusted logins'),
  },
  {
    name: 'exclusion: an operator class that signals',
    setup: `${compare('notify leak;')}; alter table app.bulk add exclude (id app.slow with pg_catalog.=)`,
    action: { sql: "update app.bulk set what = 'b' where id = 1" },
    approved: [update('app.bulk', { id: 1 }, { what: ['a', 'b'] })],
    expectation: boundary('NOTIFY'),
  },
  {
    name: 'cascade: the check of a domain runs as the owner of the referencing table',
    setup: `${MAY_SHOUT}; ${routine('chk(int) returns boolean', `if current_user <> session_user then ${SHOUT} end if; return true;`)}; create domain app.num as int check (app.chk(value)); alter domain app.num owner to {app};
      grant execute on function app.chk(int) to {exec};
      alter table app.line alter invoice type app.num`,
    action: { sql: 'update app.invoice set id = 3 where id = 2' },
    approved: [
      remove('app.invoice', { id: 2 }),
      insert('app.invoice', { id: 3, status: 'pending', amount: '70.00' }),
      update('app.line', { id: 1 }, { invoice: [2, 3] }),
    ],
    expectation: boundary('pg_notify'),
  },
  {
    name: 'cascade: SET DEFAULT computes a default as the owner of the referencing table',
    setup: `${MAY_SHOUT}; ${routine('dflt() returns int', `${SHOUT} return 1;`)}; alter table app.line drop constraint line_invoice_fkey;
      alter table app.line alter invoice set default app.dflt(), add foreign key (invoice) references app.invoice on delete set default`,
    action: { sql: 'delete from app.invoice where id = 2' },
    approved: [
      remove('app.invoice', { id: 2 }),
      update('app.line', { id: 1 }, { invoice: [2, 1] }),
    ],
    expectation: boundary('pg_notify'),
  },
];

/** Functions of the server that are no longer the server's. */
const BUILTINS: readonly EscapeCase[] = [
  act("perform pg_catalog.lpad('x', 3)", boundary('not the one that the server came with'), {
    name: 'built-in: one that is written in SQL, replaced by code of the application',
    setup: `create or replace function pg_catalog.lpad(text, integer) returns text language plpgsql immutable as $b$ begin perform app.act(); return $1; end $b$`,
  }),
  act("perform pg_catalog.lpad('x', 3)", boundary('not the one that the server came with'), {
    name: 'built-in: one that is written in SQL, with another text',
    setup: `${routine('calm(text) returns text', 'return $1;')}; create or replace function pg_catalog.lpad(text, integer) returns text language sql immutable as $b$ select app.calm($1) $b$`,
  }),
  act("perform pg_catalog.lpad('x', 3)", boundary('SECURITY DEFINER'), {
    name: 'built-in: one that got the rights of a superuser',
    setup: 'alter function pg_catalog.lpad(text, integer) security definer',
  }),
  act("perform pg_catalog.lower('X')", boundary('not the one that the server came with'), {
    name: 'built-in: native code replaced by a function of the application',
    setup: `create or replace function pg_catalog.lower(text) returns text language plpgsql immutable as $b$ begin perform app.act(); return $1; end $b$`,
  }),
  act("perform pg_catalog.lower('X')", boundary('not the one that the server came with'), {
    name: 'built-in: native code replaced by SQL, which is read into the statement',
    setup: `create or replace function pg_catalog.lower(text) returns text language sql immutable as $b$ select $1 $b$`,
  }),
  {
    name: 'opened: an operator class whose hash is a built-in that removes large objects',
    setup: `create operator class app.eat for type oid using hash as operator 1 pg_catalog.=, function 1 pg_catalog.lo_unlink(oid)`,
    action: PAY,
    approved: PAID,
    expectation: boundary('lo_unlink'),
  },
];

/** Other servers, files and programs within the rights of whoever lends them. */
const OUTWARD: readonly EscapeCase[] = [
  owned('null', boundary('foreign server elsewhere'), {
    name: 'foreign server: granted to the owner of a definer function, without a table',
    setup: `${LOOPBACK}; grant usage on foreign server elsewhere to {app}; alter function app.act() owner to {app}`,
  }),
  owned('null', boundary('foreign server elsewhere'), {
    name: 'foreign server: owned by the owner of a definer function, without a table',
    setup: `${LOOPBACK}; grant usage on foreign data wrapper postgres_fdw to {app}; alter server elsewhere owner to {app}; revoke usage on foreign data wrapper postgres_fdw from {app}; alter function app.act() owner to {app}`,
  }),
  owned('null', boundary('foreign data wrapper postgres_fdw'), {
    name: 'foreign data wrapper: granted to the owner of a definer function',
    setup: `create extension postgres_fdw; revoke execute on all functions in schema public from public; grant usage on foreign data wrapper postgres_fdw to {app}; alter function app.act() owner to {app}`,
  }),
  owned("insert into app.far values (1, 'y')", boundary('foreign table app.far'), {
    name: 'foreign table: a loopback within the rights of the owner',
    setup: `${LOOPBACK}; create foreign table app.far (id int, what text) server elsewhere; alter foreign table app.far owner to {app}; alter function app.act() owner to {app}`,
  }),
  owned(
    "perform app.dblink_exec('port={port} dbname=postgres user=postgres', 'create table autonomous()')",
    boundary('dblink'),
    {
      name: 'dblink: another session within the rights of the owner',
      setup: `create extension dblink schema app; alter function app.act() owner to {app}`,
    },
  ),
  owned("copy app.bag to '{scratch}/leak'", boundary('COPY'), {
    name: 'file: COPY TO by an owner who may write files',
    setup: 'grant pg_write_server_files to {app}; alter function app.act() owner to {app}',
  }),
  owned("copy app.bag from program 'echo x > {scratch}/leak'", boundary('COPY'), {
    name: 'program: COPY FROM PROGRAM by an owner who may run programs',
    setup: 'grant pg_execute_server_program to {app}; alter function app.act() owner to {app}',
  }),
  owned("perform lo_export(1, '{scratch}/leak')", boundary('lo_export'), {
    name: 'file: lo_export granted to the owner',
    setup:
      'grant execute on function pg_catalog.lo_export(oid, text) to {app}; alter function app.act() owner to {app}',
  }),
  owned("perform pg_logical_emit_message(false, 'x', 'y')", boundary('pg_logical_emit_message'), {
    name: 'log: a message granted to the owner, which survives a rollback',
    setup: `do $d$ declare f regprocedure; begin for f in select oid from pg_proc where proname = 'pg_logical_emit_message' loop execute format('grant execute on function %s to {app}', f); end loop; end $d$`,
  }),
  act("security label on table app.invoice is 'x'", state('22023', 'security label'), {}),
];

const TRAP = `${LOOPBACK.replace("'postgres', port", "'{dbname}', port")}; create table app.sprung (id int);
  create function app.spring() returns int language sql as $s$ insert into app.sprung values (1) returning 1 $s$; revoke execute on function app.spring() from public;
  create view app.trap as select app.spring() as id; create foreign table app.far (id int) server elsewhere options (schema_name 'app', table_name 'trap');
  alter foreign table app.far owner to {app}`;
const LOOK = {
  sql: "update app.invoice set status = 'paid' where id = (select id from app.lookout limit 1)",
};

/** Reading what somebody else may read: tables of other servers behind views and parents. */
const LOOKING: readonly EscapeCase[] = [
  {
    name: 'view: reads a foreign table as its owner, and the other server writes',
    setup: `${TRAP}; create view app.lookout as select * from app.far; alter view app.lookout owner to {app}; grant select on app.lookout to {exec}`,
    action: LOOK,
    approved: PAID,
    expectation: boundary('foreign table app.far'),
  },
  {
    name: 'view: of a view of a foreign table',
    setup: `${TRAP}; create view app.beneath as select * from app.far; alter view app.beneath owner to {app}; create view app.lookout as select * from app.beneath; alter view app.lookout owner to {app}; grant select (id) on app.lookout to public`,
    action: LOOK,
    approved: PAID,
    expectation: boundary('foreign table app.far'),
  },
  {
    name: 'inheritance: a foreign child of a table that may be read, and a program behind it',
    setup: `create extension file_fdw; create server files foreign data wrapper file_fdw; create foreign table app.far (id int) server files options (program 'echo 1 | tee {scratch}/leak');
      create table app.lookout (id int); alter table app.lookout owner to {app}; alter foreign table app.far inherit app.lookout; grant select on app.lookout to {exec}; revoke execute on all functions in schema public from public`,
    action: LOOK,
    approved: PAID,
    expectation: boundary('foreign table app.far'),
  },
];

const STRANGE = (because: string) =>
  ({ kind: 'refused', code: 'ERR_EM_ADAPTER_REFUSED', because }) as const;

/**
 * The evidence itself: code of others on our own tables would run with our rights, after the
 * observation.
 */
const EVIDENCE: readonly EscapeCase[] = [
  {
    name: 'evidence: a trigger on the markers signals when the candidate is promoted',
    setup: `create function app.fires() returns trigger language plpgsql as $t$ begin notify leak; return null; end $t$; revoke execute on function app.fires() from public;
      create trigger fires after insert on effectmatch.marker for each row execute function app.fires()`,
    action: PAY,
    approved: PAID,
    expectation: STRANGE('trigger fires on effectmatch.marker'),
  },
  {
    name: 'evidence: a check on the markers that calls the application',
    setup: `create function app.chk(text) returns boolean language plpgsql as $t$ begin notify leak; return true; end $t$; grant usage on schema app to {owner};
      alter table effectmatch.marker add check (app.chk(text))`,
    action: PAY,
    approved: PAID,
    expectation: STRANGE('constraint marker_text_check on table effectmatch.marker'),
  },
  {
    name: 'evidence: a rule on the records',
    setup: 'create rule quiet as on delete to effectmatch.record do instead nothing',
    action: PAY,
    approved: PAID,
    expectation: STRANGE('rule quiet on effectmatch.record'),
  },
  {
    name: 'evidence: a table of the application that poses as records',
    setup:
      'create table app.more () inherits (effectmatch.record); alter table app.more owner to {app}',
    action: PAY,
    approved: PAID,
    expectation: STRANGE('app.more that inherits from it on effectmatch.record'),
  },
];

/** Writes by ways that a reading of the statement does not show. */
const WRITES: readonly EscapeCase[] = [
  {
    name: 'generated column: a function that only calls itself immutable, and one that writes behind it',
    setup: `${routine('vol() returns void', "insert into app.hidden values (12, 'g');", DEFINER)};
      ${routine('gen(text) returns text', 'perform app.vol(); return $1;', `immutable ${DEFINER}`)}; grant execute on function app.gen(text) to {exec}; truncate app.hidden;
      alter table app.bag add column g text generated always as (app.gen(what)) stored; truncate app.hidden`,
    action: { sql: "insert into app.bag values ('x')" },
    approved: [insert('app.bag', { what: 'x', g: 'x' })],
    expectation: INCOMPLETE,
  },
  {
    name: 'transition tables: a statement trigger that writes what it saw',
    setup: `create function app.fires() returns trigger language plpgsql as $t$ begin insert into app.bag select status from fresh; return null; end $t$; alter function app.fires() owner to {app}; revoke execute on function app.fires() from public;
      create trigger fires after update on app.invoice referencing new table as fresh for each statement execute function app.fires()`,
    action: PAY,
    approved: PAID,
    expectation: DIVERGED,
  },
  {
    name: 'transition tables: a definer that writes an unregistered table',
    setup: `create function app.fires() returns trigger language plpgsql ${DEFINER} as $t$ begin insert into app.hidden select 13, status from fresh; return null; end $t$; alter function app.fires() owner to {app}; revoke execute on function app.fires() from public;
      create trigger fires after update on app.invoice referencing new table as fresh for each statement execute function app.fires()`,
    action: PAY,
    approved: PAID,
    expectation: INCOMPLETE,
  },
  {
    name: 'aggregate: a definer among its parts writes an unregistered table',
    setup: `${routine('step(text, text) returns text', "insert into app.hidden values (14, 'agg'); return $2;", DEFINER)}; create aggregate app.fold(text) (sfunc = app.step, stype = text); revoke execute on function app.fold(text) from public;
      grant execute on function app.fold(text) to {exec}; grant execute on function app.step(text, text) to {exec};
      ${replaceAct("perform app.fold('x')")}`,
    action: ACT,
    approved: PAID,
    expectation: boundary('not a registered entry point'),
  },
  {
    name: 'conflict: triggers of both ways of an upsert',
    setup: `create function app.fires() returns trigger language plpgsql as $t$ begin insert into app.bag values (tg_op); return new; end $t$; alter function app.fires() owner to {app}; revoke execute on function app.fires() from public;
      create trigger fires before insert or update on app.invoice for each row execute function app.fires()`,
    action: {
      sql: "insert into app.invoice values (1) on conflict (id) do update set status = 'paid'",
    },
    approved: [...PAID, insert('app.bag', { what: 'UPDATE' })],
    expectation: DIVERGED,
  },
  {
    name: 'policy: an owner’s function behind a view that asks as its owner',
    setup: `${routine('peek() returns boolean', "insert into app.hidden values (15, 'v') on conflict do nothing; return true;", DEFINER)}; grant execute on function app.peek() to {exec};
      create view app.windowed as select * from app.invoice where app.peek(); alter view app.windowed owner to {app};
      ${replaceAct('perform 1 from app.windowed', DEFINER)}; alter function app.act() owner to {app}`,
    action: ACT,
    approved: PAID,
    expectation: INCOMPLETE,
  },
  owned('alter table app.bag alter what type text using app.d()', INCOMPLETE, {
    name: 'definer: a rewrite of a registered table through a function',
    setup: `insert into app.bag values ('x'); ${routine('d() returns text', "return 'y';")}; alter function app.act() owner to {app}`,
  }),
  owned('truncate app.hidden restart identity cascade', INCOMPLETE),
  owned('create statistics app.s on id, what from app.hidden', INCOMPLETE),
  owned(
    "create table app.mine partition of app.event for values from ('2028-01-01') to ('2029-01-01')",
    INCOMPLETE,
  ),
  owned(
    'create event trigger e on ddl_command_end execute function app.act()',
    boundary('EXECUTE'),
  ),
  owned(
    "perform nextval('app.free')",
    { kind: 'committed' },
    {
      name: 'control: a number that the application draws is residue',
      residue: ['app.free'],
    },
  ),
  statement(
    "merge into app.invoice i using (values (1)) v(id) on i.id = v.id when matched then update set status = 'paid', amount = 1 returning merge_action(), i.id",
    DIVERGED,
    { since: 17 },
  ),
  statement(
    "update app.invoice set status = 'paid' where id = 1 returning pg_notify('leak', status)",
    {
      kind: 'denied',
      code: 'ERR_EM_ACTION_INVALID',
    },
  ),
  statement(
    'with recursive r(n) as (select 1 union all select n + 1 from r where n < 3) insert into app.bag select n::text from r',
    DIVERGED,
  ),
  statement('insert into app.bag select what from app.line for update', DIVERGED),
];

/** A second round of attempts, by what the first one left out. */
export const ATTACKS: readonly EscapeCase[] = [
  ...COMPARISONS,
  ...BUILTINS,
  ...OUTWARD,
  ...LOOKING,
  ...EVIDENCE,
  ...WRITES,
];
