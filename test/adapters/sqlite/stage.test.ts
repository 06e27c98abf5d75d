// Goal: a candidate is held, shown and promoted as one transaction, and every way it can fail
// leaves what is claimed. Method: real files with both journals, other connections in the way, a
// child process whose disk is full.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { renameSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readStanding } from '../../../src/adapters/sqlite/evidence.ts';
import { Fence } from '../../../src/adapters/sqlite/fence.ts';
import type { Step } from '../../../src/contract/steps.ts';
import {
  change,
  copyOf,
  dump,
  freshFile,
  freshOccurrence,
  gapsOf,
  held,
  look,
  marker,
  observe,
  open,
  permit,
  promote,
  stage,
} from './database.ts';

const SCHEMA = `
  create table t (id integer primary key, v);
  create table counted (id integer primary key autoincrement, v);
  create table parent (id integer primary key);
  create table child (id integer primary key, parent references parent (id) deferrable initially deferred);
  insert into t values (1, 'one'), (2, 'two');
  insert into counted (id, v) values (3, 'three');
`;
const RELATIONS = ['t', 'counted', 'parent', 'child'];
const UPDATE = { sql: "update t set v = 'new' where id = 1" };

for (const mode of ['wal', 'delete']) {
  const fresh = () => freshFile(`pragma journal_mode = ${mode}; ${SCHEMA}`);

  test(`${mode}: a promoted candidate is durable with its marker, a discarded one leaves nothing`, async () => {
    const file = fresh();
    const steps: Step[] = [];
    await using adapter = await open({ file, relations: RELATIONS }, (step) => steps.push(step));
    const before = dump(file);
    const discarded = await held(adapter, UPDATE);
    assert.equal(dump(file), before, 'invisible while held');
    await discarded.discard();
    await discarded.discard();
    assert.equal(dump(file), before);
    const occurrence = freshOccurrence();
    await using promoted = await held(adapter, UPDATE, occurrence);
    assert.deepEqual(await promote(promoted, occurrence), { kind: 'confirmed' });
    assert.deepEqual(look(file, 'select v from t where id = 1'), [{ v: 'new' }]);
    assert.deepEqual(
      look(file, 'select occurrence, disposition, seal_mac from effectmatch_marker'),
      [{ occurrence, disposition: 'committed', seal_mac: 'mac' }],
    );
    assert.deepEqual(steps, [
      'adapter:stage-opened',
      'adapter:action-done',
      'adapter:stage-opened',
      'adapter:action-done',
      'adapter:marker-written',
      'adapter:commit-returned',
    ]);
  });

  test(`${mode}: while a candidate is held the adapter surveys, reads, and answers other stages with busy`, async () => {
    const file = fresh();
    await using adapter = await open({ file, relations: RELATIONS });
    const survey = await adapter.survey();
    // Larger than the page cache: with cache spilling this would lock readers out of a rollback
    // journal.
    const large = {
      sql: 'insert into t (v) with n (i) as (values (1) union all select i + 1 from n where i < 2000) select randomblob(4000) from n',
    };
    await using candidate = await held(adapter, large);
    assert.equal(await adapter.survey(), survey);
    assert.deepEqual(await adapter.read([{ target: 't', key: { id: 1 } }]), [
      { target: 't', key: { id: 1 }, row: { id: 1, v: 'one' } },
    ]);
    const second = await stage(adapter, UPDATE);
    assert.equal(second.kind === 'failed' && second.reason, 'busy');
    assert.equal((await candidate.observe()).records.length, 2000);
    assert.equal((await adapter.markers.void(marker(freshOccurrence(), 'void'))).kind, 'busy');
  });

  test(`${mode}: a stage waits for another writer without blocking the event loop`, async () => {
    const file = fresh();
    await using adapter = await open({ file, relations: RELATIONS, busyTimeoutMs: 5000 });
    const first = await held(adapter, UPDATE);
    const waiting = held(adapter, UPDATE);
    await new Promise((resolve) => setTimeout(resolve, 10));
    await first.discard();
    await using second = await waiting;
    assert.equal((await second.observe()).records.length, 1);
  });

  test(`${mode}: a violated deferred constraint refuses the promotion and leaves nothing`, async () => {
    const file = fresh();
    await using adapter = await open({ file, relations: RELATIONS });
    const before = dump(file);
    const occurrence = freshOccurrence();
    await using candidate = await held(
      adapter,
      { sql: 'insert into child values (1, 99)' },
      occurrence,
    );
    assert.equal((await candidate.observe()).records.length, 1);
    const promotion = await promote(candidate, occurrence);
    assert.equal(promotion.kind === 'refused' && promotion.reason, 'constraint');
    assert.equal(dump(file), before);
    assert.equal(
      (await adapter.markers.void(marker(occurrence, 'void'))).kind,
      'inserted',
      'nothing holds the file',
    );
  });

  test(`${mode}: a commit that cannot be written is unknown, and the void marker settles it`, () => {
    const file = fresh();
    const script = fileURLToPath(new URL('full-disk.ts', import.meta.url));
    // Files may grow to 1 MB; without ignoring the signal the process would be killed instead of
    // told.
    const shell = `trap '' XFSZ; ulimit -f 1024; exec '${process.execPath}' '${script}' '${file}'`;
    const child = spawnSync('bash', ['-c', shell], { encoding: 'utf8' });
    assert.equal(child.status, 0, child.stderr);
    const { cause, ...result } = JSON.parse(child.stdout);
    assert.deepEqual(result, { promotion: 'unknown', settled: 'inserted', rows: 2 });
    assert.match(cause, /COMMIT failed: (disk I\/O error|database or disk is full)/);
    assert.deepEqual(look(file, 'select disposition from effectmatch_marker'), [
      { disposition: 'void' },
    ]);
    assert.deepEqual(look(file, 'pragma integrity_check'), [{ integrity_check: 'ok' }]);
  });
}

