// Goal: from an address to a protected write on MariaDB with the command line alone. Method: init,
// provision, doctor, plan, approve, run and types as real processes, on a real server.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { skipWithoutMariadb } from '../mysql/binaries.ts';
import { type MariadbServer, startServer } from '../mysql/server.ts';
import { runCommand } from './command.ts';

const SCHEMA = `
  create table invoice (id int primary key, status varchar(20) not null, changed datetime null);
  create table loose (id int primary key) engine = myisam;
  create trigger stamp before update on invoice for each row set new.changed = now();
  insert into invoice values (1, 'pending', null);
`;

/** Lets the configuration that init writes find the package's sources. */
const HOOKS = fileURLToPath(new URL('../../scripts/entry-points.mjs', import.meta.url));

async function withFolder(
  server: MariadbServer,
  use: (
    run: (...words: string[]) => ReturnType<typeof runCommand>,
    db: Awaited<ReturnType<MariadbServer['createDatabase']>>,
    folder: string,
  ) => Promise<void>,
): Promise<void> {
  const db = await server.createDatabase();
  await db.run(SCHEMA);
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-mysql-'));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  const env = { EFFECTMATCH_ADMIN_URL: db.url(), NODE_OPTIONS: `--import=${HOOKS} --no-warnings` };
  try {
    await use((...words) => runCommand(words, { cwd: folder, env }), db, folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe('MariaDB: command line', { skip: skipWithoutMariadb() }, () => {
  test('init, provision, doctor, plan, approve and run lead from an address to a committed write', async () => {
    await using server = await startServer();
    await withFolder(server, async (run, db, folder) => {
      const done = async (...words: string[]) => {
        const ended = await run(...words);
        assert.equal(ended.code, 0, `${words.join(' ')}\n${ended.stdout}\n${ended.stderr}`);
        return ended.stdout;
      };
      const written = await done(
        'init',
        db.url(),
        '--approver',
        'alice',
        '--name',
        'books',
        '--yes',
      );
      assert.match(written, /left out loose: its engine MyISAM/);
      assert.match(written, /effectmatch provision/);
      const config = readFileSync(join(folder, 'effectmatch.config.ts'), 'utf8');
      assert.match(config, /from 'effectmatch\/adapters\/mysql'/);
      assert.match(config, /volatile: \['changed'\]/);
      assert.doesNotMatch(config, /mysql:\/\//, 'no address is in the configuration');
      assert.doesNotMatch(config, /triggers and cascades/, 'cascades are refused');
      const secrets = readFileSync(join(folder, 'effectmatch.env'), 'utf8');
      assert.deepEqual(
        [...secrets.matchAll(/^\w+/gm)].map(String),
        ['EFFECTMATCH_CONTROL_URL', 'EFFECTMATCH_EXECUTION_URL'],
        'a ledger cannot be in MariaDB',
      );
      const early = await run('doctor');
      assert.match(early.stderr, /Access denied.*\nnext: .*run `effectmatch provision`/s);

      const printed = await done('provision', '--print');
      assert.match(printed, /create definer = 'effectmatch_owner'@'localhost' trigger/);
      assert.match(printed, /identified by '…'/);
      assert.match(printed, /^-- the accounts.*needs CREATE USER$/m);
      for (const _ of [1, 2]) await done('provision');
      assert.match(await done('doctor', '--all'), /^closed {2}books/m);

      const sql = "update invoice set status = 'paid' where id = 1";
      await done('plan', '--adapter', 'books', '--sql', sql, '--out', 'proposal.json');
      assert.deepEqual(await db.run('select status from invoice'), [{ status: 'pending' }]);
      await done(
        'approve',
        'proposal.json',
        '--key',
        'alice.key.json',
        '--out',
        'license.json',
        '--yes',
      );
      await done('run', 'license.json', '--sql', sql);
      assert.deepEqual(await db.run('select status from invoice'), [{ status: 'paid' }]);
      const typed = await done('types', db.url(), '--out', 'books.types.ts', '--name', 'books');
      assert.match(typed, /the types of 1 table/);

      await db.run(`grant file on *.* to effectmatch_exec; grant insert on ${db.name}.loose to effectmatch_exec;
        grant select on ${db.name}.invoice to effectmatch_exec with grant option;
        set global innodb_flush_log_at_trx_commit = 2`);
      const open = await run('doctor');
      assert.equal(open.code, 2, open.stdout);
      assert.match(open.stdout, /FILE/);
      const fixes = await run('doctor', '--sql');
      await db.run(fixes.stdout);
      assert.equal((await run('doctor')).code, 0, 'the statements it prints close what is open');

      await db.run(`insert into effectmatch.stage values (1, 2, 'occ_lost')`);
      const lost = await run('doctor');
      assert.equal(lost.code, 2);
      assert.match(lost.stdout, /occ_lost.*committed without a marker/s);
      await db.run('delete from effectmatch.stage');

      const markers = 'select occurrence from effectmatch.marker';
      const committed = await db.run(markers);
      assert.equal(committed.length, 1);
      assert.match(await done('provision', '--remove'), /markers stay: --remove --markers/);
      assert.equal((await run('doctor')).code, 1);
      assert.deepEqual(await db.run(markers), committed);
      await done('provision');
      assert.match(await done('doctor'), /^closed {2}books/m);
      assert.deepEqual(await db.run(markers), committed);
      await done('provision', '--remove', '--markers');
      assert.deepEqual(await db.run("show databases like 'effectmatch'"), []);
    });
  });

  test('a wrong address and a second database on the server are told apart', async () => {
    await using server = await startServer();
    await withFolder(server, async (run, db, folder) => {
      const wrong = await run('init', 'mysql://localhost', '--yes');
      assert.match(wrong.stderr, /address of a MariaDB database is mysql:\/\/USER/);
      const unreachable = await run('init', 'mysql://root@127.0.0.1:1/books', '--yes');
      assert.match(unreachable.stderr, /ERR_EM_ADAPTER_UNAVAILABLE/);
      assert.match(unreachable.stderr, /nothing was written/);
      const unknown = await run('init', db.url().replace(/\/\w+$/, '/nowhere'), '--yes');
      assert.match(unknown.stderr, /Unknown database.*\nnext: correct the name of the database/s);
      await db.run('create database effectmatch');
      assert.equal((await run('init', db.url(), '--yes')).code, 0);
      const config = readFileSync(join(folder, 'effectmatch.config.ts'), 'utf8');
      assert.match(config, new RegExp(`owner: 'effectmatch_owner_${db.name}'`));
      assert.match(config, new RegExp(`controlDatabase: 'effectmatch_${db.name}'`));
    });
  });

  test('an administrator who may not name another definer is refused before anything changes', async () => {
    await using server = await startServer();
    await withFolder(server, async (run, db) => {
      await db.run(`create user weak@'%';
        grant select, insert, update, delete, create, drop, trigger, create routine, alter routine, execute,
          create user, show view, process, create temporary tables on *.* to weak@'%' with grant option`);
      assert.equal((await run('init', db.url(), '--yes')).code, 0);
      const refused = await run('provision', '--admin', db.url('weak'));
      assert.equal(refused.code, 1, refused.stdout);
      assert.match(refused.stderr, /neither SUPER nor SET USER.*nothing was changed/);
      assert.match(refused.stderr, /next: use an administrator with SUPER or SET USER/);
      const made = await db.run("select user from mysql.user where user like 'effectmatch%'");
      assert.deepEqual(made, []);
      await db.run("grant set user on *.* to weak@'%'");
      const prepared = await run('provision', '--admin', db.url('weak'));
      assert.equal(prepared.code, 0, prepared.stderr);
    });
  });

  test('a plan whose trigger writes to an unregistered table names what writes there', async () => {
    await using server = await startServer();
    await withFolder(server, async (run, db) => {
      await db.run(`create table audit (id int auto_increment primary key, what text);
        create trigger spy after update on invoice for each row insert into audit (what) values ('x')`);
      const named = ['--name', 'books', '--relations', 'invoice', '--yes'];
      assert.equal((await run('init', db.url(), ...named)).code, 0);
      assert.equal((await run('provision')).code, 0);
      assert.match(
        (await run('doctor', '--all')).stdout,
        /spy.*another table is counted and refused/,
      );
      const sql = "update invoice set status = 'paid' where id = 1";
      const planned = await run('plan', '--adapter', 'books', '--sql', sql, '--out', 'p.json');
      assert.notEqual(planned.code, 0);
      assert.match(
        planned.stderr,
        /written that no recorder saw.*not registered.*trigger .*\.spy/s,
      );
      assert.match(planned.stderr, /Register that table, or remove what writes it/);
    });
  });
});
