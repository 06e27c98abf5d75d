// Goal: a test gets a real PostgreSQL that keeps what was committed when it is killed, and leaves
// nothing behind. Method: start real servers, kill them or the process that owns them, and look at
// folders, processes and rows.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdtempDisposable, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { descendantsOf, stillRunning } from './processes.ts';
import {
  freshDatabase,
  isInstalled,
  sharedServer,
  startServer,
  type TestServer,
  type Version,
} from './server.ts';

/** Everything of a server that could be left: its folder and its processes. */
function tracesOf(server: TestServer) {
  assert.ok(server.pid !== undefined);
  const processes = [server.pid, ...descendantsOf(server.pid)];
  assert.ok(processes.length > 3, 'the postmaster has children');
  assert.ok(existsSync(server.folder));
  return () => ({ folder: existsSync(server.folder), processes: stillRunning(processes) });
}

const NOTHING = { folder: false, processes: [] };

for (const version of [17, 15] as const satisfies readonly Version[]) {
  const skip = isInstalled(version) ? false : `PostgreSQL ${version} is not installed here`;
  test(`${version}: committed rows survive a kill of the whole server, open transactions do not`, {
    skip,
  }, async () => {
    await using server = await startServer({ version });
    await using db = await server.createDatabase();
    await db.run('CREATE TABLE t (a int); INSERT INTO t VALUES (1)');
    const open = new pg.Client({ connectionString: db.url() });
    open.on('error', () => {});
    await open.connect();
    await open.query('BEGIN');
    await open.query('INSERT INTO t VALUES (2)');
    const before = tracesOf(server);

    await server.kill();
    assert.deepEqual(before(), { folder: true, processes: [] });
    assert.equal(server.pid, undefined);
    await assert.rejects(db.run('SELECT 1'), { code: 'ECONNREFUSED' });
    await server.restart();

    assert.deepEqual(await db.run('SELECT a FROM t'), [{ a: 1 }]);
    const [about] = await db.run(
      "SELECT current_setting('server_version_num') AS number, current_setting('fsync') AS fsync",
    );
    assert.equal(about?.fsync, 'on');
    assert.equal(Math.floor(Number(about?.number) / 10_000), version);
  });
}

test('servers start side by side with settings of their own, and stop leaves nothing', async () => {
  const servers = await Promise.all(
    ['1MB', '2MB', '3MB'].map((work_mem) => startServer({ settings: { work_mem, fsync: 'off' } })),
  );
  assert.equal(new Set(servers.map(({ port }) => port)).size, 3);
  const shown = await Promise.all(
    servers.map(async (server) => {
      await using db = await server.createDatabase();
      return (await db.run('SHOW work_mem'))[0]?.work_mem;
    }),
  );
  assert.deepEqual(shown, ['1MB', '2MB', '3MB']);
  const traces = servers.map(tracesOf);
  await servers[0]?.kill(); // A killed server is removed like a running one.
  await Promise.all(servers.map((server) => server.stop()));
  assert.deepEqual(
    traces.map((look) => look()),
    [NOTHING, NOTHING, NOTHING],
  );
});

test('a server that cannot start says why and leaves nothing', async () => {
  await assert.rejects(
    startServer({ settings: { work_mem: 'a lot' } }),
    /invalid value for parameter "work_mem"/,
  );
});

const OWNER = `
  import { startServer } from ${JSON.stringify(new URL('./server.ts', import.meta.url).href)};
  const { folder, pid } = await startServer();
  process.send({ folder, pid });
  if (process.argv[1] === 'stay') setInterval(() => {}, 1000);
  else process.disconnect();
`;

for (const end of ['SIGKILL', 'SIGTERM', 'end of its program'] as const) {
  test(`the server ends with the process that owns it: ${end}`, async () => {
    const signals = end === 'end of its program' ? undefined : end;
    const owner = spawn(
      process.execPath,
      ['--input-type=module', '-e', OWNER, signals ? 'stay' : 'end'],
      {
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      },
    );
    const ended = once(owner, 'exit');
    const [server] = (await once(owner, 'message')) as [TestServer];
    const look = signals
      ? tracesOf(server)
      : () => ({ folder: existsSync(server.folder), processes: [] });
    if (signals) owner.kill(signals);
    await ended;
    while (existsSync(server.folder)) await sleep(20);
    assert.deepEqual(look(), NOTHING);
  });
}

test('an owner killed while its server is being created leaves nothing', async () => {
  await using place = await mkdtempDisposable(join(tmpdir(), 'effectmatch-owner-'));
  await chmod(place.path, 0o755);
  const code = `
    import { openKeeper } from ${JSON.stringify(new URL('./keeper-channel.ts', import.meta.url).href)};
    const keeper = openKeeper(new URL(${JSON.stringify(new URL('./keeper.ts', import.meta.url).href)}));
    keeper.order({ kind: 'create', version: 17, settings: {} });
    process.send(keeper.pid);
  `;
  const { EFFECTMATCH_SERVER_TMPDIR: _, EFFECTMATCH_TEST_TEMPLATES: __, ...env } = process.env;
  const owner = spawn(process.execPath, ['--input-type=module', '-e', code], {
    env: { ...env, TMPDIR: place.path },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const [keeper] = (await once(owner, 'message')) as [number];
  let below: readonly number[] = [];
  while (below.length === 0) {
    await sleep(10);
    below = descendantsOf(keeper);
  }
  owner.kill('SIGKILL');
  while (stillRunning([keeper]).length > 0) await sleep(20);
  assert.deepEqual(stillRunning(below), []);
  assert.deepEqual(await readdir(place.path), []);
});

test('databases and role names made at once on the shared server are distinct, and both are dropped', async () => {
  const databases = await Promise.all([freshDatabase(), freshDatabase(), freshDatabase()]);
  const roles = databases.map((db) => db.role('clerk'));
  assert.equal(new Set([...databases.map(({ name }) => name), ...roles]).size, 6);
  for (const db of databases) {
    await db.run(
      `CREATE TABLE t (a int); CREATE ROLE ${db.role('clerk')} LOGIN; GRANT SELECT ON t TO ${db.role('clerk')}`,
    );
    const clerk = new pg.Client({ connectionString: db.url(db.role('clerk')) });
    clerk.on('error', () => {}); // Dropping the database ends this connection.
    await clerk.connect();
    assert.deepEqual((await clerk.query('SELECT session_user AS name')).rows, [
      { name: db.role('clerk') },
    ]);
  }
  await Promise.all(databases.map((db) => db.drop()));
  const admin = new pg.Client({ connectionString: (await sharedServer()).adminUrl });
  await admin.connect();
  const left = await admin.query('SELECT rolname FROM pg_roles WHERE rolname = ANY ($1)', [roles]);
  const kept = await admin.query('SELECT datname FROM pg_database WHERE datname = ANY ($1)', [
    databases.map(({ name }) => name),
  ]);
  await admin.end();
  assert.deepEqual([...left.rows, ...kept.rows], []);
});

test('a database is copied from a template', async () => {
  await using template = await freshDatabase();
  await template.run('CREATE TABLE t AS SELECT 7 AS a');
  await using copy = await freshDatabase({ template: template.name });
  assert.deepEqual(await copy.run('SELECT a FROM t'), [{ a: 7 }]);
});
