// Goal: no path, identifier or leftover that an agent can bring into a tool gets past the
// comparison or into the process. Method: tools written as carelessly as tools are, called with
// hostile arguments through real runtimes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { overAction } from '../../../src/adapters/snapshot/built-ins.ts';
import type { SnapshotOptions } from '../../../src/adapters/snapshot/index.ts';
import { generated, insert, update } from '../../../src/protocol/draft.ts';
import type { Value } from '../../../src/protocol/value.ts';
import { mintProofs } from '../../../src/testing/index.ts';
import { failure, freshPath, hold, judge, open } from './store.ts';

interface Nested {
  [name: string]: Nested;
}

const opened = Promise.withResolvers<void>();
const late = Promise.withResolvers<void>();

const tools: SnapshotOptions['tools'] = {
  /** The way in which nearly every setter by path is written. */
  set(state: Nested, { path, value }: { readonly path: string; readonly value: Nested }) {
    const names = path.split('.');
    let at = state;
    for (const name of names.slice(0, -1)) at = at[name] as Nested;
    at[names.at(-1) ?? ''] = value;
  },
  async setLater(state: Nested, args: unknown) {
    await Promise.resolve();
    tools.set?.(state, args);
  },
  async setLate(state: Nested, args: unknown) {
    await late.promise;
    tools.set?.(state, args);
  },
  async setBetween(state: Nested, args: unknown) {
    await Promise.resolve();
    tools.set?.(state, args);
    await opened.promise;
  },
  goOn(state: { a: number }) {
    state.a = 2;
    const spoil = () => {
      state.a = 666;
    };
    process.nextTick(spoil);
    queueMicrotask(spoil);
    setImmediate(spoil);
  },
  callable(state: { a: number }) {
    const then = (done: () => void) =>
      setImmediate(() => {
        state.a = 2;
        done();
      });
    return Object.assign(() => {}, { then });
  },
  place(
    state: { orders: unknown[] },
    { how, text }: { readonly how: string; readonly text: string },
  ) {
    const ids: Record<string, () => unknown> = {
      lower: () => text.toLowerCase(),
      parsed: () => JSON.parse(text).id,
      trimmed: () => text.trim(),
      word: () => /[a-z0-9Σ]+/.exec(text)?.[0],
      flag: () => true,
      list: () => ['o777'],
    };
    state.orders.push({ id: ids[how]?.() ?? 'o2', total: 1 });
  },
};

const options = (): SnapshotOptions => ({
  file: freshPath(),
  initial: { a: 1, b: 1, orders: [{ id: 'o1', total: 1 }] },
  collections: { orders: { path: '/orders', key: 'id', fields: ['total'], generated: ['id'] } },
  tools,
});
const call = (tool: string, args: Value = {}) => ({ tool, args });
const CHANGED = update('/', { path: '/a' }, { value: [1, 2] });

for (const tool of ['set', 'setLater']) {
  test(`a path through __proto__ or constructor fails the call of ${tool}, and the process stays clean`, async () => {
    const adapter = await open(options());
    const before = describeBuiltIns();
    const hostile: readonly (readonly [string, Value])[] = [
      ['__proto__.any', true],
      ['__proto__.x', { any: true }],
      ['__proto__.get', 1],
      ['__proto__.toString', 'x'],
      ['constructor.prototype.is', 1],
      ['constructor.keys', 'x'],
      ['constructor.is', 'x'],
      ['constructor.constructor.prototype.apply', 1],
      ['orders.__proto__.map', 1],
      ['a.__proto__.then', 1],
      ['orders.__proto__.__proto__', { any: true }],
      ['a.__proto__.__proto__', { any: true }],
      ['constructor.__proto__', { any: true }],
    ];
    for (const [path, value] of hostile) {
      const calls = [call('set', { path: 'a', value: 2 }), call(tool, { path, value })];
      assert.match((await failure(adapter, { calls })).detail, /built-in objects/, path);
      assert.deepEqual(describeBuiltIns(), before, path);
      const recovered = {
        calls: [calls[0], { ...calls[1], mayFail: true }, call('set', { path: 'b', value: 2 })],
      };
      assert.match((await failure(adapter, recovered)).detail, /built-in objects/, path);
      assert.deepEqual(describeBuiltIns(), before, path);
    }
  });
}

test('a row is not hidden by what a path puts behind the prototype of lists', async () => {
  const adapter = await open(options());
  // Where a list is empty, the comparison would find this as its first element: the row as if it
  // had always been there.
  const forged = { 0: { id: 'o666', total: 666, '*': {} } };
  const calls = [
    call('set', { path: 'a', value: 2 }),
    call('set', { path: 'orders.1', value: { id: 'o666', total: 666 } }),
    call('set', { path: 'orders.__proto__.__proto__', value: forged }),
  ];
  try {
    assert.match((await failure(adapter, { calls })).detail, /built-in objects/);
    assert.equal(Object.getPrototypeOf(Array.prototype), Object.prototype);
  } finally {
    Object.setPrototypeOf(Array.prototype, Object.prototype);
  }
});

test('what an action that still runs writes to built-in objects is held against a candidate that is being compared', async () => {
  const adapter = await open(options());
  const before = describeBuiltIns();
  const { stage } = await hold(adapter, 'held', { calls: [call('set', { path: 'a', value: 2 })] });
  const { evidence } = await stage.observe();
  assert.equal((await stage.recheck()).evidence, evidence);
  const spoil = { path: 'orders.__proto__.0', value: { id: 'o666', total: 666, '*': {} } };
  const spoiling = failure(adapter, { calls: [call('setBetween', spoil)] });
  for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
  assert.notDeepEqual(describeBuiltIns(), before);
  assert.notEqual(
    (await stage.recheck()).evidence,
    evidence,
    'the comparison in between may have been misled',
  );
  assert.deepEqual(describeBuiltIns(), before);
  opened.resolve();
  assert.match((await spoiling).detail, /built-in objects/);
});