test('a reader that blocks COMMIT of a rollback journal is waited for, then the candidate is refused and gone', async () => {
  const file = freshFile(SCHEMA);
  await using patient = await open({ file, relations: RELATIONS, busyTimeoutMs: 5000 });
  await using hasty = await open({ file, relations: RELATIONS, busyTimeoutMs: 20 });
  using other = new DatabaseSync(file, { readOnly: true });
  const before = dump(file);

  const lost = freshOccurrence();
  await using losing = await held(hasty, UPDATE, lost);
  const reading = other.prepare('select * from t').iterate();
  reading.next();
  const refused = await promote(losing, lost);
  assert.equal(refused.kind === 'refused' && refused.reason, 'busy');
  reading.return?.();
  assert.equal(dump(file), before);

  const won = freshOccurrence();
  await using winning = await held(patient, UPDATE, won);
  const again = other.prepare('select * from t').iterate();
  again.next();
  setTimeout(() => again.return?.(), 30);
  assert.deepEqual(await promote(winning, won), { kind: 'confirmed' });
});

test('an occurrence that is decided cannot be staged, and a permit fits its own stage once', async () => {
  const file = freshFile(SCHEMA);
  await using adapter = await open({ file, relations: RELATIONS });
  const decided = freshOccurrence();
  await adapter.markers.void(marker(decided, 'void'));
  const staged = await stage(adapter, UPDATE, decided);
  assert.equal(staged.kind === 'failed' && staged.reason, 'already-void');
  const twice = freshOccurrence();
  await using candidate = await held(adapter, UPDATE, twice);
  const own = permit(twice, await candidate.observe());
  assert.deepEqual(await candidate.promote(own), { kind: 'confirmed' });
  await assert.rejects(candidate.promote(own), { code: 'ERR_EM_INVARIANT' });
  await assert.rejects(candidate.observe(), { code: 'ERR_EM_INVARIANT' });
});

test('evidence names every channel, and a recheck of an untouched candidate gives the same evidence', async () => {
  const file = freshFile(SCHEMA);
  await using adapter = await open({ file, relations: RELATIONS });
  await using candidate = await held(adapter, UPDATE);
  const evidence = await candidate.observe();
  assert.deepEqual(
    evidence.channels.map((report) => report.channel).sort(),
    [...adapter.channels].sort(),
  );
  assert.deepEqual(gapsOf(adapter, evidence), []);
  assert.deepEqual(await candidate.recheck(), {
    candidate: candidate.candidate,
    evidence: evidence.evidence,
  });
  assert.deepEqual(await candidate.observe(), evidence);
  await candidate.discard();
  const other = await observe(adapter, UPDATE);
  assert.notEqual(
    other.candidate,
    evidence.candidate,
    'the same action again is another candidate',
  );
});

