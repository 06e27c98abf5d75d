// Goal: a candidate is private, tools can fail without a trace, and exactly the held state becomes
// durable, once. Method: real files; tools that misbehave in every way a function can; two
// candidates of one base against each other.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type SnapshotOptions, snapshot } from '../../../src/adapters/snapshot/index.ts';
import { approver, generateApprover } from '../../../src/crypto/approver.ts';
import { EffectMatchError } from '../../../src/errors.ts';
import { generated, insert, read, row, update } from '../../../src/protocol/draft.ts';
import type { SignedLicense } from '../../../src/protocol/license.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { change, durable, failure, freshPath, hold, judge, look, open } from './store.ts';
import { scriptModule, toolModule } from './tool-module.ts';

interface Shop {
  orders: { id: string; status: string; total: number; note?: unknown }[];
  payments: { ref: string; order: string }[];
  count: number;
}

const INITIAL: Shop = {
  orders: [
    { id: 'o1', status: 'open', total: 5 },
    { id: 'o2', status: 'open', total: 7 },
  ],
  payments: [],
  count: 0,
};

const tools = toolModule({
  set(state: Shop, args: { readonly id: string; readonly status: string }) {
    const order = state.orders.find(({ id }) => id === args.id);
    if (order === undefined) throw new Error(`there is no order ${args.id}`);
    order.status = args.status;
  },
  place(state: Shop, { total, id }: { readonly total: number; readonly id?: string }) {
    state.count += 1;
    const order = id ?? `o${100 + state.count}`;
    state.orders.push({ id: order, status: 'new', total });
    state.payments.push({ ref: `p${state.count}`, order });
  },
  spoil(state: Shop, { how }: { readonly how: string }) {
    state.count = 99;
    if (how === 'throw') throw new Error('out of stock');
    if (how === 'odd') throw { toString: () => JSON.parse('not JSON') };
    const note: Record<string, unknown> = {
      date: new Date(0),
      nan: Number.NaN,
      map: new Map(),
      undefined,
    };
    for (const order of state.orders) order.note = note[how];
  },
  keep(state: Shop) {
    Object.assign(globalThis, { kept: state });
    state.count = 1;
  },
  /** Changes what an earlier call kept. */
  empty() {
    const { kept } = globalThis as { kept?: Shop };
    if (kept === undefined) throw new Error('nothing was kept');
    kept.orders.length = 0;
  },
  async slowly(state: Shop) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    state.count = 42;
  },
  hang: () => new Promise(() => {}),
  count(state: { rows: { id: number; of: number }[] }, { of }: { readonly of: number }) {
    state.rows.push({ id: state.rows.length + 1, of });
  },
  async refuse() {
    await new Promise((resolve) => setTimeout(resolve, 1));
    throw new Error('no');
  },
});

/**
 * A module whose tools also `write` their arguments into orders and `meet`: that call tells that it
 * has begun, and ends once `count` of them have.
 */
const MEETING = scriptModule(`export default ({ arrivals, count }) => ({
  set(state, { id, status }) {
    for (const order of state.orders) if (order.id === id) order.status = status;
  },
  write(state, args) {
    for (const order of state.orders) Object.assign(order, args);
  },
  async meet() {
    Atomics.add(arrivals, 0, 1);
    while (Atomics.load(arrivals, 0) < count) await new Promise((resolve) => setTimeout(resolve, 1));
  },
});`);

const options = (file: string): SnapshotOptions => ({
  file,
  initial: INITIAL,
  collections: {
    orders: { path: '/orders', key: 'id', fields: ['status', 'total'] },
    payments: { path: '/payments', key: 'ref', fields: ['order'] },
  },
  tools,
});
const call = (tool: string, args: unknown = {}, more: object = {}) => ({ tool, args, ...more });

test('a call that fails is undone, and the action goes on only where it may fail', async () => {
  const adapter = await open(options(freshPath()));
  for (const how of ['throw', 'odd', 'date', 'nan', 'map', 'undefined']) {
    const spoil = call('spoil', { how });
    const set = call('set', { id: 'o1', status: how });
    assert.equal((await failure(adapter, { calls: [set, spoil] })).reason, 'tool-failed');
    const { stage } = await hold(adapter, how, {
      calls: [set, { ...spoil, mayFail: true }, call('keep')],
    });
    const outcome = await judge(adapter, await stage.observe(), [
      update('orders', { id: 'o1' }, { status: ['open', how] }),
      update('/', { path: '/count' }, { value: [0, 1] }),
    ]);
    assert.equal(outcome.kind, 'EXACT', JSON.stringify(outcome));
    await stage.discard();
  }
});

