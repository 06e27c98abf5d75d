import { insert, update } from '../../../src/protocol/draft.ts';
import type { EscapeCase } from '../case.ts';
import { boundary, PAID, PAY, state } from './shop.ts';

/**
 * A function that writes, but not while an operation is observed: `app.later` calls itself
 * immutable, so that the server admits it in indexes and statistics, and calls one that is not.
 */
const LATER = `create function app.writes(text) returns void language plpgsql as $e$ begin insert into app.hidden values (floor(random() * 1e9)::int, $1); end $e$;
  create function app.later(text) returns text language plpgsql immutable as $e$ begin
    if session_user not like '%em_exec%' then perform app.writes($1); end if; return $1; end $e$;
  alter function app.writes(text) owner to {app}; alter function app.later(text) owner to {app}; revoke execute on function app.writes(text) from public`;
/** The same where no statement of an operation evaluates it. */
const MUCH_LATER = `${LATER}; revoke execute on function app.later(text) from public`;

const delayed = (
  name: string,
  setup: string,
  because: string,
  action: { readonly sql: string } = PAY,
): EscapeCase => ({
  name: `delayed: ${name}`,
  setup,
  action,
  approved: PAID,
  expectation: boundary(because),
});

/** The same payment by a statement that names the table on which something is open. */
const PAY_BY_BAG = { sql: `${PAY.sql} and not exists (select from app.bag where what = 'x')` };

const kept = (name: string, setup: string): EscapeCase => ({
  name: `control: delayed, ${name}`,
  setup,
  action: PAY,
  approved: PAID,
  expectation: { kind: 'committed' },
});

const PURE = `create function app.plain(text) returns text language plpgsql immutable as
  $e$ declare found text := lower($1); begin if found is null then return ''; end if; return replace(found, 'a', 'b'); end $e$`;
/** Comparisons of a composite type, with a support function that writes later. */
const COMPARED = `create type app.pt as (a text);
  create function app.pt_cmp(app.pt, app.pt) returns int language plpgsql immutable as
    $e$ begin perform app.later(($1).a); return bttextcmp(($1).a, ($2).a); end $e$;
  create function app.pt_lt(app.pt, app.pt) returns boolean language sql immutable as 'select ($1).a < ($2).a';
  create function app.pt_eq(app.pt, app.pt) returns boolean language sql immutable as 'select ($1).a = ($2).a';
  create operator app.<<< (function = app.pt_lt, leftarg = app.pt, rightarg = app.pt);
  create operator app.=== (function = app.pt_eq, leftarg = app.pt, rightarg = app.pt);
  create operator class app.pt_ops default for type app.pt using btree as operator 1 app.<<<, operator 3 app.===, function 1 app.pt_cmp(app.pt, app.pt)`;

/**
 * A function that writes, and a materialized view or something else that leads to it without a text
 * that says so.
 */
const disguised = (what: string, setup: string, because: string): EscapeCase =>
  delayed(
    what,
    `set role {app}; create function app.writes(text) returns text language plpgsql as $e$ begin insert into app.hidden values (floor(random() * 1e9)::int, $1); return $1; end $e$;
      create domain app.sly as text check (app.writes(value) is not distinct from value); create table app.far (v text, s app.sly);
      ${setup}; revoke execute on all functions in schema app from public; reset role`,
    because,
  );
const REFRESHED =
  'create materialized view app.m as select app.f(status) from app.invoice where id = 1';
const READER = `create function app.reader(text) returns text language plpgsql as $e$ begin insert into app.hidden select id + 100, status from app.invoice; return $1; end $e$`;