test('nothing is done to a held candidate without its standing being another, even what cancels out', () => {
  const file = freshFile(SCHEMA);
  using candidate = new DatabaseSync(file);
  const fence = new Fence(candidate);
  // Compiled before the candidate is held, as statements of an action are: the fence is not asked
  // about them again.
  const insert = candidate.prepare('insert into t values (9, 9)');
  const remove = candidate.prepare('delete from t where id = 9');
  const still = candidate.prepare('update t set v = v');
  const nothing = candidate.prepare('delete from t where id = 77');
  candidate.exec('begin immediate');
  const session = candidate.createSession();
  candidate.exec("update t set v = 'new' where id = 1");
  fence.turn = 'none';
  const changeset = session.changeset();
  const seen = new Set([readStanding(candidate, fence)]);
  const isSeen = () => seen.has(readStanding(candidate, fence));
  nothing.run();
  session.changeset();
  candidate.exec('select * from t; pragma foreign_keys');
  assert.ok(isSeen(), 'reading and observing leave it as it is');
  for (const compiled of [insert, remove, still]) {
    compiled.run();
    assert.ok(!isSeen(), compiled.sourceSQL);
    seen.add(readStanding(candidate, fence));
  }
  for (const sql of [
    'insert into t values (9, 9)',
    'delete from t where id = 77',
    'rollback',
    'commit',
    'begin immediate',
    'savepoint other',
    'release changeset',
    'pragma user_version = 3',
    'pragma defer_foreign_keys = on',
    'pragma foreign_keys = off',
    'pragma incremental_vacuum',
    'create table more (a)',
    'create temp table more (a)',
    'update sqlite_sequence set seq = 77',
    "attach ':memory:' as more",
  ]) {
    assert.throws(() => candidate.exec(sql), sql);
    if (sql === 'release changeset') continue; // A session asks for it, and here there is no such savepoint.
    assert.ok(!isSeen(), sql);
    seen.add(readStanding(candidate, fence));
  }
  assert.deepEqual(session.changeset(), changeset, 'and none of it was done');
  assert.ok(candidate.isTransaction);
  fence.turn = 'ours';
  candidate.exec('rollback');
  assert.ok(!isSeen());
});

test('keys that SQLite assigns are bounded by what was there before, also for AUTOINCREMENT', async () => {
  const file = freshFile(SCHEMA);
  await using adapter = await open({ file, relations: RELATIONS });
  change(file, 'delete from counted');
  const insert = {
    statements: [
      { sql: "insert into counted (v) values ('a'), ('b')" },
      { sql: "insert into t (v) values ('c')" },
    ],
  };
  const evidence = await observe(adapter, insert);
  assert.deepEqual(gapsOf(adapter, evidence), []);
  assert.deepEqual(
    [...evidence.records].map((record) => `${record.target} ${record.key?.id}`).sort(),
    ['counted 4', 'counted 5', 't 3'],
  );
  // The only foreign key of the schema leads to another table.
  const referredBy = [{ target: 'child', columns: [] }];
  assert.deepEqual(evidence.assigned, [
    { target: 't', column: 'id', above: '2', upTo: '3', referredBy },
    { target: 'counted', column: 'id', above: '3', upTo: '5', referredBy },
  ]);
});

