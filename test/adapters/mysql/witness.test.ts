// Goal: the second witness counts for the session alone, and says so when it cannot know. Method:
// texts of InnoDB's status, whole, cut off and forged; and a real server for the arithmetic.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseAction } from '../../../src/adapters/mysql/action.ts';
import { readStatus } from '../../../src/adapters/mysql/witness.ts';
import type { OccurrenceId } from '../../../src/protocol/record.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { protectedMariadb } from '../../mysql/protected.ts';
import { openInside } from './inside.ts';

const LIST = 'LIST OF TRANSACTIONS FOR EACH SESSION:\n';
const END =
  '----------------------------\nEND OF INNODB MONITOR OUTPUT\n============================\n';
const session = (id: number, transaction: number, entries: number, query = '') =>
  `---TRANSACTION ${transaction}, ACTIVE 0 sec\n` +
  `2 lock struct(s), heap size 1128, 1 row lock(s), undo log entries ${entries}\n` +
  `MariaDB thread id ${id}, OS thread handle 1, query id 7 127.0.0.1 exec ${query}\n`;

test('the entries of the session are read, and those of others are not', () => {
  const deadlock = `LATEST DETECTED DEADLOCK\n${session(5, 90, 7)}`;
  const list = `${LIST}${session(4, 100, 9)}${session(5, 101, 3)}${session(55, 102, 8)}`;
  const status = `${deadlock}${list}${END}`;
  assert.deepEqual(readStatus(status, 5), { kind: 'counted', entries: 3, transaction: '101' });
});

test('a status that is cut off, lacks the session or names it twice says nothing', () => {
  const whole = session(5, 101, 3);
  const forged = `${session(6, 7, 1, `select 1 /*\n${session(5, 101, 4)}*/`)}`;
  const idle = '---TRANSACTION 421, not started\n0 lock struct(s), heap size 1128, 0 row lock(s)\n';
  for (const status of [
    whole,
    `${LIST}${whole}`,
    `${whole}${END}`,
    `${LIST}${whole}... truncated...\n${END}`,
    `${LIST}${session(6, 101, 3)}${END}`,
    `${LIST}${whole}${forged}${END}`,
    `${LIST}${session(5, 90, 7)}${LIST}${whole}${END}`,
    `${LIST}${session(5, 101, 3).replace('ACTIVE 0 sec', 'not started')}${END}`,
    `${LIST}${session(5, 101, 3).replace(', undo log entries 3', '')}${END}`,
    `${LIST}${idle}MariaDB thread id 5, OS thread handle 1, query id 7 127.0.0.1 exec\n${END}`,
    '',
  ])
    assert.equal(readStatus(status, 5).kind, 'unknown', status);
});

const SCHEMA = `
  create table t (
    id varchar(10) collate utf8mb4_general_ci primary key, v int, big longtext, u int unique,
    stored int as (v + 1) stored, virtual_ int as (v * 2) virtual, key (virtual_), key (v),
    hashed text unique, small varchar(20) compressed, unseen int invisible default 5
  );
  create table child (id int primary key, t varchar(10) collate utf8mb4_general_ci);
  insert into t (id, v, big, u) values ('a', 1, repeat('x', 100000), 1), ('b', 2, null, 2), ('c', 3, 'y', 3);
`;

/** Statements, and whether everything that they did must be explained. */
const ARITHMETIC = [
  "update t set v = 5 where id = 'a'",
  "update t set v = v where id = 'a'",
  "update t set id = 'A' where id = 'a'",
  "update t set id = 'z' where id = 'a'",
  "update t set big = repeat('z', 200000) where id = 'a'",
  "delete from t where id = 'b'",
  "insert into t (id, v) values ('d', 1), ('e', 2)",
  "replace into t (id, v, u) values ('q', 1, 1)",
  "insert into t (id, u) values ('n', 1) on duplicate key update v = 9, id = 'm'",
  'update t set u = u + 10 order by u desc',
  "update t set hashed = id, small = 'packed', unseen = v",
  "replace into t (id, hashed) values ('q', null), ('r', 'h'), ('s', 'h')",
  "insert into t (id, hashed) values ('q', 'h'), ('r', 'h') on duplicate key update small = 'y'",
  'delete from t',
];

