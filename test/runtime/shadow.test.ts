// Goal: a shadow says what an execution would have decided, and changes nothing that any other step
// can see. Method: a world in memory; each shadow is followed by the real execution, and everything
// durable is compared before and after.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AdapterFactory } from '../../src/contract/adapter.ts';
import { EffectMatchError } from '../../src/errors.ts';
import { update } from '../../src/protocol/draft.ts';
import { renderShadow, type Shadow } from '../../src/protocol/shadow.ts';
import { announcedPlan } from '../../src/testing/ledger/fixtures.ts';
import { alterEvidence, memoryAdapter, silence } from '../world/world.ts';
import {
  type Deployed,
  deploy,
  interrupt,
  invoiceWorld,
  LEASE_MS,
  ofKind,
  PAY,
  PAYMENT,
} from './deploy.ts';

type ShadowOf<W extends Shadow['would']> = Extract<Shadow, { would: W }>;

function wouldBe<W extends Shadow['would']>(would: W, record: Shadow): ShadowOf<W> {
  assert.equal(record.would, would, renderShadow(record));
  return record as ShadowOf<W>;
}

/**
 * What everybody else can see: business rows, markers, held candidates, and every journal row that
 * is no shadow.
 */
async function visible({ world, runtime }: Deployed) {
  const rows = (await runtime.ledgers.journal({ limit: 1000 })).filter(
    ({ kind }) => kind !== 'shadow',
  );
  return {
    rows: world.books.rows(),
    markers: [...world.books.markers],
    writer: world.books.writer,
    journal: rows,
    unsettled: await runtime.ledgers.unsettled({ includeLeased: true }),
  };
}

test('a license that was shadowed would commit, is not spent, and commits afterwards', async () => {
  await using deployed = await deploy(invoiceWorld());
  const license = await deployed.approve();
  const before = await visible(deployed);
  const { record, seen } = await deployed.runtime.shadow(license, PAY);
  const { basis, task, adapter } = wouldBe('commit', record);
  assert.deepEqual(
    { basis, task, adapter },
    { basis: 'license', task: PAYMENT.task, adapter: 'books' },
  );
  assert.equal(seen?.length, 1);
  assert.deepEqual(await visible(deployed), before);
  wouldBe('commit', (await deployed.runtime.shadow(license, PAY)).record);
  const terminal = ofKind('committed', await deployed.runtime.execute(license, PAY));
  assert.equal(
    terminal.observed,
    wouldBe('commit', record).observed,
    'the very outcome that was seen',
  );
  const spent = wouldBe('reject', (await deployed.runtime.shadow(license, PAY)).record);
  assert.deepEqual([spent.at, spent.reason], ['authority', 'spent']);
});

test('a shadow that would commit releases nothing, whatever is presented', async () => {
  await using deployed = await deploy(invoiceWorld());
  const license = await deployed.approve();
  const { record } = await deployed.runtime.shadow(license, PAY);
  assert.equal(record.would, 'commit');
  let ran = false;
  const lineage = record.license ?? assert.fail();
  for (const from of [{ occurrence: record.occurrence, lineage }, record as never]) {
    await deployed.runtime
      .continuation(from, 'reconcile')
      .release(() => {
        ran = true;
      })
      .then(
        (release) => assert.deepEqual(release, { kind: 'halted', why: 'no-terminal' }),
        (error: EffectMatchError) => assert.equal(error.code, 'ERR_EM_USAGE'),
      );
  }
  assert.equal(ran, false);
  assert.equal(await deployed.runtime.terminal(record.occurrence), undefined);
  assert.equal(
    await deployed.runtime.receipt(record.occurrence),
    undefined,
    'no receipt as if it were a verdict',
  );
});