const DISGUISED: readonly EscapeCase[] = [
  disguised(
    'SELECT INTO, which makes a table',
    `create function app.f(text) returns text language sql as 'select 1 as x into app.made; select $1'; ${REFRESHED}; drop table app.made`,
    'may write (INTO)',
  ),
  disguised(
    'EXPLAIN of a statement that makes a table',
    `create function app.f(text) returns text language sql as 'explain analyze create table app.made as select 1; select $1'; ${REFRESHED}; drop table app.made`,
    'may write (EXPLAIN)',
  ),
  disguised(
    'an operator that is a sign for nextval',
    `create operator app.### (function = nextval, rightarg = regclass); create materialized view app.m as select operator(app.###) 'app.free'::regclass as n, status from app.invoice`,
    'moves a sequence',
  ),
  disguised(
    'an operator that is a sign for nextval, in a function',
    `create operator app.### (function = nextval, rightarg = regclass); create function app.f(text) returns bigint language sql as $e$ select operator(app.###) 'app.free'::regclass $e$; ${REFRESHED}`,
    'moves a sequence',
  ),
  disguised(
    'a variable with the type of a column',
    `create function app.f(text) returns text language plpgsql as $e$ declare x app.far.s%type; begin x := $1; return x; end $e$; ${REFRESHED}`,
    'app.writes(text) may write',
  ),
  disguised(
    'a variable with the type of a row',
    `create function app.f(text) returns text language plpgsql as $e$ declare x app.far; begin x.s := $1; return x.s; end $e$; ${REFRESHED}`,
    'app.writes(text) may write',
  ),
  disguised(
    'the default of an argument, by a function of the server',
    `create function app.f(a text, n bigint default nextval('app.free')) returns text language sql as 'select a'; ${REFRESHED}`,
    'moves a sequence',
  ),
  disguised(
    'the default of an argument, by the check of a domain',
    `create function app.f(a text, n text default 'a'::app.sly) returns text language sql as 'select a'; ${REFRESHED}`,
    'app.writes(text) may write',
  ),
  disguised(
    'a table that is read, whose index is computed while the query is planned',
    `create function app.later(text) returns text language plpgsql immutable as $e$ begin perform app.writes($1); return $1; end $e$;
      create index on app.far (v) where app.later('x') = v; create materialized view app.m as select status from app.invoice i, app.far f`,
    'app.writes(text) may write',
  ),
  disguised(
    'a materialized view that reads through an operator',
    `${READER}; create operator app.### (function = app.reader, rightarg = text); create function app.f(text) returns text language plpgsql as $e$ begin return operator(app.###) $1; end $e$;
      create materialized view app.m as select app.f(v) from app.far`,
    'app.reader(text) may write',
  ),
  disguised(
    'a materialized view that reads through the check of a domain',
    `${READER}; create domain app.told as text check (app.reader(value) is not null); create materialized view app.m as select v::app.told from app.far`,
    'app.reader(text) may write',
  ),
  delayed(
    'a check that is not validated yet and calls a function of the server',
    "alter table app.bag add constraint late check (nextval('app.free') > 0) not valid",
    'maintenance of constraint late',
    PAY_BY_BAG,
  ),
  delayed(
    'a comparison whose operator family has a name of two lines',
    `${LATER}; ${COMPARED.replace('app.pt_ops', 'app."pt\nops"')}; alter table app.bag add p app.pt; revoke execute on all functions in schema app from public`,
    'maintenance of function 1',
  ),
];

/**
 * Effects put off until ANALYZE, REINDEX, REFRESH or autovacuum runs them, outside any transaction
 * that is observed.
 */
export const DELAYED: readonly EscapeCase[] = [
  delayed(
    'a statistics expression',
    `${MUCH_LATER}; create statistics app.s on (app.later(status)) from app.invoice`,
    'maintenance of statistics app.s',
  ),
  delayed(
    'an index expression',
    `${LATER}; create index later on app.invoice (app.later(status))`,
    'maintenance of index app.later',
  ),
  delayed(
    'an index predicate',
    `${LATER}; create index later on app.invoice (id) where app.later(status) = 'x'`,
    'maintenance of index app.later',
  ),
  delayed(
    'an operator in an index expression',
    `${LATER}; create operator app.### (function = app.later, rightarg = text); create index later on app.invoice ((operator(app.###) status))`,
    'maintenance of index app.later',
  ),
  delayed(
    'a domain in a statistics expression',
    `${MUCH_LATER}; create domain app.sly as text check (app.later(value) is not null);
      create statistics app.s on ((status::app.sly)) from app.invoice`,
    'maintenance of statistics app.s',
  ),
  delayed(
    'a materialized view',
    `${MUCH_LATER}; create materialized view app.m as select app.later(status) from app.invoice`,
    'maintenance of materialized view app.m',
  ),
  delayed(
    'a materialized view above a view',
    `${MUCH_LATER}; create view app.v as select app.later(status) as s from app.invoice; create materialized view app.m as select s from app.v`,
    'maintenance of materialized view app.m',
  ),
  delayed(
    'a materialized view with an aggregate',
    `${MUCH_LATER}; create function app.step(text, text) returns text language sql as 'select app.later($2)'; revoke execute on function app.step(text, text) from public;
      create aggregate app.gather(text) (sfunc = app.step, stype = text); revoke execute on function app.gather(text) from public; create materialized view app.m as select app.gather(status) from app.invoice`,
    'maintenance of materialized view app.m',
  ),
  delayed(
    'a materialized view that moves a sequence',
    `create materialized view app.m as select nextval('app.free'), status from app.invoice`,
    'nextval',
  ),
  delayed(
    'a materialized view that signals',
    `create materialized view app.m as select ('app.free'::regclass).nextval, pg_notify('leak', status) is null as sent from app.invoice`,
    'maintenance of materialized view app.m',
  ),
  delayed(
    'an index of a materialized view',
    `${MUCH_LATER}; create materialized view app.m as select status from app.invoice; create index later on app.m (app.later(status))`,
    'maintenance of index app.later',
  ),
  delayed(
    'a function that only SQL put together at run time can explain',
    `create function app.later(text) returns text language plpgsql stable as $e$ declare r text; begin execute 'select ' || quote_literal($1) into r; return r; end $e$; revoke execute on function app.later(text) from public;
      create materialized view app.m as select app.later(status) from app.invoice`,
    'maintenance of materialized view app.m',
  ),
  delayed(
    'a check that is not validated yet',
    `${LATER}; alter table app.invoice add constraint late check (app.later(status) is not null) not valid`,
    'maintenance of constraint late',
  ),
  delayed(
    'a comparison that ANALYZE needs, without any index',
    `${LATER}; ${COMPARED}; alter table app.bag add p app.pt`,
    'app.pt_cmp',
  ),
  delayed(
    'an operator of an exclusion constraint',
    `${LATER}; create function app.same(text, text) returns boolean language plpgsql immutable as $e$ begin perform app.later($1); return $1 = $2; end $e$;
      create operator app.=== (function = app.same, leftarg = text, rightarg = text, commutator = operator(app.===));
      create operator class app.texts for type text using btree as operator 3 app.===, function 1 bttextcmp(text, text);
      alter table app.bag add constraint apart exclude using btree (what app.texts with operator(app.===))`,
    'app.same',
    PAY_BY_BAG,
  ),
  delayed(
    'a table that belongs to an extension, whose rows are its orders',
    `create extension lo; revoke execute on all functions in schema public from public; alter extension lo add table app.bag`,
    'belongs to extension lo',
    PAY_BY_BAG,
  ),
  ...DISGUISED,
  kept(
    'pure functions in statistics, indexes and materialized views',
    `${PURE}; create statistics app.s on (app.plain(status)) from app.invoice; create index on app.invoice (app.plain(status)) where app.plain(status) <> 'x';
      create materialized view app.m as select app.plain(status), random(), count(*) from app.invoice group by status; create index on app.m (app.plain(plain))`,
  ),
  kept(
    'a materialized view that only reads, through a view and a function',
    `create function app.total(int) returns bigint language sql stable as 'select count(*) from app.line l where l.invoice = $1'; revoke execute on function app.total(int) from public;
      create view app.v as select id, app.total(id) as n from app.invoice; create materialized view app.m as select v.id, v.n, now() as at from app.v v`,
  ),
  kept(
    'a materialized view that writes and has nothing to do with what operations reach',
    `${MUCH_LATER}; create table app.far (what text); create materialized view app.m as select app.later(f.what) from app.far f`,
  ),
];

