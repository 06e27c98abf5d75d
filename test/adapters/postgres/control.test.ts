// Goal: what is no longer vouched for by the session and the server that it was read from is read
// again. Method: promise an id not yet given out, as if another server had taken over, and let it
// be used; and promote a real standby.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { Control } from '../../../src/adapters/postgres/control.ts';
import { Connection } from '../../../src/postgres/connection.ts';
import { protectedDatabase } from '../../postgres/protected.ts';
import { startServer, type TestServer } from '../../postgres/server.ts';

async function openShop(server: TestServer) {
  const db = await server.createDatabase();
  return await protectedDatabase(
    'create table invoice (id int primary key)',
    { relations: ['invoice'] },
    { db },
  );
}

for (const late of [false, true]) {
  const when = late ? ', also when its COMMIT is answered late' : '';
  test(`a promoted transaction is excused only as long as the session that watches${when}`, async () => {
    await using server = await startServer();
    await using site = await openShop(server);
    const { db, options } = site;
    const control = new Control(options.control);
    try {
      await control.fingerprint();
      const session = await control.connection();
      const { rows } = await session.query(
        'select pg_snapshot_xmax(pg_current_snapshot())::text, pg_backend_pid()',
      );
      const [next, pid] = rows[0] ?? [];
      const excuse = control.promotedTransactions();
      if (!late) excuse(String(next));
      await db.run(`select pg_terminate_backend(${pid}, 5000)`);
      await assert.rejects(session.query('select 1'));
      const first = await control.fingerprint();
      if (late) excuse(String(next));
      await db.run('grant truncate on invoice to public');
      const { rows: after } = await (await control.connection()).query(
        `select xmin from pg_class where oid = 'public.invoice'::regclass`,
      );
      assert.equal(after[0]?.[0], next, 'the id was used for something else');
      assert.notEqual(await control.fingerprint(), first);
    } finally {
      await control.close();
    }
  });
}

test('a standby does not say what runs, so that its promotion is a reason to look again', async () => {
  await using server = await startServer();
  await using site = await openShop(server);
  const { db, options } = site;
  await db.run("begin; grant truncate on invoice to public; prepare transaction 'later'");
  writeFileSync(join(server.folder, 'data', 'standby.signal'), '', { mode: 0o666 });
  await server.restart();
  const control = new Control(options.control);
  try {
    const first = await control.fingerprint();
    await db.run('select pg_promote()');
    await db.run("commit prepared 'later'");
    assert.notEqual(await control.fingerprint(), first);
  } finally {
    await control.close();
  }
});

test('a role that was made again under its old name is watched from the next survey on', async () => {
  await using server = await startServer();
  await using site = await openShop(server);
  const { db, options } = site;
  const role = db.role('lent');
  const control = new Control(options.control);
  try {
    await db.run(`create role ${role}`);
    control.watchRoles([role]);
    await control.fingerprint();
    await db.run(`drop role ${role}; create role ${role}`);
    control.watchRoles([role]);
    const first = await control.fingerprint();
    await db.run(`alter role ${role} createrole`);
    assert.notEqual(await control.fingerprint(), first);
  } finally {
    await control.close();
  }
});

test('a transaction that a crash took back, and another under its id, do not pass for each other', async () => {
  await using server = await startServer({
    settings: { wal_writer_delay: '10s', autovacuum: 'off' },
  });
  await using site = await openShop(server);
  const { db, options } = site;
  const crash = async () => {
    const session = await Connection.open(db.url(), 'test');
    process.kill(Number((await session.query('select pg_backend_pid()')).rows[0]?.[0]), 'SIGKILL');
    while (session.isAlive) await session.query('select 1').catch(() => {});
    const isUp = () => db.run('select 1').catch(() => undefined);
    while ((await isUp()) === undefined) await setTimeout(50);
  };
  const readWriter = async () =>
    (await db.run(`select xmin::text from pg_class where relname = 'invoice'`))[0]?.xmin;
  await crash(); // counters begin at zero, as they do after the next crash
  const control = new Control(options.control);
  try {
    await db.run('set synchronous_commit = off; grant references on invoice to public');
    const rights = ['truncate', 'trigger', 'delete', 'update', 'insert', 'select'];
    for (const right of rights) {
      const [first, writer] = [await control.fingerprint(), await readWriter()];
      await crash();
      await db.run(`set synchronous_commit = off; grant ${right} on invoice to public`);
      const now = await control.fingerprint();
      assert.notEqual(now, first);
      // On a slow machine the server may have written its log before it was killed.
      if ((await readWriter()) === writer) return;
    }
    assert.fail('no transaction got the id of one that a crash took back');
  } finally {
    await control.close();
  }
});
