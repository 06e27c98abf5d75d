// Goal: a SQLite ledger moves into PostgreSQL whole and once, with nothing forgotten, and old rows
// can be archived without anything becoming possible again. Method: filled files, read back through
// the port; the command line in processes of its own.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import type { Ledgers } from '../../src/contract/ledgers.ts';
import { createKeyring } from '../../src/crypto/keyring.ts';
import { postgresLedgers } from '../../src/ledger/postgres/index.ts';
import { sqliteLedgers } from '../../src/ledger/sqlite/index.ts';
import {
  announcedPlan,
  claimFixture,
  fixtureAcknowledgement,
  fixtureContext,
  fixtureDigest,
  fixtureExecution,
  fixtureLicense,
  fixtureReplay,
  fixtureRequest,
  fixtureTerminal,
} from '../../src/testing/ledger/fixtures.ts';
import { runCommand } from '../cli/command.ts';
import { freshDatabase } from '../postgres/server.ts';
import { temporaryFolder } from './sqlite-store.ts';

const context = fixtureContext();

async function fill(ledgers: Ledgers): Promise<void> {
  await ledgers.announcePlan('task', 4);
  await ledgers.keep(fixtureDigest('document'), '{"outlets":["a","\\"b\\""]}');
  const license = { occurrences: 3 };
  for (const name of ['a', 'b', 'c']) {
    const { record } = await claimFixture(ledgers, context, name, { license });
    await ledgers.record(fixtureReplay(context, record, `replay ${name}`), 'flushed');
    await ledgers.record(fixtureTerminal(context, record, 'committed'), 'flushed');
    await ledgers.acknowledge(fixtureAcknowledgement(context, record));
    await ledgers.checkpoint();
  }
}

const claimAgain = (ledgers: Ledgers, name: string, options = {}) =>
  ledgers.claim(fixtureRequest(context, fixtureLicense(name, options), fixtureExecution('again')));

async function openPlaces() {
  const db = await freshDatabase();
  const folder = await temporaryFolder();
  const url = db.url(db.role('ledger'));
  const factory = postgresLedgers(url);
  await (await factory.provisioning(db.url(), 'provision')).apply();
  const close = async () => {
    await folder.remove();
    await db.drop();
  };
  const file = join(folder.path, 'ledger.db');
  return { db, url, factory, folder: folder.path, file, [Symbol.asyncDispose]: close };
}

test('a ledger that was copied says the same, goes on where it was, and leaves the file unusable', async () => {
  await using places = await openPlaces();
  const { factory, file } = places;
  const source = await sqliteLedgers(file).open(context);
  await fill(source);
  const [rows, checkpoint] = [await source.journal({ limit: 100 }), await source.checkpoint()];
  assert.deepEqual(await factory.copyFrom(context, file), { rows: 12 });

  const copied = await factory.open(context);
  assert.deepEqual(await copied.journal({ limit: 100 }), rows);
  assert.deepEqual(await copied.checkpoint(), checkpoint);
  assert.equal(await announcedPlan(copied, 'task'), 4);
  assert.equal(await copied.document(fixtureDigest('document')), '{"outlets":["a","\\"b\\""]}');
  assert.equal((await claimAgain(copied, 'a', { occurrences: 3 })).kind, 'claimed', 'the second');
  await claimFixture(copied, context, 'new');
  assert.deepEqual(await copied.verify(checkpoint), {
    ...{ kind: 'intact', rows: 14, checkpointed: 12 },
  });

  const unusable = { code: 'ERR_EM_STORE_UNAVAILABLE' };
  await assert.rejects(claimAgain(source, 'd'), unusable, 'a program that had it open');
  await source.close();
  await assert.rejects(sqliteLedgers(file).open(context), {
    ...unusable,
    message: /journal_moved_to_postgres/,
  });
  await copied.close();
});

test('nothing is copied while an attempt is open, from an altered file, or into a ledger that has rows', async () => {
  await using places = await openPlaces();
  const { factory, file, db, folder } = places;
  const source = await sqliteLedgers(file).open(context);
  await fill(source);
  const { record } = await claimFixture(source, context, 'open', { leaseMs: 0 });
  await assert.rejects(factory.copyFrom(context, file), { code: 'ERR_EM_ATTEMPT_OPEN' });
  await source.record(fixtureTerminal(context, record, 'rejected'), 'flushed');

  const altered = join(folder, 'altered.db');
  const raw = new DatabaseSync(file);
  raw.prepare('vacuum into ?').run(altered);
  raw.close();
  const meddled = new DatabaseSync(altered);
  meddled.exec(`update journal set text = replace(text, '0', '1') where seq = 2`);
  meddled.close();
  await assert.rejects(factory.copyFrom(context, altered), { code: 'ERR_EM_JOURNAL_TAMPERED' });
  const absent = join(folder, 'absent.db');
  await assert.rejects(factory.copyFrom(context, absent), { code: 'ERR_EM_NOT_FOUND' });
  assert.deepEqual(await db.run('select positions from effectmatch_ledger.head'), [
    { positions: '0' },
  ]);

  const target = await factory.open(context);
  await claimFixture(target, context, 'earlier');
  await target.close();
  await assert.rejects(factory.copyFrom(context, file), {
    code: 'ERR_EM_STORE_UNAVAILABLE',
    message: /not empty/,
  });
  assert.equal((await source.verify()).kind, 'intact', 'the file is as it was, and in use');
  await claimFixture(source, context, 'later');
  await source.close();
});

