// Goal: an update that changes nothing is a write, which can be approved where writes are compared.
// Method: upserts of equal values, stated and planned, under the profiles that do and do not see
// them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { renderApproved, update, writes } from '../../../src/index.ts';
import { assertCommitted, endingOf, openOffice } from './office.ts';

const SCHEMA = `create table setting (name text primary key, value text, seen integer);
  create table loose (value text);
  insert into setting values ('theme', 'dark', 1), ('size', 'big', 1); insert into loose values ('a')`;
const SAME = {
  sql: `insert into setting values ('theme', 'dark', 1)
    on conflict (name) do update set value = excluded.value, seen = excluded.seen`,
};

test('row-event: an upsert of equal values is approved as an update of no column, and as nothing else', async () => {
  await using office = await openOffice(SCHEMA, {
    relations: ['setting', 'loose'],
    profile: 'row-event',
  });
  const untouched = update('setting', { name: 'theme' }, {});
  assertCommitted(await office.run([untouched], SAME));
  assert.equal(endingOf(await office.run([], SAME)), 'rejected diverged: DIVERGED');
  const other = update('setting', { name: 'size' }, {});
  assert.equal(
    endingOf(await office.run([other], SAME)),
    'rejected diverged: DIVERGED',
    'another row',
  );
  const changing = { sql: "update setting set value = 'light' where name = 'theme'" };
  assert.equal(endingOf(await office.run([untouched], changing)), 'rejected diverged: DIVERGED');

  const { proposal, terminal } = await office.planned(SAME);
  assertCommitted(terminal);
  assert.match(
    renderApproved(proposal.approved),
    /~ setting name="theme" {2}written, no column changes/,
  );
  assertCommitted((await office.planned({ sql: 'update loose set value = value' })).terminal);
});

test('row-event: a write of volatile columns alone is an update of no column, stated or planned', async () => {
  const relations = [{ name: 'setting', volatile: ['seen'] }];
  await using office = await openOffice(SCHEMA, { relations, profile: 'row-event' });
  const seen = { sql: "update setting set seen = seen + 1 where name = 'theme'" };
  assertCommitted(await office.run([update('setting', { name: 'theme' }, {})], seen));
  assert.equal(endingOf(await office.run([], seen)), 'rejected diverged: DIVERGED');
  assertCommitted((await office.planned(seen)).terminal);
});

test('net-state: it is no effect, and stating it is refused with what to do', async () => {
  await using office = await openOffice(SCHEMA, { relations: ['setting'] });
  assertCommitted(await office.run([], SAME));
  const stated = office.run([update('setting', { name: 'theme' }, {})], SAME);
  await assert.rejects(stated, /it changes no column, which has no effect here; leave it out/);
});

test('relation-write: it counts', async () => {
  await using office = await openOffice(SCHEMA, {
    relations: ['setting'],
    profile: 'relation-write',
  });
  assertCommitted(await office.run([writes('update', 'setting', 1)], SAME));
});