test('a key has as many steps to be assigned in as rows were added, and rows of other tables give none', async () => {
  const file =
    freshFile(`create table item (id integer primary key not null, name text unique not null);
    create table stock (id integer primary key not null, qty integer not null);
    insert into item values (1, 'a'), (2, 'b'), (3, 'c');
    insert into stock values (1, 5), (2, 6), (3, 7)`);
  await using adapter = await open({ file, relations: ['item', 'stock'] });
  const upTo = async (...sql: string[]) => {
    const evidence = await observe(adapter, { statements: sql.map((text) => ({ sql: text })) });
    assert.deepEqual(gapsOf(adapter, evidence), []);
    return evidence.assigned.map((one) =>
      'upTo' in one ? `${one.target} ${one.above} ${one.upTo}` : assert.fail(),
    );
  };
  const add = "insert into item (name) values ('x')";
  assert.deepEqual(await upTo(add), ['item 3 4']);
  assert.deepEqual(await upTo('update stock set qty = qty + 1', add), ['item 3 4']);
  assert.deepEqual(
    await upTo('delete from stock where id = 1', add),
    ['item 3 5'],
    'a deletion accounts for no write',
  );
  assert.deepEqual(await upTo("replace into item (name) values ('a'), ('b')"), ['item 3 5']);
  assert.deepEqual(
    await upTo(add, "update item set name = 'y' where name = 'x'"),
    ['item 3 5'],
    'two writes, one row',
  );
  assert.deepEqual(await upTo('update stock set qty = qty + 1'), []);
});

test('a counter that moved further than the rows that stayed is a gap, with the counter named', async () => {
  const file = freshFile(SCHEMA);
  await using adapter = await open({ file, relations: RELATIONS });
  const jump = {
    statements: [
      { sql: "insert into counted values (100, 'x')" },
      { sql: 'delete from counted where id = 100' },
    ],
  };
  const evidence = await observe(adapter, jump);
  assert.deepEqual(evidence.records, []);
  assert.match(gapsOf(adapter, evidence).join(), /"sequence" changed.*counted 3.*counted 100/);
  const rename = {
    statements: [
      { sql: "insert into counted values (50, 'x')" },
      { sql: 'update counted set id = 60 where id = 50' },
    ],
  };
  assert.match(gapsOf(adapter, await observe(adapter, rename)).join(), /"sequence"/);
});

test('a zero that changes only its sign is unclear, and stays unclear beside other changes', async () => {
  const file =
    freshFile(`create table z (id integer primary key, v, r real, n numeric, t text, i int);
    insert into z values (1, 0.0, 0.0, 0.0, '0.0', 0), (2, -0.0, 1, 1, '', 1), (3, 1, 1, 1, 1, 1)`);
  await using adapter = await open({ file, relations: ['z'] });
  const gaps = async (...statements: string[]) =>
    gapsOf(
      adapter,
      await observe(adapter, { statements: statements.map((sql) => ({ sql })) }),
    ).join();
  assert.match(await gaps('update z set v = -0.0 where id = 1'), /changed only its sign/);
  assert.match(await gaps('update z set v = 0.0 where id = 2'), /changed only its sign/);
  assert.match(await gaps("update z set v = -0.0, t = 'x' where id = 1"), /changed only its sign/);
  assert.match(
    await gaps('replace into z (id, v, r, n, t, i) values (1, -0.0, 0.0, 0.0, 0, 0)'),
    /changed only its sign/,
  );
  assert.match(
    await gaps('delete from z where id = 1', "insert into z values (1, -0.0, 0.0, 0.0, '0.0', 0)"),
    /changed only its sign/,
  );
  assert.match(
    await gaps('update z set id = 9 where id = 3', 'update z set v = -0.0 where id = 1'),
    /changed only its sign/,
  );
  assert.equal(
    await gaps('update z set r = -0.0, n = -0.0, i = -0.0 where id = 1'),
    '',
    'these columns keep no sign',
  );
  assert.equal(
    await gaps('update z set v = 5 where id = 1', 'update z set v = -0.0 where id = 3'),
    '',
  );
  assert.equal(await gaps('update z set v = v'), '');
  assert.equal(await gaps('insert into z (v) values (-0.0)'), '');
});

