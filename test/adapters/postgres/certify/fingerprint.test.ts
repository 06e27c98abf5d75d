// Goal: what changes in the configuration changes the fingerprint, also when it is changed back;
// what does not, does not. Method: read it on a warm trusted session without superuser, before and
// after statements of other sessions.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import pg from 'pg';
import {
  type Fingerprints,
  prepareFingerprint,
} from '../../../../src/adapters/postgres/certify/fingerprint.ts';
import { startServer, type TestServer } from '../../../postgres/server.ts';
import { openSite, type Site } from './site.ts';

// Counters of catalogues that all databases share are part of the fingerprint: a server of its own
// keeps others out.
let server: TestServer;
let site: Site;
let fingerprints: Fingerprints;

before(async () => {
  server = await startServer();
  site = await openSite({ server });
  await site.apply([
    'create domain app.tags as text[]',
    'create type app.pair as (a int)',
    'create domain app.checked as int check (value > 0)',
    'create collation app.plain (locale = "C")',
  ]);
  fingerprints = await prepareFingerprint(site.control, (await site.survey()).roles);
});
after(async () => {
  await site[Symbol.asyncDispose]();
  await server.stop();
});

const CHANGED_AND_BACK: Readonly<Record<string, readonly [string, string]>> = {
  'TEMP on the database': [
    'grant temporary on database {db} to public',
    'revoke temporary on database {db} from public',
  ],
  'a schema privilege': [
    'grant create on schema app to {exec}',
    'revoke create on schema app from {exec}',
  ],
  'a table privilege': [
    'grant truncate on app.invoice to {exec}',
    'revoke truncate on app.invoice from {exec}',
  ],
  'a column privilege': [
    'grant update (what) on app.hidden to {exec}',
    'revoke update (what) on app.hidden from {exec}',
  ],
  'a built-in function': [
    'grant execute on function pg_notify(text, text) to {exec}',
    'revoke execute on function pg_notify(text, text) from {exec}',
  ],
  'a language': [
    'grant usage on language plpgsql to public',
    'revoke usage on language plpgsql from public',
  ],
  'a role attribute': ['alter role {exec} createdb', 'alter role {exec} nocreatedb'],
  'an attribute of a role whose rights are lent': [
    'alter role {app} replication',
    'alter role {app} noreplication',
  ],
  'a recorder': [
    'alter table app.invoice disable trigger effectmatch_record',
    'alter table app.invoice enable always trigger effectmatch_record',
  ],
  'function text': [
    `create or replace function app.on_paid() returns trigger language plpgsql as 'begin return null; end'`,
    `create or replace function app.on_paid() returns trigger language plpgsql as 'begin return old; end'`,
  ],
  'function configuration': [
    'alter function app.pay(int) set search_path = public',
    'alter function app.pay(int) set search_path = app, pg_temp',
  ],
  'a column default': [
    `alter table app.hidden alter what set default 'x'`,
    'alter table app.hidden alter what drop default',
  ],
  'the default of a domain over an array': [
    `alter domain app.tags set default '{}'`,
    'alter domain app.tags drop default',
  ],
  'what a composite type is made of': [
    'alter type app.pair add attribute b app.checked',
    'alter type app.pair drop attribute b',
  ],
  'the owner of a composite type': [
    'alter type app.pair owner to {exec}',
    'alter type app.pair owner to {app}',
  ],
  'the owner of a collation': [
    'alter collation app.plain owner to {exec}',
    'alter collation app.plain owner to {app}',
  ],
  'a tablespace': [
    'grant create on tablespace pg_default to {exec}',
    'revoke create on tablespace pg_default from {exec}',
  ],
  'a setting of the execution login, which has a row of its own': [
    'alter role {exec} set synchronous_commit = off',
    'alter role {exec} reset synchronous_commit',
  ],
  'a function (created and dropped)': [
    `create function app.gone() returns int language sql as 'select 1'`,
    'drop function app.gone()',
  ],
  'a trigger (created and dropped)': [
    'create trigger gone after insert on app.hidden for each row execute function app.on_paid()',
    'drop trigger gone on app.hidden',
  ],
  'a policy (created and dropped)': [
    'create policy gone on app.hidden using (true)',
    'drop policy gone on app.hidden',
  ],
  'an extension (created and dropped)': ['create extension dblink', 'drop extension dblink'],
  'the configuration file': ['alter system set fsync = off; ', 'alter system reset fsync'],
};

