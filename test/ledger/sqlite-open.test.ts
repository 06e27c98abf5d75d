// Goal: a file that cannot be trusted as a ledger is refused with a reason and left as it was; a
// usable one is safe. Method: real files: foreign, newer, damaged, cut short, locked; bytes and
// file modes are compared.
import assert from 'node:assert/strict';
import { mkdir, open, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { EffectMatchError, type ErrorCode } from '../../src/errors.ts';
import { pendingMigrations } from '../../src/ledger/migrate.ts';
import { sqliteLedgers } from '../../src/ledger/sqlite/index.ts';
import { APPLICATION_ID, MIGRATIONS } from '../../src/ledger/sqlite/schema.ts';
import {
  claimFixture,
  fixtureContext,
  fixtureTerminal,
} from '../../src/testing/ledger/fixtures.ts';
import { temporaryFolder } from './sqlite-store.ts';

const context = fixtureContext();

async function refusal(file: string, code: ErrorCode): Promise<string> {
  let message = '';
  await assert.rejects(sqliteLedgers(file, { deadlineMs: 200 }).open(context), (error) => {
    assert.ok(error instanceof EffectMatchError, String(error));
    assert.equal(error.code, code, error.message);
    message = error.message;
    return true;
  });
  return message;
}

/** A store with some rows in it, closed again, so that everything is in the one file. */
async function filledStore(file: string): Promise<void> {
  const ledgers = await sqliteLedgers(file).open(context);
  for (let index = 0; index < 60; index += 1) {
    const { record } = await claimFixture(ledgers, context, `row ${index}`);
    await ledgers.record(fixtureTerminal(context, record, 'committed'), 'relaxed');
  }
  await ledgers.close();
}

function change(file: string, sql: string): void {
  const db = new DatabaseSync(file);
  db.exec(sql);
  db.close();
}

test('the store and its side files can be read by their owner only', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'ledger.db');
  const ledgers = await sqliteLedgers(file).open(context);
  await claimFixture(ledgers, context, 'a');
  for (const name of [file, `${file}-wal`, `${file}-shm`])
    assert.equal((await stat(name)).mode & 0o777, 0o600, name);
  await ledgers.close();
});

test('a file that exists and is empty becomes a store', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'ledger.db');
  await writeFile(file, '');
  const ledgers = await sqliteLedgers(file).open(context);
  assert.deepEqual(await ledgers.verify(), { kind: 'intact', rows: 0, checkpointed: 0 });
  await ledgers.close();
});

test('twenty openings of a file that does not exist yet, at once, make one store', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'ledger.db');
  const opened = await Promise.all(
    Array.from({ length: 20 }, () => sqliteLedgers(file).open(context)),
  );
  for (const [index, ledgers] of opened.entries())
    await claimFixture(ledgers, context, `by ${index}`);
  assert.equal((await opened[0]?.journal())?.length, 20);
  for (const ledgers of opened) await ledgers.close();
});

test('a store that another process is just creating is waited for and not created a second time', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'ledger.db');
  const other = new DatabaseSync(file);
  other.exec('pragma journal_mode = wal; begin immediate');
  for (const { sql } of MIGRATIONS) other.exec(sql);
  other.exec(
    `pragma application_id = ${APPLICATION_ID}; pragma user_version = ${MIGRATIONS.length}`,
  );
  const opening = sqliteLedgers(file).open(context);
  setTimeout(() => other.exec('commit'), 40);
  const ledgers = await opening;
  await claimFixture(ledgers, context, 'a');
  assert.equal((await ledgers.verify()).kind, 'intact');
  await ledgers.close();
  other.close();
});

test('a missing folder and a path that is a folder are refused, and nothing is created', async () => {
  await using folder = await temporaryFolder();
  const missing = join(folder.path, 'missing');
  assert.match(
    await refusal(join(missing, 'ledger.db'), 'ERR_EM_STORE_UNAVAILABLE'),
    /create the folder/,
  );
  await assert.rejects(stat(missing));
  await mkdir(join(folder.path, 'folder.db'));
  assert.match(
    await refusal(join(folder.path, 'folder.db'), 'ERR_EM_STORE_UNAVAILABLE'),
    /not a regular file/,
  );
});

test('a database of something else is refused and not one byte of it changes', async () => {
  await using folder = await temporaryFolder();
  const foreign = [
    'create table invoice (id integer primary key)',
    'pragma application_id = 77',
    'pragma user_version = 3',
  ];
  for (const [index, sql] of foreign.entries()) {
    const file = join(folder.path, `foreign-${index}.db`);
    change(file, sql);
    const before = await readFile(file);
    assert.match(
      await refusal(file, 'ERR_EM_STORE_UNAVAILABLE'),
      /belongs to another program.*separate file/,
    );
    assert.deepEqual(await readFile(file), before);
  }
});

test('a store of a newer release is refused, both versions are named, and not one byte of it changes', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'ledger.db');
  await filledStore(file);
  change(file, 'pragma user_version = 99');
  const before = await readFile(file);
  assert.match(await refusal(file, 'ERR_EM_STORE_NEWER'), /version 99 .*up to 1;/);
  assert.deepEqual(await readFile(file), before);
});

