// Goal: a default that draws from a sequence, a table of records that lacks its recorder and code that
// nobody has read are open; code that a person has read is not; foreign keys are followed only to
// registered tables of the same database. Method: surveys of real databases.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { KnownDefinitions } from '../../../src/adapters/mysql/definitions.ts';
import type { MysqlOptions } from '../../../src/adapters/mysql/index.ts';
import { readOptions } from '../../../src/adapters/mysql/options.ts';
import { recorderNames } from '../../../src/adapters/mysql/recorders.ts';
import { ControlAccount } from '../../../src/adapters/mysql/sessions.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { type ProtectedMariadb, protectedMariadb } from '../../mysql/protected.ts';
import { freshDatabase, startServer } from '../../mysql/server.ts';

const CONTEXT = { name: 'db', clock: systemClock, reached: unobserved };

/** The outlets that a fresh adapter finds, without the name of the database. */
async function survey(place: ProtectedMariadb, changes: Partial<MysqlOptions> = {}) {
  const adapter = await place.factory(changes).open(CONTEXT);
  const { outlets } = await adapter.survey();
  await adapter.close();
  return outlets.map(({ outlet, disposition, by }) => ({
    ...{ outlet: outlet.replaceAll(place.db.name, 'db'), disposition, by },
  }));
}

const openOf = (outlets: Awaited<ReturnType<typeof survey>>) =>
  outlets.filter(({ disposition }) => disposition === 'unclassified').map(({ outlet }) => outlet);

/** A plugin with one function, as the `plugin.h` of that version of the server declares it. */
const pluginFor = (version: string) => `
  struct plugin {
    int type; void *info; const char *name, *author, *description; int license;
    int (*init)(void *), (*deinit)(void *); unsigned version; void *status, **variables;
    const char *text; unsigned maturity;
  };
  static struct { int version; void *builder; } info = { ${version} << 8, 0 };
  int _maria_plugin_interface_version_ = 0x010f;
  int _maria_sizeof_struct_st_plugin_ = sizeof(struct plugin);
  struct plugin _maria_plugin_declarations_[] = {
    { 11, &info, "run_command", "a", "b", 1, 0, 0, 0x100, 0, 0, "1", 4 }, { 0 }
  };
`;
const withoutCompiler =
  spawnSync('gcc', ['--version']).status === 0 ? false : 'there is no gcc here';

