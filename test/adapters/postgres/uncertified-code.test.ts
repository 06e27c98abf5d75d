// Goal: what is done before a boundary is certified runs no code of the application, with nobody's
// rights. Method: domain checks that leave files and replication slots behind, which neither a
// read-only transaction nor a rollback takes back; then every call that an approval is made with,
// and a look at what is left on the server.
import assert from 'node:assert/strict';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { z } from 'zod';
import { readRelations } from '../../../src/adapters/postgres/catalog.ts';
import { normaliseManifest } from '../../../src/adapters/postgres/normalise.ts';
import { readState } from '../../../src/adapters/postgres/reading.ts';
import {
  approver,
  createRuntime,
  defineOperation,
  generateApprover,
  type Runtime,
} from '../../../src/index.ts';
import { Connection } from '../../../src/postgres/connection.ts';
import { draftManifest, insert, read, row, update } from '../../../src/protocol/draft.ts';
import type { ApprovedEffect } from '../../../src/protocol/effect.ts';
import { testKeyring } from '../../keyring.ts';
import { temporaryLedgers } from '../../ledger/temporary.ts';
import { type ProtectedDatabase, protectedDatabase } from '../../postgres/protected.ts';
import { startServer, type TestServer } from '../../postgres/server.ts';

const KEY = generateApprover('approver');
const TASK = { adapter: 'db', task: 't', planRevision: 1 } as const;
const PAY = { sql: "update plain set v = 'b' where id = 1" };
const RELATIONS = ['plain', 'noisy', 'defaulted', 'composed', 'ranged', 'keyed'];
const MARKS = ['domain', 'twice', 'composite', 'range', 'default', 'index'];

const SCHEMA = (folder: string) => `
create schema app; grant usage on schema app to public;
create function app.leak(what text) returns boolean language plpgsql security definer
  set search_path = pg_catalog, pg_temp as $$ begin
    execute format('copy (select 1) to %L', '${folder}/leak_' || what);
    if not exists (select from pg_replication_slots s where s.slot_name = 'leak_' || what) then
      perform pg_create_physical_replication_slot('leak_' || what);
    end if;
    return true; end $$;
create domain app.sly as varchar(3) check (app.leak('domain'));
create domain app.sly_twice as app.sly check (app.leak('twice'));
create domain app.sly_default as text check (app.leak('default'));
create domain app.sly_field as text check (app.leak('composite'));
create domain app.sly_bound as int check (app.leak('range'));
create type app.pair as (a int, b app.sly_field);
create type app.span as range (subtype = app.sly_bound);
create table plain (id int primary key, v text);
create table noisy (id int primary key, v app.sly, w app.sly_twice, list app.sly[]);
create table defaulted (id int primary key, v text default 'x'::app.sly_default, w app.sly_default default 'y');
create table composed (id int primary key, pair app.pair);
create table ranged (id int primary key, span app.span);
create table keyed (k app.sly primary key, v text);
create function app.fold(int) returns int language plpgsql immutable as
  $$ begin perform app.leak('index'); return 1; end $$;
`;

const EFFECTS: Readonly<Record<string, ApprovedEffect>> = {
  'a domain': insert('noisy', { id: 1, v: 'x', w: 'y', list: ['z'] }),
  'a literal default of a domain': insert('defaulted', { id: 1 }),
  'a field of a composite type': insert('composed', { id: 1, pair: '(1,x)' }),
  'a bound of a range': insert('ranged', { id: 1, span: '[1,2)' }),
  'a key that is a domain': update('keyed', { k: 'x' }, { v: 'y' }),
};

let server: TestServer;
let place: ProtectedDatabase;
let runtime: Runtime;

const touch = defineOperation({
  name: 'touch',
  adapter: 'db',
  input: z.strictObject({}),
  reads: () => [read('keyed', { k: 'x' })],
  approve: () => ({ effects: [update('plain', { id: 1 }, { v: 'b' })] }),
  action: () => PAY,
});

