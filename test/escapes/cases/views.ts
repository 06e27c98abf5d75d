import { insert, update } from '../../../src/protocol/draft.ts';
import type { EscapeCase, Expectation } from '../case.ts';
import { boundary, DIVERGED, INCOMPLETE, PAID, state } from './shop.ts';

const COMMITTED = { kind: 'committed' } as const;
const WRITE = { sql: "update app.v set status = 'paid' where id = 1" };
const GRANT = 'grant select, insert, update, delete on app.v to {exec}';

/** A view that is registered and granted, and what is done through it. */
const through = (
  name: string,
  setup: string,
  expectation: Expectation,
  more: Partial<EscapeCase> = {},
): EscapeCase => ({
  name: `view: ${name}`,
  setup: `set role {app}; ${setup}; ${GRANT}; reset role`,
  views: ['app.v'],
  action: WRITE,
  approved: PAID,
  expectation,
  ...more,
});

const PLAIN = 'create view app.v as select id, status, amount from app.invoice';
const DEFINER = 'security definer set search_path = app, pg_temp';
/** A view that calls a function on every row it looks at. */
const calling = (body: string, more = '', options = '') =>
  `create function app.spy(int) returns boolean language plpgsql ${more} as $f$ begin ${body}; return true; end $f$;
   revoke execute on function app.spy(int) from public; grant execute on function app.spy(int) to {exec};
   create view app.v ${options} as select id, status, amount from app.invoice where app.spy(id)`;
/**
 * A view whose writes are carried out by a trigger, which does the approved thing and something
 * else.
 */
const instead = (body: string, more = '') =>
  `create view app.v as select i.id, i.status, l.what from app.invoice i left join app.line l on l.invoice = i.id;
   create function app.steps_in() returns trigger language plpgsql ${more} as $f$ begin
     update app.invoice set status = new.status where id = new.id; ${body}; return new; end $f$;
   revoke execute on function app.steps_in() from public;
   create trigger steps_in instead of update on app.v for each row execute function app.steps_in()`;
const refused = (because: string): Expectation => ({
  kind: 'refused',
  code: 'ERR_EM_ADAPTER_REFUSED',
  because,
});

/**
 * Writes through views: what reaches registered tables is compared, and nothing else is reached.
 */
