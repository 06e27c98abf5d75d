// Goal: no setting of session, role, database or server makes a `committed` that a crash of the
// server takes back. Method: a real server that flushes nothing by itself is stopped at the
// acknowledgement of COMMIT, killed, restarted.
import assert from 'node:assert/strict';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { approver, generateApprover } from '../../src/crypto/approver.ts';
import { Connection } from '../../src/postgres/connection.ts';
import { insert } from '../../src/protocol/draft.ts';
import type { Terminal } from '../../src/protocol/terminal.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { Freezer } from './freeze.ts';
import { Hand, OPEN } from './hand.ts';
import { type ProtectedDatabase, protectedDatabase } from './protected.ts';
import { startServer, type TestServer } from './server.ts';

const SCHEMA = `
  create table entry (id integer primary key, text text not null);
  create function enter(number integer) returns void language plpgsql as $$ begin
    set local synchronous_commit = off;
    insert into entry values (number, 'x');
  end $$;
`;
const WRITE = "insert into entry values (1, 'x')";
let server: TestServer;

before(async () => {
  // Nothing but a commit that waits for it writes the log to disk within the time that a test
  // takes.
  server = await startServer({ settings: { wal_writer_delay: '10s', bgwriter_lru_maxpages: '0' } });
});
after(() => server.stop());

async function createPlace(): Promise<ProtectedDatabase> {
  const settings = { relations: ['entry'], entryPoints: ['public.enter'] };
  return await protectedDatabase(SCHEMA, settings, { db: await server.createDatabase() });
}

async function killAndRestart(): Promise<void> {
  await server.kill();
  await server.restart();
}

test('a commit that does not wait for the disk is lost by such a kill: the tests below could fail', async () => {
  await using db = await server.createDatabase();
  await db.run('create table entry (id integer primary key)');
  await using session = await Connection.open(db.url(), 'test');
  await session.query('set synchronous_commit = off');
  const freezer = new Freezer(server);
  freezer.look();
  const { command } = await session.query('insert into entry values (1)');
  freezer.freeze();
  await killAndRestart();
  assert.equal(command, 'INSERT');
  assert.deepEqual(await db.run('select id from entry'), []);
});

/** Stored settings that new sessions start with. */
const STORED: readonly {
  readonly name: string;
  readonly sql: (place: ProtectedDatabase) => string;
}[] = [
  {
    name: 'the role',
    sql: ({ db }) => `alter role "${db.role('em_exec')}" set synchronous_commit = off`,
  },
  {
    name: 'the database',
    sql: ({ db }) => `alter database "${db.name}" set synchronous_commit = off`,
  },
  {
    name: 'the role in the database',
    sql: ({ db }) =>
      `alter role "${db.role('em_exec')}" in database "${db.name}" set synchronous_commit = off`,
  },
];

test('a stored setting that would make commits volatile is refused before anything is staged', async () => {
  for (const { name, sql } of STORED) {
    await using place = await createPlace();
    // Nothing can be prepared on an open boundary: it is approved first.
    const terminal = await execute(place, { sql: WRITE }, { approvedThen: sql(place) });
    assert.ok(
      terminal.kind === 'rejected' && terminal.at === 'boundary',
      `${name}: ${JSON.stringify(terminal)}`,
    );
    assert.match(terminal.detail, /synchronous_commit/);
    assert.deepEqual(await place.db.run('select id from entry'), []);
  }
});

