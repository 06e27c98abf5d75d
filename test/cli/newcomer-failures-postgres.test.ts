// Goal: with PostgreSQL too, every failure that a newcomer can cause says what happened, that
// nothing changed, and what to do. Method: each is caused for real on a server of its own: a closed
// port, a password that is checked, other provisioning.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { TestDatabase } from '../postgres/database.ts';
import { isInstalled, startServer, type TestServer } from '../postgres/server.ts';
import { type Ended, startCommand } from './command.ts';
import { Desk } from './newcomer.ts';

const PLAN = ['plan', '--sql', "update invoice set status = 'paid' where id = 1"];
const SHOP = `
  create table invoice (id integer primary key, status text not null);
  create table outbox (id integer generated always as identity primary key, text text);
  create view open_invoice as select * from invoice where status = 'pending';
  insert into invoice values (1, 'pending')`;

let server: TestServer;
let db: TestDatabase;
let desk: Desk;
const env = () => ({ EFFECTMATCH_ADMIN_URL: db.url() });

before(async () => {
  server = await startServer();
  db = await server.createDatabase();
  await db.run(SHOP);
  desk = new Desk();
});
after(async () => {
  desk[Symbol.dispose]();
  await server.stop();
});

function assertFault({ code, stdout, stderr }: Ended, what: RegExp, next: RegExp): void {
  assert.equal(code, 1, stdout + stderr);
  assert.match(stderr, what);
  assert.match(stderr, /(?:nothing was (?:changed|written|signed|done)|no data was changed)/);
  assert.match(stderr.slice(stderr.indexOf('\nnext: ')), next);
  assert.doesNotMatch(stderr, /\n {4}at /, 'no stack');
}

test('no server, no such host, no such database, a wrong password: init says so and writes nothing', async () => {
  await db.run(`create role locked login password 'right'`);
  const rules = join(server.folder, 'data', 'pg_hba.conf');
  writeFileSync(
    rules,
    `host all locked 127.0.0.1/32 scram-sha-256\n${readFileSync(rules, 'utf8')}`,
  );
  await db.run('select pg_reload_conf()');
  const files = readdirSync(desk.folder);
  const wrong = new URL(db.url());
  wrong.username = 'locked';
  wrong.password = 'wrong';
  const cases: readonly (readonly [string, RegExp, RegExp])[] = [
    [
      'postgres://postgres@127.0.0.1:1/books',
      /ERR_EM_ADAPTER_UNAVAILABLE: .*ECONNREFUSED/,
      /start the server/,
    ],
    [
      'postgres://postgres@localhost:1/books',
      /ERR_EM_ADAPTER_UNAVAILABLE: .*ECONNREFUSED/,
      /start the server/,
    ],
    [
      'postgres://postgres@no-such-host.invalid/books',
      /ERR_EM_ADAPTER_UNAVAILABLE/,
      /correct the host/,
    ],
    [
      db.url().replace(/[^/]+$/, 'nowhere'),
      /database "nowhere" does not exist/,
      /name of the database/,
    ],
    [wrong.href, /password authentication failed/, /correct the password/],
    ['postgres://localhost', /postgres:\/\/USER:PASSWORD@HOST:PORT\/DATABASE/, /nothing was done/],
  ];
  for (const [url, what, next] of cases) {
    const ended = await desk.run(['init'], { env: { EFFECTMATCH_ADMIN_URL: url } });
    assertFault(ended, what, next);
    assert.doesNotMatch(ended.stderr, /wrong@|:wrong/, 'no password is printed');
  }
  assert.deepEqual(readdirSync(desk.folder), files);
  // The same for the verbs that use the configured logins.
  assert.equal(
    (await desk.run(['init', '--approver', 'alice', '--relations', 'invoice'], { env: env() }))
      .code,
    0,
  );
  assertFault(
    await desk.run(['doctor']),
    /role "effectmatch_\w+" does not exist/,
    /effectmatch provision/,
  );
  const locked = { EFFECTMATCH_CONTROL_URL: wrong.href };
  for (const words of [['doctor'], PLAN]) {
    assertFault(
      await desk.run(words, { env: locked }),
      /password authentication failed/,
      /correct the password/,
    );
  }
  const nobody = { EFFECTMATCH_ADMIN_URL: 'postgres://postgres@127.0.0.1:1/books' };
  assertFault(await desk.run(['provision'], { env: nobody }), /ECONNREFUSED/, /start the server/);
});

