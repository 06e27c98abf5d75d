// Goal: a database is prepared, surveyed and released from its preparation from the command line,
// with messages that help. Method: the real command in processes of its own, against a real server.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { freshDatabase } from '../postgres/server.ts';
import { runCommand } from './command.ts';
import { Desk } from './newcomer.ts';

const SCHEMA = `
  create table invoice (id integer primary key, status text not null);
  create table vendor (id serial primary key, name text);
  create function stamp() returns trigger language plpgsql as $$ begin return new; end $$;
  create trigger stamp before update on invoice for each row execute function stamp();`;

test('provision prints and applies, doctor names what is open and closes it, remove leaves nothing', async () => {
  await using db = await freshDatabase();
  await db.run(SCHEMA);
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-provision-'));
  try {
    const adapter = new URL('../../src/adapters/postgres/index.ts', import.meta.url).href;
    const options = {
      owner: db.role('em_owner'),
      control: db.url(db.role('em_control'), 'control secret'),
      execution: db.url(db.role('em_exec'), 'execution secret'),
      relations: ['invoice', 'vendor'],
    };
    writeFileSync(
      join(folder, 'effectmatch.config.mjs'),
      `import { postgres } from '${adapter}';
       export default { store: 'ledger.db', keyring: 'keys.json', issuers: {}, adapters: { books: postgres(${JSON.stringify(options)}) } };`,
    );
    const run = (...words: string[]) =>
      runCommand(words, { cwd: folder, env: { EFFECTMATCH_ADMIN_URL: db.url() } });

    const owner = db.role('app_owner');
    await db.run(
      `create role "${owner}" login createrole; alter database "${db.name}" owner to "${owner}"`,
    );
    await db.run(`alter table invoice owner to "${owner}"; alter table vendor owner to "${owner}";
      alter function stamp() security definer set search_path = public, pg_temp;
      alter function stamp() owner to "${owner}"`);
    const partly = await run('provision', '--admin', db.url(owner));
    assert.equal(partly.code, 0, partly.stderr);
    assert.match(partly.stdout, /is prepared \(\d+ statements\), apart from what was left out:\n/);
    const leftOut = partly.stdout.split('\n').filter((line) => line.startsWith('left out'));
    assert.ok(leftOut.length > 1);
    assert.equal(new Set(leftOut).size, leftOut.length, 'no line twice');
    const undone = await run('provision', '--remove');
    assert.equal(undone.code, 0, undone.stderr);

    const before = await run('doctor');
    assert.equal(before.code, 1);
    assert.match(before.stderr, /ERR_EM_ADAPTER_UNAVAILABLE|ERR_EM_ADAPTER_REFUSED/);

    const printed = await run('provision', '--print');
    assert.equal(printed.code, 0, printed.stderr);
    assert.match(
      printed.stdout,
      /create trigger effectmatch_record\s+after insert or update or delete on "public"."invoice"/,
    );
    assert.doesNotMatch(printed.stdout, /secret'/, 'passwords are left out');
    const untouched = await db.run(`select from pg_namespace where nspname = 'effectmatch'`);
    assert.equal(untouched.length, 0, 'printing changes nothing');

    const asked = await run('provision');
    assert.notEqual(asked.code, 0, 'the owner would lose something, and there is no terminal');
    assert.match(asked.stdout, /app_owner.* loses temporary tables/);
    const tried = await run('provision', '--dry-run');
    assert.equal(tried.code, 0, tried.stderr);
    assert.match(
      tried.stdout,
      /^loses {2}\S*app_owner\S* {2}EXECUTE ON FUNCTION pg_notify\(text,text\)$/m,
    );
    assert.match(tried.stdout, /roles would have the same rights; everything was rolled back/);
    assert.match(asked.stderr, /pass --yes/);
    for (const _ of [1, 2])
      assert.equal((await run('provision', '--yes')).code, 0, 'it can be repeated');
    const closed = await run('doctor', '--all');
    assert.equal(closed.code, 0, closed.stdout + closed.stderr);
    assert.match(closed.stdout, /^closed {2}books/m);
    assert.match(closed.stdout, /observed/);

    await db.run(`grant temporary on database "${db.name}" to public`);
    const open = await run('doctor', '--json');
    assert.equal(open.code, 2);
    const [report] = JSON.parse(open.stdout).adapters;
    assert.equal(report.closed, false);
    assert.ok(report.remedies.length > 0);
    const sql = await run('doctor', '--sql');
    await db.run(sql.stdout);
    assert.equal((await run('doctor')).code, 0, 'the statements it prints close what is open');

    const removed = await run('provision', '--remove');
    assert.equal(removed.code, 0, removed.stderr);
    const left = await db.run(
      `select relname from pg_class c join pg_namespace n on n.oid = c.relnamespace where nspname = 'effectmatch'
       union all select tgname from pg_trigger where tgname like 'effectmatch%'`,
    );
    assert.deepEqual(left, []);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('what init suggests for functions that share a name and for writable views can be registered as it stands', async () => {
  await using db = await freshDatabase();
  await db.run(`${SCHEMA}
    create function pay(integer) returns void language sql volatile as 'update invoice set status = 1 where id = $1';
    create function pay(integer, text) returns void language sql volatile as 'update invoice set status = $2 where id = $1';
    create function refund(integer) returns void language sql volatile as 'update invoice set status = 2 where id = $1';
    create view open_invoice as select * from invoice where status = 'open';
    create view total as select count(*) from invoice`);
  using desk = new Desk();
  const env = { EFFECTMATCH_ADMIN_URL: db.url() };
  const init = await desk.run(['init', '--roles', 'unused_here'], { env });
  assert.equal(init.code, 0, init.stderr);
  const config = desk.read('effectmatch.config.ts');
  assert.match(
    config,
    /\/\/ entryPoints: \['pay\(integer\)', 'pay\(integer, text\)', 'refund'\],\n/,
  );
  assert.match(config, /\/\/ views: \['open_invoice'\],\n/);
  writeFileSync(
    desk.path('effectmatch.config.ts'),
    config.replace(/\/\/ (?=entryPoints|views)/g, ''),
  );
  const printed = await desk.run(['provision', '--print'], { env });
  assert.equal(printed.code, 0, printed.stderr);
  assert.match(
    printed.stdout,
    /grant execute on routine "public"."pay"\(.*text"?\) to "?effectmatch_exec_unused_here/,
  );
});
