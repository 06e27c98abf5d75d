// Goal: the text that is kept beside a record is always the text of exactly that record. Method:
// inputs that change after parsing or while it runs, records changed by hand, and texts too long to
// be kept.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { canonical } from '../../src/protocol/canon.ts';
import { defineRecord } from '../../src/protocol/record.ts';
import { choice, closed, list, plain, text } from '../../src/protocol/schema.ts';
import type { Value } from '../../src/protocol/value.ts';

const kind = defineRecord(
  'sample',
  1,
  8 * 1024 * 1024,
  closed({ name: text(), list: list(plain) }),
);

const isFrozenDeep = (value: unknown): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (Object.isFrozen(value) && Object.values(value as object).every(isFrozenDeep));

test('a parsed record is a frozen copy, and what it was made from stays as it was', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme' }),
      fc.array(fc.jsonValue({ noUnicodeString: false })),
      (name, list) => {
        fc.pre(!/-0|__proto__/.test(JSON.stringify(list)) && !hasNegativeZero(list));
        const input = { name, list };
        const record = kind.parse(input);
        assert.deepEqual(JSON.parse(JSON.stringify(record)), JSON.parse(JSON.stringify(input)));
        assert.equal(kind.text(record), canonical(record));
        assert.deepEqual(kind.read(input), { record, text: kind.text(record) });
        assert.equal(kind.read(record).record, record);
        assert.ok(isFrozenDeep(record) && !Object.isFrozen(input) && !Object.isFrozen(input.list));
        assert.deepEqual(kind.parseText(kind.text(record)), record);
      },
    ),
    { numRuns: 200 },
  );
});

function hasNegativeZero(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return Object.is(value, -0);
  return Object.values(value).some(hasNegativeZero);
}

test('a change of the input after parsing reaches neither the record nor its text', () => {
  const inner = { amount: 1 };
  const input = { name: 'a', list: [inner] };
  const record = kind.parse(input);
  inner.amount = 2;
  input.list.push({ amount: 3 });
  assert.equal(kind.text(record), '{"list":[{"amount":1}],"name":"a"}');
  assert.deepEqual(record, { name: 'a', list: [{ amount: 1 }] });
});

test('an input that answers differently every time still gives a record that fits its text', () => {
  let asked = 0;
  const input = new Proxy(
    { name: 'a', list: [] },
    {
      getOwnPropertyDescriptor(target, key) {
        asked += 1;
        const found = Reflect.getOwnPropertyDescriptor(target, key);
        return found && key === 'name' ? { ...found, value: `answer ${asked}` } : found;
      },
      get(target, key) {
        asked += 1;
        return key === 'name' ? `answer ${asked}` : Reflect.get(target, key);
      },
    },
  );
  const record = kind.parse(input);
  assert.deepEqual(JSON.parse(kind.text(record)), record);
});

test('a text is checked itself, not what its record answers when it is asked again', () => {
  const strict = defineRecord('strict', 1, 1024, closed({ name: text(0, 1) }));
  let asked = 0;
  const input = new Proxy(
    { name: '' },
    {
      getOwnPropertyDescriptor(target, key) {
        asked += 1;
        return {
          ...Reflect.getOwnPropertyDescriptor(target, key),
          value: asked < 8 ? 'too long' : 'a',
        };
      },
      get: () => 'a',
    },
  );
  assert.throws(() => strict.text(input), { code: 'ERR_EM_RECORD_INVALID' });
});

test('a record that was not parsed is written and checked every time', () => {
  const record = { name: 'a', list: [] as Value[] };
  assert.equal(kind.text(record), '{"list":[],"name":"a"}');
  record.list.push(1);
  assert.equal(kind.text(record), '{"list":[1],"name":"a"}');
  Object.assign(record, { stray: true });
  assert.throws(() => kind.text(record), { code: 'ERR_EM_RECORD_INVALID' });
});