test('an unregistered table, a trigger that leads to one, and a view', async () => {
  const provisioned = await desk.run(['provision'], { env: env() });
  assert.equal(provisioned.code, 0, provisioned.stderr);
  const direct = await desk.run(['plan', '--sql', "insert into outbox (text) values ('x')"]);
  assertFault(direct, /ERR_EM_REHEARSAL_REFUSED: .*outbox/, /add the table to `relations`/);
  await db.run(`create function tell() returns trigger language plpgsql as $$
      begin insert into outbox (text) values ('paid'); return null; end $$;
    create trigger tell after update on invoice for each row execute function tell()`);
  const byTrigger = await desk.run(PLAN);
  assertFault(
    byTrigger,
    /ERR_EM_REHEARSAL_REFUSED/,
    /add the table to `relations`|effectmatch doctor/,
  );
  assert.deepEqual(await db.run('select status from invoice'), [{ status: 'pending' }]);
  assert.deepEqual(await db.run('select * from outbox'), []);
  await db.run('drop trigger tell on invoice; drop function tell');
  const through = await desk.run([
    'plan',
    '--sql',
    "update open_invoice set status = 'x' where id = 1",
  ]);
  assertFault(
    through,
    /permission denied for view open_invoice/,
    /add the view to `views`.*effectmatch provision/,
  );
  const config = desk.read('effectmatch.config.ts');
  writeFileSync(
    desk.path('view.config.ts'),
    config.replace("'invoice', //", "'invoice', 'open_invoice', //"),
  );
  const view = await desk.run(['provision', '--config', 'view.config.ts'], { env: env() });
  assertFault(
    view,
    /"open_invoice" cannot be registered: it is a view/,
    /do what the message says/,
  );
});