before(async () => {
  server = await startServer({ settings: { max_replication_slots: '20', wal_level: 'logical' } });
  const db = await server.createDatabase();
  place = await protectedDatabase(SCHEMA(server.folder), { relations: RELATIONS }, { db });
  await place.db.run(
    "insert into plain values (1, 'a'); create index on plain ((id + app.fold(1)))",
  );
  runtime = await createRuntime({
    store: temporaryLedgers(),
    keyring: testKeyring(),
    issuers: {
      approver: { key: KEY.publicKey, may: ['db'], sources: ['manifest', 'rehearsed', 'contract'] },
    },
    adapters: { db: place.factory() },
    operations: { touch },
  });
  await forget();
});

after(async () => {
  await runtime?.[Symbol.asyncDispose]();
  await place?.[Symbol.asyncDispose]();
  await server?.stop();
});

afterEach(forget);

async function leaks(): Promise<readonly string[]> {
  const slots = await place.db.run('select slot_name from pg_replication_slots order by 1');
  const files = MARKS.filter((what) => existsSync(join(server.folder, `leak_${what}`)));
  return [
    ...slots.map(({ slot_name: name }) => `slot ${name}`),
    ...files.map((what) => `file leak_${what}`),
  ];
}

async function forget(): Promise<void> {
  await place.db.run('select pg_drop_replication_slot(slot_name) from pg_replication_slots');
  for (const what of MARKS) rmSync(join(server.folder, `leak_${what}`), { force: true });
}

const isOpenBoundary = {
  code: 'ERR_EM_BOUNDARY_OPEN',
  message: /nothing is cast or read.*app\.leak/s,
};

test('a check that is run leaves its marks, also in a transaction that is read-only and rolled back', async () => {
  await place.db.run("begin read only; select 'x'::app.sly; rollback");
  assert.deepEqual(await leaks(), ['slot leak_domain', 'file leak_domain']);
});

describe('while an outlet is open', () => {
  for (const [what, effect] of Object.entries(EFFECTS)) {
    test(`prepare and shadow run no code behind ${what}`, async () => {
      await assert.rejects(runtime.prepare({ ...TASK, effects: [effect] }));
      const { record } = await runtime.shadow({ ...TASK, effects: [effect] }, PAY);
      assert.notEqual(record.would, 'commit');
      assert.deepEqual(await leaks(), []);
    });
  }

  test('prepare says which outlet it is, whatever the values, and shadow would reject at the boundary', async () => {
    const effects = [update('plain', { id: 1 }, { v: 'b' })];
    await assert.rejects(runtime.prepare({ ...TASK, effects }), isOpenBoundary);
    const { record } = await runtime.shadow({ ...TASK, effects }, PAY);
    assert.partialDeepStrictEqual(record, {
      would: 'reject',
      at: 'boundary',
      reason: 'outlet-unclassified',
    });
    assert.deepEqual(await leaks(), []);
  });

  test('prepare refuses a manifest in which there is nothing to cast', async () => {
    await assert.rejects(runtime.prepare({ ...TASK, effects: [] }), isOpenBoundary);
  });

  test('declared state is not read, so that planning the query runs no function of an index', async () => {
    const reads = { requires: [row('plain', { id: 1 }, {})], watch: [read('keyed', { k: 'x' })] };
    await assert.rejects(runtime.plan({ ...TASK, ...reads, action: PAY }), isOpenBoundary);
    await assert.rejects(runtime.prepare({ ...TASK, ...reads, effects: [] }), isOpenBoundary);
    await assert.rejects(runtime.propose('touch', {}, TASK), isOpenBoundary);
    assert.deepEqual(await leaks(), []);
  });
});