test('recovery does not see shadows, also beside an attempt that it has to settle', async () => {
  const world = invoiceWorld();
  await interrupt(world, { kind: 'step', step: 'path:staged', ending: 'die' });
  await using deployed = await deploy(world);
  const license = await deployed.approve({
    task: 'invoice 2',
    effects: [update('invoice', { id: 2 }, { status: ['pending', 'paid'] })],
  });
  const action = {
    writes: [{ op: 'update', target: 'invoice', key: { id: 2 }, set: { status: 'paid' } }],
  };
  await deployed.runtime.shadow(license, action);
  world.advance(LEASE_MS + 1);
  const recovered = await deployed.runtime.recover({ now: true });
  assert.equal(recovered.length, 1, 'only the interrupted attempt');
  assert.deepEqual(await deployed.runtime.recover({ now: true }), []);
  assert.equal((await deployed.runtime.verifyJournal()).kind, 'intact');
});

test('an outcome that is not the approved one would be rejected, with its differences', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world);
  world.books.logic = (write) => [
    write,
    { op: 'insert', target: 'audit', row: { id: 'hidden', text: 'x' } },
  ];
  const license = await deployed.approve();
  const before = await visible(deployed);
  const { record, seen } = await deployed.runtime.shadow(license, PAY);
  const { at, reason, outcome } = wouldBe('reject', record);
  assert.deepEqual([at, reason, outcome?.kind], ['comparison', 'diverged', 'DIVERGED']);
  assert.match(
    renderShadow(record),
    /^would be rejected at comparison[\s\S]*extra {4}\+ audit id="hidden"/,
  );
  assert.equal(seen?.length, 2);
  assert.deepEqual(await visible(deployed), before);
});

test('each gate that an execution would stop at is named, and the execution stops there', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world);
  const expired = await deployed.approve({}, { expiresIn: '1s' });
  world.advance(2000);
  const forged = { ...(await deployed.approve()), signature: 'A'.repeat(86) };
  const superseded = await deployed.approve({ task: 'other' });
  await deployed.runtime.prepare({ ...PAYMENT, task: 'other', planRevision: 2 });
  const stale = await deployed.approve({
    requires: [],
    watch: [{ target: 'invoice', key: { id: 2 } }],
  });
  world.books.write({ op: 'update', target: 'invoice', key: { id: 2 }, set: { status: 'late' } });
  for (const [license, reason] of [
    [expired, 'expired'],
    [forged, 'signature-invalid'],
    [superseded, 'plan-superseded'],
    [stale, 'stale-state'],
  ] as const) {
    const shadow = wouldBe('reject', (await deployed.runtime.shadow(license, PAY)).record);
    const terminal = ofKind('rejected', await deployed.runtime.execute(license, PAY));
    assert.deepEqual([shadow.at, shadow.reason], [terminal.at, terminal.reason]);
    assert.equal(shadow.reason, reason);
  }
});

test('an action that an execution would refuse to read is a recorded answer and not an exception', async () => {
  await using deployed = await deploy(invoiceWorld());
  const license = await deployed.approve();
  const { record } = await deployed.runtime.shadow(license, {
    writes: [{ op: 'update', target: 'nowhere', key: {}, set: {} }],
  });
  const { at, reason } = wouldBe('reject', record);
  assert.deepEqual([at, reason], ['action', 'action-invalid']);
});

test('an unsigned proposal and an unsigned manifest are compared too, and announce no plan', async () => {
  await using deployed = await deploy(invoiceWorld());
  const proposal = await deployed.runtime.prepare(PAYMENT);
  for (const given of [proposal, JSON.stringify(proposal)]) {
    const { record } = await deployed.runtime.shadow(given, PAY);
    assert.deepEqual(
      [record.would, record.basis, record.license],
      ['commit', 'proposal', undefined],
    );
    assert.match(renderShadow(record), /if the proposal is signed as it is/);
  }
  const license = await deployed.approve({ task: 'in use' });
  const { adapter, effects } = PAYMENT;
  const manifest = { adapter, effects, task: 'in use', planRevision: 99 };
  const { record } = await deployed.runtime.shadow(manifest, PAY);
  assert.deepEqual([record.would, record.basis], ['commit', 'manifest']);
  const wrong = {
    ...manifest,
    effects: [update('invoice', { id: 1 }, { status: ['pending', 'late'] })],
  };
  wouldBe('reject', (await deployed.runtime.shadow(wrong, PAY)).record);
  assert.equal(
    await announcedPlan(deployed.runtime.ledgers, 'in use'),
    1,
    'no plan in use is superseded',
  );
  ofKind('committed', await deployed.runtime.execute(license, PAY));
});

