// Goal: elements of lists that are declared as references are approved, labelled and counted one by
// one, without order. Method: real files and the core's judgement for tools that are honest, lose,
// double or swap; random documents.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { diffViews } from '../../../src/adapters/snapshot/diff.ts';
import { writeDocument } from '../../../src/adapters/snapshot/document.ts';
import type { SnapshotOptions } from '../../../src/adapters/snapshot/index.ts';
import { admitLayout } from '../../../src/adapters/snapshot/layout.ts';
import { viewDocument } from '../../../src/adapters/snapshot/view.ts';
import { approver, generateApprover } from '../../../src/crypto/approver.ts';
import {
  any,
  count,
  generated,
  insert,
  read,
  remove,
  row,
  update,
} from '../../../src/protocol/draft.ts';
import type { ApprovedEffect } from '../../../src/protocol/effect.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { durable, freshPath, hold, judge, open } from './store.ts';
import { toolModule } from './tool-module.ts';

interface Shop {
  orders: { id: string; tags: string[]; lines: { no: string; sku: string }[] }[];
  customers: Record<string, { orders: string[] }>;
  recent: string[];
}

const INITIAL: Shop = {
  orders: [{ id: 'o1', tags: ['gift', 'gift', 'new'], lines: [{ no: 'l1', sku: 'pear' }] }],
  customers: { ann: { orders: ['o1'] } },
  recent: ['o1'],
};

const options = (): SnapshotOptions => ({
  file: freshPath(),
  initial: INITIAL,
  collections: {
    orders: {
      path: '/orders',
      key: 'id',
      references: { '/lines': { fields: ['no', 'sku'], generated: ['no'] }, '/tags': {} },
    },
    customers: { path: '/customers', key: 'name', map: true, references: { '/orders': {} } },
  },
  references: { '/recent': {} },
  tools: toolModule({
    place(state: Shop, { how }: { readonly how: string }) {
      const lines = [
        { no: 'l77', sku: 'apple' },
        { no: 'l78', sku: 'apple' },
      ];
      if (how === 'doubled') lines[1] = { no: 'l77', sku: 'apple' };
      if (how === 'known') lines[1] = { no: 'l1', sku: 'apple' };
      if (how === 'l900') lines[1] = { no: 'l900', sku: 'apple' };
      if (how === 'more') lines.push({ no: 'l79', sku: 'apple' });
      if (how === 'field') Object.assign(lines[0] as object, { free: true });
      state.orders.push({
        id: 'o2',
        tags: [],
        lines: how === 'reversed' ? lines.reverse() : lines,
      });
      state.customers.ann?.orders.unshift(how === 'crossed' ? 'o1' : 'o2');
      state.recent.push('o2');
    },
    tag(state: Shop, { tags }: { readonly tags: string[] }) {
      for (const order of state.orders) order.tags = tags;
    },
    spoil(state: { orders: { lines: unknown }[] }, { lines }: { readonly lines: unknown }) {
      for (const order of state.orders) order.lines = lines;
    },
  }),
});

const line = { 'orders.id': generated('order'), sku: 'apple' };
const PLACED: readonly ApprovedEffect[] = [
  insert('orders', { id: generated('order'), tags: [], lines: [] }),
  insert('orders/lines', { ...line, no: generated('first') }),
  insert('orders/lines', { ...line, no: generated('second') }),
  insert('customers/orders', { 'customers.name': 'ann', value: generated('order') }),
  insert('/recent', { value: generated('order') }),
];

test('identifiers in nested lists, and references in lists, carry labels', async () => {
  const adapter = await open(options());
  const verdicts: Record<string, string> = {};
  for (const how of [
    'honest',
    'reversed',
    'doubled',
    'known',
    'l900',
    'more',
    'field',
    'crossed',
  ]) {
    const { stage } = await hold(adapter, how, { calls: [{ tool: 'place', args: { how } }] });
    verdicts[how] = (await judge(adapter, await stage.observe(), PLACED)).kind;
  }
  const { honest, reversed, ...wrong } = verdicts;
  assert.deepEqual({ honest, reversed }, { honest: 'EXACT', reversed: 'EXACT' });
  assert.deepEqual(new Set(Object.values(wrong)), new Set(['DIVERGED']), JSON.stringify(wrong));
});

