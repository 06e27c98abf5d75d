// Goal: what an agent tried and was refused is in the journal, with the reason, and can neither
// fill it nor spend a license. Method: actions that no adapter reads, under licenses that are good,
// forged and used up; real SQL on a SQLite file.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { sqlite } from '../../src/adapters/sqlite/index.ts';
import type { AdapterFactory } from '../../src/contract/adapter.ts';
import { approver, createRuntime, generateApprover, insert } from '../../src/index.ts';
import { memoryAdapter, overlayAdapter } from '../world/world.ts';
import { assertRejected, type Deployed, deploy, invoiceWorld, ofKind, PAY } from './deploy.ts';

const BAD = { writes: [{ op: 'explode', target: 'invoice' }] };
const terminals = async ({ runtime }: Deployed) =>
  (await runtime.ledgers.journal({ limit: 10_000 })).filter(({ kind }) => kind === 'terminal')
    .length;

test('an action that does not parse is a rejection in the journal, and the license stays good', async () => {
  for (const adapter of ['books', 'bank']) {
    await using deployed = await deploy(invoiceWorld({ remote: 'OPAQUE' }));
    const license = await deployed.approve({ adapter });
    const refused = assertRejected(
      await deployed.runtime.execute(license, BAD),
      'action',
      'action-invalid',
    );
    assert.equal(refused.claim, undefined);
    assert.match(refused.detail, /action/);
    assert.match(refused.detail, /explode/, 'what was tried is part of it');
    assert.deepEqual(await deployed.runtime.ledgers.attempts(refused.occurrence), [refused]);
    assert.equal(
      await deployed.runtime.terminal(refused.occurrence),
      undefined,
      'nothing was decided about the license',
    );
    ofKind('committed', await deployed.runtime.execute(license, PAY));
  }
});

test('an action that SQLite is never asked about is in the journal of a real database, word for word', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-refused-'));
  const file = join(folder, 'notes.db');
  using db = new DatabaseSync(file);
  db.exec('create table note (id integer primary key not null)');
  const key = generateApprover('team');
  const runtime = await createRuntime({
    store: join(folder, 'ledger.db'),
    keyring: join(folder, 'keys.json'),
    issuers: { team: { key: key.publicKey, may: ['notes'] } },
    adapters: { notes: sqlite({ file, relations: ['note'] }) },
  });
  try {
    const effects = [insert('note', { id: 1 })];
    const proposal = await runtime.prepare({
      adapter: 'notes',
      task: 'note',
      planRevision: 1,
      effects,
    });
    const license = await approver(key).sign(proposal, { expiresIn: '10m' });
    const action = { sql: 'drop table note', force: true };
    const refused = assertRejected(
      await runtime.execute(license, action),
      'action',
      'action-invalid',
    );
    assert.match(
      refused.detail,
      /unknown field "force".*; it tried: \{"force":true,"sql":"drop table note"\}/,
    );
    assert.equal(
      (await runtime.execute(license, { sql: 'insert into note values (1)' })).kind,
      'committed',
    );
  } finally {
    await runtime.close();
    rmSync(folder, { recursive: true });
  }
});

test('where values are not stored, neither the message nor the action is', async () => {
  await using deployed = await deploy(invoiceWorld({ values: 'digest' }));
  const refused = await deployed.runtime.execute(await deployed.approve(), BAD);
  assert.doesNotMatch(assertRejected(refused, 'action', 'action-invalid').detail, /explode/);
});

test('a long action is kept by its beginning', async () => {
  await using deployed = await deploy(invoiceWorld());
  const action = { writes: 'x'.repeat(1_000_000) };
  const refused = await deployed.runtime.execute(await deployed.approve(), action);
  assert.ok(assertRejected(refused, 'action', 'action-invalid').detail.length <= 4000);
});

test('under a license that no designated issuer signed, nobody reads the action', async () => {
  const world = invoiceWorld();
  let read = 0;
  const books = overlayAdapter(memoryAdapter(world.books) as AdapterFactory, (adapter) => ({
    parseAction(input: unknown) {
      read += 1;
      return adapter.parseAction(input);
    },
  }));
  const { adapters } = world.start().config;
  await using deployed = await deploy(world, { adapters: { ...adapters, books } });
  const license = await deployed.approve();
  const forged = { ...license, signature: 'A'.repeat(86) };
  const stranger = { ...license, license: { ...license.license, issuer: 'stranger' } };
  assertRejected(await deployed.runtime.execute(forged, BAD), 'authority', 'signature-invalid');
  assertRejected(await deployed.runtime.execute(stranger, BAD), 'authority', 'issuer-unknown');
  assert.equal(read, 0, 'to read one takes time, and anybody can present something');
  assertRejected(await deployed.runtime.execute(license, BAD), 'action', 'action-invalid');
  assert.equal(read, 1);
});

test('a flood of refusals under one license is answered and counted, and the journal keeps the first of them', async () => {
  await using deployed = await deploy(invoiceWorld());
  const license = await deployed.approve();
  const flood = await Promise.all(
    Array.from({ length: 100 }, () => deployed.runtime.execute(license, BAD)),
  );
  assert.equal(await terminals(deployed), 32);
  const unkept = flood.filter((terminal) =>
    /not recorded/.test(assertRejected(terminal, 'action', 'action-invalid').detail),
  );
  assert.equal(unkept.length, 68);
  await using fresh = await deploy(deployed.world);
  await fresh.runtime.execute(license, BAD);
  assert.equal(await terminals(fresh), 32, 'another process keeps no more of them');
  ofKind('committed', await fresh.runtime.execute(license, PAY));
  for (let replay = 0; replay < 10; replay += 1) {
    assertRejected(await fresh.runtime.execute(license, PAY), 'authority', 'spent');
  }
  assert.equal(await terminals(fresh), 33, 'replays count with them');
});

test('a flood of forged licenses is answered, and the journal keeps some of it every minute', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world);
  const license = await deployed.approve();
  const forge = (at: number) => ({
    ...license,
    license: { ...license.license, nonce: `${at}`.padStart(20, 'n') },
  });
  const present = async (from: number) => {
    for (let at = from; at < from + 150; at += 1) {
      assertRejected(
        await deployed.runtime.execute(forge(at), PAY),
        'authority',
        'signature-invalid',
      );
    }
  };
  await present(0);
  assert.equal(await terminals(deployed), 100);
  world.advance(60_000);
  await present(1000);
  assert.equal(await terminals(deployed), 200);
});

test('a license that is presented again and again with a broken signature is kept a few times, and hides no refused action', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world);
  const license = await deployed.approve();
  const broken = { ...license, signature: 'A'.repeat(86) };
  for (let minute = 0; minute < 3; minute += 1) {
    for (let at = 0; at < 40; at += 1) {
      assertRejected(await deployed.runtime.execute(broken, PAY), 'authority', 'signature-invalid');
    }
    world.advance(60_000);
  }
  assert.equal(await terminals(deployed), 32);
  const tried = assertRejected(
    await deployed.runtime.execute(license, BAD),
    'action',
    'action-invalid',
  );
  assert.equal(await terminals(deployed), 33);
  assert.equal(
    (await deployed.runtime.ledgers.attempts(tried.occurrence)).at(-1)?.execution,
    tried.execution,
  );
});