test('a rejected promise is a failed call, and one that stays open ends the action', async () => {
  const adapter = await open(options(freshPath()));
  assert.equal((await failure(adapter, { calls: [call('refuse')] })).detail, 'call 1 (refuse): no');
  await hold(adapter, 'recovered', { calls: [call('refuse', {}, { mayFail: true })] });
  const { stage } = await hold(adapter, 'in time', { calls: [call('slowly')] });
  assert.deepEqual(
    [...(await stage.observe()).records].map(({ key }) => key),
    [{ path: '/count' }],
  );
  const impatient = await open({ ...options(freshPath()), toolTimeoutMs: 20 });
  const late = await failure(impatient, { calls: [call('hang', {}, { mayFail: true })] });
  assert.equal(late.reason, 'tool-timeout');
});

test('what a tool keeps of its copy is neither the candidate nor the durable state', async () => {
  const file = freshPath();
  const adapter = await open(options(file));
  const { stage, proofs } = await hold(adapter, 'kept', {
    calls: [call('keep'), call('set', { id: 'o1', status: 'x' })],
  });
  const { evidence, ...facts } = await stage.observe();
  const later = await hold(adapter, 'later', { calls: [call('empty')] });
  assert.deepEqual((await later.stage.observe()).records, []);
  assert.equal((await stage.recheck()).evidence, evidence);
  assert.deepEqual((await stage.observe()).records, facts.records);
  assert.equal(
    (await stage.promote(proofs.permit({ evidence, candidate: facts.candidate }))).kind,
    'confirmed',
  );
  const orders = [{ ...INITIAL.orders[0], status: 'x' }, INITIAL.orders[1]];
  assert.deepEqual(durable(file).state, { ...INITIAL, count: 1, orders });
});

test('of two candidates of one base one is promoted, the other is refused, and nothing is lost', async () => {
  const file = freshPath();
  const one = await open(options(file));
  const other = await open(options(file));
  const first = await hold(one, 'first', { calls: [call('set', { id: 'o1', status: 'paid' })] });
  const second = await hold(other, 'second', {
    calls: [call('set', { id: 'o2', status: 'paid' })],
  });
  const permits = [first, second].map(async ({ stage, proofs }) =>
    proofs.permit(await stage.observe()),
  );
  const [here, there] = await Promise.all(permits);
  assert.ok(here && there);
  assert.deepEqual(await first.stage.promote(here), { kind: 'confirmed' });
  const after = durable(file);
  const promotion = await second.stage.promote(there);
  assert.ok(
    promotion.kind === 'refused' && promotion.reason === 'base-moved',
    JSON.stringify(promotion),
  );
  assert.deepEqual(durable(file), after);
  assert.equal(
    await other.markers.find(second.proofs.occurrence),
    undefined,
    'its marker went with it',
  );
  assert.equal((await one.markers.find(first.proofs.occurrence))?.disposition, 'committed');
  const [paid] = await other.read([read('orders', { id: 'o1' }, ['status'])]);
  assert.deepEqual(paid?.row, { status: 'paid' });
});

test('a state that moved under a held candidate shows in its observation and in its recheck', async () => {
  const file = freshPath();
  const adapter = await open(options(file));
  const held = await hold(adapter, 'held', { calls: [call('keep')] });
  const before = await held.stage.recheck();
  const quick = await hold(adapter, 'quick', {
    calls: [call('set', { id: 'o2', status: 'paid' })],
  });
  await quick.stage.promote(quick.proofs.permit(await quick.stage.observe()));
  assert.notEqual((await held.stage.recheck()).evidence, before.evidence);
  const outcome = await judge(adapter, await held.stage.observe(), []);
  assert.equal(outcome.kind, 'INDETERMINATE');
});

test('a restored file with the same version number and another content is another base', async () => {
  const file = freshPath();
  const adapter = await open(options(file));
  const { stage, proofs } = await hold(adapter, 'restored', { calls: [call('keep')] });
  const permit = proofs.permit(await stage.observe());
  change(file, "update effectmatch_state set digest = 'another'");
  const promotion = await stage.promote(permit);
  assert.ok(promotion.kind === 'refused' && promotion.reason === 'base-moved');
});

