import { any, insert, update } from '../../../src/protocol/draft.ts';
import type { EscapeCase, Expectation } from '../case.ts';
import { act, boundary, INCOMPLETE, owned, PAID, PAY, state, statement } from './shop.ts';

/** What the comparison says of numbers that no row has. */
const UNUSED: Expectation = { kind: 'observed', code: 'DIVERGED', because: 'note_id_seq' };
const BURN = "perform nextval('app.note_id_seq') from generate_series(1, 1000)";
const PAY_AND = (sql: string) => ({ statements: [PAY, { sql }] });
const UNIQUE = "alter table app.note add unique (body); insert into app.note (body) values ('x')";
const CYCLE = 'alter sequence app.note_id_seq maxvalue 5 cycle';

/**
 * A number far ahead, set where no body says so; an update of the same table would account for the
 * one that was drawn.
 */
const set = (where: string, setup: string, body = "update app.note set body = 'y'"): EscapeCase =>
  owned(body, boundary('setval'), {
    name: `sequence: set in ${where}`,
    setup: `insert into app.note (body) values ('x'); ${setup}`,
    approved: [...PAID, update('app.note', { id: 1 }, { body: ['x', 'y'] })],
  });
const AHEAD = "setval('app.note_id_seq', 1000000)";

/** Numbers of a registered sequence, taken without a row, taken back or made to repeat. */
export const SEQUENCES: readonly EscapeCase[] = [
  act(BURN, state('42501'), {
    name: 'sequence: drawn with the rights of the caller, who has none on an identity',
  }),
  owned(BURN, UNUSED, { name: 'sequence: a thousand numbers drawn by the owner' }),
  owned("perform nextval('app.note_id_seq')", UNUSED, {
    name: 'sequence: one number drawn by the owner',
  }),
  statement('pay', UNUSED, {
    name: 'sequence: drawn by a trigger with the rights of its owner',
    setup: `create function app.fires() returns trigger language plpgsql security definer set search_path = app, pg_temp as $t$ begin ${BURN}; return null; end $t$; alter function app.fires() owner to {app}; revoke execute on function app.fires() from public; create trigger fires after update on app.invoice for each row execute function app.fires()`,
    action: PAY,
  }),
  statement(
    "insert into app.note (body) select 'x' from generate_series(1, 1000) on conflict do nothing",
    UNUSED,
    {
      name: 'sequence: a thousand rows that a conflict keeps out',
      setup: UNIQUE,
      action: PAY_AND(
        "insert into app.note (body) select 'x' from generate_series(1, 1000) on conflict do nothing",
      ),
    },
  ),
  statement('upserts', UNUSED, {
    name: 'sequence: upserts of one row that change nothing',
    setup: UNIQUE,
    action: {
      statements: [
        PAY,
        ...Array.from({ length: 20 }, () => ({
          sql: "insert into app.note (body) values ('x') on conflict (body) do update set body = excluded.body",
        })),
      ],
    },
  }),
  statement('insert and delete', UNUSED, {
    name: 'sequence: rows that are inserted and removed again',
    action: {
      statements: [
        PAY,
        { sql: "insert into app.note (body) select 'y' from generate_series(1, 1000)" },
        { sql: "delete from app.note where body = 'y'" },
      ],
    },
  }),
  statement('insert', UNUSED, {
    name: 'sequence: rows that a trigger swallows',
    setup: `create function app.swallow() returns trigger language plpgsql as $t$ begin return null; end $t$;
      alter function app.swallow() owner to {app}; revoke execute on function app.swallow() from public;
      create trigger swallow before insert on app.note for each row execute function app.swallow()`,
    action: PAY_AND("insert into app.note (body) select 'y' from generate_series(1, 1000)"),
  }),
  act(
    "for i in 1..50 loop begin insert into app.note (body) values ('y'); raise exception using errcode = 'P0001'; exception when sqlstate 'P0001' then null; end; end loop",
    UNUSED,
    { name: 'sequence: rows that are rolled back one by one' },
  ),
  owned("perform nextval('app.note_id_seq') from generate_series(1, 5)", INCOMPLETE, {
    name: 'sequence: driven round once, so that it stands where it stood',
    setup: `${CYCLE}; select nextval('app.note_id_seq')`,
  }),
  statement("insert into app.note (body) values ('y'), ('z')", INCOMPLETE, {
    name: 'sequence: rows with numbers that were given out before',
    setup: `${CYCLE}; select nextval('app.note_id_seq') from generate_series(1, 4)`,
    action: { sql: "insert into app.note (body) select 'y' from generate_series(1, 5)" },
    approved: Array.from({ length: 5 }, () => insert('app.note', { id: any(), body: 'y' })),
  }),
  owned("perform setval('app.note_id_seq', 1)", boundary('setval'), {
    name: 'sequence: set by the owner',
  }),
  owned(
    "execute 'select set' || 'val(''app.note_id_seq'', 1)'",
    boundary('put together at run time'),
    {
      name: 'sequence: set back by a statement that is put together',
      setup: "select nextval('app.note_id_seq') from generate_series(1, 9)",
    },
  ),
  owned('alter sequence app.note_id_seq restart 1', INCOMPLETE, {
    name: 'sequence: restarted by the owner',
  }),
  owned("perform app.put('app.note_id_seq', 1)", boundary('second name for a built-in'), {
    name: 'sequence: set by a built-in under another name',
    setup: `create function app.put(regclass, bigint) returns bigint language internal as 'setval_oid'; revoke execute on function app.put(regclass, bigint) from public; grant execute on function app.put(regclass, bigint) to {app}`,
  }),
  set(
    'the default of an argument',
    `create function app.f(n bigint default ${AHEAD}) returns void language sql as 'select'; alter function app.f(bigint) owner to {app}; revoke execute on function app.f(bigint) from public`,
    "perform app.f(); update app.note set body = 'y'",
  ),
  set(
    'the condition of a trigger',
    `create function app.fires() returns trigger language plpgsql as 'begin return null; end'; alter function app.fires() owner to {app}; revoke execute on function app.fires() from public;
      create trigger fires after update on app.note for each row when (${AHEAD} > 0) execute function app.fires()`,
  ),
  set(
    'the default of a domain',
    `create domain app.far as bigint default ${AHEAD}; alter table app.bag add z app.far`,
  ),
  set(
    'the check of a domain',
    `create domain app.far as bigint check (${AHEAD} > 0); alter table app.bag add z app.far`,
  ),
  owned(
    "perform nextval('app.free') from generate_series(1, 1000)",
    boundary('GRANT SELECT ON SEQUENCE'),
    {
      name: 'sequence: one that a column got after the database was provisioned',
      setup: 'alter sequence app.free owned by app.note.id',
    },
  ),
  owned(BURN, boundary('GRANT SELECT ON SEQUENCE'), {
    name: 'sequence: one whose position can no longer be read',
    setup: 'revoke all on sequence app.note_id_seq from {owner}',
  }),
];