test('archived rows are read and verified as before, and what they spent stays spent', async () => {
  await using places = await openPlaces();
  const { factory, db } = places;
  const ledgers = await factory.open(context);
  await fill(ledgers);
  const { record: open } = await claimFixture(ledgers, context, 'open', { leaseMs: 0 });
  await ledgers.checkpoint();
  const before = await ledgers.journal({ limit: 100 });
  assert.deepEqual(await factory.archive(db.url(), new Date(0)), { rows: 0 });
  const soon = new Date(Date.now() + 60_000);
  assert.deepEqual(await factory.archive(db.url(), soon), { rows: 12 });
  assert.deepEqual(await factory.archive(db.url(), soon), { rows: 0 });

  assert.deepEqual(await ledgers.journal({ limit: 100 }), before);
  const last = await ledgers.journal({ last: true, limit: 3 });
  assert.deepEqual(last, before.slice(-3));
  const [first] = before;
  assert.ok(first !== undefined);
  const { occurrence } = first.record;
  assert.equal((await ledgers.terminal(occurrence))?.kind, 'committed');
  assert.equal((await ledgers.holder(occurrence))?.license.issuer, 'ap-team');
  assert.deepEqual(await ledgers.search(occurrence), [occurrence]);
  assert.equal((await ledgers.uncompleted()).length, 3);
  const held = await ledgers.unsettled();
  assert.deepEqual(
    held.map(({ claim }) => claim.record),
    [open],
  );
  const spent = await claimAgain(ledgers, 'a', { occurrences: 3, task: 'another task' });
  assert.ok(spent.kind === 'refused' && spent.reason === 'nonce-reused');
  assert.equal((await claimAgain(ledgers, 'a', { occurrences: 3 })).kind, 'claimed', 'the second');
  assert.equal((await claimAgain(ledgers, 'a', { occurrences: 3 })).kind, 'claimed', 'the third');
  const fourth = await claimAgain(ledgers, 'a', { occurrences: 3 });
  assert.ok(fourth.kind === 'refused' && fourth.reason === 'spent');
  assert.equal((await ledgers.verify()).kind, 'intact');
  await db.run('delete from effectmatch_ledger.archive where seq = 3');
  assert.equal((await ledgers.verify()).kind, 'tampered');
  await ledgers.close();
});

test('on the command line: provision prints and prepares, copy moves, archive and verify work', async () => {
  await using places = await openPlaces();
  const { db, folder, factory, url } = places;
  await (await factory.provisioning(db.url(), 'remove')).apply();
  createKeyring(join(folder, 'keys.json'));
  const adapter = new URL('../../src/adapters/snapshot/index.ts', import.meta.url).href;
  const write = (store: string) =>
    writeFileSync(
      join(folder, 'effectmatch.config.mjs'),
      `import { snapshot } from '${adapter}';
       export default { store: '${store}', keyring: 'keys.json', issuers: {}, adapters: { desk: snapshot({ file: 'state.db', initial: {}, tools: {} }) } };`,
    );
  const run = async (...words: string[]) => {
    const env = { EFFECTMATCH_ADMIN_URL: db.url() };
    return await runCommand(words, { cwd: folder, env });
  };
  write('ledger.db');
  const file = await run('provision', '--ledger');
  assert.equal(file.code, 1);
  assert.match(file.stderr, /is a file, and needs no provisioning/);
  write(url.replace('@', ':secret word@'));
  const early = await run('journal');
  assert.equal(early.code, 1);
  assert.match(early.stderr, /effectmatch provision --ledger/);
  const printed = await run('provision', '--ledger', '--print');
  assert.equal(printed.code, 0, printed.stderr);
  assert.match(printed.stdout, /create table if not exists "effectmatch_ledger"\.journal/);
  assert.doesNotMatch(printed.stdout, /secret word/);
  const prepared = await run('provision', '--ledger');
  assert.match(prepared.stdout, /^the ledger is prepared \(\d+ statements\)$/m);
  const empty = await run('ledger', 'archive', '--before', '1d');
  assert.match(empty.stdout, /nothing to archive/, empty.stderr);
  const missing = await run('ledger', 'copy', 'ledger.db');
  assert.match(missing.stderr, /ERR_EM_NOT_FOUND/);
  const verified = await run('journal', '--verify');
  assert.equal(verified.code, 0, verified.stderr);
  const wrong = await run('ledger', 'copy');
  assert.match(wrong.stderr, /ERR_EM_USAGE/);
});