describe('casts by themselves, whatever the boundary', () => {
  async function normaliseUnchecked(effect: ApprovedEffect): Promise<ApprovedEffect | undefined> {
    await using control = await Connection.open(place.options.control, 'test');
    await using execution = await Connection.open(place.options.execution, 'test');
    const names = RELATIONS.map((name) => ({ schema: 'public', name }));
    const found = (await readRelations(control, names)).flatMap((one) =>
      one.kind === 'usable' ? [one.relation] : [],
    );
    const relations = new Map(found.map((relation) => [relation.target, relation]));
    const targets = found.map(({ target, columns, key }) => ({
      ...{ name: target, columns: columns.map(({ name }) => name), key, volatile: [] },
    }));
    const manifest = draftManifest({ ...TASK, effects: [effect] });
    const { effects } = await normaliseManifest(
      {
        ...{
          relations,
          isolation: 'serializable',
          registration: { profile: 'net-state', values: 'plain', targets },
        },
        withExecution: (use) => use(execution),
        read: (reads) => readState(control, relations, reads),
      },
      manifest,
    );
    return effects[0];
  }

  for (const [what, effect] of Object.entries(EFFECTS)) {
    test(`run no code behind ${what}`, async () => {
      await normaliseUnchecked(effect).catch((error: { code?: string }) => {
        assert.equal(error.code, 'ERR_EM_MANIFEST_INVALID');
      });
      assert.deepEqual(await leaks(), []);
    });
  }

  test('a domain is read as the type beneath it, with its modifiers, also in a list', async () => {
    const { after } =
      (await normaliseUnchecked(insert('noisy', { id: '1', v: 'x', w: 5, list: ['a', null] }))) ??
      {};
    assert.deepEqual(after, { v: { is: 'x' }, w: { is: '5' }, list: { is: '{a,NULL}' } });
    const long = insert('noisy', { id: 1, v: 'abcd', w: null, list: null });
    await assert.rejects(
      normaliseUnchecked(long),
      /column "v": value too long for type character varying\(3\)/,
    );
    const longIn = insert('noisy', { id: 1, v: null, w: null, list: ['abcd'] });
    await assert.rejects(normaliseUnchecked(longIn), /column "list": value too long/);
  });

  for (const [what, message] of [
    [
      'a field of a composite type',
      /column "pair": .*domain app\.sly_field has the check .*; state any\(\)/,
    ],
    [
      'a bound of a range',
      /column "span": .*domain app\.sly_bound has the check .*; state any\(\)/,
    ],
    [
      'a literal default of a domain',
      /column "v": its default .* runs code of the application; state the value/,
    ],
  ] as const) {
    test(`${what} that cannot be read without its check is refused with what to do`, async () => {
      const effect = EFFECTS[what];
      assert.ok(effect !== undefined);
      await assert.rejects(normaliseUnchecked(effect), {
        code: 'ERR_EM_MANIFEST_INVALID',
        message,
      });
    });
  }
});

test('a boundary that opens after signing refuses before declared state is read, and spends nothing', async () => {
  await using calm = await protectedDatabase(
    "create schema app; create table plain (id int primary key, v text); insert into plain values (1, 'a')",
    { relations: ['plain'] },
    { db: await server.createDatabase() },
  );
  await using own = await createRuntime({
    store: temporaryLedgers(),
    keyring: testKeyring(),
    issuers: { approver: { key: KEY.publicKey, may: ['db'] } },
    adapters: { db: calm.factory() },
  });
  const requires = [row('plain', { id: 1 }, { v: 'a' })];
  const effects = [update('plain', { id: 1 }, { v: ['a', 'b'] })];
  const license = approver(KEY).sign(await own.prepare({ ...TASK, requires, effects }), {
    expiresIn: '10m',
  });
  const exec = new URL(String(calm.options.execution)).username;
  await calm.db.run(`alter role "${exec}" createdb`);
  const refused = await own.execute(license, PAY);
  assert.partialDeepStrictEqual(refused, {
    kind: 'rejected',
    at: 'authority',
    reason: 'outlet-unclassified',
  });
  await calm.db.run(`alter role "${exec}" nocreatedb`);
  assert.equal((await own.execute(license, PAY)).kind, 'committed');
});