test('elements count, and have no order', async () => {
  const adapter = await open(options());
  const element = (value: string) => ({ 'orders.id': 'o1', value });
  const cases: readonly (readonly [readonly string[], readonly ApprovedEffect[], string])[] = [
    [['new', 'gift', 'gift'], [], 'EXACT'],
    [['new', 'gift'], [remove('orders/tags', null, element('gift'))], 'EXACT'],
    [['new'], [remove('orders/tags', null, element('gift'))], 'DIVERGED'],
    [['new'], [count(remove('orders/tags', null, element('gift')), 2)], 'EXACT'],
    [[], [count(remove('orders/tags', null, { 'orders.id': 'o1', value: any() }), 3)], 'EXACT'],
    [['new', 'gift', 'gift', 'gift'], [insert('orders/tags', element('gift'))], 'EXACT'],
    [['new', 'gift', 'gift', 'gift'], [insert('orders/tags', element('new'))], 'DIVERGED'],
  ];
  for (const [tags, effects, verdict] of cases) {
    const { stage } = await hold(adapter, `tags ${tags}`, {
      calls: [{ tool: 'tag', args: { tags } }],
    });
    const outcome = await judge(adapter, await stage.observe(), effects);
    assert.equal(outcome.kind, verdict, `${tags}: ${JSON.stringify(outcome)}`);
  }
});

test('a list that holds something else is compared as a whole value of its record', async () => {
  const adapter = await open(options());
  const gone = remove('orders/lines', null, { 'orders.id': 'o1', no: 'l1', sku: 'pear' });
  for (const lines of ['none', { l1: 'pear' }, ['pear'], null]) {
    const { stage } = await hold(adapter, JSON.stringify(lines), {
      calls: [{ tool: 'spoil', args: { lines } }],
    });
    const evidence = await stage.observe();
    assert.equal((await judge(adapter, evidence, [gone])).kind, 'DIVERGED');
    const whole = update('orders', { id: 'o1' }, { lines: [[], lines] });
    assert.equal((await judge(adapter, evidence, [gone, whole])).kind, 'EXACT');
  }
});

test('state is read with its lists whole, so that an approval can depend on them', async () => {
  const settings = options();
  const issuer = generateApprover('team');
  await using runtime = await createRuntime({
    store: `${settings.file}.ledger`,
    keyring: `${settings.file}.keys.json`,
    issuers: { team: { key: issuer.publicKey, may: ['shop'] } },
    adapters: { shop: { open: async () => await open(settings) } },
  });
  const approve = async (
    task: string,
    tags: readonly string[],
    effects: readonly ApprovedEffect[],
  ) => {
    const requires = [row('orders', { id: 'o1' }, { tags: [...tags] })];
    const watch = [read('orders', { id: 'o1' }), read('/', { path: '/recent' })];
    const draft = { adapter: 'shop', task, planRevision: 1, effects, requires, watch };
    return approver(issuer).sign(await runtime.prepare(draft), { expiresIn: '1h' });
  };
  const effects = [insert('orders/tags', { 'orders.id': 'o1', value: 'late' })];
  const first = await approve('first', ['new', 'gift', 'gift'], effects);
  const stale = await approve('stale', ['gift', 'new', 'gift'], effects);
  const action = { calls: [{ tool: 'tag', args: { tags: ['late', 'gift', 'new', 'gift'] } }] };
  assert.equal((await runtime.execute(first, action)).kind, 'committed');
  assert.deepEqual((durable(settings.file).state as Shop).orders[0]?.tags, [
    'late',
    'gift',
    'new',
    'gift',
  ]);
  const late = await runtime.execute(stale, action);
  assert.ok(late.kind === 'rejected' && late.at === 'authority', JSON.stringify(late));
});

