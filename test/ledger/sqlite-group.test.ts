// Goal: claims that share a flush are decided one by one, none of them counts without it, and who
// is alone does not wait. Method: many claims at once on a real store, read back by a second store;
// one of them throws.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { systemClock } from '../../src/contract/clock.ts';
import { GroupCommit } from '../../src/ledger/sqlite/group.ts';
import { createSession, type Session } from '../../src/ledger/sqlite/tables.ts';
import { temporaryFolder } from './sqlite-store.ts';

async function withTable(
  use: (group: GroupCommit, file: string, db: DatabaseSync, session: Session) => Promise<void>,
): Promise<void> {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'group.db');
  using db = new DatabaseSync(file);
  db.exec(
    'pragma journal_mode = wal; create table spent (occurrence text primary key, by integer)',
  );
  const session = createSession({} as never, { file, db, deadlineMs: 1000, clock: systemClock });
  await use(new GroupCommit(session), file, db, session);
}

const spend =
  (occurrence: string, by: number) =>
  (session: { sql(text: string): { run(...values: unknown[]): unknown } }) => {
    session.sql('insert into spent values (?, ?)').run(occurrence, by);
    return by;
  };

test('of many at once each is decided by rows: one of those for the same occurrence wins, the others fail alone', async () => {
  await withTable(async (group, file) => {
    const asked = Array.from({ length: 40 }, (_, n) => group.run(spend(`occ_${n % 10}`, n)));
    const ends = await Promise.allSettled(asked);
    assert.deepEqual(
      ends.map(({ status }) => status === 'fulfilled'),
      Array.from({ length: 40 }, (_, n) => n < 10),
    );
    using other = new DatabaseSync(file, { readOnly: true });
    assert.deepEqual(
      other
        .prepare('select by from spent order by by')
        .all()
        .map(({ by }) => by),
      [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    );
  });
});

test('what one of them wrote before it threw is gone, and what the others wrote stays', async () => {
  await withTable(async (group, _file, db) => {
    const half = group.run((session) => {
      spend('occ_half', 1)(session);
      throw new Error('half way');
    });
    const whole = group.run(spend('occ_whole', 2));
    await assert.rejects(half, /half way/);
    assert.equal(await whole, 2);
    assert.deepEqual(
      db
        .prepare('select occurrence from spent')
        .all()
        .map(({ occurrence }) => occurrence),
      ['occ_whole'],
    );
  });
});

test('a commit that fails fails all of them', async () => {
  await withTable(async (group, file, db) => {
    db.exec(
      'create table parent (id integer primary key); create table child (id integer references parent deferrable initially deferred)',
    );
    db.exec('pragma foreign_keys = on');
    const first = group.run(spend('occ_0', 0));
    const orphan = group.run((session) => session.sql('insert into child values (1)').run());
    const innocent = group.run(spend('occ_1', 1));
    const ends = await Promise.allSettled([first, orphan, innocent]);
    assert.deepEqual(
      ends.map(({ status }) => status),
      ['fulfilled', 'rejected', 'rejected'],
    );
    assert.deepEqual(spentIn(file), ['occ_0']);
  });
});

/** What another connection sees at this moment. */
function spentIn(file: string): readonly unknown[] {
  using other = new DatabaseSync(file, { readOnly: true });
  return other
    .prepare('select occurrence from spent order by by')
    .all()
    .map(({ occurrence }) => occurrence);
}

test('who is alone is decided at once; who meets another shares, and so does the next one for a while', async () => {
  await withTable(async (group, file) => {
    const alone = group.run(spend('alone', 1));
    assert.deepEqual(spentIn(file), ['alone']);
    const met = group.run(spend('met', 2));
    assert.deepEqual(spentIn(file), ['alone']);
    await Promise.all([alone, met]);
    const pair = [group.run(spend('one', 3)), group.run(spend('two', 4))];
    assert.deepEqual(spentIn(file), ['alone', 'met']);
    await Promise.all(pair);
    for (const [index, name] of ['patient', 'still patient'].entries()) {
      const waiting = group.run(spend(name, 5 + index));
      assert.equal(spentIn(file).includes(name), false, name);
      await waiting;
    }
    const again = group.run(spend('alone again', 7));
    assert.equal(spentIn(file).at(-1), 'alone again');
    await again;
  });
});

test('while an attempt of this process is under way, its neighbour waits for company', async () => {
  await withTable(async (group, file, _db, session) => {
    session.underWay.add('another');
    const waiting = group.run(spend('neighbour', 1));
    assert.deepEqual(spentIn(file), []);
    await waiting;
    session.underWay.delete('another');
    const alone = group.run(spend('alone', 2));
    assert.deepEqual(spentIn(file), ['neighbour', 'alone']);
    await alone;
  });
});

test('who comes after one that waits does not overtake it', async () => {
  await withTable(async (group, file, _db, session) => {
    session.underWay.add('another');
    const first = group.run(spend('first', 1));
    session.underWay.delete('another');
    const second = group.run(spend('second', 2));
    assert.deepEqual(spentIn(file), []);
    await Promise.all([first, second]);
    assert.deepEqual(spentIn(file), ['first', 'second']);
  });
});

test('one after the other at once, they still let the event loop have its turn', async () => {
  await withTable(async (group) => {
    let turns = 0;
    const counting = setInterval(() => {
      turns += 1;
    }, 0);
    for (let n = 0; n < 400; n += 1) await group.run(spend(`occ_${n}`, n));
    clearInterval(counting);
    assert.ok(turns > 1, `the event loop turned ${turns} times`);
  });
});

test('a file that is busy in the middle of a group is tried again for all of them, and none fails', async () => {
  await withTable(async (group, file) => {
    const first = group.run(spend('occ_0', 0));
    let tries = 0;
    const hindered = group.run((session) => {
      tries += 1;
      spend('occ_1', 1)(session);
      if (tries === 1)
        throw Object.assign(new Error('database is locked'), {
          code: 'ERR_SQLITE_ERROR',
          errcode: 5,
        });
      return tries;
    });
    const beside = group.run(spend('occ_2', 2));
    assert.deepEqual(await Promise.all([first, hindered, beside]), [0, 2, 2]);
    assert.deepEqual(spentIn(file), ['occ_0', 'occ_1', 'occ_2']);
  });
});
