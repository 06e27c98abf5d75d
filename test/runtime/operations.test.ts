// Goal: an operation contract decides what is proposed, from the very state that the license is
// then bound to. Method: contracts on a world in memory, with state that changes at chosen moments,
// and issuers at their limits.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import type { AdapterFactory } from '../../src/contract/adapter.ts';
import { EffectMatchError } from '../../src/errors.ts';
import { insert, read, row, update } from '../../src/protocol/draft.ts';
import { LIMIT_REASONS } from '../../src/protocol/limits.ts';
import {
  defineOperation,
  identifyOperations,
  type Operation,
} from '../../src/runtime/operation.ts';
import type { IssuerConfig, LimitsConfig } from '../../src/runtime/policy.ts';
import { memoryAdapter, overlayAdapter, remoteAdapter, type World } from '../world/world.ts';
import { assertRejected, type Deployed, deploy, invoiceWorld, ofKind, PAY } from './deploy.ts';

const payInvoice = defineOperation({
  name: 'payInvoice',
  adapter: 'books',
  input: z.strictObject({ invoice: z.int().positive() }),
  reads: ({ invoice }) => [read('invoice', { id: invoice }), read('vendor', { id: 1 })],
  approve({ invoice }, [found, vendor]) {
    if (found === null || found?.status !== 'pending')
      throw new Error(`invoice ${invoice} is not open`);
    if (vendor?.blocked !== false) throw new Error('the vendor is blocked');
    return {
      effects: [update('invoice', { id: invoice }, { status: ['pending', 'paid'] })],
      requires: [row('vendor', { id: 1 }, { blocked: false })],
      continuations: ['reconcile'],
    };
  },
  action: ({ invoice }) => pay(invoice),
});
const pay = (id: number) => ({
  writes: [{ op: 'update', target: 'invoice', key: { id }, set: { status: 'paid' } }],
});
const TASK = { task: 'invoice 1', planRevision: 1 };

const withOperation = (world: World, operation: Operation = payInvoice) =>
  deploy(world, { operations: { [operation.name]: operation } });

test('a proposal names its operation, is bound to the action, and commits', async () => {
  const world = invoiceWorld();
  await using deployed = await withOperation(world);
  const proposal = await deployed.runtime.propose('payInvoice', { invoice: 1 }, TASK);
  assert.equal(proposal.draft.source, 'contract');
  assert.equal(proposal.draft.operation, 'payInvoice');
  assert.deepEqual(proposal.draft.continuations, ['reconcile']);
  assert.match(proposal.rendering, /invoice id=1 {2}status: "pending" -> "paid"/);
  assert.match(proposal.rendering, /watches {3}invoice id=1: every column unchanged/);
  const license = world.approver.sign(proposal, { expiresIn: '10m' });
  const other = { writes: [...pay(1).writes, { op: 'delete', target: 'invoice', key: { id: 2 } }] };
  assertRejected(await deployed.runtime.execute(license, other), 'authority', 'other-action');
  ofKind('committed', await deployed.runtime.execute(license, payInvoice.action({ invoice: 1 })));
  assert.equal(world.books.find('invoice', { id: 1 })?.status, 'paid');
});

test('an operation may leave its action open: then the outcome alone decides', async () => {
  const world = invoiceWorld();
  await using deployed = await withOperation(
    world,
    defineOperation({ ...payInvoice, bindAction: false }),
  );
  const proposal = await deployed.runtime.propose('payInvoice', { invoice: 1 }, TASK);
  assert.equal(proposal.draft.action, undefined);
  const license = world.approver.sign(proposal, { expiresIn: '10m' });
  const roundabout = {
    writes: [
      { op: 'update', target: 'invoice', key: { id: 1 }, set: { status: 'paid', amount: 35 } },
    ],
  };
  ofKind('committed', await deployed.runtime.execute(license, roundabout));
});

test('state that the rule read and that changes afterwards makes the approval stale', async () => {
  const world = invoiceWorld();
  await using deployed = await withOperation(world);
  const proposal = await deployed.runtime.propose('payInvoice', { invoice: 1 }, TASK);
  world.books.write({ op: 'update', target: 'invoice', key: { id: 1 }, set: { amount: 99 } });
  const license = world.approver.sign(proposal, { expiresIn: '10m' });
  assertRejected(await deployed.runtime.execute(license, pay(1)), 'authority', 'stale-state');
});