/** A check whose message in the log survives a rollback, on a table that is approved to change. */
const LEAK = `create function app.leak() returns boolean language plpgsql security definer set search_path = pg_catalog, pg_temp as
    $e$ begin perform pg_logical_emit_message(false, 'leak', 'x'); return true; end $e$;
  create domain app.sly as text check (app.leak()); create domain app.slyer as app.sly; create type app.pair as (a app.sly)`;

const cast = (what: string, setup: string, approved: EscapeCase['approved']): EscapeCase => ({
  name: `early: ${what}`,
  setup: `${LEAK}; ${setup}`,
  action: PAY,
  approved,
  expectation: boundary('app.leak()'),
});

/**
 * Code of the application behind the values of an approval: it would run before anything is
 * certified.
 */
export const EARLY: readonly EscapeCase[] = [
  cast('a domain', 'alter table app.bag add v app.sly', [insert('app.bag', { what: 'x', v: 'y' })]),
  cast('a domain over a domain', 'alter table app.bag add v app.slyer', [
    insert('app.bag', { what: 'x', v: 'y' }),
  ]),
  cast('a list of a domain', 'alter table app.bag add v app.sly[]', [
    insert('app.bag', { what: 'x', v: ['y'] }),
  ]),
  cast('a domain of a bulk table', 'alter table app.bulk alter what type app.sly', [
    update('app.bulk', { id: 1 }, { what: ['a', 'b'] }),
  ]),
  {
    ...cast('a domain that an extension adopted, with its check', '', [
      insert('app.bag', { what: 'x', v: 'y' }),
    ]),
    setup: `grant create on database {db} to {app}; set role {app}; create extension citext schema app; revoke execute on all functions in schema app from public;
      create function app.ran() returns boolean language plpgsql as $e$ begin raise exception using errcode = '23514'; end $e$; create domain app.sly as text check (app.ran());
      alter extension citext add domain app.sly; alter extension citext add function app.ran(); alter table app.bag add v app.sly; reset role`,
    action: { sql: "insert into app.bag values ('x', 'y')" },
    expectation: state('23514'),
  },
  {
    ...cast('a field of a composite type', 'alter table app.bag add v app.pair', [
      insert('app.bag', { what: 'x', v: '(y)' }),
    ]),
    expectation: {
      kind: 'refused',
      code: 'ERR_EM_MANIFEST_INVALID',
      because: 'domain app.sly has the check',
    },
  },
  {
    ...cast(
      'a literal default of a domain',
      "alter table app.bag add v text; alter table app.bag alter v set default 'y'::app.sly",
      [insert('app.bag', { what: 'x' })],
    ),
    expectation: {
      kind: 'refused',
      code: 'ERR_EM_MANIFEST_INVALID',
      because: 'runs code of the application',
    },
  },
];
