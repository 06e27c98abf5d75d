// Goal: a test gets a real MariaDB that keeps what was committed when it is killed, and leaves
// nothing behind. Method: start a real server, kill it or its owner, and look at rows and folders.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createConnection } from 'mysql2/promise';
import { stillRunning } from '../postgres/processes.ts';
import { skipWithoutMariadb } from './binaries.ts';
import { freshDatabase, startServer } from './server.ts';

const skip = skipWithoutMariadb();

test('MariaDB: committed rows survive a kill of the server, an active XA branch does not', {
  skip,
}, async () => {
  await using server = await startServer();
  const db = await server.createDatabase();
  await db.run('create table t (a int primary key) engine = innodb; insert into t values (1)');
  const open = await createConnection(db.url());
  open.on('error', () => {});
  await open.query("xa start 'x'");
  await open.query('insert into t values (2)');
  await server.kill();
  assert.equal(server.pid, undefined);
  await server.restart();
  assert.deepEqual(await db.run('select a from t'), [{ a: 1 }]);
  assert.match(String((await db.run('select version() as v'))[0]?.v), /^10\.11\..*MariaDB/);
  open.destroy();
});

test('MariaDB: a killed owner leaves neither process nor folder', { skip }, async () => {
  const module = JSON.stringify(new URL('./server.ts', import.meta.url).href);
  const code = `import { startServer } from ${module};
    const { folder, pid } = await startServer();
    process.send({ folder, pid });
    setInterval(() => {}, 1000);`;
  const owner = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const [{ folder, pid }] = (await once(owner, 'message')) as [{ folder: string; pid: number }];
  assert.ok(existsSync(folder));
  owner.kill('SIGKILL');
  while (existsSync(folder)) await sleep(20);
  assert.deepEqual(stillRunning([pid]), []);
});

test('MariaDB: databases and account names made at once are distinct, and both are dropped', {
  skip,
}, async () => {
  const all = await Promise.all([freshDatabase(), freshDatabase()]);
  const [first, second] = all.map((db) => db.unique('clerk'));
  assert.notEqual(first, second);
  await all[0]?.run(`create user ${first}; create database ${all[0].unique('other')}`);
  await all[0]?.drop();
  const left = await all[1]?.run(
    `select user from mysql.user where user = '${first}' union select schema_name from information_schema.schemata where schema_name = '${all[0]?.name}'`,
  );
  assert.deepEqual(left, []);
  await all[1]?.drop();
});
