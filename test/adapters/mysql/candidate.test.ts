// Goal: a held MariaDB candidate gives the state that an approval depends on as it was before its
// own writes, no other session can change it meanwhile, and a commit that is refused commits nothing
// and says why. Method: candidates on a real server, and an outside session that tries.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createConnection } from 'mysql2/promise';
import { parseAction } from '../../../src/adapters/mysql/action.ts';
import { planProvisioning } from '../../../src/adapters/mysql/index.ts';
import type { PromotableAdapter } from '../../../src/contract/adapter.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import type { OccurrenceId } from '../../../src/protocol/record.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { protectedMariadb } from '../../mysql/protected.ts';
import { openInside } from './inside.ts';

const SCHEMA = `create table t (id int primary key, v int, w int null);
  insert into t values (1, 10, null), (2, 20, 2), (3, 30, 3)`;
const WRITE = parseAction({ sql: 'update t set v = v + 1, w = 9' });
const of = (id: number, columns?: readonly string[]) => ({
  ...{ target: 't', key: { id } },
  ...(columns && { columns }),
});

describe('MariaDB: candidate', { skip: skipWithoutMariadb() }, () => {
  test('declared and undeclared state is that before the writes, in the order of the question', async () => {
    await using place = await protectedMariadb(SCHEMA, { relations: ['t'] });
    const inside = await openInside(place);
    const { candidate } = await inside.hold();
    await candidate.begin('reads' as OccurrenceId, [of(1), of(7)]);
    assert.deepEqual(await candidate.apply(WRITE), { kind: 'done' });
    assert.deepEqual(await candidate.read([of(7), of(1, ['w', 'v']), of(1)]), [
      { target: 't', key: { id: 7 }, row: null },
      { target: 't', key: { id: 1 }, row: { w: null, v: 10 } },
      { target: 't', key: { id: 1 }, row: { id: 1, v: 10, w: null } },
    ]);
    assert.deepEqual(await candidate.read([of(2, ['v']), of(1, ['v'])]), [
      { target: 't', key: { id: 2 }, row: { v: 20 } },
      { target: 't', key: { id: 1 }, row: { v: 10 } },
    ]);
    await candidate.end('discarded');
    await inside.close();
  });

  test('what was read cannot be changed or filled in by another session until the candidate ends', async () => {
    await using place = await protectedMariadb(SCHEMA, { relations: ['t'] });
    const inside = await openInside(place);
    await using outsider = await createConnection(place.db.url());
    await outsider.query('set session innodb_lock_wait_timeout = 1');
    const { candidate } = await inside.hold();
    await candidate.begin('locks' as OccurrenceId, [of(1), of(7)]);
    await candidate.read([of(3)]);
    for (const sql of [
      'update t set v = 0 where id = 1',
      'insert into t values (7, 1, 1)',
      'update t set v = 0 where id = 3',
    ])
      await assert.rejects(outsider.query(sql), /Lock wait timeout/, sql);
    await outsider.query('update t set v = 0 where id = 2');
    await candidate.end('discarded');
    await outsider.query('update t set v = 0 where id = 1');
    await inside.close();
  });

  test('a commit is refused if another marker came first, or the server fails', async () => {
    await using place = await protectedMariadb(SCHEMA, { relations: ['t'] });
    const inside = await openInside(place);
    const refusalOf = async (text: string, meanwhile: string) => {
      const { candidate } = await inside.hold();
      await candidate.begin('late' as OccurrenceId, []);
      await candidate.apply(WRITE);
      await place.db.run(meanwhile);
      const marker = { occurrence: 'late' as OccurrenceId, disposition: 'committed' } as const;
      const ended = await candidate.commit({ ...marker, text, sealKey: 'k', sealMac: 'm' });
      await candidate.end('discarded');
      assert.deepEqual(await place.db.run('select v from t where id = 1'), [{ v: 10 }]);
      return ended.kind === 'refused' ? [ended.reason, ended.detail] : ended.kind;
    };
    const { control } = place;
    const [failed, why] = await refusalOf('text', `drop procedure ${control}.promote`);
    assert.equal(failed, 'commit-failed');
    assert.match(String(why), /denied|does not exist/);
    await (await planProvisioning(place.db.url(), place.options)).apply();
    const first = `insert into ${control}.marker values ('late', 'void', 'text', 'key', 'mac')`;
    const [conflict] = await refusalOf('text', first);
    assert.equal(conflict, 'marker-conflict');
    await inside.close();
  });

  test('a candidate whose session was lost is discarded only once the server has ended it', async () => {
    await using place = await protectedMariadb(SCHEMA, { relations: ['t'] });
    const inside = await openInside(place);
    const { candidate, session } = await inside.hold();
    await candidate.begin('lost' as OccurrenceId, []);
    await candidate.apply(WRITE);
    // The server notices the lost connection only after the statement.
    const sleeping = session.query('select sleep(1)').catch(() => {});
    await sleep(100);
    session.close();
    await candidate.end('discarded');
    const left = await place.db.run(
      `select id from information_schema.processlist where id = ${session.thread}`,
    );
    assert.deepEqual(left, []);
    await place.db.run('set session innodb_lock_wait_timeout = 0; update t set v = 5 where id = 1');
    await inside.close();
    void sleeping; // Nothing answers on a closed connection.
  });

  test('a candidate whose session never ends is not taken for discarded', async () => {
    const settings = { relations: ['t'], stageTimeoutMs: 300_000, lockTimeoutMs: 200_000 };
    await using place = await protectedMariadb(SCHEMA, settings);
    const inside = await openInside(place);
    await using outsider = await createConnection(place.db.url());
    await outsider.beginTransaction();
    await outsider.query('update t set v = 0 where id = 1');
    const { candidate, session } = await inside.hold();
    await candidate.begin('endless' as OccurrenceId, []);
    // The server does not notice that the session is gone while it waits for a lock.
    const waiting = session.query('update t set v = 1 where id = 1').catch(() => {});
    await sleep(100);
    session.close();
    await assert.rejects(candidate.end('discarded'), /discarded candidate does not end/);
    await outsider.rollback();
    await inside.close();
    void waiting; // Nothing answers on a closed connection.
  });

  test('a candidate has ended even if nobody can read any more what it left behind', async () => {
    const counted = `create table t (v int, id int auto_increment primary key);
      create table calm (id int auto_increment primary key)`;
    await using place = await protectedMariadb(counted, { relations: ['t', 'calm'] });
    const inside = await openInside(place);
    const { control } = inside;
    const insert = parseAction({ sql: 'insert into t values ()' });
    const { candidate: first } = await inside.hold();
    await first.begin('read' as OccurrenceId, []);
    await first.apply(insert);
    const residue = { kind: 'sequence', name: 't.id', from: null, to: '1' };
    assert.deepEqual(await first.end('discarded'), [residue]);
    const { candidate: second } = await inside.hold();
    await second.begin('unread' as OccurrenceId, []);
    await second.apply(insert);
    const ask = control.ask.bind(control);
    control.ask = async (...questions) => {
      if (questions.some((question) => question.includes('auto_increment'))) await control.close();
      return await ask(...questions);
    };
    assert.equal(await second.end('discarded'), undefined);
    assert.deepEqual(await place.db.run('select id from t'), []);
    await inside.close();
  });

  test('a branch that has ended is rolled back, and its session serves on', async () => {
    await using place = await protectedMariadb(SCHEMA, { relations: ['t'] });
    const inside = await openInside(place);
    const { candidate, session, branch } = await inside.hold();
    await candidate.begin('ended' as OccurrenceId, []);
    await assert.rejects(candidate.recheck(), /rechecked after it was observed/);
    await candidate.apply(WRITE);
    await session.query(`xa end ${branch()}`);
    await candidate.end('discarded');
    const list = `select id from information_schema.processlist where id = ${session.thread}`;
    assert.equal((await place.db.run(list)).length, 1);
    assert.deepEqual(await place.db.run('select v from t where id = 1'), [{ v: 10 }]);
    await inside.close();
  });

  test('a void marker that the server does not take is an error, and is not there', async () => {
    await using place = await protectedMariadb(SCHEMA, { relations: ['t'] });
    const context = { name: 'db', clock: systemClock, reached: unobserved };
    const { markers, close } = (await place.factory().open(context)) as PromotableAdapter;
    const occurrence = 'unwritten' as OccurrenceId;
    await place.db.run(`alter table ${place.control}.marker add check (text <> 'refused')`);
    const marker = { occurrence, disposition: 'void', text: 'refused' } as const;
    await assert.rejects(markers.void({ ...marker, sealKey: 'k', sealMac: 'm' }), /CONSTRAINT/);
    assert.equal(await markers.find(occurrence), undefined);
    await close();
  });

  test('of two void markers that wait for a transaction which is undone, one is written and one is busy', async () => {
    await using place = await protectedMariadb(SCHEMA, { relations: ['t'] });
    const context = { name: 'db', clock: systemClock, reached: unobserved };
    const { markers, close } = (await place.factory().open(context)) as PromotableAdapter;
    const occurrence = 'contended' as OccurrenceId;
    await using outsider = await createConnection(place.db.url());
    const contend = async () => {
      await outsider.beginTransaction();
      await outsider.query(`insert into ${place.control}.marker
        values ('${occurrence}', 'void', 'of another', 'key', 'mac')`);
      const voiding = ['one', 'two'].map((text) =>
        markers.void({ occurrence, disposition: 'void', text, sealKey: 'k', sealMac: 'm' }),
      );
      await sleep(500);
      await outsider.rollback();
      return (await Promise.all(voiding)).map(({ kind }) => kind).sort();
    };
    // Each gets a lock that the other one needs to insert: a deadlock, unless this test is so slow
    // that both have given up before.
    let ends = await contend();
    for (let tries = 0; tries < 5 && !ends.includes('inserted'); tries += 1) ends = await contend();
    assert.deepEqual(ends, ['busy', 'inserted']);
    assert.match(String((await markers.find(occurrence))?.text), /^(?:one|two)$/);
    await close();
  });

  test('a marker that is already there is returned when the candidate begins', async () => {
    await using place = await protectedMariadb(SCHEMA, { relations: ['t'] });
    const inside = await openInside(place);
    const begin = async (occurrence: string) => {
      const { candidate } = await inside.hold();
      const disposition = await candidate.begin(occurrence as OccurrenceId, []);
      await candidate.end('discarded');
      return disposition;
    };
    for (const disposition of ['committed', 'void'])
      await place.db.run(`insert into ${place.control}.marker
        values ('${disposition}', '${disposition}', 'text', 'key', 'mac')`);
    assert.equal(await begin('committed'), 'committed');
    assert.equal(await begin('void'), 'void');
    assert.equal(await begin('neither'), undefined);
    await inside.close();
  });
});
