// Goal: operations may write through views; what counts is what happens to the tables beneath them.
// Method: updatable views and views with INSTEAD OF triggers, honest and not, through the whole
// runtime.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PostgresAction } from '../../../src/adapters/postgres/index.ts';
import { insert, remove, update } from '../../../src/index.ts';
import type { ApprovedEffect } from '../../../src/protocol/effect.ts';
import { type ProtectedDatabase, protectedDatabase } from '../../postgres/protected.ts';
import { isInstalled, VERSIONS, type Version } from '../../postgres/server.ts';
import { openBoundary, runApproved, tellEnd } from './approve.ts';

const SCHEMA = `
  create table invoice (id serial primary key, status text not null default 'pending', amount numeric(10, 2) not null);
  create table note (id integer primary key, body text);
  create table hidden (id integer primary key);
  insert into invoice (status, amount) values ('pending', 35), ('paid', 70);
  create view pending as select id, status, amount from invoice where status in ('pending', 'paid')
    with cascaded check option;
  create view pending_ids with (security_invoker, security_barrier) as select id, amount from pending;
  create view noted as select i.id, i.status, n.body from invoice i left join note n on n.id = i.id;
  create function write_noted() returns trigger language plpgsql as $$ begin
    update invoice set status = new.status where id = new.id;
    insert into note values (new.id, new.body);
    return new;
  end $$;
  revoke execute on function write_noted() from public;
  create trigger write_noted instead of update on noted for each row execute function write_noted();
  create view totals as select status, sum(amount) from invoice group by status;
  create materialized view summary as select count(*) from invoice;
  create view ruled as select id, status from invoice;
  create rule also as on update to ruled do also insert into note values (new.id, 'rule');
  create view cellar as select id from hidden;`;

const RELATIONS = ['invoice', 'note'];
const open = (views: readonly string[], version?: Version) =>
  protectedDatabase(
    SCHEMA,
    { relations: RELATIONS, views },
    version === undefined ? {} : { version },
  );

const run = async (
  place: ProtectedDatabase,
  effects: readonly ApprovedEffect[],
  action: PostgresAction,
  onceSigned?: () => Promise<unknown>,
) => tellEnd(await runApproved(place, { effects, action }, onceSigned));

const statuses = async ({ db }: ProtectedDatabase) =>
  (await db.run('select status from invoice order by id')).map(({ status }) => status);

const PAID = update('invoice', { id: 1 }, { status: ['pending', 'paid'] });
const CHEAPER = update('invoice', { id: 1 }, { amount: [35, 30] });

const HONEST: readonly (readonly [
  what: string,
  view: string,
  sql: string,
  effects: readonly ApprovedEffect[],
])[] = [
  ['an update', 'pending', "update pending set status = 'paid' where id = 1", [PAID]],
  ['a delete', 'pending', 'delete from pending where id = 2', [remove('invoice', { id: 2 })]],
  [
    'an insert',
    'pending',
    "insert into pending values (9, 'pending', 5)",
    [insert('invoice', { id: 9, status: 'pending', amount: 5 })],
  ],
  [
    'an upsert',
    'pending',
    "insert into pending values (1, 'x', 30) on conflict (id) do update set amount = excluded.amount",
    [CHEAPER],
  ],
  [
    'an update through a view of a view',
    'pending_ids',
    'update pending_ids set amount = 30 where id = 1',
    [CHEAPER],
  ],
  [
    'an INSTEAD OF trigger',
    'noted',
    "update noted set status = 'paid', body = 'thanks' where id = 1",
    [PAID, insert('note', { id: 1, body: 'thanks' })],
  ],
];
for (const version of VERSIONS) {
  const skip = isInstalled(version) ? false : `PostgreSQL ${version} is not installed`;
  test(`on PostgreSQL ${version} writes through views commit when the tables beneath change as approved`, {
    skip,
  }, async (t) => {
    for (const [what, view, sql, effects] of HONEST) {
      await t.test(what, async () => {
        await using place = await open(
          [view, ...(view === 'pending_ids' ? ['pending'] : [])],
          version,
        );
        assert.equal(await run(place, effects, { sql }), 'committed');
      });
    }
  });
}