describe('MariaDB: undo entries', { skip: skipWithoutMariadb() }, () => {
  test('are explained by the records, for one statement, for two, and for a row that comes back', async () => {
    await using place = await protectedMariadb(SCHEMA, { relations: ['t'] });
    const inside = await openInside(place);
    const back = ["delete from t where id = 'c'", "insert into t (id, v, u) values ('c', 3, 3)"];
    const runs = [...ARITHMETIC.map((one) => [one]), ARITHMETIC.slice(0, 5), back];
    for (const [index, run] of runs.entries()) {
      const { candidate } = await inside.hold();
      await candidate.begin(`run-${index}` as OccurrenceId, []);
      const statements = run.map((sql) => ({ sql }));
      assert.deepEqual(await candidate.apply(parseAction({ statements })), { kind: 'done' });
      const { channels } = await candidate.observe();
      for (const channel of channels)
        if (channel.kind === 'stable') assert.equal(channel.after, channel.before, run.join('; '));
        else assert.equal(channel.kind, 'records', JSON.stringify(channel));
      await candidate.end('discarded');
    }
    await inside.close();
  });

  test('are explained when calls were rolled back to their savepoint, and identifiers were chosen', async () => {
    await using place = await protectedMariadb(
      'create table s (id int auto_increment primary key, u int unique); insert into s values (1, 1)',
      { relations: ['s'] },
    );
    const inside = await openInside(place);
    const { candidate } = await inside.hold();
    await candidate.begin('savepoints' as OccurrenceId, []);
    const ended: string[] = [];
    for (const sql of [
      'insert into s (u) values (2), (3)',
      'insert into s (u) values (4), (5), (1)',
      'insert into s values (50, 6), (51, 7)',
      'update s set u = u + 1 order by id',
      'insert ignore into s values (52, 1), (60, 8)',
      'delete from s where id = 1',
    ])
      ended.push((await candidate.call(parseAction({ sql }))).kind);
    assert.deepEqual(ended, ['done', 'failed', 'done', 'failed', 'done', 'done']);
    const { channels, records } = await candidate.observe();
    const undo = channels.find(({ channel }) => channel === 'undo');
    // The stage; two inserts; two chosen ones, noted; one of two is skipped, both noted; a delete.
    const entries = `${1 + 2 * 2 + 2 * 3 + (3 + 1) + 2} undo entries`;
    assert.deepEqual(undo, {
      ...{ channel: 'undo', kind: 'stable', before: entries, after: entries },
    });
    assert.equal(records.length, 6);
    await candidate.end('discarded');
    await inside.close();
  });

  test('of a trigger that writes elsewhere are not explained, and the code that may have is named', async () => {
    const triggers = [1, 2, 3, 4, 5, 6].map(
      (n) =>
        `create trigger spy${n} after insert on t for each row insert into spied values (${n})`,
    );
    await using place = await protectedMariadb(
      ['create table t (id int primary key)', 'create table spied (n int)', ...triggers].join(';'),
      { relations: ['t'] },
    );
    const inside = await openInside(place);
    const { candidate } = await inside.hold();
    await candidate.begin('spied' as OccurrenceId, []);
    await candidate.apply(parseAction({ sql: 'insert into t values (1)' }));
    const { channels } = await candidate.observe();
    const undo = channels.find(({ channel }) => channel === 'undo');
    assert.ok(undo?.kind === 'stable');
    assert.deepEqual([undo.before, undo.after], ['3 undo entries', '9 undo entries']);
    const named = [1, 2, 3, 4, 5].map((n) => `trigger ${place.db.name}.spy${n}`).join(', ');
    assert.ok(undo.meaning?.includes(`not registered (look at ${named}). Register`), undo.meaning);
    await candidate.end('discarded');
    await inside.close();
  });

  test('of a table that keeps history are two for a row that changes, and are not explained', async () => {
    await using place = await protectedMariadb(
      `create table t (id int primary key); create table kept (id int, v int) with system versioning;
        insert into kept values (1, 1), (2, 2), (3, 3);
        create trigger spy after insert on t for each row update kept set v = 9 where id < 3`,
      { relations: ['t'] },
    );
    const inside = await openInside(place);
    const { candidate } = await inside.hold();
    await candidate.begin('history' as OccurrenceId, []);
    await candidate.apply(parseAction({ sql: 'insert into t values (1)' }));
    const { channels } = await candidate.observe();
    const undo = channels.find(({ channel }) => channel === 'undo');
    assert.ok(undo?.kind === 'stable');
    assert.deepEqual([undo.before, undo.after], ['3 undo entries', '7 undo entries']);
    await candidate.end('discarded');
    await inside.close();
  });

  test('of a write past the recorders, of a cascade and of a write after the observation are noticed', async () => {
    await using place = await protectedMariadb(SCHEMA, { relations: ['t'] });
    await place.db.run(`insert into child values (1, 'a');
      alter table child add foreign key (t) references t (id) on delete cascade`);
    const inside = await openInside(place);
    const { candidate, session } = await inside.hold();
    await candidate.begin('cascade' as OccurrenceId, []);
    await candidate.apply(parseAction({ sql: "delete from t where id = 'a'" }));
    const { channels } = await candidate.observe();
    const undo = channels.find(({ channel }) => channel === 'undo');
    assert.ok(undo?.kind === 'stable');
    assert.deepEqual([undo.before, undo.after], ['3 undo entries', '4 undo entries']);
    assert.match(undo.meaning ?? '', /no recorder saw.* not registered\. Register that table/);
    const evidence = await candidate.recheck();
    await session.query("update t set v = v where id = 'b'");
    assert.notEqual(await candidate.recheck(), evidence, 'a write that changes nothing counts too');
    await candidate.observe();
    const known = await candidate.recheck();
    assert.equal(await candidate.recheck(), known);
    await session.query('set session div_precision_increment = 9');
    assert.notEqual(await candidate.recheck(), known, 'the final gate compares the variables too');
    await candidate.end('discarded');
    await inside.close();
  });
});
