// Goal: what an execution records is what became of it, for held candidates and for requests.
// Method: one execution each in a world in memory; the backend is read past the runtime and
// compared.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { digestText } from '../../src/crypto/digest.ts';
import { sqliteLedgers } from '../../src/ledger/sqlite/index.ts';
import { insert, update } from '../../src/protocol/draft.ts';
import type { Effect } from '../../src/protocol/effect.ts';
import { approvedRecord } from '../../src/protocol/manifest.ts';
import { observedLines } from '../../src/protocol/outcome.ts';
import { announcedPlan } from '../../src/testing/ledger/fixtures.ts';
import { freshSqlite } from '../adapters/sqlite-kit.ts';
import { assertRejected, deploy, invoiceWorld, ofKind, PAY } from './deploy.ts';

const PAID = { id: 1, status: 'paid', amount: 35 };
const PENDING = { id: 1, status: 'pending', amount: 35 };

for (const adapter of ['books', 'bank']) {
  test(`${adapter}: an exact outcome is committed, and every digest names what it binds`, async () => {
    const world = invoiceWorld();
    await using deployed = await deploy(world);
    const license = await deployed.approve({ adapter });
    const terminal = ofKind('committed', await deployed.runtime.execute(license, PAY));
    const backend = adapter === 'books' ? world.books : world.bank.backend;
    assert.deepEqual(backend.rows().invoice?.[0], PAID);
    assert.equal(terminal.approved, license.license.approved);
    assert.equal(terminal.reconciled, false);
    assert.ok(terminal.claimedAt <= terminal.consumedAt);
    const holder = await deployed.runtime.ledgers.holder(terminal.occurrence);
    assert.equal(holder?.claim.record.execution, terminal.execution);
    assert.deepEqual(approvedRecord.parseText(holder?.approvedText ?? ''), license.approved);
    assert.deepEqual(await deployed.runtime.terminal(terminal.occurrence), terminal);
    assert.deepEqual(
      await deployed.runtime.recover({ now: true }),
      [],
      'nothing is left to settle',
    );
    assert.equal((await deployed.runtime.verifyJournal()).kind, 'intact');
  });
}

test('the marker is durable with the state and names the same verdict as the terminal', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world);
  const terminal = ofKind(
    'committed',
    await deployed.runtime.execute(await deployed.approve(), PAY),
  );
  const stored = world.books.markers.get(terminal.occurrence);
  const marker = JSON.parse(stored?.text ?? '');
  const { occurrence, execution, approved, observed, certificate, claim, permit, consumedAt } =
    terminal;
  const said = {
    occurrence,
    execution,
    approved,
    observed,
    certificate,
    claim,
    permit,
    consumedAt,
  };
  assert.deepEqual(marker, { version: 1, disposition: 'committed', ...said });
});

test('a candidate that differs is discarded before the rejection is recorded, and the diff says how', async () => {
  const world = invoiceWorld();
  world.books.logic = (write) => [
    write,
    { op: 'insert', target: 'audit', row: { id: 'a', text: 'trigger' } },
  ];
  await using deployed = await deploy(world);
  const license = await deployed.approve();
  world.arm(deployed.process, { kind: 'none' });
  const terminal = assertRejected(
    await deployed.runtime.execute(license, PAY),
    'comparison',
    'diverged',
  );
  assert.ok(terminal.outcome?.kind === 'DIVERGED');
  const { extra, missing, altered } = terminal.outcome.diff;
  assert.deepEqual({ missing, altered }, { missing: [], altered: [] });
  assert.deepEqual(extra, [
    { op: 'insert', target: 'audit', key: { id: 'a' }, after: { text: 'trigger' }, count: 1 },
  ]);
  assert.deepEqual(world.books.rows().invoice?.[0], PENDING);
  assert.deepEqual(world.books.rows().audit, []);
  const { trace } = deployed.process;
  const order = trace.filter((entry) =>
    ['stage.discard', 'path:discarded', 'ledgers.record'].includes(entry),
  );
  assert.deepEqual(order, ['stage.discard', 'path:discarded', 'ledgers.record']);
});

