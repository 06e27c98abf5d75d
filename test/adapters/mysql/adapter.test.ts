// Goal: an open adapter of MariaDB removes the records of finished stages as it works, survives when
// it cannot, holds nothing that was already decided, and its probe tells a durable token from one
// that is not. Method: an adapter on a real server; for the sweep, its execution account finds no
// server any more, so that stages fail at once.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { readOptions } from '../../../src/adapters/mysql/options.ts';
import { ServerWatch } from '../../../src/adapters/mysql/server-state.ts';
import type { PromotableAdapter } from '../../../src/contract/adapter.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { protectedMariadb } from '../../mysql/protected.ts';

const CONTEXT = { name: 'db', clock: systemClock, reached: unobserved };
const TERMS = { reads: [], settings: {}, deadlineMs: 1 };
const CLAIM = { sealed: { record: { occurrence: 'an-occurrence' } } } as never;

test('MariaDB: a server that counts no statements is not trusted', async () => {
  const options = { control: 'mysql://c@host/shop', execution: 'mysql://e@host/shop' };
  const silent = { texts: async () => [[null]], queryAgain: async () => [[[null]]] } as never;
  const reading = new ServerWatch(readOptions({ ...options, relations: ['t'] })).read(silent);
  await assert.rejects(reading, /the server counts statements/);
});

test('MariaDB: the names of the counters are read once for each session', async () => {
  const options = { control: 'mysql://c@host/shop', execution: 'mysql://e@host/shop' };
  const watch = new ServerWatch(readOptions({ ...options, relations: ['t'] }));
  let named = 0;
  const session = () => {
    const texts = async () => {
      named += 1;
      return [['COM_ALTER_TABLE']];
    };
    return { texts, queryAgain: async () => [[[Buffer.from('1')]]] } as never;
  };
  const first = session();
  await watch.read(first);
  await watch.read(first);
  assert.equal(named, 1);
  await watch.read(session());
  assert.equal(named, 2);
});

describe('MariaDB: adapter', { skip: skipWithoutMariadb() }, () => {
  test('records of finished stages are swept after a thousand stages, and a sweep that fails is no harm', async () => {
    await using place = await protectedMariadb('create table t (id int primary key)', {
      relations: ['t'],
    });
    const { db, control } = place;
    const { port, username: user, password } = new URL(String(place.options.execution));
    const login = { host: '127.0.0.1', user, password: decodeURIComponent(password) };
    const execution = { ...login, database: db.name, port: Number(port) };
    const adapter = (await place.factory({ execution }).open(CONTEXT)) as PromotableAdapter;
    execution.port = 1; // Nothing listens there.
    const open = `select id from information_schema.processlist where user = '${user}'`;
    for (const { id } of await db.run(open)) await db.run(`kill ${id}`);
    await db.run(`create trigger ${control}.stubborn before delete on ${control}.record for each row
        if old.relation = 'kept' then signal sqlstate '45000'; end if;
      insert into ${control}.record (stage, relation, op)
        select 7, if(seq = 1001, 'kept', 't'), 'insert' from seq_1_to_1001`);
    const left = async () => (await db.run(`select stage from ${control}.record`)).length;
    const fail = async (times: number) => {
      for (let stage = 0; stage < times; stage += 1) {
        const held = await adapter.hold?.(CLAIM, {} as never, TERMS);
        assert.equal(held?.kind, 'failed');
      }
    };
    await fail(999);
    assert.equal(await left(), 1001);
    await fail(1);
    for (let tries = 0; tries < 200 && (await left()) > 1; tries += 1) await sleep(25);
    assert.equal(await left(), 1, 'the last one cannot be deleted, which disturbs nobody');
    await adapter.close();
  });

  test('a volatile column must exist, and must not be in the key', async () => {
    await using place = await protectedMariadb('create table t (id int primary key, n int)', {
      relations: ['t'],
    });
    const wrong = { id: /the key column "id" cannot be volatile/, m: /has no column "m"/ };
    for (const [column, message] of Object.entries(wrong)) {
      const relations = [{ name: 't', volatile: [column] }];
      await assert.rejects(place.factory({ relations }).open(CONTEXT), message);
    }
  });

  test('an occurrence that already has a marker is not held, and the answer says how it ended', async () => {
    await using place = await protectedMariadb('create table t (id int primary key)', {
      relations: ['t'],
    });
    const adapter = (await place.factory().open(CONTEXT)) as PromotableAdapter;
    const reasons = { committed: 'already-committed', void: 'already-void' };
    for (const [disposition, reason] of Object.entries(reasons)) {
      await place.db.run(`replace into ${place.control}.marker
        values ('an-occurrence', '${disposition}', 'text', 'key', 'mac')`);
      const held = await adapter.hold?.(CLAIM, {} as never, TERMS);
      assert.equal(held?.kind === 'failed' && held.reason, reason);
    }
    await adapter.close();
  });

  test('the probe finds its token once it is durable', async () => {
    await using place = await protectedMariadb('create table t (id int primary key)', {
      relations: ['t'],
    });
    const adapter = (await place.factory().open(CONTEXT)) as PromotableAdapter;
    assert.equal(await adapter.probe.durable("it's"), false);
    await place.db.run(`insert into ${place.control}.probe values ('it''s')`);
    assert.equal(await adapter.probe.durable("it's"), true);
    assert.equal(await adapter.probe.durable('other'), false);
    await adapter.close();
  });
});
