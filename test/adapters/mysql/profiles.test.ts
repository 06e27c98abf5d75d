// Goal: on MariaDB, too, every write counts under `row-event`, and the number of writes to each table
// under `relation-write`; what was approved commits, and one write more, less or other commits
// nothing. Method: a table with a trigger that writes to a second one, on a real server.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  count,
  type Executed,
  generated,
  insert,
  remove,
  update,
  writes,
} from '../../../src/index.ts';
import type { ApprovedEffect } from '../../../src/protocol/effect.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { type MariadbOffice, openMariadbOffice } from '../../mysql/office.ts';

const SCHEMA = `
  create table item (id int primary key, stock int not null, seen int not null default 0);
  create table movement (id int auto_increment primary key, item int not null, difference int not null);
  create trigger moved after update on item for each row
    if new.stock <> old.stock then
      insert into movement (item, difference) values (new.id, new.stock - old.stock);
    end if;
  insert into item values (1, 10, 0), (2, 20, 0), (3, 30, 0);
`;

type Profile = 'net-state' | 'relation-write' | 'row-event';

const open = (profile: Profile) =>
  openMariadbOffice(SCHEMA, {
    relations: [{ name: 'item', volatile: ['seen'] }, 'movement'],
    profile,
  });

const change = (id: number, by: number) => `update item set stock = stock + ${by} where id = ${id}`;
const act = (...statements: readonly string[]) => ({
  statements: statements.map((sql) => ({ sql })),
});

const durable = async ({ db }: MariadbOffice) => [
  (await db.run('select stock from item order by id')).map(({ stock }) => stock),
  (await db.run('select difference from movement order by id')).map(({ difference }) => difference),
];

function assertCommitted(terminal: Executed): void {
  assert.equal(terminal.kind, 'committed', JSON.stringify(terminal));
}

/** Runs each action under the same approval; each must diverge from it and change nothing. */
async function assertDiverges(
  office: MariadbOffice,
  approved: readonly ApprovedEffect[],
  actions: Readonly<Record<string, readonly string[]>>,
): Promise<void> {
  const before = await durable(office);
  for (const [what, statements] of Object.entries(actions)) {
    const terminal = await office.run(approved, act(...statements));
    assert.ok(terminal.kind === 'rejected', `${what}: ${JSON.stringify(terminal)}`);
    assert.deepEqual([terminal.at, terminal.outcome?.kind], ['comparison', 'DIVERGED'], what);
    assert.deepEqual(await durable(office), before, what);
  }
}

const moved = (label: string, item: number, difference: number) =>
  insert('movement', { id: generated(label), item, difference });

