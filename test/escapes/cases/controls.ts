import { insert, remove, update } from '../../../src/protocol/draft.ts';
import type { EscapeCase } from '../case.ts';
import { ACT, PAID, PAY, replaceAct } from './shop.ts';

export const CONTROLS: readonly EscapeCase[] = [
  { name: 'control: update', action: PAY, approved: PAID, expectation: { kind: 'committed' } },
  {
    name: 'control: parameters',
    action: { sql: 'update app.invoice set status = $1 where id = $2', values: ['paid', 1] },
    approved: PAID,
    expectation: { kind: 'committed' },
  },
  {
    name: 'control: a search path of the execution login',
    setup: 'alter role {exec} set search_path = app',
    action: { sql: "update invoice set status = 'paid' where id = 1" },
    approved: PAID,
    expectation: { kind: 'committed' },
  },
  {
    name: 'control: entry point',
    setup: replaceAct('null'),
    action: ACT,
    approved: PAID,
    expectation: { kind: 'committed' },
  },
  {
    name: 'control: definer entry point',
    setup: replaceAct('null', 'security definer set search_path = app, pg_temp'),
    action: ACT,
    approved: PAID,
    expectation: { kind: 'committed' },
  },
  {
    name: 'control: trigger write that was approved',
    setup: `create function app.fires() returns trigger language plpgsql as $t$ begin insert into app.bag values ('paid'); return null; end $t$; alter function app.fires() owner to {app}; revoke execute on function app.fires() from public; create trigger fires after update on app.invoice for each row execute function app.fires()`,
    action: PAY,
    approved: [...PAID, insert('app.bag', { what: 'paid' })],
    expectation: { kind: 'committed' },
  },
  {
    name: 'control: cascade that was approved',
    action: { sql: 'delete from app.invoice where id = 2' },
    approved: [remove('app.invoice', { id: 2 }), remove('app.line', { id: 1 })],
    expectation: { kind: 'committed' },
  },
  {
    name: 'control: partition through the parent',
    action: { sql: "insert into app.event values ('2026-05-01', 'x')" },
    approved: [insert('app.event', { at: '2026-05-01', what: 'x' })],
    expectation: { kind: 'committed' },
  },
  {
    name: 'control: bulk',
    action: { sql: "update app.bulk set what = 'b' where id = 1" },
    approved: [update('app.bulk', { id: 1 }, { what: ['a', 'b'] })],
    expectation: { kind: 'committed' },
  },
  {
    name: 'control: caught error leaves nothing',
    setup: replaceAct(
      `begin insert into app.bag values (1); raise exception using errcode = 'P0001'; exception when sqlstate 'P0001' then null; end`,
    ),
    action: ACT,
    approved: PAID,
    expectation: { kind: 'committed' },
  },
  {
    name: 'control: procedure',
    setup: `create or replace procedure app.work() language plpgsql as $$ begin update app.invoice set status = 'paid' where id = 1; end $$`,
    action: { call: 'app.work' },
    approved: PAID,
    expectation: { kind: 'committed' },
  },
  {
    name: 'control: a foreign server out of reach',
    setup: `create extension postgres_fdw; create server elsewhere foreign data wrapper postgres_fdw; revoke execute on all functions in schema public from public`,
    action: PAY,
    approved: PAID,
    expectation: { kind: 'committed' },
  },
];