export const VIEWS: readonly EscapeCase[] = [
  through('control: one that the server updates by itself', PLAIN, COMMITTED),
  through(
    'control: with the rights of the caller, and a barrier',
    PLAIN.replace('app.v', 'app.v with (security_invoker, security_barrier)'),
    COMMITTED,
  ),
  through(
    'control: one that reads what is not registered',
    `${PLAIN} where exists (select from app.hidden)`,
    COMMITTED,
  ),
  through('control: ONLY', PLAIN.replace('from app', 'from only app'), COMMITTED),
  through(
    'control: a FROM among its columns',
    'create view app.v as select id, status, status is distinct from $$x$$ as other, extract(year from now()) from app.invoice',
    COMMITTED,
  ),
  through('control: a trigger that does what was approved', instead('null'), COMMITTED),
  through(
    'control: a view of a view with a trigger',
    `${instead('null').replaceAll('app.v', 'app.inner')}; create view app.v as select id, status from app.inner`,
    COMMITTED,
  ),
  through('one row more', PLAIN, DIVERGED, { action: { sql: "update app.v set status = 'paid'" } }),
  through('one column more', PLAIN, DIVERGED, {
    action: { sql: "update app.v set status = 'paid', amount = 0 where id = 1" },
  }),
  through(
    'outside its check option',
    `${PLAIN} where status = 'pending' with check option`,
    state('44000'),
  ),
  through(
    'a trigger that writes a registered table',
    instead("insert into app.bag values ('x')"),
    DIVERGED,
  ),
  through(
    'a trigger that does nothing of it',
    instead("update app.invoice set status = 'pending' where id = 1"),
    DIVERGED,
  ),
  through(
    'a trigger that writes where it may not',
    instead("insert into app.hidden values (2, 'y')"),
    state('42501'),
  ),
  through(
    'a trigger that writes with the rights of its owner',
    instead("insert into app.hidden values (2, 'y')", DEFINER),
    INCOMPLETE,
  ),
  through(
    'a trigger that writes through another view',
    instead("insert into app.paid values (9, 'paid', 1)"),
    state('42501'),
  ),
  through('a trigger that notifies', instead('notify leak'), boundary('NOTIFY')),
  through('a trigger that runs text', instead("execute 'noti' || 'fy leak'"), boundary('EXECUTE')),
  through(
    'a function that writes a registered table',
    calling("insert into app.bag values ('x')"),
    DIVERGED,
  ),
  through(
    'a function that writes with the rights of its owner',
    calling("insert into app.hidden values ((select max(id) + 1 from app.hidden), 'y')", DEFINER),
    INCOMPLETE,
  ),
  through(
    'a function that writes behind a barrier',
    calling(
      "insert into app.hidden values ((select max(id) + 1 from app.hidden), 'y')",
      DEFINER,
      'with (security_barrier)',
    ),
    INCOMPLETE,
  ),
  through(
    'a function that writes where it may not',
    calling("insert into app.hidden values (2, 'y')"),
    state('42501'),
  ),
  through('a function that notifies', calling('notify leak'), boundary('NOTIFY')),
  through(
    'a default that writes with the rights of its owner',
    `${PLAIN}; create function app.d() returns text language plpgsql ${DEFINER} as $f$ begin insert into app.hidden values (5, 'd'); return 'new'; end $f$; revoke execute on function app.d() from public; grant execute on function app.d() to {exec}; alter view app.v alter status set default app.d()`,
    INCOMPLETE,
    {
      action: { sql: 'insert into app.v (id, amount) values (9, 1)' },
      approved: [insert('app.invoice', { id: 9, status: 'new', amount: 1 })],
    },
  ),
  through(
    'a table that is not registered',
    'create view app.v as select id, what as status from app.hidden',
    boundary('which is not registered'),
  ),
  through(
    'a table that is not registered, with the rights of the caller',
    'create view app.v with (security_invoker) as select id, what as status from app.hidden',
    boundary('which is not registered'),
  ),
  through(
    'a view of a view of a table that is not registered',
    'create view app.inner as select id, what as status from app.hidden; create view app.v as select * from app.inner',
    boundary('app.hidden, which is not registered'),
  ),
  through(
    'a registered table in front of one that is not',
    'create view app.v as select h.id, h.what as status, (select count(*) from app.invoice) as n from app.hidden h where exists (select from app.invoice)',
    boundary('app.hidden, which is not registered'),
  ),
  through(
    'one column of a table that is not registered',
    'create view app.v as select id, what as status from app.hidden',
    boundary('which is not registered'),
    {
      setup:
        'set role {app}; create view app.v as select id, what as status from app.hidden; grant update (status) on app.v to {exec}; reset role',
    },
  ),
  {
    ...through(
      'a catalogue, with the rights of a superuser',
      '',
      boundary('pg_authid, which is not registered'),
    ),
    setup: `create view app.v as select oid as id, rolname as status, rolconnlimit from pg_authid; ${GRANT}`,
  },
  {
    ...through(
      'one of a superuser over a registered table lends no right to another',
      '',
      state('42501'),
    ),
    setup: `create view app.v as select id, status from app.invoice; ${GRANT};
      create function app.fires() returns trigger language plpgsql as $t$ begin insert into app.hidden values (3, 'z'); return null; end $t$;
      revoke execute on function app.fires() from public; create trigger fires after update on app.invoice for each row execute function app.fires()`,
  },
  {
    ...through('a foreign table beneath it', '', boundary('far')),
    setup: `create extension postgres_fdw; create server elsewhere foreign data wrapper postgres_fdw; revoke execute on all functions in schema public from public;
      create foreign table app.far (id int, status text) server elsewhere; create view app.v as select id, status from app.far; ${GRANT}`,
  },
  through(
    'rewritten by a rule',
    `${PLAIN}; create rule also as on update to app.v do also insert into app.bag values ('x')`,
    refused('rewrites statements'),
  ),
  through(
    'a rule beneath it',
    `create view app.inner as select id, status from app.invoice; create rule also as on update to app.inner do also insert into app.bag values ('x'); create view app.v as select * from app.inner`,
    boundary('rule also'),
  ),
  through(
    'a materialized view',
    'create materialized view app.v as select id, status from app.invoice',
    refused('only a refresh'),
    {
      setup:
        'set role {app}; create materialized view app.v as select id, status from app.invoice; reset role',
    },
  ),
  through('granted and not registered', PLAIN, boundary('it is not registered'), { views: [] }),
  through(
    'replaced while the candidate is held',
    PLAIN,
    { kind: 'refused', code: 'final-gate boundary-changed', because: 'app.v' },
    {
      whileHeld:
        'create or replace view app.v as select id, what as status, 0::numeric(10, 2) as amount from app.hidden',
    },
  ),
  through('replaced after the approval', PLAIN, boundary('which is not registered'), {
    approvedThen:
      'create or replace view app.v as select id, what as status, 0::numeric(10, 2) as amount from app.hidden',
  }),
  through(
    'a trigger that steps in while the candidate is held',
    PLAIN,
    { kind: 'refused', code: 'final-gate boundary-changed', because: 'app.v' },
    {
      whileHeld:
        "create function app.late() returns trigger language plpgsql as 'begin return new; end'; revoke execute on function app.late() from public; create trigger late instead of update on app.v for each row execute function app.late()",
    },
  ),
  through(
    'approved as a change of the view',
    PLAIN,
    { kind: 'refused', code: 'ERR_EM_MANIFEST_INVALID', because: 'is a view' },
    {
      approved: [update('app.v', { id: 1 }, { status: ['pending', 'paid'] })],
    },
  ),
  through(
    'owned by another while the candidate is held',
    PLAIN,
    { kind: 'refused', code: 'final-gate boundary-changed', because: 'app.v' },
    { whileHeld: 'alter view app.v owner to current_user' },
  ),
  through('one row more by MERGE', PLAIN, DIVERGED, {
    since: 17,
    action: {
      sql: "merge into app.v using (values (1), (2)) as s (id) on s.id = v.id when matched then update set status = 'paid'",
    },
  }),
];