test('a rule that writes to the rows it was given changes nothing that the license is bound to', async () => {
  const world = invoiceWorld();
  const careless = defineOperation({
    ...payInvoice,
    approve(input, rows) {
      const contracted = payInvoice.approve(input, rows);
      for (const found of rows) Object.assign(found ?? {}, { status: 'paid', blocked: true });
      return contracted;
    },
  });
  await using deployed = await withOperation(world, careless);
  const proposal = await deployed.runtime.propose('payInvoice', { invoice: 1 }, TASK);
  const license = world.approver.sign(proposal, { expiresIn: '10m' });
  ofKind('committed', await deployed.runtime.execute(license, pay(1)));
});

test('state that changes while the rule is thinking makes the approval stale, not wrong', async () => {
  const world = invoiceWorld();
  const slow = defineOperation({
    ...payInvoice,
    reads: ({ invoice }) => [read('invoice', { id: invoice })],
    approve(_, [found]) {
      world.books.write({ op: 'update', target: 'invoice', key: { id: 1 }, set: { amount: 99 } });
      const text = `amount ${found?.amount}`;
      return { effects: [insert('audit', { id: 'a', text })] };
    },
    action: () => ({
      writes: [{ op: 'insert', target: 'audit', row: { id: 'a', text: 'amount 35' } }],
    }),
  });
  await using deployed = await withOperation(world, slow);
  const proposal = await deployed.runtime.propose('payInvoice', { invoice: 1 }, TASK);
  assert.match(proposal.rendering, /amount 35/);
  const license = world.approver.sign(proposal, { expiresIn: '10m' });
  assertRejected(
    await deployed.runtime.execute(license, slow.action({ invoice: 1 })),
    'authority',
    'stale-state',
  );
});

test('input that does not fit the schema never reaches the rule', async () => {
  const world = invoiceWorld();
  await using deployed = await withOperation(world);
  const { runtime } = deployed;
  for (const input of [{ invoice: '1' }, {}, { invoice: 1, more: 1 }, null, { invoice: -1 }]) {
    await assert.rejects(runtime.propose('payInvoice', input, TASK), {
      code: 'ERR_EM_INPUT_INVALID',
    });
  }
  await assert.rejects(
    runtime.propose('payInvoice', { invoice: '1' }, TASK),
    /"payInvoice".*invoice: /,
  );
  await assert.rejects(runtime.propose('payInvoices', {}, TASK), { code: 'ERR_EM_NOT_FOUND' });
  await assert.rejects(runtime.propose('payInvoices', {}, TASK), /configured: payInvoice\)/);
  await using bare = await deploy(invoiceWorld());
  await assert.rejects(bare.runtime.propose('payInvoice', {}, TASK), /configured: none\)/);
  await assert.rejects(runtime.propose('constructor', {}, TASK), { code: 'ERR_EM_NOT_FOUND' });
});

test('issues of any Standard Schema are told with their place', async () => {
  const issues = [{ message: 'odd' }, { message: 'even', path: ['lines', { key: 0 }, 'price'] }];
  const input = {
    '~standard': { version: 1 as const, vendor: 'own', validate: () => ({ issues }) },
  };
  await using deployed = await withOperation(
    invoiceWorld(),
    defineOperation<never>({ ...payInvoice, input }),
  );
  await assert.rejects(
    deployed.runtime.propose('payInvoice', {}, TASK),
    /is not usable: odd; lines\.0\.price: even$/,
  );
});