test('a diff that is too long to store keeps its entries, and says how long the values are that it leaves out', async () => {
  for (const [characters, fit] of [
    [30_000, false],
    [300_000, false],
    [10, true],
  ] as const) {
    const world = invoiceWorld();
    const rows = Array.from({ length: 12 }, (_, id) => ({
      id: `${id}`,
      text: 'x'.repeat(characters),
    }));
    world.books.logic = (write) => [
      write,
      ...rows.map((row) => ({ op: 'insert' as const, target: 'audit', row })),
    ];
    await using deployed = await deploy(world);
    const terminal = await deployed.runtime.execute(await deployed.approve(), PAY);
    const { outcome } = assertRejected(terminal, 'comparison', 'diverged');
    assert.ok(outcome?.kind === 'DIVERGED');
    const { extra, omitted } = outcome.diff;
    assert.deepEqual({ extra: extra.length, omitted }, { extra: 12, omitted: 0 });
    assert.ok(Buffer.byteLength(JSON.stringify(outcome.diff)) <= 256 * 1024);
    const text = fit ? 'x'.repeat(characters) : { $omitted: String(characters + 2) };
    for (const { after } of extra) assert.deepEqual(after?.text, text);
  }
});

test('an adapter that is not configured is refused with the names of those that are', async () => {
  const world = invoiceWorld();
  const code = 'ERR_EM_ADAPTER_UNAVAILABLE';
  await using deployed = await deploy(world);
  await assert.rejects(deployed.approve({ adapter: 'nowhere' }), {
    code,
    message: /"nowhere".*configured: books, bank\)/,
  });
  await using bare = await deploy(world, { adapters: {}, issuers: {} });
  await assert.rejects(bare.approve(), { code, message: /"books".*configured: none\)/ });
});

test('an action that fails is rejected at the stage and leaves nothing', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world);
  const license = await deployed.approve();
  const failing = { writes: [...PAY.writes, { op: 'delete', target: 'invoice', key: { id: 99 } }] };
  const before = world.books.rows();
  assertRejected(await deployed.runtime.execute(license, failing), 'stage', 'action-failed');
  assert.deepEqual(world.books.rows(), before);
  assert.equal(world.books.writer, undefined);
  assertRejected(await deployed.runtime.execute(license, PAY), 'authority', 'spent');
});

test('a request that was answered by other effects is diverged: durable, and wrong', async () => {
  const world = invoiceWorld();
  world.bank.backend.logic = (write) => [
    write,
    { op: 'insert', target: 'audit', row: { id: 'a', text: 'server' } },
  ];
  await using deployed = await deploy(world);
  const license = await deployed.approve({ adapter: 'bank' });
  const terminal = ofKind('diverged', await deployed.runtime.execute(license, PAY));
  assert.ok(terminal.outcome.kind === 'DIVERGED');
  assert.equal(terminal.outcome.diff.extra.length, 1);
  assert.deepEqual(world.bank.backend.rows().audit, [{ id: 'a', text: 'server' }]);
  const released = await deployed.runtime
    .continuation(terminal, 'reconcile')
    .release(() => assert.fail());
  assert.deepEqual(released, { kind: 'halted', why: 'diverged' });
});

test('a MEDIATED request is built from the approval: the agent cannot put anything else into it', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world);
  const license = await deployed.approve({ adapter: 'bank' });
  const other = { writes: [{ op: 'delete', target: 'invoice', key: { id: 2 } }] };
  ofKind('committed', await deployed.runtime.execute(license, other));
  assert.deepEqual(
    world.bank.backend.rows().invoice?.map(({ id, status }) => [id, status]),
    [
      [1, 'paid'],
      [2, 'pending'],
    ],
  );
});

test('an OPAQUE request that does something else is found out by its read-back', async () => {
  const world = invoiceWorld({ remote: 'OPAQUE' });
  await using deployed = await deploy(world);
  const license = await deployed.approve({ adapter: 'bank' });
  const other = { writes: [{ op: 'delete', target: 'invoice', key: { id: 2 } }] };
  const terminal = ofKind('diverged', await deployed.runtime.execute(license, other));
  assert.ok(terminal.outcome.kind === 'DIVERGED');
  assert.equal(terminal.outcome.diff.extra.length + terminal.outcome.diff.altered.length, 1);
});