describe('MariaDB: profiles', { skip: skipWithoutMariadb() }, () => {
  test('row-event: each write commits as approved, and one more, one less or another does not', async () => {
    await using office = await open('row-event');
    const approved = [
      update('item', { id: 1 }, { stock: [10, 9] }),
      moved('one', 1, -1),
      update('item', { id: 2 }, { stock: [20, 25] }),
      moved('two', 2, 5),
      remove('item', { id: 3 }, { stock: 30 }),
    ];
    const action = [change(1, -1), change(2, 5), 'delete from item where id = 3'];
    await assertDiverges(office, approved, {
      'an extra write': [...action, 'insert into item values (4, 1, 0)'],
      'an extra write that changes nothing': [...action, 'update item set id = 2 where id = 2'],
      'a missing write': action.slice(0, 2),
      'another value': [change(1, -2), ...action.slice(1)],
      'another row': [change(3, -1), change(2, 5), 'delete from item where id = 1'],
      'another operation': [...action.slice(0, 2), 'update item set stock = 0 where id = 3'],
      'the same change in two writes': [change(1, -2), change(1, 1), ...action.slice(1)],
      'two writes that cancel out': [...action, change(1, 1), change(1, -1)],
    });
    assertCommitted(await office.run(approved, act(...action)));
    assert.deepEqual(await durable(office), [
      [9, 25],
      [-1, 5],
    ]);
  });

  test('row-event: two writes that cancel out commit when both are approved, and not as one or none', async () => {
    await using office = await open('row-event');
    const back = [change(1, -1), change(1, 1)];
    const approved = [
      update('item', { id: 1 }, { stock: [10, 9] }),
      moved('out', 1, -1),
      update('item', { id: 1 }, { stock: [9, 10] }),
      moved('in', 1, 1),
    ];
    await assertDiverges(office, [], { 'both unapproved': back });
    await assertDiverges(office, approved, {
      'only one of them': back.slice(0, 1),
      neither: ['select 1'],
      'twice both': [...back, ...back],
      'in the other direction': [change(1, 1), change(1, -1)],
    });
    assertCommitted(await office.run(approved, act(...back)));
    const { proposal, terminal } = await office.planned(act(...back));
    assert.equal(proposal.approved.effects.length, 4);
    assertCommitted(terminal);
    assert.deepEqual((await durable(office))[1], [-1, 1, -1, 1]);
  });

  test('row-event: a write that changes no compared column is approved as an update of no column', async () => {
    await using office = await open('row-event');
    const untouched = update('item', { id: 1 }, {});
    const idle = 'update item set stock = stock where id = 1';
    await assertDiverges(office, [], { unapproved: [idle] });
    await assertDiverges(office, [untouched], {
      'twice it': [idle, idle],
      'another row': ['update item set stock = stock where id = 2'],
      'a column that is compared': [change(1, 1)],
    });
    assertCommitted(await office.run([untouched], act(idle)));
    assertCommitted(await office.run([count(untouched, 2)], act(idle, idle)));
    const volatile = 'update item set seen = seen + 1 where id = 1';
    await assertDiverges(office, [], { 'a column that is not compared': [volatile] });
    assertCommitted(await office.run([untouched], act(volatile)));
    assert.deepEqual(await office.db.run('select seen from item where id = 1'), [{ seen: 1 }]);
  });

  test('net-state: two writes that cancel out are no change of their row, but their movements are', async () => {
    await using office = await open('net-state');
    const back = [change(1, -1), change(1, 1)];
    await assertDiverges(office, [], { 'movements are left': back });
    const movements = [moved('out', 1, -1), moved('in', 1, 1)];
    assertCommitted(await office.run(movements, act(...back)));
    const gone = ['insert into item values (4, 1, 0)', 'delete from item where id = 4'];
    assertCommitted(await office.run([], act(...gone)));
  });

  test('relation-write: the writes to each table are counted, whatever rows they write', async () => {
    await using office = await open('relation-write');
    const approved = [
      writes('update', 'item', 2),
      writes('insert', 'movement', 2),
      writes('delete', 'item', 1),
    ];
    const action = [change(1, -1), change(2, 5), 'delete from item where id = 3'];
    await assertDiverges(office, approved, {
      'an extra write': [...action, 'insert into item values (4, 1, 0)'],
      'one more of a kind': [...action, 'delete from item where id = 2'],
      'a write that changes nothing': [...action, 'update item set stock = stock where id = 1'],
      'a missing write': action.slice(0, 2),
      'another operation': [change(1, -1), change(2, 5), 'insert into item values (4, 1, 0)'],
      'another table': [...action.slice(0, 2), 'delete from movement limit 1'],
      'two writes that cancel out': [...action, change(1, 1), change(1, -1)],
    });
    assertCommitted(await office.run(approved, act(...action)));
    assert.deepEqual(await durable(office), [
      [9, 25],
      [-1, 5],
    ]);
    const other = [change(2, 1), change(2, 1), 'delete from item where id = 1'];
    assertCommitted(await office.run(approved, act(...other)));
    const { proposal, terminal } = await office.planned(act(change(2, 1), change(2, -1)));
    assert.deepEqual(
      proposal.approved.effects.map(({ op, target, count: times }) => [op, target, times]),
      [
        ['insert', 'movement', 2],
        ['update', 'item', 2],
      ],
    );
    assertCommitted(terminal);
  });

  test('an approval in the units of another profile is refused', async () => {
    await using events = await open('row-event');
    await assert.rejects(events.approve([writes('update', 'item', 1)]), /relation-write/);
    await using counts = await open('relation-write');
    await assert.rejects(counts.approve([update('item', { id: 1 }, { stock: [10, 9] })]), /writes/);
    await using net = await open('net-state');
    await assert.rejects(net.approve([update('item', { id: 1 }, {})]), /changes no column/);
  });
});