test('what goes wrong in a contract is said with the name of the operation and the function', async () => {
  const failing: readonly (readonly [Partial<Operation<never>>, string, RegExp])[] = [
    [
      { approve: () => assert.fail('not open') },
      'ERR_EM_OPERATION_FAILED',
      /"payInvoice".*"approve" threw: not open/,
    ],
    [
      { reads: () => assert.fail('no reads') },
      'ERR_EM_OPERATION_FAILED',
      /"reads" threw: no reads/,
    ],
    [
      { action: () => assert.fail('no action') },
      'ERR_EM_OPERATION_FAILED',
      /"action" threw: no action/,
    ],
    [
      { approve: async () => Promise.reject(new Error('later')) },
      'ERR_EM_OPERATION_FAILED',
      /"approve" threw: later/,
    ],
    [{ approve: () => undefined as never }, 'ERR_EM_OPERATION_FAILED', /must return \{ effects/],
    [{ approve: () => null as never }, 'ERR_EM_OPERATION_FAILED', /must return \{ effects/],
    [{ approve: () => 'effects' as never }, 'ERR_EM_OPERATION_FAILED', /must return \{ effects/],
    [
      { approve: () => ({ effects: 5 }) as never },
      'ERR_EM_OPERATION_FAILED',
      /must return \{ effects/,
    ],
    [
      { approve: () => Promise.reject('words') },
      'ERR_EM_OPERATION_FAILED',
      /"approve" threw: words/,
    ],
    [
      { approve: () => ({ effects: [], watch: [] }) as never },
      'ERR_EM_OPERATION_FAILED',
      /unknown field "watch"/,
    ],
    [
      { approve: () => ({ effects: [insert('nowhere', { id: 1 })] }) },
      'ERR_EM_MANIFEST_INVALID',
      /operation "payInvoice".*nowhere/,
    ],
    [
      { reads: () => [read('nowhere', { id: 1 })] },
      'ERR_EM_MANIFEST_INVALID',
      /operation "payInvoice".*nowhere/,
    ],
    [{ action: () => 'drop table' }, 'ERR_EM_ACTION_INVALID', /^(?!operation).*action/],
  ];
  for (const [change, code, message] of failing) {
    const operation = defineOperation({ ...payInvoice, ...change });
    await using deployed = await withOperation(invoiceWorld(), operation);
    await assert.rejects(
      deployed.runtime.propose('payInvoice', { invoice: 1 }, TASK),
      (error: Error) => {
        assert.equal((error as { code?: string }).code, code, error.message);
        assert.match(error.message, message);
        return true;
      },
    );
    assert.deepEqual(await deployed.runtime.ledgers.journal(), []);
  }
});

test('another rule is another frame: what the old one approved is refused', async () => {
  const world = invoiceWorld();
  const changes: readonly Partial<Operation<{ invoice: number }>>[] = [
    {
      approve: ({ invoice }) => ({
        effects: [update('invoice', { id: invoice }, { status: 'paid' })],
      }),
    },
    { reads: () => [] },
    { action: () => pay(2) },
    { version: '2' },
    { bindAction: false },
  ];
  for (const change of changes) {
    await using before = await withOperation(world);
    const proposal = await before.runtime.propose('payInvoice', { invoice: 1 }, TASK);
    const license = world.approver.sign(proposal, { expiresIn: '10m' });
    await using after = await withOperation(world, defineOperation({ ...payInvoice, ...change }));
    assertRejected(await after.runtime.execute(license, pay(1)), 'authority', 'frame-changed');
  }
});

test('the identity of contracts is that of one adapter, in whatever order they are configured', () => {
  const close = defineOperation({ ...payInvoice, name: 'close' });
  const transfer = defineOperation({ ...payInvoice, name: 'transfer', adapter: 'bank' });
  const both = identifyOperations([payInvoice, close], 'books');
  assert.equal(identifyOperations([close, payInvoice], 'books'), both);
  assert.equal(identifyOperations([transfer, close, payInvoice], 'books'), both);
  assert.notEqual(identifyOperations([payInvoice], 'books'), both);
  assert.notEqual(identifyOperations([payInvoice], 'books'), undefined);
  assert.equal(identifyOperations([transfer], 'books'), undefined);
});

test('what is said about one use of an operation is in its proposal', async () => {
  const world = invoiceWorld();
  const blind = defineOperation({
    name: 'payInvoice',
    adapter: 'books',
    input: z.strictObject({}),
    approve: () => ({ effects: [update('invoice', { id: 1 }, { status: ['pending', 'paid'] })] }),
    action: () => pay(1),
  });
  await using deployed = await withOperation(world, blind);
  const { runtime } = deployed;
  const proposal = await runtime.propose(
    'payInvoice',
    {},
    { ...TASK, revision: 'r7', occurrences: 2 },
  );
  assert.equal(proposal.draft.occurrences, 2);
  assert.deepEqual(proposal.draft.continuations, []);
  assert.deepEqual(proposal.approved.watch, []);
  const license = world.approver.sign(proposal, { expiresIn: '10m' });
  assertRejected(await runtime.execute(license, pay(1)), 'authority', 'stale-state');
  assertRejected(
    await runtime.execute(license, pay(1), { revision: 'r8' }),
    'authority',
    'stale-state',
  );
  ofKind('committed', await runtime.execute(license, pay(1), { revision: 'r7' }));
});

test('a fault of the backend is not taken for one of the operation', async () => {
  const world = invoiceWorld();
  const { adapters } = world.start().config;
  const faults = [
    new Error('the backend is down'),
    new EffectMatchError('ERR_EM_ADAPTER_UNAVAILABLE', 'it is away'),
    Object.assign(new Error('not ours'), { code: 'ERR_EM_MANIFEST_INVALID' }),
  ];
  for (const fault of faults) {
    let down = false; // admission reads too
    const books = overlayAdapter(memoryAdapter(world.books) as AdapterFactory, (adapter) => ({
      read: async (reads) => (down ? Promise.reject(fault) : adapter.read(reads)),
    }));
    await using deployed = await deploy(world, {
      adapters: { ...adapters, books },
      operations: { payInvoice },
    });
    down = true;
    await assert.rejects(
      deployed.runtime.propose('payInvoice', { invoice: 1 }, TASK),
      (error: unknown) => error === fault,
    );
  }
});

test('an operation that cannot be checked or identified is refused when it is defined', () => {
  const wrong: readonly (readonly [object, RegExp])[] = [
    [{ name: 'pay invoice' }, /name/],
    [{ adapter: undefined }, /names no adapter/],
    [{ reads: 5 }, /"reads"/],
    [{ reads: payInvoice.approve.bind(null) }, /"reads" without source/],
    [{ input: {} }, /Standard Schema/],
    [{ approve: undefined }, /"approve"/],
    [{ approve: payInvoice.approve.bind(null) }, /without source/],
    [{ read: () => [] }, /unknown field "read"/],
    [{ version: 2 }, /version/],
    [{ bindAction: 'no' }, /bindAction/],
  ];
  for (const [change, message] of wrong) {
    assert.throws(
      () => defineOperation({ ...payInvoice, ...change }),
      (error: Error) => {
        assert.equal((error as { code?: string }).code, 'ERR_EM_CONFIG_INVALID');
        assert.match(error.message, message);
        return true;
      },
    );
  }
});

/** A deployment in which the world's approver has these limits. */
async function limited(world: World, limits: LimitsConfig): Promise<Deployed> {
  const { issuers } = world.start().config;
  const team = issuers['ap-team'] ?? assert.fail();
  return deploy(world, {
    issuers: { 'ap-team': { ...team, limits } },
    operations: {
      payInvoice: payInvoice,
      close: defineOperation({ ...payInvoice, name: 'close' }),
    },
  });
}

const WITHIN: LimitsConfig = {
  operations: ['payInvoice'],
  relations: [{ name: 'invoice', ops: ['update'] }, 'audit'],
  maxEffects: 1,
  maxRows: { invoice: 1 },
  amounts: [{ target: 'invoice', column: 'amount', max: 100 }],
  // A world begins on a Thursday at 10:00 UTC, which is 11:00 in Berlin.
  hours: { from: '08:00', to: '18:00', zone: 'Europe/Berlin', days: ['thu'] },
  maxLifetime: '10m', // for as long as the licenses below are signed
};
const BEYOND: Readonly<Record<(typeof LIMIT_REASONS)[number], LimitsConfig>> = {
  'limit-operation': { operations: ['close'] },
  'limit-relations': { relations: ['audit', { name: 'invoice', ops: ['insert'] }] },
  'limit-effects': { maxEffects: 0 },
  'limit-rows': { maxRows: { invoice: 0 } },
  'limit-amount': { amounts: [{ target: 'invoice', column: 'status', max: 100 }] },
  'limit-hours': { hours: { from: '08:00', to: '11:00', zone: 'Europe/Berlin', days: ['thu'] } },
  'limit-lifetime': { maxLifetime: '599s' },
};

test('an approval within every limit commits', async () => {
  const world = invoiceWorld();
  await using deployed = await limited(world, WITHIN);
  const proposal = await deployed.runtime.propose('payInvoice', { invoice: 1 }, TASK);
  const license = world.approver.sign(proposal, { expiresIn: '10m' });
  ofKind('committed', await deployed.runtime.execute(license, pay(1)));
});

for (const reason of LIMIT_REASONS) {
  test(`${reason}: the same approval beyond this one limit is refused before the claim`, async () => {
    const world = invoiceWorld();
    const before = world.books.rows();
    await using deployed = await limited(world, { ...WITHIN, ...BEYOND[reason] });
    const proposal = await deployed.runtime.propose('payInvoice', { invoice: 1 }, TASK);
    const license = world.approver.sign(proposal, { expiresIn: '10m' });
    const terminal = assertRejected(
      await deployed.runtime.execute(license, pay(1)),
      'authority',
      reason,
    );
    assert.equal(terminal.claim, undefined);
    assert.equal(await deployed.runtime.ledgers.holder(terminal.occurrence), undefined);
    assert.deepEqual(world.books.rows(), before);
  });
}

test('hours are those of the execution: a window that closes while the candidate is held refuses it at the final gate', async () => {
  const world = invoiceWorld();
  const before = world.books.rows();
  const { issuers } = world.start().config;
  const team = issuers['ap-team'] ?? assert.fail();
  const hours = { from: '10:00', to: '10:05', zone: 'UTC' };
  await using deployed = await deploy(world, {
    issuers: { 'ap-team': { ...team, limits: { hours } } },
    at: { 'path:observed': () => world.advance(5 * 60_000) },
  });
  const license = await deployed.approve({}, { expiresIn: '1d' });
  const { detail } = assertRejected(
    await deployed.runtime.execute(license, PAY),
    'final-gate',
    'limit-hours',
  );
  assert.equal(
    detail,
    'it is thu 10:05 in UTC; approvals of this issuer run only daily 10:00-10:05 (UTC)',
  );
  assert.deepEqual(world.books.rows(), before);
});

test('a lifetime that is no duration stops the deployment instead of limiting nothing', async () => {
  for (const maxLifetime of ['an hour', '0s', -1, Number.NaN]) {
    await assert.rejects(limited(invoiceWorld(), { maxLifetime }), {
      code: 'ERR_EM_CONFIG_INVALID',
      message: /issuer "ap-team" has the maxLifetime .*; write a duration such as '1h'/,
    });
  }
});

test('hours in a zone that does not exist, or that never come, stop the deployment', async () => {
  const good = { from: '08:00', to: '18:00', zone: 'Europe/Berlin' };
  for (const [wrong, message] of [
    [{ zone: 'Europe/Atlantis' }, /the zone "Europe\/Atlantis", which is not known/],
    [{ to: '08:00' }, /from and to are the same/],
    [{ until: '19:00' }, /not usable/],
  ] as const) {
    await assert.rejects(
      limited(invoiceWorld(), { hours: { ...good, ...wrong } }),
      (error: EffectMatchError) => {
        assert.equal(error.code, 'ERR_EM_CONFIG_INVALID');
        assert.match(error.message, message);
        return true;
      },
    );
  }
});

test('a limit that names nothing that exists stops the deployment instead of limiting nothing', async () => {
  const wrong: readonly (readonly [object, RegExp])[] = [
    [{ relations: ['invoices'] }, /"invoices".*not registered/],
    [{ maxRows: { invoices: 1 } }, /"invoices".*not registered/],
    [{ amounts: [{ target: 'invoice', column: 'amuont', max: 1 }] }, /no such column/],
    [{ amounts: [{ target: 'invoice', column: 'amount', max: 1e30 }] }, /1e\+30/],
    [{ amounts: [{ target: 'invoice', column: 'amount', max: Number.NaN }] }, /NaN/],
    [{ operations: ['payInvoices'] }, /payInvoices/],
    [{ maxEffect: 1 }, /maxEffect/],
    [{ maxEffects: -1 }, /maxEffects/],
    [{ relations: [{ name: 'invoice', ops: ['upsert'] }] }, /relations/],
  ];
  for (const [limits, message] of wrong) {
    await assert.rejects(limited(invoiceWorld(), limits as LimitsConfig), (error: Error) => {
      assert.equal((error as { code?: string }).code, 'ERR_EM_CONFIG_INVALID', error.message);
      assert.match(error.message, message);
      return true;
    });
  }
});

test('a limit is for what the issuer may approve: a relation of another adapter does not count', async () => {
  const world = invoiceWorld();
  const { issuers, adapters } = world.start().config;
  const team = issuers['ap-team'] ?? assert.fail();
  const bank = overlayAdapter(remoteAdapter(world.bank) as AdapterFactory, ({ registration }) => ({
    registration: {
      ...registration,
      targets: [
        ...registration.targets,
        { name: 'transfer', columns: ['id'], key: ['id'], volatile: [] },
      ],
    },
  }));
  const limitedTo = (may: readonly string[]) =>
    deploy(world, {
      adapters: { ...adapters, bank },
      issuers: { 'ap-team': { ...team, may, limits: { relations: ['transfer'] } } },
    });
  await assert.rejects(limitedTo(['books']), {
    code: 'ERR_EM_CONFIG_INVALID',
    message: /"transfer".*not registered/,
  });
  await using _ = await limitedTo(['books', 'bank']);
});

test('what an object of the configuration throws is not taken for a fault of the configuration', async () => {
  const fault = new Error('not ours');
  const hostile = new Proxy({ name: 'invoice', ops: ['update'] } as const, {
    ownKeys() {
      throw fault;
    },
  });
  await assert.rejects(
    limited(invoiceWorld(), { relations: [hostile] }),
    (error) => error === fault,
  );
});

test('issuers that are described wrongly stop the deployment', async () => {
  const world = invoiceWorld();
  const { issuers } = world.start().config;
  const team = issuers['ap-team'] ?? assert.fail();
  const wrong: readonly (readonly [unknown, RegExp])[] = [
    [undefined, /"ap-team" needs a key/],
    [{ may: ['books'] }, /"ap-team" needs a key/],
    [{ ...team, key: [] }, /"ap-team" needs a key/],
    [{ ...team, key: [team.key, 5] }, /"ap-team" needs a key/],
    [{ ...team, key: 'ed25519:short' }, /not an approver key/],
    [{ ...team, may: undefined }, /"ap-team" needs may/],
    [{ ...team, may: 'books' }, /"ap-team" needs may/],
    [{ ...team, may: ['books', 'nowhere'] }, /"nowhere", but no adapter/],
    [{ ...team, may: ['constructor'] }, /"constructor", but no adapter/],
    [{ ...team, sources: [] }, /the issuers are not usable/],
    [{ ...team, sources: ['guess'] }, /the issuers are not usable/],
    [
      { ...team, limits: { operations: ['payInvoice'] } },
      /"payInvoice", but no operation of that name/,
    ],
  ];
  for (const [issuer, message] of wrong) {
    await assert.rejects(
      deploy(world, { issuers: { 'ap-team': issuer as IssuerConfig } }),
      (error: Error) => {
        assert.equal((error as { code?: string }).code, 'ERR_EM_CONFIG_INVALID', error.message);
        assert.match(error.message, message);
        return true;
      },
    );
  }
});

test('an operation is configured under its own name, for an adapter that there is', async () => {
  const world = invoiceWorld();
  await assert.rejects(deploy(world, { operations: { pay: payInvoice } }), /"payInvoice".*"pay"/);
  const elsewhere = defineOperation({ ...payInvoice, adapter: 'nowhere' });
  await assert.rejects(deploy(world, { operations: { payInvoice: elsewhere } }), /"nowhere"/);
});