/** Ways by which the session that promotes has the setting off, with the certificate left aside. */
const BY_HAND: readonly {
  readonly name: string;
  readonly stored?: (place: ProtectedDatabase) => string;
  readonly says: (hand: Hand) => Promise<void>;
}[] = [
  ...STORED.map(({ name, sql }) => ({
    name: `by ${name}`,
    stored: sql,
    async says(hand: Hand) {
      await hand.say('begin read write', OPEN, WRITE);
      await hand.promote();
    },
  })),
  {
    name: 'in the session, before the stage',
    async says(hand) {
      await hand.say('set synchronous_commit = off', 'begin read write', OPEN, WRITE);
      await hand.promote();
    },
  },
  {
    name: 'in the session, between observation and promotion',
    async says(hand) {
      await hand.say('begin read write', OPEN, WRITE);
      await hand.promote('set synchronous_commit = off');
    },
  },
  {
    name: 'in the transaction, after the promotion',
    async says(hand) {
      await hand.say('begin read write', OPEN, WRITE);
      await hand.promote();
      await hand.say('set local synchronous_commit = off');
    },
  },
  {
    name: 'in a trigger that waits for COMMIT',
    stored: () => `
      create function hurry() returns trigger language plpgsql as $$ begin
        set local synchronous_commit = off;
        return null;
      end $$;
      create constraint trigger hurry after insert on entry deferrable initially deferred
        for each row execute function hurry()`,
    async says(hand) {
      await hand.say('begin read write', OPEN, WRITE);
      await hand.promote();
    },
  },
];

for (const { name, stored, says } of BY_HAND) {
  test(`a promoted candidate is durable when COMMIT answers, although synchronous_commit is off ${name}`, async () => {
    await using place = await createPlace();
    if (stored !== undefined) await place.db.run(stored(place));
    await using hand = await Hand.open(place);
    await says(hand);
    const freezer = new Freezer(server);
    freezer.look();
    await hand.say('commit');
    freezer.freeze();
    await killAndRestart();
    assert.match(hand.told.join(' '), /PROMOTED (?:SET )?COMMIT$/);
    await expectDurable(place, 'occ_hand');
  });
}

/** Ways that no certificate refuses: the promotion itself must see to it. */
const ADMITTED: readonly {
  readonly name: string;
  readonly server?: true;
  readonly action: unknown;
}[] = [
  { name: 'in a function that the operation calls', action: { call: 'public.enter', values: [1] } },
  { name: 'on the whole server', server: true, action: { sql: WRITE } },
];

for (const { name, server: everywhere, action } of ADMITTED) {
  test(`a \`committed\` survives the kill, although synchronous_commit is off ${name}`, async () => {
    await using place = await createPlace();
    if (everywhere) {
      await place.db.run('alter system set synchronous_commit = off');
      await place.db.run('select pg_reload_conf()');
    }
    const freezer = new Freezer(server);
    const terminal = await execute(place, action, { freezer });
    assert.equal(terminal.kind, 'committed', JSON.stringify(terminal));
    await expectDurable(place, terminal.occurrence);
    await place.db.run('alter system reset synchronous_commit');
  });
}

async function expectDurable({ db }: ProtectedDatabase, occurrence: string): Promise<void> {
  assert.deepEqual(await db.run('select id, text from entry'), [{ id: 1, text: 'x' }]);
  const markers = await db.run('select occurrence, disposition from effectmatch.marker');
  assert.deepEqual(markers, [{ occurrence, disposition: 'committed' }]);
}

/**
 * One operation through a runtime of its own. With a freezer, the server stops between its answer
 * to COMMIT and the next thing that anybody does; it is then killed and started again.
 */
async function execute(
  place: ProtectedDatabase,
  action: unknown,
  { freezer, approvedThen }: { readonly freezer?: Freezer; readonly approvedThen?: string } = {},
): Promise<Terminal> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'effectmatch-volatile-'));
  const key = generateApprover('tester');
  const config = {
    store: join(folder.path, 'ledger.db'),
    keyring: join(folder.path, 'keys.json'),
    issuers: { tester: { key: key.publicKey, may: ['books'] } },
    adapters: { books: place.factory() },
  };
  let armed = false;
  await using runtime = await createRuntime(config, {
    reached(step) {
      if (armed && step === 'path:observed') freezer?.look();
      if (armed && step === 'adapter:commit-returned') freezer?.freeze();
    },
  });
  const effects = [insert('entry', { id: 1, text: 'x' })];
  const proposal = await runtime.prepare({
    adapter: 'books',
    task: 'enter',
    planRevision: 1,
    effects,
  });
  if (approvedThen !== undefined) await place.db.run(approvedThen);
  armed = true;
  const terminal = await runtime.execute(approver(key).sign(proposal, { expiresIn: '1h' }), action);
  if (freezer !== undefined) await killAndRestart();
  return terminal;
}