test('declared state is read as the action found it, whatever the action changed', async () => {
  const file = freshFile(SCHEMA);
  await using adapter = await open({ file, relations: RELATIONS });
  await using candidate = await held(adapter, {
    statements: [
      UPDATE,
      { sql: 'delete from t where id = 2' },
      { sql: 'insert into parent values (7)' },
    ],
  });
  const reads = [
    { target: 't', key: { id: 1 }, columns: ['v'] },
    { target: 't', key: { id: '2' } },
    { target: 'parent', key: { id: 7 } },
  ];
  assert.deepEqual(await candidate.read(reads), [
    { target: 't', key: { id: 1 }, row: { v: 'one' } },
    { target: 't', key: { id: 2 }, row: { id: 2, v: 'two' } },
    { target: 'parent', key: { id: 7 }, row: null },
  ]);
});

test('a schema that changed after the survey, and a file that was replaced, are noticed before anything runs', async () => {
  const file = freshFile(SCHEMA);
  await using adapter = await open({ file, relations: RELATIONS });
  await adapter.survey();
  change(file, 'create trigger late after update on t begin delete from counted; end');
  const occurrence = freshOccurrence();
  const claim = { sealed: { record: { occurrence } } } as unknown as Parameters<
    typeof adapter.stage
  >[0];
  const certificate = {} as unknown as Parameters<typeof adapter.stage>[1];
  const staged = await adapter.stage(claim, certificate, adapter.parseAction(UPDATE));
  assert.equal(staged.kind === 'failed' && staged.reason, 'boundary-changed');
  await adapter.survey();
  assert.equal(
    (await observe(adapter, UPDATE)).records.length,
    2,
    'after a fresh survey the trigger is part of it',
  );

  renameSync(copyOf(file), file);
  const replaced = await stage(adapter, UPDATE);
  assert.equal(replaced.kind === 'failed' && replaced.reason, 'backend-replaced');
  const outlets = (await adapter.survey()).outlets.filter(
    (outlet) => outlet.disposition === 'unclassified',
  );
  assert.deepEqual(
    outlets.map((outlet) => outlet.outlet),
    ['database file'],
  );
});

test('a file that is replaced while a candidate is held keeps it from being promoted', async () => {
  const file = freshFile(SCHEMA);
  await using adapter = await open({ file, relations: RELATIONS });
  const occurrence = freshOccurrence();
  await using candidate = await held(adapter, UPDATE, occurrence);
  const own = permit(occurrence, await candidate.observe());
  renameSync(copyOf(file), file);
  const promotion = await candidate.promote(own);
  assert.equal(promotion.kind === 'refused' && promotion.reason, 'backend-replaced');
  assert.deepEqual(look(file, 'select v from t where id = 1'), [{ v: 'one' }]);
});

test('stages of one process take turns in the order they asked', async () => {
  const file = freshFile(SCHEMA);
  await using adapter = await open({ file, relations: RELATIONS, busyTimeoutMs: 10_000 });
  const order: number[] = [];
  const stages = Array.from({ length: 8 }, async (_, index) => {
    const candidate = await held(adapter, UPDATE);
    order.push(index);
    await new Promise((resolve) => setImmediate(resolve));
    if (index === 3) assert.equal((await promote(candidate, 'occ_unused')).kind, 'refused');
    await candidate.discard();
  });
  await Promise.all(stages);
  assert.deepEqual(order, [0, 1, 2, 3, 4, 5, 6, 7]);
});

test('with values kept as digests a failure names the kind of error and no value', async () => {
  const file = freshFile(`${SCHEMA} create trigger picky before insert on t begin
    select raise(abort, 'no ' || new.v || ' here') where new.v is not null; end`);
  const insert = { sql: "insert into t (v) values ('private')" };
  await using plain = await open({ file, relations: RELATIONS });
  const told = await stage(plain, insert);
  assert.match(told.kind === 'failed' ? told.detail : '', /no private here/);
  await using digest = await open({ file, relations: RELATIONS, values: 'digest' });
  const untold = await stage(digest, insert);
  assert.equal(untold.kind === 'failed' && untold.detail, 'SQLite error 1811');
});

test('closing the adapter ends a held candidate', async () => {
  const file = freshFile(SCHEMA);
  const adapter = await open({ file, relations: RELATIONS });
  const before = dump(file);
  const candidate = await held(adapter, UPDATE);
  await adapter.close();
  await adapter.close();
  await candidate.discard();
  assert.equal(dump(file), before);
  change(file, 'insert into parent values (1)');
});