test('a database that another release provisioned, and a license for another database', async () => {
  const words = [
    'approve',
    'proposal.json',
    '--key',
    'alice.key.json',
    '--yes',
    '--out',
    'license.json',
  ];
  const planned = await desk.run([...PLAN, '--out', 'proposal.json']);
  assert.equal(planned.code, 0, planned.stderr);
  assert.equal((await desk.run(words)).code, 0);
  await db.run('update effectmatch.deployment set version = 99');
  assertFault(await desk.run(PLAN), /provisioned by another release \(99/, /effectmatch provision/);
  await db.run('drop schema effectmatch cascade');
  assertFault(await desk.run(PLAN), /effectmatch/, /effectmatch provision/);
  assert.equal((await desk.run(['provision'], { env: env() })).code, 0);
  const { code, stdout } = await desk.run(['run', 'license.json', ...PLAN.slice(1)]);
  assert.equal(code, 2, stdout);
  assert.match(
    stdout,
    /rejected at authority \(adapter-changed\)[\s\S]*next: nothing was changed; plan it again/,
  );
  assert.deepEqual(await db.run('select status from invoice'), [{ status: 'pending' }]);
});

test('Ctrl-C while the action waits discards it and records that, whatever the database does later', async () => {
  const config = desk.read('effectmatch.config.ts');
  writeFileSync(
    desk.path('effectmatch.config.ts'),
    config.replace('postgres({', 'postgres({ lockTimeoutMs: 25_000,'),
  );
  const planned = await desk.run([...PLAN, '--out', 'slow.json']);
  assert.equal(planned.code, 0, planned.stderr);
  const signed = [
    'approve',
    'slow.json',
    '--key',
    'alice.key.json',
    '--yes',
    '--out',
    'slow-license.json',
  ];
  assert.equal((await desk.run(signed)).code, 0);
  const holder = new pg.Client({ connectionString: db.url() });
  await holder.connect();
  try {
    await holder.query('begin; select from invoice where id = 1 for update');
    const words = ['run', 'slow-license.json', ...PLAN.slice(1), '--json'];
    const { child, ended } = startCommand(words, { cwd: desk.folder });
    const printed = text(child.stdout);
    const waiting = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
    while ((await db.run(waiting)).length === 0) await sleep(50);
    child.kill('SIGINT');
    assert.equal((await ended).code, 2);
    const { terminal } = JSON.parse(await printed);
    assert.equal(terminal.kind, 'rejected');
    assert.equal(terminal.reason, 'interrupted');
  } finally {
    await holder.query('rollback');
    await holder.end();
  }
  assert.deepEqual(await db.run('select status from invoice'), [{ status: 'pending' }]);
  const recovered = await desk.run(['recover']);
  assert.match(recovered.stdout, /nothing to recover/);
});

test('Ctrl-C while another process executes the license ends only the waiting', async () => {
  const planned = await desk.run([...PLAN, '--out', 'shared.json']);
  assert.equal(planned.code, 0, planned.stderr);
  const sign = ['--key', 'alice.key.json', '--yes', '--out', 'shared-license.json'];
  assert.equal((await desk.run(['approve', 'shared.json', ...sign])).code, 0);
  const words = ['run', 'shared-license.json', ...PLAN.slice(1), '--json'];
  const holder = new pg.Client({ connectionString: db.url() });
  await holder.connect();
  await holder.query('begin; select from invoice where id = 1 for update');
  const first = startCommand(words, { cwd: desk.folder });
  const verdict = text(first.child.stdout);
  try {
    const locked = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
    while ((await db.run(locked)).length === 0) await sleep(50);
    const second = startCommand(words, { cwd: desk.folder });
    for await (const chunk of second.child.stderr)
      if (String(chunk).includes('waiting for the verdict')) break;
    second.child.kill('SIGINT');
    assert.equal((await second.ended).code, 1);
  } finally {
    await holder.query('rollback');
    await holder.end();
  }
  assert.equal((await first.ended).code, 0);
  assert.equal(JSON.parse(await verdict).terminal.kind, 'committed');
  assert.equal((await desk.run(words)).code, 0, 'running it again gives the same verdict');
  await db.run("update invoice set status = 'pending'");
});

test('the same database on another version of the server: the license is refused, with what to do', async (context) => {
  if (!isInstalled(15)) return context.skip('PostgreSQL 15 is not installed here');
  await using older = await startServer({ version: 15 });
  const sign = async (name: string) => {
    const words = [
      'approve',
      `${name}.json`,
      '--key',
      'alice.key.json',
      '--yes',
      '--out',
      `${name}-license.json`,
    ];
    assert.equal((await desk.run(words)).code, 0);
  };
  assert.equal((await desk.run([...PLAN, '--out', 'newer.json'])).code, 0);
  await sign('newer');
  // As a dump of everything would arrive there: same name, same object id, same tables, same
  // identity.
  const [{ oid }] = (await db.run(
    'select oid from pg_database where datname = current_database()',
  )) as [{ oid: number }];
  const admin = new pg.Client({ connectionString: older.adminUrl });
  await admin.connect();
  await admin.query(`create database "${db.name}" template template0 oid ${oid}`);
  await admin.end();
  const moved = (url: string) => url.replace(`:${server.port}/`, `:${older.port}/`);
  const client = new pg.Client({ connectionString: moved(db.url()) });
  await client.connect();
  try {
    await client.query(SHOP);
    const logins = [...desk.read('effectmatch.env').matchAll(/^(EFFECTMATCH_\w+)=(.*)$/gm)];
    const there = Object.fromEntries(logins.map(([, name, url]) => [name, moved(url ?? '')]));
    const call = (...words: string[]) =>
      desk.run(words, { env: { ...there, EFFECTMATCH_ADMIN_URL: moved(db.url()) } });
    assertFault(await call(...PLAN), /does not exist/, /effectmatch provision/);
    const provisioned = await call('provision');
    assert.equal(provisioned.code, 0, provisioned.stderr);
    const [row] = await db.run('select backend, inner_pad, outer_pad from effectmatch.deployment');
    const { backend, inner_pad, outer_pad } = row ?? assert.fail();
    const restore =
      'update effectmatch.deployment set backend = $1, inner_pad = $2, outer_pad = $3';
    await client.query(restore, [backend, inner_pad, outer_pad]);

    const refused = await call('run', 'newer-license.json', ...PLAN.slice(1));
    assert.equal(refused.code, 2, refused.stdout + refused.stderr);
    assert.match(
      refused.stdout,
      /^rejected at authority \(adapter-changed\): .*another version of its server.*here it is postgresql 15\nnext: nothing was changed; plan it again/,
    );
    assert.deepEqual((await client.query('select status from invoice')).rows, [
      { status: 'pending' },
    ]);
    assert.equal((await call(...PLAN, '--out', 'older.json')).code, 0);
    await sign('older');
    const committed = await call('run', 'older-license.json', ...PLAN.slice(1));
    assert.equal(committed.code, 0, committed.stdout);
    assert.deepEqual((await client.query('select status from invoice')).rows, [{ status: 'paid' }]);
    assert.deepEqual(
      await db.run('select status from invoice'),
      [{ status: 'pending' }],
      'the other one is as it was',
    );
  } finally {
    await client.end();
  }
});