describe('MariaDB: boundary', { skip: skipWithoutMariadb() }, () => {
  test('a default that draws from a sequence is open, because a rollback does not restore it', async () => {
    await using place = await protectedMariadb(
      `create sequence numbers;
        create table t (
          id int primary key, n int default nextval(numbers), s varchar(9) default 'kill'
        )`,
      { relations: ['t'] },
    );
    const outlets = await survey(place);
    assert.deepEqual(openOf(outlets), ['default of t.n']);
    const found = outlets.find(({ outlet }) => outlet === 'default of t.n');
    assert.match(found?.by ?? '', /numbers \(SEQUENCE.*which a rollback does not restore/);
  });

  test('code is open until its digest is among the reviews, and only that text is', async () => {
    const code = (text: string) =>
      `create or replace trigger noted after update on t for each row set @x = '${text}'`;
    await using place = await protectedMariadb(
      `create table t (id int primary key); ${code('kill')}`,
      { relations: ['t'] },
    );
    const unread = await survey(place);
    assert.deepEqual(openOf(unread), ['trigger db.noted']);
    const by = unread.find(({ outlet }) => outlet === 'trigger db.noted')?.by;
    const digest = /add "([0-9a-f]{64})" to reviews$/.exec(by ?? '')?.[1];
    assert.ok(digest);
    const read = await survey(place, { reviews: [digest] });
    assert.deepEqual(openOf(read), []);
    assert.deepEqual(
      read.find(({ outlet }) => outlet === 'trigger db.noted'),
      { outlet: 'trigger db.noted', disposition: 'observed', by: `reviewed as ${digest}` },
    );
    await place.db.run(code('shutdown'));
    assert.deepEqual(openOf(await survey(place, { reviews: [digest] })), ['trigger db.noted']);
  });

  test('a function that a plugin brings is open', { skip: withoutCompiler }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'effectmatch-plugin-'));
    try {
      const library = join(folder, 'run.so');
      await using server = await startServer({
        ...{ 'plugin-dir': folder, 'plugin-maturity': 'unknown' },
      });
      const db = await server.createDatabase();
      const place = await protectedMariadb(
        'create table t (id int primary key)',
        { relations: ['t'] },
        db,
      );
      assert.deepEqual(openOf(await survey(place)), []);
      const [found] = await db.run('select version() as version');
      const [major, minor, patch] = String(found?.version).split(/[.-]/);
      const input = pluginFor(`${major}${minor}${patch?.padStart(2, '0')}`);
      execFileSync('gcc', ['-shared', '-fPIC', '-x', 'c', '-o', library, '-'], { input });
      for (const path of [folder, library]) chmodSync(path, 0o755);
      await db.run("install soname 'run'");
      assert.deepEqual(openOf(await survey(place)), ['native function run_command']);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('a probe without its recorder is open, and a further trigger on our tables is', async () => {
    await using place = await protectedMariadb('create table t (id int primary key)', {
      relations: ['t'],
    });
    const { db, control } = place;
    await db.run(`create trigger ${control}.more after insert on ${control}.marker
      for each row set @x = 1`);
    assert.deepEqual(openOf(await survey(place)), ['trigger on marker']);
    await db.run(
      `drop trigger ${control}.more; drop trigger ${control}.${recorderNames('probe')[0]}`,
    );
    assert.deepEqual(openOf(await survey(place)), ['probe']);
  });

  test('a table that may only be read is open when it cannot be', async () => {
    await using place = await protectedMariadb(
      'create table t (id int primary key); create table r (id int primary key)',
      { relations: ['t'], reads: ['r'] },
    );
    assert.deepEqual(openOf(await survey(place)), []);
    await place.db.run('alter table r engine = myisam');
    assert.deepEqual(openOf(await survey(place)), ['relation r']);
  });

  test('a registered table that can no longer be observed is refused when the adapter opens', async () => {
    await using place = await protectedMariadb('create table t (id int primary key)', {
      relations: ['t'],
    });
    await place.db.run('alter table t engine = myisam');
    await assert.rejects(place.factory().open(CONTEXT), {
      code: 'ERR_EM_ADAPTER_REFUSED',
      message: /"t".*engine MyISAM/,
    });
  });

  test('foreign keys lead to registered tables of the same database, and nowhere else', async () => {
    const db = await freshDatabase();
    const other = db.unique('other');
    await db.run(`create database ${other}; create table ${other}.buyer (id int primary key)`);
    await using place = await protectedMariadb(
      `create table buyer (id int primary key); create table clerk (id int primary key);
        create table sale (
          id int primary key, buyer int, clerk int, abroad int,
          foreign key (buyer) references buyer (id), foreign key (clerk) references clerk (id),
          foreign key (abroad) references ${other}.buyer (id)
        );
        create table note (id int primary key, buyer int, foreign key (buyer) references buyer (id))`,
      { relations: ['buyer', 'sale'] },
      db,
    );
    const control = new ControlAccount(place.options.control);
    const definitions = new KnownDefinitions(readOptions(place.options));
    const { foreignKeys } = await definitions.read(await control.connection(), 'counted');
    await control.close();
    await db.run('drop table sale'); // Otherwise the other database could not be dropped first.
    assert.deepEqual(
      foreignKeys.toSorted((a, b) => (a.column < b.column ? -1 : 1)),
      [
        { target: 'sale', column: 'abroad', refersTo: undefined },
        { target: 'sale', column: 'buyer', refersTo: { target: 'buyer', column: 'id' } },
        { target: 'sale', column: 'clerk', refersTo: undefined },
      ],
    );
  });
});