test('only the current state is kept, however many there were', async () => {
  const file = freshPath();
  const adapter = await open(options(file));
  for (const name of ['a', 'b', 'c']) {
    const { stage, proofs } = await hold(adapter, name, {
      calls: [call('set', { id: 'o1', status: name })],
    });
    assert.equal((await stage.promote(proofs.permit(await stage.observe()))).kind, 'confirmed');
  }
  const { version, texts } = durable(file);
  assert.deepEqual({ version, texts }, { version: 4, texts: 1 });
});

test('a generated identifier matches wherever it is referenced; one that the agent chose does not', async () => {
  const adapter = await open(options(freshPath()));
  const effects = [
    insert('orders', { id: generated('order'), status: 'new', total: 3 }),
    insert('payments', { ref: generated('payment'), order: generated('order') }),
    update('/', { path: '/count' }, { value: [0, 1] }),
  ];
  const honest = await hold(adapter, 'honest', { calls: [call('place', { total: 3 })] });
  assert.equal((await judge(adapter, await honest.stage.observe(), effects)).kind, 'EXACT');
  const chosen = await hold(adapter, 'chosen', {
    calls: [call('place', { total: 3, id: 'o777' })],
  });
  assert.equal((await judge(adapter, await chosen.stage.observe(), effects)).kind, 'DIVERGED');
  const crossed = await hold(adapter, 'crossed', { calls: [call('place', { total: 3 })] });
  const evidence = await crossed.stage.observe();
  const records = [...evidence.records].map((record) =>
    record.target === 'payments' ? { ...record, after: { ...record.after, order: 'o1' } } : record,
  );
  assert.equal((await judge(adapter, { ...evidence, records }, effects)).kind, 'DIVERGED');
});

test('the next number of a counter is generated, even where an argument happens to be the same number', async () => {
  const adapter = await open({
    file: freshPath(),
    initial: { rows: [{ id: 1, of: 9 }] },
    collections: { rows: { path: '/rows', key: 'id' } },
    tools,
  });
  const { stage } = await hold(adapter, 'next', { calls: [call('count', { of: 2 })] });
  const effects = [insert('rows', { id: generated('row'), of: 2 })];
  assert.equal((await judge(adapter, await stage.observe(), effects)).kind, 'EXACT');
});

test('two licenses signed for one version: the runtime commits one, rejects the other, and keeps what it committed', async () => {
  const file = freshPath();
  const issuer = generateApprover('team');
  const toolData = { arrivals: new Int32Array(new SharedArrayBuffer(4)), count: 2 };
  const deployed = { ...options(file), tools: MEETING, toolData };
  const deploy = () =>
    createRuntime({
      store: `${file}.ledger`,
      keyring: `${file}.keys.json`,
      issuers: { team: { key: issuer.publicKey, may: ['shop'] } },
      adapters: { shop: { open: async () => await open(deployed) } },
    });
  await using here = await deploy();
  await using there = await deploy();
  const { sign } = approver(issuer);
  const pay = async (id: string) => {
    const proposal = await here.prepare({
      adapter: 'shop',
      task: `pay ${id}`,
      planRevision: 1,
      effects: [update('orders', { id }, { status: ['open', 'paid'] })],
      requires: [row('orders', { id }, { status: 'open' })],
    });
    return sign(proposal, { expiresIn: '1h' });
  };
  const [one, two] = [await pay('o1'), await pay('o2')];
  const action = (id: string) => ({ calls: [call('set', { id, status: 'paid' }), call('meet')] });
  const terminals = await Promise.all([
    here.execute(one, action('o1')),
    there.execute(two, action('o2')),
  ]);
  const paid = (durable(file).state as Shop).orders
    .filter(({ status }) => status === 'paid')
    .map(({ id }) => id);
  const committed = terminals.flatMap((terminal, index) =>
    terminal.kind === 'committed' ? [`o${index + 1}`] : [],
  );
  assert.deepEqual(paid, committed);
  assert.deepEqual(terminals.map(({ kind }) => kind).sort(), ['committed', 'rejected']);
  assert.deepEqual(look(file, 'select disposition from effectmatch_marker'), [
    { disposition: 'committed' },
  ]);
});

