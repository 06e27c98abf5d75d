// Goal: what is particular to PostgreSQL in a task: sequences, deferred constraints, the server's
// deadline, agent SQL that would control the transaction. Method: tasks on a real server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { generated, insert, update } from '../../../src/index.ts';
import { assertRejected, ofKind } from '../../runtime/deploy.ts';
import { openOffice } from './office.ts';

const SCHEMA = `
  create table invoice (id serial primary key, note text not null, unique (note));
  create table line (id integer primary key, invoice integer not null
    references invoice deferrable initially deferred);
  insert into invoice (note) values ('first')`;
const RELATIONS = { relations: ['invoice', 'line'] };
const add = (note: string) => ({ sql: 'insert into invoice (note) values ($1)', values: [note] });

test('a failed call draws a number of a sequence, and the task still commits', async () => {
  await using office = await openOffice(SCHEMA, RELATIONS);
  const task = await office.open([insert('invoice', { id: generated('new'), note: 'second' })]);
  const failed = await task.call(add('first'));
  assert.equal(failed.kind === 'failed' && failed.reason, 'constraint');
  const added = await task.call({ ...add('second'), sql: `${add('').sql} returning id` });
  assert.deepEqual(added, { kind: 'done', results: [{ rows: [{ id: 3 }], omitted: 0 }] });
  const terminal = ofKind('committed', await task.finish());
  assert.deepEqual(terminal.generated, { new: 3 });
  const moved = [{ kind: 'sequence', name: 'invoice_id_seq', from: '1', to: '3' }];
  assert.deepEqual(terminal.residue, moved, 'the number that is lost is reported');
});

test('a number that a call which was kept draws for no row is part of the result', async () => {
  await using office = await openOffice(SCHEMA, RELATIONS);
  const task = await office.open([insert('invoice', { id: generated('new'), note: 'second' })]);
  await task.call(add('first'));
  const drawn = await task.call({ ...add('first'), sql: `${add('').sql} on conflict do nothing` });
  assert.equal(drawn.kind, 'done', JSON.stringify(drawn));
  await task.call(add('second'));
  const { outcome } = assertRejected(await task.finish(), 'comparison', 'diverged');
  const extra = outcome?.kind === 'DIVERGED' ? outcome.diff.extra.map(({ after }) => after) : [];
  assert.deepEqual(extra, [{ unused: 1 }]);
});

test('a number that a task drew before it was given up is reported as left behind', async () => {
  await using office = await openOffice(SCHEMA, RELATIONS);
  const task = await office.open([insert('invoice', { id: generated('new'), note: 'second' })]);
  assert.equal((await task.call(add('second'))).kind, 'done');
  const rejected = assertRejected(await task.discard(), 'stage', 'task-discarded');
  const moved = [{ kind: 'sequence', name: 'invoice_id_seq', from: '1', to: '2' }];
  assert.deepEqual(rejected.residue, moved);
  const idle = await office.open([insert('invoice', { id: generated('new'), note: 'second' })]);
  const untouched = assertRejected(await idle.discard(), 'stage', 'task-discarded');
  assert.equal(untouched.residue, undefined, 'nothing was drawn');
});

test('a constraint that is deferred may hold only when the task is finished', async () => {
  await using office = await openOffice(SCHEMA, RELATIONS);
  const effects = [insert('line', { id: 1, invoice: 7 }), insert('invoice', { id: 7, note: 'x' })];
  const task = await office.open(effects);
  const line = { sql: 'insert into line values (1, 7)' };
  assert.equal((await task.call(line)).kind, 'done');
  assert.equal((await task.call({ sql: "insert into invoice values (7, 'x')" })).kind, 'done');
  ofKind('committed', await task.finish());

  const other = await office.open([insert('line', { id: 2, invoice: 8 })]);
  assert.equal((await other.call({ sql: 'insert into line values (2, 8)' })).kind, 'done');
  assertRejected(await other.finish(), 'stage', 'constraint');
});

test('agent SQL cannot end the transaction or its savepoint', async () => {
  await using office = await openOffice(SCHEMA, RELATIONS);
  const task = await office.open([update('invoice', { id: 1 }, { note: ['first', 'paid'] })]);
  for (const sql of ['commit', 'rollback', 'release savepoint effectmatch_call', 'savepoint a'])
    assert.equal((await task.call({ sql })).kind, 'failed', sql);
  await task.call({ sql: "update invoice set note = 'paid' where id = 1" });
  ofKind('committed', await task.finish());
});

test('the server ends a stage at its own deadline, which bounds every task', async () => {
  await using office = await openOffice(SCHEMA, { ...RELATIONS, stageTimeoutMs: 1500 });
  const task = await office.open([update('invoice', { id: 1 }, { note: ['first', 'paid'] })]);
  assert.ok(Date.parse(task.expiresAt) <= Date.now() + 1500);
  await task.call({ sql: "update invoice set note = 'paid' where id = 1" });
  const slow = await task.call({ sql: 'select count(*) from generate_series(1, 1000000000)' });
  assert.equal(slow.kind, 'failed', JSON.stringify(slow));
  ofKind('rejected', await task.finish());
  assert.deepEqual(await office.db.run('select note from invoice'), [{ note: 'first' }]);
});