test('network: a request that provably never left is rejected, anything less certain never is', async () => {
  const verdicts = {
    'not-sent': 'rejected',
    'lost-request': 'indeterminate',
    'in-flight': 'indeterminate',
    'lost-reply': 'committed',
  } as const;
  for (const [how, kind] of Object.entries(verdicts) as [keyof typeof verdicts, 'committed'][]) {
    const world = invoiceWorld();
    await using deployed = await deploy(world);
    const license = await deployed.approve({ adapter: 'bank' });
    world.arm(deployed.process, { kind: 'network', how });
    const terminal = await deployed.runtime.execute(license, PAY);
    ofKind(kind, terminal);
    const paid = world.bank.backend.rows().invoice?.[0]?.status === 'paid';
    assert.equal(paid, how === 'lost-reply', how);
    assert.equal(
      deployed.process.trace.filter((call) => call === 'adapter.dispatch').length,
      1,
      'sent once',
    );
  }
});

test('values that are not to be stored are in neither journal nor ledger', async () => {
  const world = invoiceWorld({ values: 'digest' });
  world.books.logic = (write) => [
    write,
    { op: 'insert', target: 'audit', row: { id: 'a', text: 'geheim-1' } },
  ];
  await using deployed = await deploy(world);
  const secretive = {
    effects: [update('invoice', { id: 1 }, { status: ['pending', 'geheim-2'] })],
  };
  const license = await deployed.approve(secretive);
  const action = {
    writes: [{ op: 'update', target: 'invoice', key: { id: 1 }, set: { status: 'geheim-3' } }],
  };
  const terminal = assertRejected(
    await deployed.runtime.execute(license, action),
    'comparison',
    'diverged',
  );
  const holder = await deployed.runtime.ledgers.holder(terminal.occurrence);
  const kept = JSON.stringify([terminal, holder, await deployed.runtime.ledgers.journal()]);
  assert.doesNotMatch(kept, /geheim|pending/);
  assert.match(kept, /\$digest/);
});

test('what was observed is kept as a digest, and where values are not stored as one that nobody can guess', async () => {
  const effect = {
    op: 'update',
    target: 'invoice',
    key: { id: 1 },
    before: { status: 'pending' },
    after: { status: 'paid' },
  };
  const guess = digestText(
    'effectmatch/observed/v1',
    [...observedLines([effect as Effect])].join(''),
  );
  for (const values of ['plain', 'digest'] as const) {
    await using deployed = await deploy(invoiceWorld({ values }));
    const terminal = ofKind(
      'committed',
      await deployed.runtime.execute(await deployed.approve(), PAY),
    );
    assert.equal(terminal.observed === guess, values === 'plain');
  }
});

test('a plan revision is announced by preparing, and a requirement that does not hold is not prepared', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world);
  await deployed.approve({ planRevision: 7 });
  assert.equal(await announcedPlan(deployed.runtime.ledgers, 'invoice 1'), 7);
  world.disturb('state');
  await assert.rejects(deployed.approve({ planRevision: 8 }), { code: 'ERR_EM_MANIFEST_INVALID' });
  assert.equal(await announcedPlan(deployed.runtime.ledgers, 'invoice 1'), 7);
  await assert.rejects(deployed.approve({ adapter: 'nowhere' }), {
    code: 'ERR_EM_ADAPTER_UNAVAILABLE',
  });
});

test("two adapters of one deployment do not spend each other's licenses", async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world);
  const books = await deployed.approve({ effects: [insert('audit', { id: 'x', text: 'y' })] });
  const bank = await deployed.approve({ adapter: 'bank' });
  const write = { writes: [{ op: 'insert', target: 'audit', row: { id: 'x', text: 'y' } }] };
  ofKind('committed', await deployed.runtime.execute(bank, PAY));
  ofKind('committed', await deployed.runtime.execute(books, write));
  assert.deepEqual(world.books.rows().audit, [{ id: 'x', text: 'y' }]);
  assert.deepEqual(world.bank.backend.rows().audit, []);
});

test('closing a runtime twice is closing it once', async () => {
  await using specimen = await freshSqlite();
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-close-'));
  const world = invoiceWorld();
  const adapters = { ...world.start().config.adapters, books: specimen.factory };
  const { runtime } = await deploy(world, {
    adapters,
    store: sqliteLedgers(join(folder, 'store.db')),
  });
  await runtime.close();
  await runtime[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});