test('whoever still holds a license or an action cannot change what was approved while it runs', async () => {
  const file = freshPath();
  const issuer = generateApprover('team');
  const doc = { pay: 2 };
  const arrivals = new Int32Array(new SharedArrayBuffer(4));
  let held: SignedLicense | undefined;
  const forge = () => {
    for (const { after } of held?.approved.effects ?? []) {
      const cell = after?.doc;
      if (cell !== undefined && 'is' in cell && cell.is !== null)
        Object.assign(cell.is, { pay: 9 });
    }
    doc.pay = 9;
  };
  await using runtime = await createRuntime({
    store: `${file}.ledger`,
    keyring: `${file}.keys.json`,
    issuers: { team: { key: issuer.publicKey, may: ['shop'] } },
    adapters: {
      shop: snapshot({
        file,
        initial: { orders: [{ id: 'o1', doc: { pay: 1 } }] },
        collections: { orders: { path: '/orders', key: 'id', fields: ['doc'] } },
        tools: MEETING,
        toolData: { arrivals, count: 2 },
      }),
    },
  });
  const approve = async () => {
    const effects = [update('orders', { id: 'o1' }, { doc: [{ pay: 1 }, { pay: 2 }] })];
    const proposal = await runtime.prepare({
      adapter: 'shop',
      task: 'pay',
      planRevision: 1,
      effects,
    });
    held = structuredClone(approver(issuer).sign(proposal, { expiresIn: '1h' }));
    return held;
  };
  /** Forges what it can reach while the first call runs. */
  const executeForged = async (license: SignedLicense, action: object) => {
    Atomics.store(arrivals, 0, 0);
    const executed = runtime.execute(license, action);
    while (Atomics.load(arrivals, 0) < 1) await sleep(1);
    forge();
    Atomics.add(arrivals, 0, 1);
    return await executed;
  };
  const raise = { calls: [call('meet'), call('write', { doc: { pay: 9 } })] };
  const refused = await executeForged(await approve(), raise);
  assert.equal(refused.kind === 'rejected' && refused.reason, 'diverged');
  assert.deepEqual(durable(file).state, { orders: [{ id: 'o1', doc: { pay: 1 } }] });
  doc.pay = 2;
  const asApproved = { calls: [call('meet'), call('write', { doc })] };
  assert.equal((await executeForged(await approve(), asApproved)).kind, 'committed');
  assert.deepEqual(durable(file).state, { orders: [{ id: 'o1', doc: { pay: 2 } }] });
});

test('a file with anything beside the store is refused, and what is added later closes the boundary', async () => {
  const foreign = freshPath();
  change(foreign, 'create table invoice (id integer)');
  await assert.rejects(open(options(foreign)), refusedAs('ERR_EM_ADAPTER_REFUSED'));
  const file = freshPath();
  const adapter = await open(options(file));
  const { stage, proofs } = await hold(adapter, 'trigger', { calls: [call('keep')] });
  const permit = proofs.permit(await stage.observe());
  change(
    file,
    'create trigger more after update on effectmatch_state begin update effectmatch_state set text = 1; end',
  );
  assert.equal(
    (await adapter.survey()).outlets.filter(({ disposition }) => disposition === 'unclassified')
      .length,
    1,
  );
  const promotion = await stage.promote(permit);
  assert.ok(promotion.kind === 'refused' && promotion.reason === 'boundary-changed');
});

test('a stored state that is not the one its digest names is a fault, never a base', async () => {
  const file = freshPath();
  const adapter = await open(options(file));
  change(file, `update effectmatch_state set text = '{"orders":[]}'`);
  await assert.rejects(
    hold(adapter, 'damaged', { calls: [call('keep')] }),
    refusedAs('ERR_EM_ADAPTER_UNAVAILABLE'),
  );
});

test('with digested values a failed call does not quote the tool', async () => {
  const adapter = await open({ ...options(freshPath()), values: 'digest' });
  const { detail } = await failure(adapter, {
    calls: [call('set', { id: 'secret', status: 'x' })],
  });
  assert.doesNotMatch(detail, /secret/);
});

function refusedAs(code: string) {
  return (error: unknown) => error instanceof EffectMatchError && error.code === code;
}
