import { insert } from '../../../src/protocol/draft.ts';
import type { EscapeCase, Expectation } from '../case.ts';
import { boundary, DIVERGED, INCOMPLETE, PAID, PAY, state } from './shop.ts';

/**
 * A constraint trigger of the application that waits until it is forced, on the table that is
 * written.
 */
const deferred = (
  name: string,
  body: string,
  expectation: Expectation,
  { more = '', setup = '', ...rest }: Partial<EscapeCase> & { readonly more?: string } = {},
): EscapeCase => ({
  name: `deferred trigger: ${name}`,
  setup: `${setup}; create function app.later() returns trigger language plpgsql ${more} as $t$ begin ${body}; return null; end $t$;
    alter function app.later() owner to {app}; revoke execute on function app.later() from public;
    create constraint trigger later after update on app.invoice deferrable initially deferred
      for each row execute function app.later()`,
  action: PAY,
  approved: PAID,
  expectation,
  ...rest,
});

const CHECK = (limit: number) =>
  `if (select sum(amount) from app.invoice) > ${limit} then raise exception using errcode = '23514'; end if`;

/**
 * What waits for COMMIT: checks that may, writes that must be seen, and code that would come too
 * late.
 */
export const DEFERRED: readonly EscapeCase[] = [
  deferred('control: only checks', CHECK(105), { kind: 'committed' }),
  deferred('checks and refuses', CHECK(100), state('23514')),
  deferred('writes a registered table', "insert into app.bag values ('x')", DIVERGED),
  deferred(
    'control: writes what was approved',
    "insert into app.bag values ('x')",
    { kind: 'committed' },
    {
      approved: [...PAID, insert('app.bag', { what: 'x' })],
    },
  ),
  deferred(
    'writes with the rights of its owner',
    "insert into app.hidden values (2, 'y')",
    INCOMPLETE,
    {
      more: 'security definer set search_path = app, pg_temp',
    },
  ),
  deferred('re-defers itself', 'set constraints app.later deferred', boundary('SET CONSTRAINTS')),
  deferred('re-defers itself two calls away', 'perform app.again()', boundary('SET CONSTRAINTS'), {
    setup: `create function app.again() returns void language plpgsql as 'begin set constraints all deferred; end'; revoke execute on function app.again() from public`,
  }),
  deferred(
    're-defers itself in text that is put together',
    "execute 'set constr' || 'aints all deferred'",
    boundary('EXECUTE'),
  ),
  deferred(
    'holds a cursor',
    "execute 'declare c cursor with hold for select 1'",
    boundary('WITH HOLD'),
  ),
  deferred('notifies', 'notify leak', boundary('NOTIFY')),
  {
    name: 'deferred trigger: its copy on a partition that the login cannot name',
    setup: `create schema cellar; create table cellar.event_2027 partition of app.event for values from ('2027-01-01') to ('2028-01-01');
      create function app.later() returns trigger language plpgsql as 'begin perform nextval(''app.free''); return null; end'; revoke execute on function app.later() from public;
      create constraint trigger later after insert on app.event deferrable initially deferred for each row execute function app.later()`,
    action: { sql: "insert into app.event values ('2027-05-01', 'x')" },
    approved: [insert('app.event', { at: '2027-05-01', what: 'x' })],
    expectation: boundary('GRANT USAGE ON SCHEMA cellar'),
  },
  {
    name: 'deferred trigger: on a table that a trigger writes, in a schema that the login cannot use',
    setup: `create schema cellar; create table cellar.queue (id int); alter table cellar.queue owner to {app}; grant usage on schema cellar to {app};
      create function app.later() returns trigger language plpgsql as 'begin perform nextval(''app.free''); return null; end'; revoke execute on function app.later() from public;
      create constraint trigger later after insert on cellar.queue deferrable initially deferred for each row execute function app.later();
      create function app.fires() returns trigger language plpgsql security definer set search_path = app, pg_temp as 'begin insert into cellar.queue values (1); return null; end';
      alter function app.fires() owner to {app}; revoke execute on function app.fires() from public;
      create trigger fires after update on app.invoice for each row execute function app.fires()`,
    action: PAY,
    approved: PAID,
    expectation: boundary('GRANT USAGE ON SCHEMA cellar'),
  },
  {
    name: 'deferred trigger: on one partition only, with a name in need of quotes',
    setup: `create function app.later() returns trigger language plpgsql as $t$ begin insert into app.bag values ('x'); return null; end $t$; revoke execute on function app.later() from public;
      create constraint trigger "la""ter" after insert on app.event_2026 deferrable initially deferred for each row execute function app.later()`,
    action: { sql: "insert into app.event values ('2026-05-01', 'x')" },
    approved: [insert('app.event', { at: '2026-05-01', what: 'x' })],
    expectation: DIVERGED,
  },
  {
    name: 'deferred trigger: made after the approval',
    setup: `create function app.later() returns trigger language plpgsql as $t$ begin insert into app.bag values ('x'); return null; end $t$; revoke execute on function app.later() from public`,
    approvedThen:
      'create constraint trigger later after update on app.invoice deferrable initially deferred for each row execute function app.later()',
    action: PAY,
    approved: PAID,
    expectation: DIVERGED,
  },
];
