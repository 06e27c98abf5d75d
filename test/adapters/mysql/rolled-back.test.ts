// Goal: when MariaDB rolls back the whole branch under a statement, whatever a trigger does about the
// error, nothing can be added to it, and neither it nor what follows is observed or committed.
// Method: real servers, on which another session brings about a deadlock, a lock timeout and a row
// that changed after the branch began.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Connection, createConnection } from 'mysql2/promise';
import { parseAction } from '../../../src/adapters/mysql/action.ts';
import type { OccurrenceId } from '../../../src/protocol/record.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { protectedMariadb } from '../../mysql/protected.ts';
import { startServer } from '../../mysql/server.ts';
import { openInside } from './inside.ts';

/** A trigger that passes over every error of its statement. */
const SCHEMA = `
  create table a (id int primary key, v int); insert into a values (1, 1), (2, 2);
  create table b (id int primary key, v int); insert into b values (1, 1), (2, 2);
  create table c (id int primary key, v int); insert into c select seq, 0 from seq_1_to_500;
  create trigger deaf after update on a for each row begin
    declare continue handler for sqlexception begin end;
    update b set v = v + 1 where id = new.id;
  end`;
const MARKER = { occurrence: 'x' as OccurrenceId, disposition: 'committed', text: 't' } as const;

interface Case {
  readonly name: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly reason: string;
  /** What the other session does after it has changed many rows, so that it is not the victim. */
  readonly meanwhile: (other: Connection) => Promise<unknown>;
}

const CASES: readonly Case[] = [
  {
    name: 'a deadlock',
    settings: {},
    reason: 'deadlock',
    meanwhile: async (other) => {
      const waiting = other.query('update c set v = 9 where id = 7').catch(() => {});
      await sleep(300);
      return waiting;
    },
  },
  {
    name: 'a lock timeout on a server that then rolls back',
    settings: { 'innodb-rollback-on-timeout': '1' },
    reason: 'busy',
    meanwhile: async () => {},
  },
  {
    name: 'a row that changed after the branch began, where the server forbids that',
    settings: { 'innodb-snapshot-isolation': '1' },
    reason: 'serialization',
    meanwhile: (other) => other.query('commit'),
  },
];

describe('MariaDB: a branch that the server rolled back', { skip: skipWithoutMariadb() }, () => {
  for (const { name, settings, reason, meanwhile } of CASES)
    test(`${name} ends it, and nothing of it is committed`, async () => {
      await using server = await startServer(settings);
      const place = await protectedMariadb(
        SCHEMA,
        { relations: ['a', 'b', 'c'], lockTimeoutMs: 1000 },
        await server.createDatabase(),
      );
      const inside = await openInside(place);
      const { candidate } = await inside.hold();
      await candidate.begin(MARKER.occurrence, []);
      const call = async (sql: string) => await candidate.call(parseAction({ sql }));
      assert.equal((await call('update c set v = 1 where id = 7')).kind, 'done');
      const other = await createConnection(place.db.url());
      await other.query('start transaction');
      await other.query('update c set v = v + 5 where id > 100');
      await other.query('update b set v = 50 where id = 1');
      const going = meanwhile(other);
      await Promise.race([going, sleep(400)]);

      const failed = await call('update a set v = 10 where id = 1');
      assert.ok(failed.kind === 'failed', JSON.stringify(failed));
      assert.deepEqual([failed.reason, failed.isLost], [reason, true]);
      const next = await call('update a set v = 10 where id = 2');
      assert.ok(next.kind === 'failed' && next.isLost);
      await assert.rejects(candidate.observe(), /ROLLBACK ONLY/);
      const promoted = await candidate.commit({ ...MARKER, sealKey: 'k', sealMac: 'm' });
      assert.equal(promoted.kind, 'refused');
      await candidate.end('discarded');
      await going;
      await other.query('rollback');
      other.destroy();
      const [left] = await place.db.run(`select (select sum(v) from a) as a,
        (select v from b where id = 2) as b, (select count(*) from ${place.control}.marker) as n`);
      assert.deepEqual(left, { a: '3', b: 2, n: 0 });
      await inside.close();
    });
});