test('a copy of a parsed record is not taken for it', () => {
  const record = kind.parse({ name: 'a', list: [] });
  assert.equal(kind.text({ ...record, name: 'b' }), '{"list":[],"name":"b"}');
  assert.equal(kind.parse(record), record);
  const other = defineRecord('other', 1, 1024, closed({ name: choice('b') }));
  assert.throws(() => other.text(record as never), { code: 'ERR_EM_RECORD_INVALID' });
});

test('a record whose text is too long to be kept is the same in everything else', () => {
  const input = { name: 'x'.repeat(2 * 1024 * 1024), list: [] };
  const record = kind.parse(input);
  assert.deepEqual(record, input);
  assert.equal(kind.text(record), canonical(input));
  assert.deepEqual(kind.parseText(canonical(input)), input);
});

test('a small graph with a text that is too long is refused by the text, before it becomes as many objects', (t) => {
  let list: unknown = [];
  for (let level = 0; level < 22; level += 1) list = [list, list];
  const parse = t.mock.method(JSON, 'parse');
  assert.throws(() => kind.parse({ name: 'x', list }), { code: 'ERR_EM_RECORD_TOO_LARGE' });
  assert.equal(parse.mock.callCount(), 0);
});

test('a long record is written in pieces that make the same text, whatever its keys are', () => {
  const items = Array.from({ length: 2500 }, (_, index) => ({ b: index, a: `é ${index}` }));
  for (const extra of [{}, { 7: 'first', a: [] }]) {
    const input = { name: 'long', list: [...items, extra] };
    const record = kind.parse(input);
    const pieces = [...kind.pieces(record)];
    assert.equal(pieces.join(''), canonical(input));
    assert.equal(kind.text(record), canonical(input));
    assert.deepEqual(kind.parseText(canonical(input)), input);
    assert.ok(isFrozenDeep(record) && !Object.isFrozen(input.list[0]));
  }
});

test('a text too long to be kept is joined again from its pieces, whatever characters it has', () => {
  const maxBytes = 48 * 1024 * 1024;
  const long = defineRecord('long', 1, maxBytes, closed({ list: list(text()), name: text() }));
  const items = Array.from({ length: 2500 }, (_, index) =>
    `\ufeffé😀 ${index}`.padEnd(14_000, 'x'),
  );
  const input = { list: items, name: '\ufeff' };
  assert.ok(long.text(long.parse(input)) === JSON.stringify(input));
});

test('what is adopted is frozen in place if it is in canonical order, and copied if it is not', () => {
  const inOrder = { list: [{ a: 1, b: [2] }], name: 'x' };
  assert.equal(kind.adopt(inOrder), inOrder);
  assert.ok(isFrozenDeep(inOrder));
  const frozen = Object.freeze({ z: Object.freeze({ b: 1, a: 2 }) });
  const outOfOrder = { name: 'y', list: [frozen] };
  const record = kind.adopt(outOfOrder);
  assert.equal(kind.text(record), '{"list":[{"z":{"a":2,"b":1}}],"name":"y"}');
  assert.ok(isFrozenDeep(record) && Object.keys(frozen.z)[0] === 'b');
  assert.throws(() => kind.adopt({ list: [], name: 'x', stray: 1 }), {
    code: 'ERR_EM_RECORD_INVALID',
  });
});

test('a long list of one shared object is read, and a graph with a text too long is not', () => {
  const item = { deep: [{ deep: [] }] };
  const record = kind.parse({ name: 'x', list: Array(3000).fill(item) });
  assert.equal(kind.text(record), canonical({ name: 'x', list: Array(3000).fill(item) }));
  let doubled: unknown = 'x'.repeat(1000);
  for (let level = 0; level < 20; level += 1) doubled = [doubled, doubled];
  assert.throws(() => kind.parse({ name: 'x', list: Array(2000).fill(doubled) }), {
    code: /ERR_EM_(?:RECORD_TOO_LARGE|CANON_UNSUPPORTED)/,
  });
});