test('a write through a view that changes more than was approved is DIVERGED', async () => {
  await using place = await open(['pending', 'noted']);
  assert.match(
    await run(place, [PAID], {
      sql: "update pending set status = 'paid', amount = 0 where id = 1",
    }),
    /DIVERGED/,
  );
  assert.match(
    await run(place, [PAID], { sql: "update noted set status = 'paid' where id = 1" }),
    /DIVERGED/,
  );
});

test('the check option of a view holds', async () => {
  await using place = await open(['pending']);
  assert.match(
    await run(place, [PAID], { sql: "update pending set status = 'lost' where id = 1" }),
    /\[44000\]/,
  );
});

test('a view that is not registered cannot be written', async () => {
  await using place = await open([]);
  const action = { sql: "update pending set status = 'paid' where id = 1" };
  assert.match(await run(place, [PAID], action), /^rejected at stage \(denied\)/);
  const grant = () => place.db.run(`grant update on pending to "${place.db.role('em_exec')}"`);
  assert.match(
    await run(place, [PAID], action, grant),
    /^rejected at boundary .*UPDATE ON TABLE public\.pending/s,
  );
  assert.deepEqual(await statuses(place), ['pending', 'paid']);
  await assert.rejects(run(place, [PAID], action), openBoundary(/UPDATE ON TABLE public\.pending/));
});

const REFUSED: readonly (readonly [view: string, message: RegExp])[] = [
  ['invoice', /view "invoice" cannot be registered: it is a table; name it in relations/],
  ['summary', /it is a materialized view, which only a refresh changes/],
  ['totals', /nothing can be written through it/],
  ['ruled', /rule "also" rewrites statements on it; use an INSTEAD OF trigger/],
  ['pendin', /there is no such view \(did you mean "pending"/],
];
for (const [view, message] of REFUSED) {
  test(`${view} is refused as a view, with what to do`, async () => {
    await assert.rejects(open([view]), { code: 'ERR_EM_ADAPTER_REFUSED', message });
  });
}

test('a view among the relations, or in a manifest, is answered with where it belongs', async () => {
  const relations = protectedDatabase(SCHEMA, { relations: ['pending'] });
  await assert.rejects(
    relations,
    /it is a view; name the tables beneath it here, and the view itself in `views`/,
  );
  await using place = await open(['pending']);
  const effects = [update('pending', { id: 1 }, { status: ['pending', 'paid'] })];
  await assert.rejects(runApproved(place, { effects, action: { sql: 'select 1' } }), {
    code: 'ERR_EM_MANIFEST_INVALID',
    message: /"pending" is a view; state what happens to the tables beneath it/,
  });
});

test('a view over a table that is not registered is refused with what to do', async () => {
  await using place = await open(['cellar']);
  const noted = [insert('note', { id: 1, body: null })];
  const action = { sql: 'insert into cellar values (1)' };
  const advice = /Writes through it go to public\.hidden.*name it in relations/s;
  const refused = await run(place, noted, action);
  assert.match(refused, /^rejected at boundary /);
  assert.match(refused, advice);
  await place.db.run(/REVOKE [^;]*/.exec(refused)?.[0] ?? '');
  const grant = () => place.db.run(`grant insert on cellar to "${place.db.role('em_exec')}"`);
  const end = await run(place, noted, action, grant);
  assert.match(end, /^rejected at boundary /);
  assert.match(end, advice);
  assert.deepEqual(await place.db.run('select id from hidden'), []);
});

test('a view that comes to write elsewhere after it was registered is refused, with what to do', async () => {
  await using place = await open(['pending_ids', 'pending']);
  const redirect = () =>
    place.db.run(
      'create or replace view pending_ids as select h.id, 0::numeric(10, 2) as amount from hidden h',
    );
  const action = { sql: 'update pending_ids set amount = 30 where id = 1' };
  const end = await run(place, [CHEAPER], action, redirect);
  assert.match(end, /^rejected at boundary .*view public\.pending_ids.*public\.hidden/s);
  assert.deepEqual(await place.db.run('select amount::int from invoice where id = 1'), [
    { amount: 35 },
  ]);
  await place.db.run(/REVOKE [^;]*/.exec(end)?.[0] ?? '');
  assert.doesNotMatch(await run(place, [CHEAPER], action), /committed/);
  const direct = { sql: 'update invoice set amount = 30 where id = 1' };
  assert.equal(await run(place, [CHEAPER], direct), 'committed');
});
