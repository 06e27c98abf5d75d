// Goal: numbers drawn from a registered sequence are accounted for: by rows, or by an approval that
// says how many are not. Method: real operations on a real server, honest and not; where a sequence
// stands is asked of the server itself.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import {
  between,
  count,
  generated,
  insert,
  renderApproved,
  renderDiff,
  renderTerminal,
  type Terminal,
  unused,
  update,
  writes,
} from '../../../src/index.ts';
import { isInstalled, VERSIONS } from '../../postgres/server.ts';
import { assertCommitted, endingOf, type Office, openOffice } from './office.ts';

const SCHEMA = `
  create table note (id serial primary key, name text unique, body text not null default '');
  create table item (id bigint generated always as identity primary key, name text unique);
  create sequence round_seq minvalue 1 maxvalue 3 cycle;
  create table round (id integer primary key, slot integer not null default nextval('round_seq'));
  create sequence number_seq;
  create table bill (id integer primary key, number text default 'B-' || nextval('number_seq'));
  create sequence ticket_seq;
  create table ticket (id integer primary key, number bigint);
  alter sequence ticket_seq owned by ticket.number;
  create function give() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as
    $$ begin new.number := nextval('public.ticket_seq'); return new; end $$;
  create trigger give before insert on ticket for each row execute function give();
  create table plain (id integer primary key, n integer not null);
  create function burn(many integer) returns void language plpgsql as $$ begin
    update public.plain set n = 2 where id = 1;
    perform nextval('public.note_id_seq') from generate_series(1, many);
  end $$;
  create function burn_owned(many integer) returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$ begin
    update public.plain set n = 2 where id = 1;
    perform nextval('public.item_id_seq') from generate_series(1, many);
  end $$;
  create function spin(many integer) returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$ begin
    update public.plain set n = 2 where id = 1;
    perform nextval('public.round_seq') from generate_series(1, many);
  end $$;
  create function peek() returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$ begin
    update public.plain set n = 2 where id = 1;
    perform last_value from public.item_id_seq;
  end $$;
  create function caught() returns void language plpgsql as $$ begin
    insert into public.note (name) values ('kept');
    begin
      insert into public.note (name) values ('lost');
      raise exception using errcode = 'P0001';
    exception when sqlstate 'P0001' then null; end;
    begin
      insert into public.note (name, body) values ('never', null);
    exception when not_null_violation then null; end;
  end $$;
  create function collect() returns void language plpgsql as $$ begin
    insert into public.note (name) select 'n' || i from generate_series(1, 10) as i;
    delete from public.note where name like 'n_%' and name <> 'n10';
  end $$;
  insert into plain values (1, 1);
  grant select, insert, update on all tables in schema public to {app};
  grant usage, select on all sequences in schema public to {app};
  alter function burn_owned(integer) owner to {app}; alter function spin(integer) owner to {app};
  alter function peek() owner to {app}; alter function give() owner to {app};
  revoke execute on all functions in schema public from public`;

const RELATIONS = {
  relations: ['note', 'item', 'round', 'bill', 'ticket', 'plain'],
  entryPoints: ['burn', 'burn_owned', 'spin', 'peek', 'caught', 'collect'],
};
const RAISED = [update('plain', { id: 1 }, { n: [1, 2] })];
const RAISE = [{ sql: 'update plain set n = 2 where id = 1' }];
const note = (name: string, label = name) =>
  insert('note', { id: generated(label), name, body: '' });

async function positionOf({ db }: Office, sequence: string): Promise<number> {
  const [row] = await db.run(`select pg_sequence_last_value('${sequence}')::int as at`);
  return Number(row?.at ?? 0);
}

/** What the comparison found beside what was approved. */
function extraOf(terminal: Terminal): string {
  assert.ok(
    terminal.kind === 'rejected' && terminal.outcome?.kind === 'DIVERGED',
    JSON.stringify(terminal),
  );
  return renderDiff(terminal.outcome.diff);
}