for (const [name, [there, back]] of Object.entries(CHANGED_AND_BACK)) {
  test(`${name}: seen when changed, and when changed back`, async () => {
    const reload =
      name === 'the configuration file' ? ['select pg_reload_conf()', 'select pg_sleep(0.2)'] : [];
    const first = await fingerprints.read(new Set());
    await site.apply([there, ...reload]);
    const second = await fingerprints.read(new Set());
    await site.apply([back, ...reload]);
    const third = await fingerprints.read(new Set());
    assert.notEqual(second, first);
    assert.notEqual(third, second);
    assert.notEqual(third, first);
  });
}

test('data, statistics, vacuum and temporary tables of others leave it as it is', async () => {
  const first = await fingerprints.read(new Set());
  await site.apply([
    `insert into app.hidden select g, 'x' from generate_series(1, 100) g`,
    `select nextval('app.free')`,
    'create temporary table passing (id int primary key default 1, t text)',
    'create temporary table theirs (id serial, t app.tags, p app.pair)',
    'alter table theirs owner to {app}',
    'select lo_create(4711)',
    'create database elsewhere owner {app}',
    'drop database elsewhere',
    'vacuum (freeze, analyze) app.hidden',
    'analyze',
    'vacuum pg_catalog.pg_class',
  ]);
  assert.equal(await fingerprints.read(new Set()), first);
});

/** The fingerprint without the counters, which may be reported too late. */
const readVersions = async () => (await fingerprints.read(new Set())).split(' ')[0];

test('a rule on a view of the server is seen before anything is reported', async () => {
  const first = await readVersions();
  await site.apply([
    'create rule extra as on update to pg_catalog.pg_settings do also notify leak',
  ]);
  const second = await readVersions();
  assert.notEqual(second, first);
  await site.apply([
    'create or replace rule pg_settings_n as on update to pg_catalog.pg_settings do instead nothing',
  ]);
  assert.notEqual(await readVersions(), second);
  await site.apply(['drop rule extra on pg_catalog.pg_settings']);
});

test('a row that goes in one catalogue and one that comes in another do not make up for each other', async () => {
  await site.apply([`create function app.goes() returns int language sql as 'select 1'`]);
  const first = await readVersions();
  await site.apply(['drop function app.goes(); create policy comes on app.hidden using (true)']);
  assert.notEqual(await readVersions(), first);
  await site.apply(['drop policy comes on app.hidden']);
});

test('it does not depend on the way in which the server finds the rows', async () => {
  const { roles } = await site.survey();
  const texts = new Set<string>();
  for (const way of ['seqscan', 'indexscan', 'bitmapscan', 'hashagg']) {
    await site.control.query(`set enable_${way} = off`);
    texts.add(await (await prepareFingerprint(site.control, roles)).read(new Set()));
    await site.control.query(`reset enable_${way}`);
  }
  fingerprints = await prepareFingerprint(site.control, roles);
  assert.deepEqual([...texts], [await fingerprints.read(new Set())]);
});

test('only transactions that are named keep the catalogues from being read again', async () => {
  await fingerprints.read(new Set()); // so that the next look meets nobody, and asks before it reads
  const first = await fingerprints.read(new Set());
  const session = new pg.Client({ connectionString: site.db.url() });
  await session.connect();
  try {
    await session.query('begin');
    await session.query(`alter table app.hidden alter what set default 'later'`);
    const { rows } = await session.query('select pg_current_xact_id()');
    assert.equal(await fingerprints.read(new Set()), first, 'what is not committed is not there');
    await session.query('commit');
    const promised = new Set([BigInt(rows[0].pg_current_xact_id)]);
    assert.equal(
      await fingerprints.read(promised),
      first,
      'a named transaction is taken at its word',
    );
    assert.deepEqual([...promised], [], 'and forgotten once it cannot matter any more');
    await site.apply(['select pg_current_xact_id()']);
    assert.notEqual(await fingerprints.read(new Set()), first, 'anybody else makes it look');
  } finally {
    await session.end();
  }
});