test('a file that is not a database, is cut short or is damaged gives a fault that says what to do', async () => {
  await using folder = await temporaryFolder();
  const text = join(folder.path, 'text.db');
  await writeFile(
    text,
    'this is not a database, however long the sentence may become. '.repeat(100),
  );
  assert.match(await refusal(text, 'ERR_EM_STORE_UNAVAILABLE'), /restore it from a backup/);

  const cut = join(folder.path, 'cut.db');
  await filledStore(cut);
  await truncate(cut, 4096 * 3 + 100);
  assert.match(await refusal(cut, 'ERR_EM_STORE_UNAVAILABLE'), /restore it from a backup/);

  const damaged = join(folder.path, 'damaged.db');
  await filledStore(damaged);
  const { size } = await stat(damaged);
  const handle = await open(damaged, 'r+');
  for (let page = 1; page < size / 4096; page += 1)
    await handle.write(Buffer.alloc(200, 0xa5), 0, 200, page * 4096);
  await handle.close();
  const fault = (error: unknown): boolean => {
    assert.ok(
      error instanceof EffectMatchError && error.code === 'ERR_EM_STORE_UNAVAILABLE',
      String(error),
    );
    assert.match(error.message, /restore it from a backup/);
    return true;
  };
  const use = async (): Promise<unknown> => {
    const ledgers = await sqliteLedgers(damaged).open(context);
    try {
      return await claimFixture(ledgers, context, 'new');
    } finally {
      await ledgers.close();
    }
  };
  await assert.rejects(use(), fault);
});

test('a store whose schema somebody changed is refused', async () => {
  await using folder = await temporaryFolder();
  const changes = {
    trigger: 'create trigger meddle after insert on journal begin delete from journal; end',
    index: 'create index other on journal (kind)',
    missing: 'drop table document',
    table: 'alter table journal add column note text',
  };
  for (const [name, sql] of Object.entries(changes)) {
    const file = join(folder.path, `${name}.db`);
    await filledStore(file);
    change(file, sql);
    assert.match(
      await refusal(file, 'ERR_EM_STORE_UNAVAILABLE'),
      /no release created|missing from it/,
    );
  }
});

test('statistics that an administrator collects are no change of the schema', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'ledger.db');
  await filledStore(file);
  change(file, 'analyze');
  const ledgers = await sqliteLedgers(file).open(context);
  assert.equal((await ledgers.verify()).kind, 'intact');
  await ledgers.close();
});

test('while another writer holds the store the event loop runs on, and the wait ends with ERR_EM_STORE_BUSY', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'ledger.db');
  const ledgers = await sqliteLedgers(file, { deadlineMs: 150 }).open(context);
  const other = new DatabaseSync(file);
  other.exec('begin immediate');
  let turns = 0;
  const counting = setInterval(() => {
    turns += 1;
  }, 1);
  await assert.rejects(claimFixture(ledgers, context, 'waiting'), { code: 'ERR_EM_STORE_BUSY' });
  clearInterval(counting);
  assert.ok(turns > 0, 'a wait that blocks the event loop leaves no turn to it');
  assert.deepEqual(await ledgers.journal(), [], 'reading is not held up');
  other.exec('rollback');
  other.close();
  await claimFixture(ledgers, context, 'waiting');
  await ledgers.close();
});

test('a lock that is given up in time is waited for', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'ledger.db');
  const ledgers = await sqliteLedgers(file).open(context);
  const other = new DatabaseSync(file);
  other.exec('begin immediate');
  const claiming = claimFixture(ledgers, context, 'patient');
  setTimeout(() => other.exec('rollback'), 30);
  assert.equal((await claiming).record.task, 'task patient');
  other.close();
  await ledgers.close();
});

test('closing twice is harmless, and what comes after is a fault', async () => {
  await using folder = await temporaryFolder();
  const ledgers = await sqliteLedgers(join(folder.path, 'ledger.db')).open(context);
  await ledgers.close();
  await ledgers.close();
  await assert.rejects(ledgers.journal(), { code: 'ERR_EM_STORE_UNAVAILABLE' });
  await assert.rejects(claimFixture(ledgers, context, 'late'), {
    code: 'ERR_EM_STORE_UNAVAILABLE',
  });
});

test('migrations are numbered without a gap, and only those that are missing are applied', () => {
  const steps = [1, 2, 3].map((version) => ({ version, sql: `step ${version}` }));
  assert.deepEqual(pendingMigrations(steps, 0, 'x'), steps);
  assert.deepEqual(pendingMigrations(steps, 2, 'x'), steps.slice(2));
  assert.deepEqual(pendingMigrations(steps, 3, 'x'), []);
  assert.throws(() => pendingMigrations(steps, 4, 'x'), { code: 'ERR_EM_STORE_NEWER' });
  assert.throws(() => pendingMigrations(steps.slice(1), 0, 'x'), { code: 'ERR_EM_INVARIANT' });
});
