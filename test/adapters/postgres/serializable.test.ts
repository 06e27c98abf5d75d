// Goal: serializable operations on different rows do not fail because of the adapter's own tables.
// Method: candidates are held at the same time, so that each transaction overlaps all others, and
// promoted in every order.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { demandHeld, type Held, openPort } from './drive.ts';

// One row per page, and keys in index pages of their own: the application's table gives no reason
// for a conflict.
const SCHEMA = `create table account (id int primary key, n int not null, pad text) with (fillfactor = 10);
  insert into account select g, 0, repeat('x', 700) from generate_series(1, 2000) as g; analyze account`;

for (const [order, name] of [
  [[0, 1], 'the order in which they were held'],
  [[1, 0], 'the opposite order'],
] as const) {
  test(`two serializable candidates on different rows both commit, promoted in ${name}`, async () => {
    await using port = await openPort(SCHEMA, {
      relations: ['account'],
      isolation: 'serializable',
    });
    const held: Held[] = [];
    for (const id of [1, 1500]) {
      held.push(
        demandHeld(
          await port.hold({ sql: 'update account set n = 1 where id = $1', values: [id] }),
        ),
      );
    }
    for (const index of order) {
      assert.deepEqual(await held[index]?.promote(), { kind: 'confirmed' });
    }
    const rows = await port.db.run('select id from account where n = 1 order by id');
    assert.deepEqual(rows, [{ id: 1 }, { id: 1500 }]);
  });
}

test('two serializable candidates that read what the other writes do not both commit', async () => {
  await using port = await openPort(SCHEMA, { relations: ['account'], isolation: 'serializable' });
  const swap = (from: number, to: number) => ({
    sql: 'update account set n = (select n + 1 from account where id = $1) where id = $2',
    values: [from, to],
  });
  const first = demandHeld(await port.hold(swap(1, 1500)));
  const second = await port.hold(swap(1500, 1));
  const ends = [await first.promote(), second.kind === 'held' ? await second.promote() : second];
  assert.equal(ends.filter(({ kind }) => kind === 'confirmed').length, 1);
});
