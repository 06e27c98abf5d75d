// Goal: sessions are shared, kept, replaced and closed as promised: one for the control account, few
// for candidates, none after the adapter is closed, and a login that fails disturbs nobody. Method:
// the accounts of a provisioned database; the server's list of sessions says what is left.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { MysqlConnection, MysqlFailure } from '../../../src/adapters/mysql/connection.ts';
import { readOptions } from '../../../src/adapters/mysql/options.ts';
import { ControlAccount, ExecutionSessions } from '../../../src/adapters/mysql/sessions.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { type ProtectedMariadb, protectedMariadb } from '../../mysql/protected.ts';

test('MariaDB: a failure is described by its message, or by itself if it has none', () => {
  assert.equal(new MysqlFailure(new Error('the line was cut')).message, 'the line was cut');
  assert.equal(new MysqlFailure('only a text').message, 'only a text');
});

describe('MariaDB: sessions', { skip: skipWithoutMariadb() }, () => {
  let place: ProtectedMariadb;
  before(async () => {
    place = await protectedMariadb('create table t (id int primary key)', { relations: ['t'] });
  });
  after(() => place.db.drop());

  const executing = () =>
    new ExecutionSessions(place.options.execution, readOptions(place.options));
  const account = () => place.db.unique('em_exec');
  const threads = async () => {
    const sql = `select id from information_schema.processlist where user = '${account()}'`;
    return (await place.db.run(sql)).map(({ id }) => Number(id));
  };
  const lock = (how: 'lock' | 'unlock') => place.db.run(`alter user ${account()} account ${how}`);
  /** Waits for the server, which notices the end of a session a little later. */
  const until = async (isDone: (open: readonly number[]) => boolean) => {
    for (let tries = 0; tries < 200 && !isDone(await threads()); tries += 1) await sleep(25);
    assert.ok(isDone(await threads()), JSON.stringify(await threads()));
  };

  test('callers that come together share the session of the control account', async () => {
    const control = new ControlAccount(place.options.control);
    const [one, two] = await Promise.all([control.connection(), control.connection()]);
    assert.equal(one, two);
    assert.equal(await control.connection(), one);
    one.close();
    const [three, four] = await Promise.all([control.connection(), control.connection()]);
    assert.equal(three, four);
    assert.notEqual(three, one);
    await control.close();
  });

  test('callers that ask the same question together share its answer, and later ones do not', async () => {
    const control = new ControlAccount(place.options.control);
    const ask = async () => String((await control.ask('select uuid()'))[0]?.[0]?.[0]);
    const [one, other, different] = await Promise.all([ask(), ask(), control.ask('select 1')]);
    assert.equal(one, other);
    assert.equal(String(different[0]?.[0]?.[0]), '1');
    assert.notEqual(await ask(), one);
    await control.close();
  });

  test('work that fails does not keep the control account from the next', async () => {
    const control = new ControlAccount(place.options.control);
    const failing = control.withSession(() => Promise.reject(new Error('it failed')));
    const working = control.withSession((session) => session.texts('select 1'));
    await assert.rejects(failing, /it failed/);
    assert.deepEqual(await working, [['1']]);
    await control.close();
  });

  test('a closed control account opens no session', async () => {
    const control = new ControlAccount(place.options.control);
    await control.connection();
    await control.close();
    for (const opening of [control.open(), control.connection()])
      await assert.rejects(opening, {
        code: 'ERR_EM_ADAPTER_UNAVAILABLE',
        message: /the adapter is closed/,
      });
  });

  test('a session that was lost or handed over answers no more, and does not log in again', async () => {
    const connection = await MysqlConnection.open(place.options.control, 5000);
    connection.close();
    await assert.rejects(connection.logInAgain(), /^Error: the connection was lost$/);
  });

  test('of many sessions that are given back, at most 32 are kept', async () => {
    const sessions = executing();
    const taken = await Promise.all(Array.from({ length: 36 }, () => sessions.take()));
    for (const session of taken) sessions.giveBack(session);
    await until((open) => open.length === 32);
    await sessions.close();
    await until((open) => open.length === 0);
  });

  test('a session that comes back after the adapter was closed is closed too', async () => {
    const sessions = executing();
    const session = await sessions.take();
    await sessions.close();
    sessions.giveBack(session);
    await until((open) => open.length === 0);
  });

  test('a login that fails in the background disturbs neither the next candidate nor the end', async () => {
    for (const end of ['close', 'forget', 'take'] as const) {
      const sessions = executing();
      const session = await sessions.take();
      await lock('lock');
      sessions.giveBack(session);
      await until((open) => open.length === 0);
      await lock('unlock');
      if (end === 'take') {
        const { connection } = await sessions.take();
        assert.deepEqual(await connection.texts('select 1'), [['1']]);
        connection.close();
      }
      if (end === 'forget') sessions.forget();
      await sessions.close();
      await until((open) => open.length === 0);
    }
  });

  test('TLS is asked for where the options say so', async () => {
    const { port } = new URL(String(place.options.control));
    const parts = { host: '127.0.0.1', port: Number(port), user: 'root', database: place.db.name };
    const plain = await MysqlConnection.open(parts, 30_000);
    assert.deepEqual(await plain.texts('select 1'), [['1']]);
    plain.close();
    const secured = MysqlConnection.open({ ...parts, ssl: {} }, 30_000);
    await assert.rejects(secured, /does not support secure connection/);
  });
});