for (const version of VERSIONS) {
  const skip = isInstalled(version) ? false : `PostgreSQL ${version} is not installed`;
  test(`PostgreSQL ${version}: numbers that were drawn and that no row has are an effect`, {
    skip,
  }, async () => {
    await using office = await openOffice(SCHEMA, RELATIONS, { version });
    for (const [call, sequence] of [
      ['burn', 'note_id_seq'],
      ['burn_owned', 'item_id_seq'],
    ] as const) {
      const ended = await office.run(RAISED, { call, values: [1000] });
      assert.match(extraOf(ended), new RegExp(`extra +~ ${sequence} +unused: 0 -> 1000 `));
      assert.equal(await positionOf(office, sequence), 1000, 'the numbers really are gone');
    }
    assert.equal(
      endingOf(await office.run(RAISED, { call: 'burn', values: [1] })),
      'rejected diverged: DIVERGED',
    );
    const stated = [...RAISED, unused('note_id_seq', 5)];
    assert.equal(
      endingOf(await office.run(stated, { call: 'burn', values: [6] })),
      'rejected diverged: DIVERGED',
    );
    assert.equal(
      endingOf(await office.run(stated, { call: 'burn', values: [0] })),
      'rejected diverged: DIVERGED',
    );
    assertCommitted(await office.run(stated, { call: 'burn', values: [5] }));
  });

  test(`PostgreSQL ${version}: rows account for the numbers they have, and an upsert for one`, {
    skip,
  }, async () => {
    await using office = await openOffice(SCHEMA, RELATIONS, { version });
    const committed = await office.run([note('a'), note('b')], {
      sql: "insert into note (name) values ('a'), ('b')",
    });
    assertCommitted(committed);
    assert.ok(committed.kind === 'committed');
    assert.deepEqual(committed.residue, [
      { kind: 'sequence', name: 'note_id_seq', from: null, to: '2' },
    ]);
    assert.match(
      renderTerminal(committed),
      /Moved: sequence .*note_id_seq.* from its start to 2, by this attempt or/,
    );
    assert.deepEqual(
      (await office.runtime.ledgers.attempts(committed.occurrence)).at(-1),
      committed,
    );
    const upsert =
      "insert into note (name, body) values ('a', 'x') on conflict (name) do update set body = excluded.body";
    assertCommitted(
      await office.run([update('note', { id: 1 }, { body: ['', 'x'] })], { sql: upsert }),
    );
    const chosen = [insert('note', { id: 50, name: 'c', body: '' })];
    assertCommitted(await office.run(chosen, { sql: "insert into note values (50, 'c')" }));
    const item = [insert('item', { id: generated('i'), name: 'a' })];
    assertCommitted(await office.run(item, { sql: "insert into item (name) values ('a')" }));
  });
}

test('a number that a conflict, an error or a removal left without a row must be approved, and a plan says so', async () => {
  await using office = await openOffice(SCHEMA, RELATIONS);
  await office.db.run("insert into note (name) values ('a')");
  const three = {
    sql: "insert into note (name) values ('a'), ('b'), ('a') on conflict do nothing",
  };
  assert.match(
    extraOf(await office.run([note('b')], three)),
    /1 extra, 0 missing.*note_id_seq +unused: 0 -> 2 /s,
  );
  assertCommitted(await office.run([note('b'), unused('note_id_seq', 2)], three));
  const { proposal, terminal } = await office.planned({
    sql: "insert into note (name) values ('a'), ('c') on conflict do nothing",
  });
  assertCommitted(terminal);
  assert.match(renderApproved(proposal.approved), /~ note_id_seq +unused: 0 -> 1/);

  assert.match(
    extraOf(await office.run([note('kept')], { call: 'caught' })),
    /note_id_seq +unused: 0 -> 2 /,
  );
  assertCommitted(await office.run([note('kept'), unused('note_id_seq', 2)], { call: 'caught' }));
  assert.match(
    extraOf(await office.run([note('n10')], { call: 'collect' })),
    /note_id_seq +unused: 0 -> 9 /,
  );
  assertCommitted((await office.planned({ call: 'collect' })).terminal);
});

test('a row with a chosen number does not account for one that was drawn', async () => {
  await using office = await openOffice(SCHEMA, RELATIONS);
  const chosen = insert('note', { id: 900, name: 'chosen', body: '' });
  const action = {
    statements: [{ sql: "insert into note values (900, 'chosen')" }, { call: 'burn', values: [1] }],
  };
  assert.match(
    extraOf(await office.run([...RAISED, chosen], action)),
    /note_id_seq +unused: 0 -> 1 /,
  );
});

test('a sequence that started over, or was read as a table, leaves the outcome open', async () => {
  await using office = await openOffice(SCHEMA, RELATIONS);
  await office.db.run("select nextval('round_seq')");
  const rows = [1, 2].map((id) => insert('round', { id, slot: generated(`slot ${id}`) }));
  assertCommitted(await office.run(rows, { sql: 'insert into round (id) values (1), (2)' }));
  const over = await office.run([insert('round', { id: 3, slot: 1 })], {
    sql: 'insert into round (id) values (3)',
  });
  assert.equal(endingOf(over), 'rejected incomplete: INDETERMINATE');
  assert.match(
    over.kind === 'rejected' ? over.detail : '',
    /"round_seq" was used for 1 numbers and went on by -2/,
  );
  assert.equal(
    endingOf(await office.run(RAISED, { call: 'spin', values: [3] })),
    'rejected incomplete: INDETERMINATE',
  );
  assert.equal(
    endingOf(await office.run(RAISED, { call: 'peek' })),
    'rejected incomplete: INDETERMINATE',
  );
});

