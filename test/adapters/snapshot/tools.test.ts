// Goal: no path, identifier or leftover that an agent can bring into a tool gets past the
// comparison, into this process or into the next action. Method: tools written as carelessly as
// tools are, called with hostile arguments in real workers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SnapshotOptions } from '../../../src/adapters/snapshot/index.ts';
import { generated, insert, update } from '../../../src/protocol/draft.ts';
import type { Value } from '../../../src/protocol/value.ts';
import { failure, freshPath, hold, judge, open } from './store.ts';
import { scriptModule, toolModule } from './tool-module.ts';

interface Nested {
  [name: string]: Nested;
}

const tools = toolModule({
  /** The way in which nearly every setter by path is written. */
  set(state: Nested, { path, value }: { readonly path: string; readonly value: Nested }) {
    const names = path.split('.');
    let at = state;
    for (const name of names.slice(0, -1)) at = at[name] as Nested;
    at[names.at(-1) ?? ''] = value;
  },
  async setLater(
    state: Nested,
    { path, value }: { readonly path: string; readonly value: Nested },
  ) {
    await Promise.resolve();
    const names = path.split('.');
    let at = state;
    for (const name of names.slice(0, -1)) at = at[name] as Nested;
    at[names.at(-1) ?? ''] = value;
  },
  /** What the built-in objects of the worker have, as far as text can say it. */
  describe(state: { seen?: unknown }) {
    state.seen = [Object, Array, String, Number, Boolean, Function]
      .flatMap((maker) => [maker, maker.prototype as object])
      .map((object) =>
        Reflect.ownKeys(object).map((name) => {
          const { value, get } = Reflect.getOwnPropertyDescriptor(object, name) ?? {};
          return `${String(name)} ${typeof value === 'function' ? value : typeof value} ${get}`;
        }),
      );
  },
  /** Tries to change every object that names lead to from JSON data, in every way there is. */
  attack(state: { met?: number; changed?: string[] }) {
    const met = new Set<object>();
    const changed: string[] = [];
    const visit = (value: unknown, path: string): void => {
      if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return;
      if (met.has(value)) return;
      met.add(value);
      const names = Object.getOwnPropertyNames(value);
      const attempts = [
        () => Reflect.set(value, 'stranger', 1),
        () => Reflect.defineProperty(value, 'stranger', { value: 1, configurable: true }),
        () => Reflect.setPrototypeOf(value, { stranger: 1 }),
        ...names.map((name) => () => Reflect.deleteProperty(value, name)),
        ...names.map((name) => () => Reflect.defineProperty(value, name, { value: 'spoilt' })),
      ];
      const succeeds = (attempt: () => boolean) => {
        try {
          return attempt();
        } catch {
          return false;
        }
      };
      if (attempts.some(succeeds)) changed.push(path);
      visit(Reflect.getPrototypeOf(value), `${path}.__proto__`);
      for (const name of names) {
        const { value: inner } = Reflect.getOwnPropertyDescriptor(value, name) ?? {};
        visit(inner, `${path}.${name}`);
      }
    };
    for (const value of [{}, [], '', 0, true]) visit(Object.getPrototypeOf(value), typeof value);
    Object.assign(state, { met: met.size, changed });
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
  /** A small graph whose text doubles with every level. */
  grow(state: { a: unknown }) {
    let graph: unknown = 'x';
    for (let level = 0; level < 40; level += 1) graph = [graph, graph];
    state.a = graph;
  },
  exit: () => process.exit(0),
  async throwElsewhere() {
    setImmediate(() => {
      throw new Error('out of reach');
    });
    await new Promise(() => {});
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
});

const options = (): SnapshotOptions => ({
  file: freshPath(),
  initial: { a: 1, b: 1, orders: [{ id: 'o1', total: 1 }] },
  collections: { orders: { path: '/orders', key: 'id', fields: ['total'], generated: ['id'] } },
  tools,
});
const call = (tool: string, args: Value = {}) => ({ tool, args });
const CHANGED = update('/', { path: '/a' }, { value: [1, 2] });

for (const tool of ['set', 'setLater']) {
  test(`a path through __proto__ or constructor fails the call of ${tool} and changes no built-in object, here or in the worker`, async () => {
    const adapter = await open(options());
    const described = async (name: string) => {
      const { stage } = await hold(adapter, name, { calls: [call('describe')] });
      return (await stage.observe()).records;
    };
    const here = describeBuiltIns();
    const there = await described('before');
    const hostile: readonly (readonly [string, Value])[] = [
      ['__proto__.any', true],
      ['__proto__.x', { any: true }],
      ['__proto__.get', 1],
      ['__proto__.toString', 'x'],
      ['constructor.prototype.is', 1],
      ['constructor.keys', 'x'],
      ['constructor.is', 'x'],
      ['constructor.keys.any', 'x'],
      ['constructor.constructor.prototype.apply', 1],
      ['orders.__proto__.map', 1],
      ['a.__proto__.then', 1],
      ['orders.__proto__.__proto__', { any: true }],
      ['a.__proto__.__proto__', { any: true }],
      ['constructor.__proto__', { any: true }],
    ];
    for (const [path, value] of hostile) {
      const calls = [call('set', { path: 'a', value: 2 }), call(tool, { path, value })];
      assert.match(
        (await failure(adapter, { calls })).detail,
        /^call 2 .*(read only|extensible)/,
        path,
      );
      const recovered = [
        calls[0],
        { ...calls[1], mayFail: true },
        call('set', { path: 'b', value: 2 }),
      ];
      const { stage } = await hold(adapter, path, { calls: recovered });
      const effects = [CHANGED, update('/', { path: '/b' }, { value: [1, 2] })];
      assert.equal((await judge(adapter, await stage.observe(), effects)).kind, 'EXACT', path);
      assert.deepEqual(describeBuiltIns(), here, path);
    }
    assert.deepEqual(await described('after'), there);
  });
}

test('no object that names lead to from JSON data can be changed in a worker', async () => {
  const adapter = await open(options());
  const { stage } = await hold(adapter, 'attack', { calls: [call('attack')] });
  const { records } = await stage.observe();
  const found = Object.fromEntries([...records].map(({ key, after }) => [key?.path, after?.value]));
  assert.deepEqual(found['/changed'], []);
  assert.ok(Number(found['/met']) > 150, 'it has met the functions of every prototype');
});

test('a row is not hidden by what a path puts behind the prototype of lists', async () => {
  const adapter = await open(options());
  // With an empty list, the comparison would find this as its first element: the row as if it had
  // always been there.
  const forged = { 0: { id: 'o666', total: 666, '*': {} } };
  const calls = [
    call('set', { path: 'a', value: 2 }),
    call('set', { path: 'orders.1', value: { id: 'o666', total: 666 } }),
    { ...call('set', { path: 'orders.__proto__.__proto__', value: forged }), mayFail: true },
  ];
  const { stage } = await hold(adapter, 'hidden', { calls });
  assert.equal((await judge(adapter, await stage.observe(), [CHANGED])).kind, 'DIVERGED');
  assert.equal(Object.getPrototypeOf(Array.prototype), Object.prototype);
});

/** Tools that count in memory which the test can read, so that it sees whether they still run. */
const COUNTING = scriptModule(`export default (counter) => {
  const count = () => { Atomics.add(counter, 0, 1); };
  return {
    leave(state) { state.a = 2; count(); setInterval(count, 1); },
    hang() { setInterval(count, 1); return new Promise(() => {}); },
    loop() { for (;;) count(); },
    replace(state) {
      JSON.parse = () => ({ a: 1, b: 1, orders: [] });
      Map.prototype.get = () => undefined;
      state.a = 2;
    },
    async replaceAndWait(state) {
      state.a = 'ä';
      JSON.stringify = () => '{ }';
      Map.prototype.get = Set.prototype.has = () => undefined;
      count();
      while (Atomics.load(counter, 0) < 2) await new Promise((resolve) => setTimeout(resolve, 1));
    },
  };
};`);

const counting = () => {
  const counter = new Int32Array(new SharedArrayBuffer(4));
  const read = () => Atomics.load(counter, 0);
  return { counter, read, options: { ...options(), tools: COUNTING, toolData: counter } };
};

async function assertStopped(read: () => number): Promise<void> {
  const stopped = read();
  assert.ok(stopped > 0, 'it has run');
  await sleep(30);
  assert.equal(read(), stopped);
}

for (const tool of ['hang', 'loop']) {
  test(`a call of ${tool} whose time is up is stopped, fails the action, and the next action runs`, async () => {
    const { options: counted, read } = counting();
    const adapter = await open({ ...counted, toolTimeoutMs: 1000 });
    const calls = [{ ...call(tool), mayFail: true }];
    assert.equal((await failure(adapter, { calls })).reason, 'tool-timeout');
    await assertStopped(read);
    await hold(adapter, 'next', { calls: [call('leave')] });
  });
}

test('what a tool leaves running is stopped when its action has ended', async () => {
  const { options: counted, read } = counting();
  const adapter = await open(counted);
  const { stage } = await hold(adapter, 'leftovers', { calls: [call('leave')] });
  await assertStopped(read);
  assert.equal((await judge(adapter, await stage.observe(), [CHANGED])).kind, 'EXACT');
});

test('what a running tool replaces in its worker is not in the way of a candidate that is compared meanwhile', async () => {
  const { options: counted, counter, read } = counting();
  const adapter = await open(counted);
  const { stage } = await hold(adapter, 'held', { calls: [call('leave')] });
  const { evidence } = await stage.observe();
  Atomics.store(counter, 0, 0);
  const running = failure(adapter, { calls: [call('replaceAndWait')] });
  while (read() < 1) await sleep(1);
  const observed = await stage.observe();
  assert.equal(observed.evidence, evidence);
  assert.equal((await stage.recheck()).evidence, evidence);
  assert.equal((await judge(adapter, observed, [CHANGED])).kind, 'EXACT');
  Atomics.store(counter, 0, 2);
  assert.match((await running).detail, /canonical text/, 'and its own text is not believed');
});

test('a tool that closes its process, throws out of reach or grows without end fails its action, and the next one runs', async () => {
  const adapter = await open({ ...options(), toolTimeoutMs: 1000 });
  for (const [tool, reason] of [
    ['exit', /its worker ended/],
    ['throwElsewhere', /out of reach/],
    ['grow', /./],
  ] as const) {
    assert.match((await failure(adapter, { calls: [call(tool)] })).detail, reason);
    const { stage } = await hold(adapter, tool, { calls: [call('set', { path: 'a', value: 2 })] });
    assert.equal((await judge(adapter, await stage.observe(), [CHANGED])).kind, 'EXACT');
  }
});

test('what a tool posts in the name of its worker is not believed', async () => {
  const forging = scriptModule(`import { parentPort } from 'node:worker_threads';
    export const post = (state, message) => { parentPort.postMessage(message); };`);
  const adapter = await open({ ...options(), tools: forging });
  const messages: readonly Value[] = [
    null,
    'ended',
    {},
    { kind: 'ready', tools: [] },
    { kind: 'ended' },
    { kind: 'ended', text: '{"b":1,"a":2}', isIdle: true },
    { kind: 'ended', text: 1, isIdle: true },
  ];
  for (const args of messages)
    assert.equal((await failure(adapter, { calls: [call('post', args)] })).reason, 'tool-failed');
});

test('what the application adds to built-in objects stays, and what the tools need can be added by their module', async () => {
  Object.defineProperty(Array.prototype, 'polyfill', { value: 1, configurable: true });
  try {
    const adapter = await open({
      ...options(),
      tools: scriptModule(`Array.prototype.polyfill = () => 2;
        export function use(state) { state.a = [].polyfill(); }`),
    });
    for (const name of ['first', 'second']) {
      const { stage } = await hold(adapter, name, { calls: [call('use')] });
      assert.equal((await judge(adapter, await stage.observe(), [CHANGED])).kind, 'EXACT');
    }
    assert.equal(Reflect.get(Array.prototype, 'polyfill'), 1);
  } finally {
    Reflect.deleteProperty(Array.prototype, 'polyfill');
  }
});

test('what a tool that returns no promise leaves to be done later does not reach the candidate', async () => {
  const adapter = await open(options());
  const { stage } = await hold(adapter, 'leftovers', { calls: [call('goOn')] });
  assert.equal((await judge(adapter, await stage.observe(), [CHANGED])).kind, 'EXACT');
  const waited = await hold(adapter, 'callable', { calls: [call('callable')] });
  assert.equal((await judge(adapter, await waited.stage.observe(), [CHANGED])).kind, 'EXACT');
});

test('actions that run at the same time do not wait for each other', async () => {
  const { options: counted, counter, read } = counting();
  const adapter = await open(counted);
  const waiting = failure(adapter, { calls: [call('replaceAndWait')] });
  while (read() < 1) await sleep(1);
  await hold(adapter, 'meanwhile', { calls: [call('replace')] });
  Atomics.store(counter, 0, 2);
  await waiting;
});

test('tools that cannot be loaded are refused with the reason', async () => {
  const load = (source: string, more: Partial<SnapshotOptions> = {}) =>
    open({ ...options(), tools: scriptModule(source), ...more });
  const cases: readonly (readonly [string, RegExp, Partial<SnapshotOptions>?])[] = [
    ['export const ship = 1;', /the tool "ship" is not a function/],
    ['export default () => 1;', /must return an object of tools/],
    ['export default () => { throw new Error("no data"); };', /no data/],
    ['throw new Error("no module");', /no module/],
    ['process.exit(1);', /its worker ended/],
    ['no module {', /cannot be loaded/],
    ['', /cannot be sent to a worker/, { toolData: () => 1 }],
    ['', /tools must be the path or the URL/, { tools: { ship: () => 1 } as never }],
  ];
  for (const [source, message, more] of cases)
    await assert.rejects(load(source, more), { code: 'ERR_EM_ADAPTER_REFUSED', message });
  await assert.rejects(open({ ...options(), tools: 'missing-tools.js' }), /missing-tools/);
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

test('a tool that reports calls in the name of its worker gets no more time by it', async () => {
  const tools = scriptModule(`import { parentPort } from 'node:worker_threads';
export default {
  stall: () => {
    setInterval(() => parentPort.postMessage({ kind: 'call' }), 20);
    return new Promise(() => {});
  },
};`);
  const adapter = await open({ ...options(), tools, toolTimeoutMs: 10_000 });
  const startedAt = performance.now();
  assert.equal((await failure(adapter, { calls: [call('stall')] })).reason, 'tool-failed');
  assert.ok(performance.now() - startedAt < 10_000, 'the second report ends it');
});