test('lists that cannot be told apart, and approvals that no element could match, are refused', async () => {
  const admit = (references: object) =>
    admitLayout({
      ...options(),
      collections: { orders: { path: '/orders', key: 'id', references } },
    } as SnapshotOptions);
  for (const references of [
    { '': {} },
    { '/*/x': {} },
    { '/a': {}, '/a/b': {} },
    { '/a': { fields: ['*'] } },
    { '/a': { fields: ['orders.id'] } },
    { '/a': { fields: ['no'], generated: ['sku'] } },
    { a: {} },
  ]) {
    assert.throws(
      () => admit(references),
      { code: 'ERR_EM_ADAPTER_REFUSED' },
      JSON.stringify(references),
    );
  }
  assert.throws(() => admitLayout({ ...options(), references: { '/orders/0': {} } }), {
    code: 'ERR_EM_ADAPTER_REFUSED',
  });
  const adapter = await open(options());
  const { stage } = await hold(adapter, 'any', { calls: [{ tool: 'place', args: { how: '' } }] });
  const evidence = await stage.observe();
  for (const effect of [
    update('orders/tags', { 'orders.id': 'o1' }, { value: ['gift', 'x'] }),
    insert('orders/tags', { value: 'x' }),
    insert('orders/tags', { 'orders.id': 'o1' }),
    insert('orders/tags', { 'orders.id': 'o1', value: 'x', more: 1 }),
    insert('orders/tags', { 'orders.id': 'o1', value: generated('loose') }),
  ]) {
    await assert.rejects(judge(adapter, evidence, [effect]), { code: 'ERR_EM_MANIFEST_INVALID' });
  }
});

const layout = admitLayout(options());
const text = fc.constantFrom('a', 'b', '$x', '');
const odd = fc.oneof(text, fc.constant(null), fc.array(text, { maxLength: 2 }));
const lines = fc.array(
  fc.dictionary(fc.constantFrom('no', 'sku', '$y'), text, { noNullPrototype: true }),
  {
    maxLength: 3,
  },
);
const order = fc.record({
  id: fc.constantFrom('o1', 'o2', 'o3'),
  tags: fc.oneof(fc.array(odd, { maxLength: 4 }), odd),
  lines: fc.oneof(lines, odd),
});
const shop = fc.record({
  orders: fc.oneof(
    { weight: 5, arbitrary: fc.uniqueArray(order, { maxLength: 3, selector: ({ id }) => id }) },
    { weight: 1, arbitrary: fc.array(order, { minLength: 2, maxLength: 3 }) },
  ),
  recent: fc.oneof(fc.array(odd, { maxLength: 3 }), odd),
});

test('two documents have no difference exactly when they are the same up to the order of these lists', () => {
  const view = (document: unknown) => viewDocument(layout, JSON.parse(writeDocument(document)));
  fc.assert(
    fc.property(shop, shop, fc.boolean(), (one, other, shuffled) => {
      const second = shuffled ? reverseLists(one) : other;
      const records = diffViews(layout, view(one), view(second));
      assert.equal(records.length === 0, settle(one) === settle(second), JSON.stringify(records));
    }),
    { numRuns: 2000 },
  );
});

type Document = { readonly orders: readonly Record<string, unknown>[]; readonly recent: unknown };

function reverseLists(document: Document): Document {
  const turn = (list: unknown) => (Array.isArray(list) ? list.toReversed() : list);
  const orders = document.orders.map((one) => ({
    ...one,
    tags: turn(one.tags),
    lines: turn(one.lines),
  }));
  return { orders, recent: turn(document.recent) };
}

/** One text for all documents that should compare equal, without a look at the adapter. */
function settle({ orders, recent }: Document): string {
  const sort = (list: unknown) => (Array.isArray(list) ? list.map(stable).sort() : list);
  const ids = orders.map(({ id }) => id);
  if (new Set(ids).size !== ids.length) return stable({ orders, recent: sort(recent) });
  const isLines = (list: unknown) =>
    Array.isArray(list) &&
    list.every((one) => typeof one === 'object' && one !== null && !Array.isArray(one));
  return stable({
    // A list that is declared with fields and holds something else keeps its order, and its own
    // form.
    orders: orders.map((one) => ({
      ...one,
      tags: sort(one.tags),
      lines: isLines(one.lines) ? sort(one.lines) : [one.lines],
    })),
    recent: sort(recent),
  });
}

function stable(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
