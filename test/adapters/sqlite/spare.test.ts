// Goal: a connection kept ready is handed out once, is of the right file, and never stands in the way.
// Method: the keeper with connections that can be counted, then stages of a real file that is exchanged in between.
import assert from 'node:assert/strict';
import { copyFileSync, renameSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Spare } from '../../../src/adapters/sqlite/spare.ts';
import { openSpare } from '../../../src/adapters/sqlite/stage.ts';

const folder = await mkdtemp(join(tmpdir(), 'effectmatch-spare-'));
after(() => rm(folder, { recursive: true, force: true }));

function keeper() {
  const opened: DatabaseSync[] = [];
  const spare = new Spare(() => {
    const db = new DatabaseSync(':memory:');
    opened.push(db);
    return db;
  });
  return { spare, opened };
}

test('there is none before one was prepared, and every one is handed out once', async () => {
  const { spare, opened } = keeper();
  assert.equal(spare.take(), undefined);
  spare.prepare();
  spare.prepare();
  assert.equal(opened.length, 0, 'not in the turn that asked');
  await turn();
  await turn();
  assert.equal(opened.length, 1);
  assert.equal(spare.take(), opened[0]);
  assert.equal(spare.take(), undefined);
});

test('closing ends the one at hand and the one that was to come', async () => {
  const { spare, opened } = keeper();
  spare.prepare();
  await turn();
  await turn();
  spare.close();
  assert.equal(opened[0]?.isOpen, false);
  spare.prepare();
  spare.close();
  await turn();
  await turn();
  assert.equal(opened.length, 1);
});

test('one that cannot be opened leaves nothing and throws nothing', async () => {
  const spare = new Spare(() => {
    throw new Error('no such file');
  });
  spare.prepare();
  await turn();
  await turn();
  assert.equal(spare.take(), undefined);
});

test('no connection is kept of a file that was exchanged before or while it was opened', () => {
  const file = join(folder, 'books.db');
  const db = new DatabaseSync(file);
  db.exec('create table effectmatch_meta (name text primary key, value text)');
  db.exec(
    'create table effectmatch_marker (occurrence text primary key, disposition text, text text, seal_key text, seal_mac text)',
  );
  db.close();
  const answers = (...list: boolean[]) => ({ file, isReplaced: () => list.shift() ?? assert.fail('asked too often') });
  assert.equal(openSpare(answers(true)), undefined);
  assert.equal(openSpare(answers(false, true)), undefined);
  const kept = openSpare(answers(false, false));
  assert.ok(kept?.isOpen && !kept.isTransaction);

  // The path may name another file later, and the first one again: the connection stays with the file it opened.
  const aside = join(folder, 'aside.db');
  renameSync(file, aside);
  copyFileSync(aside, file);
  const write = () => kept.exec("insert into effectmatch_meta values ('written', 'through the spare')");
  assert.throws(write, 'SQLite does not write to a file that was moved away');
  renameSync(aside, file);
  write();
  kept.close();
  using reader = new DatabaseSync(file, { readOnly: true });
  assert.equal(reader.prepare('select count(*) as n from effectmatch_meta').get()?.n, 1);
});