test('what others draw meanwhile is not the operation, and what a session takes ahead is its way to draw', async () => {
  await using office = await openOffice(SCHEMA, RELATIONS);
  await office.db.run('alter sequence note_id_seq cache 20');
  assertCommitted(await office.run([note('a')], { sql: "insert into note (name) values ('a')" }));
  const many = Array.from({ length: 21 }, (_, n) => `m${n}`);
  const sql = `insert into note (name) values ${many.map((name) => `('${name}')`).join(', ')}`;
  const notes = many.map((name) => note(name));
  assertCommitted(await office.run(notes, { sql }));
  assert.equal(
    await positionOf(office, 'note_id_seq'),
    60,
    'twenty for one row, forty for twenty-one',
  );
  await office.db.run('alter sequence note_id_seq cache 1');

  const other = new pg.Client({ connectionString: office.db.url() });
  await other.connect();
  try {
    // The operation draws, then waits for a row; the others draw while it waits.
    await other.query('begin; select from plain where id = 1 for update');
    const action = { statements: [{ sql: "insert into note (name) values ('late')" }, ...RAISE] };
    const running = office.run([note('late'), ...RAISED], action);
    // Other tests wait for rows on the same server.
    const waiting = `select count(*)::int as n from pg_locks as w
      where not granted and locktype = 'transactionid' and exists (
        select from pg_locks as h join pg_database as d on d.oid = h.database
          where h.pid = w.pid and d.datname = current_database())`;
    while ((await other.query(waiting)).rows[0].n === 0);
    await other.query("select count(nextval('note_id_seq')) from generate_series(1, 500)");
    await other.query('rollback');
    const ended = await running;
    assertCommitted(ended);
    const moved = [{ kind: 'sequence', name: 'note_id_seq', from: '60', to: '561' }];
    assert.deepEqual(ended.kind === 'committed' && ended.residue, moved);
  } finally {
    await other.end();
  }
});

test('a sequence in a longer default, or that a column owns, is accounted for by rows alone', async () => {
  await using office = await openOffice(SCHEMA, RELATIONS);
  await office.db.run(`grant usage on sequence number_seq to "${office.db.role('em_exec')}"`);
  const bill = [insert('bill', { id: 1, number: 'B-1' })];
  assertCommitted(await office.run(bill, { sql: 'insert into bill (id) values (1)' }));
  const ticket = [insert('ticket', { id: 1, number: 1 })];
  assertCommitted(await office.run(ticket, { sql: 'insert into ticket (id) values (1)' }));
  const again = { sql: 'insert into ticket (id) values (1), (2) on conflict do nothing' };
  const second = [insert('ticket', { id: 2, number: 3 })];
  assert.match(extraOf(await office.run(second, again)), /ticket_seq +unused: 0 -> 1 /);
});

test('where every write is compared, the writes account for numbers as they were approved', async () => {
  await using counted = await openOffice(SCHEMA, { ...RELATIONS, profile: 'relation-write' });
  const twice = [writes('update', 'plain', 1), unused('note_id_seq', 2)];
  assertCommitted(await counted.run(twice, { call: 'burn', values: [2] }));
  const once = [writes('update', 'plain', 1)];
  assert.equal(
    endingOf(await counted.run(once, { call: 'burn', values: [2] })),
    'rejected diverged: DIVERGED',
  );
  await using events = await openOffice(SCHEMA, { ...RELATIONS, profile: 'row-event' });
  const { proposal, terminal } = await events.planned({ call: 'collect' });
  assertCommitted(terminal);
  assert.equal(
    proposal.approved.effects.length,
    19,
    'ten rows and nine removals, and no number without a row',
  );
});

test('what cannot be said about a sequence is refused with what to write', async () => {
  await using office = await openOffice(SCHEMA, RELATIONS);
  const wrong = [
    insert('note_id_seq', { unused: 1 }),
    unused('note_id_seq', 0),
    unused('note_id_seq', -1),
    unused('note_id_seq', generated('n')),
    count(unused('note_id_seq', 1), 2),
    update('note_id_seq', { unused: 0 }, { unused: [0, 1] }),
    update('note_id_seq', { id: 1 }, { last_value: [0, 1] }),
  ];
  for (const effect of wrong)
    await assert.rejects(
      office.run([effect], { call: 'burn', values: [1] }),
      /write unused\('note_id_seq', 3\)/,
    );
  const loose = [...RAISED, unused('public.note_id_seq', between(1, 9))];
  assertCommitted(await office.run(loose, { call: 'burn', values: [4] }));
});
