import { insert } from '../../../src/protocol/draft.ts';
import type { EscapeCase } from '../case.ts';
import { act, boundary, INCOMPLETE, owned, PAID, state, statement } from './shop.ts';

const ATTACH =
  "alter table app.event attach partition app.loose for values from ('2027-01-01') to ('2028-01-01')";
const LOOSE =
  'create table app.loose (at date not null, what text); alter table app.loose owner to {app}';

/**
 * What the trusted functions and tables answer to application code, and what owners can do inside a
 * definer function.
 */
export const MORE_BODIES: readonly EscapeCase[] = [
  act("insert into effectmatch.probe values ('x')", INCOMPLETE),
  act("perform effectmatch.open('other', array[]::oid[], 1000, 1000)", state('23505')),
  act("perform effectmatch.read_rows('x', array['select 1'], null)", state('EM004')),
  act(
    'perform effectmatch.reset()',
    { kind: 'committed' },
    { name: 'control: resetting one’s own session' },
  ),
  act('perform effectmatch.describe()', state('42501')),
  act('perform count(*) from effectmatch.deployment', state('42501')),
  act("alter role current_user password 'x'", INCOMPLETE),
  act('drop owned by current_user', INCOMPLETE),
  act('set local track_counts = off', state('42501')),
  act('set local allow_system_table_mods = on', state('42501')),
  act('set local lo_compat_privileges = on', state('42501')),
  act('set local role postgres', state('42501')),
  act('alter table app.bag drop constraint x', state('42501')),
  act('drop trigger effectmatch_record on app.bag', state('42501')),
  act('create publication leak for table app.bag', state('42501')),
  act(
    "create subscription leak connection 'dbname=x' publication y with (connect = false)",
    state('42501'),
  ),
  act('create extension dblink', state('42501')),
  act('create schema mine', state('42501')),
  act('perform pg_reload_conf()', state('42501')),
  act('perform pg_stat_reset()', state('42501')),
  act("perform pg_read_file('postgresql.conf')", state('42501')),
  act("perform lo_import('/etc/hostname')", state('42501')),
  act("perform pg_create_logical_replication_slot('leak', 'test_decoding')", state('42501')),
  act('perform pg_export_snapshot()', state('42501')),
  act('perform setseed(0)', state('42501')),
  act("perform ts_stat('select null::tsvector')", state('42501')),
  owned('create temporary table mine (id int)', state('42501')),
  owned('insert into app.fast values (1)', INCOMPLETE, {
    setup: 'create unlogged table app.fast (id int); alter table app.fast owner to {app}',
  }),
  owned("insert into app.window values (8, 'w')", INCOMPLETE, {
    name: 'definer: INSTEAD OF trigger of a view writes an unregistered table',
    setup: `create view app.window as select * from app.hidden; alter view app.window owner to {app}; create function app.pane() returns trigger language plpgsql as $$ begin insert into app.hidden values (new.id, new.what); return new; end $$; alter function app.pane() owner to {app}; revoke execute on function app.pane() from public; create trigger pane instead of insert on app.window for each row execute function app.pane()`,
  }),
  owned(ATTACH, INCOMPLETE, { setup: LOOSE }),
  owned('alter table app.event detach partition app.event_2026', INCOMPLETE),
  owned('truncate effectmatch.record', state('42501')),
  owned('alter function app.act() reset search_path', INCOMPLETE),
  owned('drop view app.paid', INCOMPLETE),
  owned('create policy p on app.bag using (false)', INCOMPLETE),
  owned('alter table app.bag enable row level security', INCOMPLETE),
  owned('create domain app.d as text', INCOMPLETE),
  owned('cluster app.hidden using hidden_pkey', INCOMPLETE),
  owned(
    'lock table app.hidden in share mode',
    { kind: 'committed' },
    { name: 'control: a lock of the owner ends with the transaction' },
  ),
  statement("update invoice set status = 'paid' where id = 1", state('42501'), {
    name: 'names: a table of the same name earlier on the search path',
    setup:
      "create table public.invoice (id int, status text); insert into public.invoice values (1, 'pending')",
  }),
  {
    name: 'cascade: into a table that is not registered',
    setup:
      'create table app.far (id int primary key, invoice int references app.invoice on delete cascade); insert into app.far values (1, 2); alter table app.far owner to {app}',
    action: { sql: 'delete from app.invoice where id = 2' },
    approved: PAID,
    expectation: INCOMPLETE,
  },
  {
    name: 'index: an expression that lies about being immutable',
    setup: `create function app.ix(text) returns text language plpgsql immutable as $$ begin insert into app.hidden values (11, 'ix'); return ''; end $$; revoke execute on function app.ix(text) from public; grant execute on function app.ix(text) to {exec}; truncate app.bag; create index on app.bag (app.ix(what))`,
    action: { sql: "insert into app.bag values ('x')" },
    approved: [insert('app.bag', { what: 'x' })],
    expectation: boundary('maintenance of index'),
  },
];