test('what a tool writes to built-in objects after its time was up is undone when it ends, and given by nobody', async () => {
  const adapter = await open({ ...options(), toolTimeoutMs: 5 });
  const before = describeBuiltIns();
  const calls = [
    call('setLate', { path: 'orders.__proto__.0', value: { id: 'o666', total: 666, '*': {} } }),
  ];
  assert.equal((await failure(adapter, { calls })).reason, 'tool-timeout');
  late.resolve();
  for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
  try {
    assert.deepEqual(describeBuiltIns(), before);
    assert.ok(
      await overAction(async (isIntact) => isIntact()),
      'the next action begins with what was there before',
    );
  } finally {
    Reflect.deleteProperty(Array.prototype, '0');
  }
});

test('what one of two actions writes to built-in objects is undone by either look, given by neither and held against both', async () => {
  const before = describeBuiltIns();
  const leave = Promise.withResolvers<void>();
  const spoiling = overAction(async (isIntact) => {
    Object.assign(Object.prototype, { spoilt: 1 });
    await leave.promise;
    return isIntact();
  });
  const beside = await overAction(async (isIntact) => isIntact());
  assert.deepEqual({ intact: beside, now: describeBuiltIns() }, { intact: false, now: before });
  leave.resolve();
  assert.equal(await spoiling, false);
  assert.ok(
    await overAction(async (isIntact) => isIntact()),
    'what came before is not held against the next',
  );
});

test("what the application itself adds to built-in objects between two actions is kept and is nobody's fault", async () => {
  const adapter = await open(options());
  Object.defineProperty(Array.prototype, 'polyfill', {
    value: 1,
    configurable: true,
    writable: true,
  });
  try {
    for (const name of ['first', 'second']) {
      await hold(adapter, name, { calls: [call('set', { path: 'a', value: 2 })] });
      assert.equal(Reflect.get(Array.prototype, 'polyfill'), 1);
    }
    const spoil = { calls: [call('set', { path: 'orders.__proto__.polyfill', value: 2 })] };
    assert.match((await failure(adapter, spoil)).detail, /built-in objects/);
    assert.equal(Reflect.get(Array.prototype, 'polyfill'), 1);
  } finally {
    Reflect.deleteProperty(Array.prototype, 'polyfill');
  }
});

test('what a tool that is no promise leaves to be done later does not reach the candidate', async () => {
  const adapter = await open(options());
  const { stage } = await hold(adapter, 'leftovers', { calls: [call('goOn')] });
  assert.equal((await judge(adapter, await stage.observe(), [CHANGED])).kind, 'EXACT');
  const waited = await hold(adapter, 'callable', { calls: [call('callable')] });
  assert.equal((await judge(adapter, await waited.stage.observe(), [CHANGED])).kind, 'EXACT');
});

test('a tool that stands in for a built-in until it was called cannot change what is compared afterwards', async () => {
  const { freeze } = Object;
  const seen: unknown[] = [];
  const cover = () => {
    for (const value of seen)
      if (Object.hasOwn(Object(value), 'b')) Reflect.set(Object(value), 'b', 1);
  };
  const adapter = await open({
    ...options(),
    tools: {
      spy(state: { a: number; b: number }) {
        Object.assign(state, { a: 2, b: 666 });
        Object.freeze = <T>(value: T) => {
          if (seen.push(value) === 3) Object.freeze = freeze; // so that no look at the built-in objects finds it
          return value;
        };
        for (let at = Promise.resolve(), turn = 0; turn < 20; turn += 1) at = at.then(cover);
      },
    },
  });
  try {
    const { claim, certificate } = mintProofs(adapter, 'spy');
    const staged = await adapter.stage(
      claim,
      certificate,
      adapter.parseAction({ calls: [call('spy')] }),
    );
    if (staged.kind === 'failed') return;
    const outcome = await judge(adapter, await staged.stage.observe(), [CHANGED]);
    assert.equal(outcome.kind, 'DIVERGED', 'the other change is hidden');
  } finally {
    Object.freeze = freeze;
  }
});

test('an identifier that a tool took out of what the agent wrote is not generated', async () => {
  const adapter = await open(options());
  const effects = [insert('orders', { id: generated('order'), total: 1 })];
  const texts = { lower: 'O777', parsed: '{"id":"o777"}', trimmed: ' o777 ', flag: '', list: '' };
  // Characters that change the letter before them when a text is brought into one form.
  const words = ['o777e\u0301', 'o777Σα'].map((text) => ['word', text] as const);
  for (const [how, text] of [...Object.entries(texts), ...words]) {
    const { stage } = await hold(adapter, how + text, { calls: [call('place', { how, text })] });
    assert.equal(
      (await judge(adapter, await stage.observe(), effects)).kind,
      'DIVERGED',
      how + text,
    );
  }
  const { stage } = await hold(adapter, 'honest', {
    calls: [call('place', { how: '', text: 'a note of o20' })],
  });
  assert.equal(
    (await judge(adapter, await stage.observe(), effects)).kind,
    'EXACT',
    'a short one occurs by accident',
  );
});

function describeBuiltIns(): unknown {
  return [Object, Array, Number, Function].flatMap((maker) =>
    [maker, maker.prototype].map((object) => [
      Object.getOwnPropertyDescriptors(object),
      Object.getPrototypeOf(object) ===
        (maker.prototype === object ? Object.prototype : Function.prototype),
    ]),
  );
}