test('where every look meets strangers the question before the reading is left out, until one meets none', async () => {
  const { control } = site;
  const sent: string[] = [];
  const watched: Parameters<typeof prepareFingerprint>[0] = {
    query: (...asked) => control.query(...asked),
    prepare: (named) => control.prepare(named),
    run(statements) {
      for (const statement of statements)
        if ('prepared' in statement) sent.push(statement.prepared);
      return control.run(statements);
    },
  };
  const looking = await prepareFingerprint(watched, (await site.survey()).roles);
  const first = await looking.read(new Set());
  for (let look = 0; look < 10; look += 1) {
    await site.apply(['select pg_current_xact_id()']);
    assert.equal(await looking.read(new Set()), first);
  }
  const [question, reading] = ['effectmatch_moment', 'effectmatch_fingerprint'];
  const among = sent.splice(0);
  assert.deepEqual(among.slice(0, 3), [reading, question, reading]);
  assert.deepEqual(among.slice(-2), [reading, reading]);
  for (let look = 0; look < 3; look += 1) assert.equal(await looking.read(new Set()), first);
  assert.deepEqual(sent, [reading, question, question]);
  fingerprints = looking;
});

test('what was begun before the last look is seen when it ends: prepared, in a savepoint, or in another database', async () => {
  const [session, elsewhere] = [site.db.url(), server.adminUrl].map(
    (url) => new pg.Client({ connectionString: url }),
  );
  assert.ok(session && elsewhere);
  await Promise.all([session.connect(), elsewhere.connect()]);
  try {
    const ways: readonly (readonly [pg.Client, readonly string[], string])[] = [
      [
        session,
        ['begin', 'grant truncate on app.hidden to public', "prepare transaction 'p'"],
        "commit prepared 'p'",
      ],
      [
        session,
        ['begin', 'savepoint s', 'revoke truncate on app.hidden from public', 'release s'],
        'commit',
      ],
      [elsewhere, ['begin', `alter role "${site.roles.execution}" connection limit 90`], 'commit'],
    ];
    for (const [client, begin, end] of ways) {
      for (const sql of begin) await client.query(sql);
      const before = await fingerprints.read(new Set());
      await client.query(end);
      assert.notEqual(await fingerprints.read(new Set()), before, begin.join('; '));
    }
  } finally {
    await Promise.all([session.end(), elsewhere.end()]);
  }
});

test('what was added and taken back is seen once it is reported, also where nothing ended since the last look', async () => {
  const session = new pg.Client({ connectionString: site.db.url() });
  await session.connect();
  try {
    await session.query('select pg_stat_force_next_flush()'); // so that its next report is a second away
    const first = await fingerprints.read(new Set());
    await session.query('begin');
    await session.query(
      'create trigger gone after insert on app.invoice for each row execute function app.on_paid()',
    );
    await session.query('drop trigger gone on app.invoice');
    await session.query('commit');
    await fingerprints.read(new Set());
    await session.query('select pg_stat_force_next_flush()');
    assert.notEqual(await fingerprints.read(new Set()), first);
  } finally {
    await session.end();
  }
});

/**
 * Rows that come and go, of catalogues whose counters move with what others do, so that they are
 * not watched.
 */
const PAIRS: Readonly<Record<string, readonly [string, string]>> = {
  'a membership': ['grant {app} to {exec}', 'revoke {app} from {exec}'],
  'a parameter privilege': [
    'grant set on parameter session_replication_role to {exec}',
    'revoke set on parameter session_replication_role from {exec}',
  ],
  'a privilege on a column of a catalogue': [
    'grant update (rolname) on pg_catalog.pg_authid to {exec}',
    'revoke update (rolname) on pg_catalog.pg_authid from {exec}',
  ],
  'a function that counts as part of an extension': [
    'alter extension plpgsql add function app.on_paid()',
    'alter extension plpgsql drop function app.on_paid()',
  ],
};

for (const [name, [there, back]] of Object.entries(PAIRS)) {
  test(`limit: ${name} is seen while it stands, and not once it was taken back completely`, async () => {
    const first = await fingerprints.read(new Set());
    await site.apply([there]);
    assert.notEqual(await fingerprints.read(new Set()), first);
    await site.apply([back]);
    assert.equal(await fingerprints.read(new Set()), first);
  });
}

test('without its grants the trusted login is told which catalogue it may not read', async () => {
  await site.apply(['revoke select (xmin, oid) on pg_catalog.pg_authid from {control}']);
  await assert.rejects(fingerprints.read(new Set()), /pg_authid/);
  await site.apply(['grant select (xmin, oid) on pg_catalog.pg_authid to {control}']);
  await fingerprints.read(new Set());
});