test('where nothing is approved it shows what was seen and claims no decision', async () => {
  await using deployed = await deploy(invoiceWorld());
  const before = await visible(deployed);
  const { record, seen } = await deployed.runtime.shadow(
    { adapter: 'books', task: 'look', planRevision: 1 },
    PAY,
  );
  assert.deepEqual(wouldBe('propose', record).seen, [
    { target: 'invoice', op: 'update', count: 1 },
  ]);
  assert.deepEqual(seen, [
    {
      op: 'update',
      target: 'invoice',
      key: { id: 1 },
      before: { status: 'pending' },
      after: { status: 'paid' },
    },
  ]);
  assert.deepEqual(await visible(deployed), before);
});

test('a backend that cannot hold a change is refused, and nothing is sent', async () => {
  const world = invoiceWorld({ remote: 'MEDIATED' });
  await using deployed = await deploy(world);
  const before = world.bank.backend.rows();
  await assert.rejects(
    deployed.runtime.shadow({ adapter: 'bank', task: 'look', planRevision: 1 }, {}),
    (error: EffectMatchError) =>
      error.code === 'ERR_EM_SHADOW_REFUSED' && /nothing was sent/.test(error.message),
  );
  assert.deepEqual(world.bank.backend.rows(), before);
  assert.deepEqual(await deployed.runtime.ledgers.journal(), []);
});

test('a backend that fails does not stop whoever is only watched, and a defect stays loud', async () => {
  const world = invoiceWorld();
  const { adapters } = world.start().config;
  let error: Error | undefined;
  const books = alterEvidence(memoryAdapter(world.books) as AdapterFactory, (evidence) => {
    if (error !== undefined) throw error;
    return evidence;
  });
  await using deployed = await deploy(world, { adapters: { ...adapters, books } });
  const license = await deployed.approve();
  const before = await visible(deployed);
  error = new EffectMatchError('ERR_EM_ADAPTER_UNAVAILABLE', 'the server is gone');
  const { record, seen } = await deployed.runtime.shadow(license, PAY);
  assert.deepEqual(
    [wouldBe('unknown', record).code, seen],
    ['ERR_EM_ADAPTER_UNAVAILABLE', undefined],
  );
  error = new EffectMatchError('ERR_EM_INVARIANT', 'a defect');
  await assert.rejects(deployed.runtime.shadow(license, PAY), /a defect/);
  assert.deepEqual(await visible(deployed), before, 'the candidate is dropped either way');
  error = undefined;
  ofKind('committed', await deployed.runtime.execute(license, PAY));
});

test('an outcome that cannot be established would be rejected, never guessed', async () => {
  const world = invoiceWorld();
  const { adapters } = world.start().config;
  let silent = false;
  const books = alterEvidence(memoryAdapter(world.books) as AdapterFactory, (evidence) =>
    silent ? silence(evidence, 'tally') : evidence,
  );
  await using deployed = await deploy(world, { adapters: { ...adapters, books } });
  const license = await deployed.approve();
  silent = true;
  for (const approval of [license, { adapter: 'books', task: 'look', planRevision: 1 }]) {
    const { record } = await deployed.runtime.shadow(approval, PAY);
    const { at, reason } = wouldBe('reject', record);
    assert.deepEqual([at, reason], ['comparison', 'incomplete']);
  }
});

test('where values are not stored, a shadow stores none either', async () => {
  await using deployed = await deploy(invoiceWorld({ values: 'digest' }));
  const effects = [update('invoice', { id: 1 }, { status: ['pending', 'canary-approved'] })];
  const license = await deployed.approve({ effects });
  const action = {
    writes: [{ op: 'update', target: 'invoice', key: { id: 1 }, set: { status: 'canary-seen' } }],
  };
  wouldBe('reject', (await deployed.runtime.shadow(license, action)).record);
  await deployed.runtime.shadow(license, {
    writes: [{ op: 'insert', target: 'canary-table', row: {} }],
  });
  assert.doesNotMatch(JSON.stringify(await deployed.runtime.ledgers.journal()), /canary/);
});
