// Goal: claims that share a flush are decided one by one, and none of them counts without it.
// Method: many claims at once on a real store, read back by a second store; one of them throws.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { GroupCommit } from '../../src/ledger/sqlite/group.ts';
import { createSession } from '../../src/ledger/sqlite/session.ts';
import { temporaryFolder } from './sqlite-store.ts';

async function withTable(use: (group: GroupCommit, file: string, db: DatabaseSync) => Promise<void>): Promise<void> {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'group.db');
  using db = new DatabaseSync(file);
  db.exec('pragma journal_mode = wal; create table spent (occurrence text primary key, by integer)');
  await use(new GroupCommit(createSession({} as never, db, { deadlineMs: 1000 })), file, db);
}

const spend =
  (occurrence: string, by: number) => (session: { sql(text: string): { run(...values: unknown[]): unknown } }) => {
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
  await withTable(async (group, _file, db) => {
    db.exec(
      'create table parent (id integer primary key); create table child (id integer references parent deferrable initially deferred)',
    );
    db.exec('pragma foreign_keys = on');
    const orphan = group.run((session) => session.sql('insert into child values (1)').run());
    const innocent = group.run(spend('occ_1', 1));
    const ends = await Promise.allSettled([orphan, innocent]);
    assert.deepEqual(
      ends.map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    assert.deepEqual(db.prepare('select * from spent').all(), []);
  });
});
