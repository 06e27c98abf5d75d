import { update } from '../../../src/protocol/draft.ts';
import type { EscapeCase, Expectation } from '../case.ts';

/** The database of the cases: what an application has, before it is provisioned. */
export const SCHEMA = `
  create role {app} nologin;
  grant create on database {db} to {app};
  create schema app authorization {app};
  set role {app};
  create table app.invoice (id int primary key, status text not null default 'pending', amount numeric(10, 2) not null default 0);
  create table app.line (id int primary key, invoice int references app.invoice on delete cascade on update cascade, what text);
  create table app.note (id bigint generated always as identity primary key, body text);
  create table app.event (at date not null, what text) partition by range (at);
  create table app.event_2026 partition of app.event for values from ('2026-01-01') to ('2027-01-01');
  create table app.bag (what text);
  create table app.bulk (id int primary key, what text);
  create table app.hidden (id int primary key, what text);
  create view app.paid as select * from app.invoice where status = 'paid';
  create sequence app.free;
  create function app.act() returns void language plpgsql as 'begin end';
  create procedure app.work() language plpgsql as 'begin end';
  revoke execute on all routines in schema app from public;
  insert into app.invoice values (1, 'pending', 35), (2, 'pending', 70);
  insert into app.line values (1, 2, 'a');
  insert into app.bulk values (1, 'a');
  insert into app.hidden values (1, 'x');
  reset role;`;

export const PAID = [update('app.invoice', { id: 1 }, { status: ['pending', 'paid'] })];
export const PAY = { sql: "update app.invoice set status = 'paid' where id = 1" };
export const ACT = { call: 'app.act' };
export const NOT_ADMITTED = { kind: 'denied', code: 'ERR_EM_ACTION_INVALID' } as const;
/** What the server denies, and with `because` in whose words. */
export const state = (code: string, because = ''): Expectation => ({
  kind: 'denied',
  code,
  because,
});
export const boundary = (because: string): Expectation => ({
  kind: 'refused',
  code: 'boundary',
  because,
});
export const DIVERGED = { kind: 'observed', code: 'DIVERGED' } as const;
export const INCOMPLETE = { kind: 'observed', code: 'INDETERMINATE' } as const;

/** The agent submits a statement of its own beside or instead of the approved one. */
export const statement = (
  sql: string,
  expectation: Expectation,
  more: Partial<EscapeCase> = {},
): EscapeCase => ({
  name: `statement: ${sql.length > 56 ? `${sql.slice(0, 55)}…` : sql}`,
  action: { sql },
  approved: PAID,
  expectation,
  ...more,
});

export const replaceAct = (body: string, more = '') =>
  `create or replace function app.act() returns void language plpgsql ${more} as $act$ begin update app.invoice set status = 'paid' where id = 1; ${body}; end $act$`;

/**
 * The registered entry point does the approved thing and, with the caller's or its owner's rights,
 * something else.
 */
export const act = (
  body: string,
  expectation: Expectation,
  more: Partial<EscapeCase> = {},
): EscapeCase => ({
  name: `entry point: ${body.slice(0, 58)}`,
  setup: `${more.setup ?? ''}; ${replaceAct(body)}`,
  action: ACT,
  approved: PAID,
  expectation,
  ...omitSetup(more),
});
export const owned = (
  body: string,
  expectation: Expectation,
  more: Partial<EscapeCase> = {},
): EscapeCase => ({
  name: `definer: ${body.slice(0, 62)}`,
  setup: `${more.setup ?? ''}; ${replaceAct(body, 'security definer set search_path = app, pg_temp')}`,
  action: ACT,
  approved: PAID,
  expectation,
  ...omitSetup(more),
});
/** A trigger of the application on the table that is written. */
export const trigger = (
  body: string,
  expectation: Expectation,
  more: Partial<EscapeCase> = {},
): EscapeCase => ({
  name: `trigger: ${body.slice(0, 62)}`,
  setup: `${more.setup ?? ''}; create function app.fires() returns trigger language plpgsql as $t$ begin ${body}; return null; end $t$; alter function app.fires() owner to {app}; revoke execute on function app.fires() from public; create trigger fires after update on app.invoice for each row execute function app.fires()`,
  action: PAY,
  approved: PAID,
  expectation,
  ...omitSetup(more),
});
/** The configuration is open before anything is prepared. */
export const opened = (
  setup: string,
  because: string,
  more: Partial<EscapeCase> = {},
): EscapeCase => ({
  name: `opened: ${setup.slice(0, 62)}`,
  setup,
  action: PAY,
  approved: PAID,
  expectation: boundary(because),
  ...more,
});
/** The configuration is opened (and perhaps closed again) while the candidate is held. */
export const drifted = (
  whileHeld: string,
  because: string,
  more: Partial<EscapeCase> = {},
): EscapeCase => ({
  name: `while held: ${whileHeld.slice(0, 60)}`,
  whileHeld,
  action: PAY,
  approved: PAID,
  expectation: { kind: 'refused', code: 'final-gate boundary-changed', because },
  ...more,
});

function omitSetup({ setup: _setup, ...rest }: Partial<EscapeCase>): Partial<EscapeCase> {
  return rest;
}
