// Goal: what an application writes becomes the manifest it meant, and a mistake is answered with
// what to change. Method: expected records written out by hand; one refusal per mistake; fast-check
// that data never reads as constraint.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { canonical } from '../../src/protocol/canon.ts';
import {
  absent,
  any,
  between,
  count,
  draftManifest,
  from,
  generated,
  insert,
  type ManifestDraft,
  matches,
  now,
  oneOf,
  read,
  remove,
  row,
  to,
  update,
  writes,
} from '../../src/protocol/draft.ts';
import { encodeData, type Value } from '../../src/protocol/value.ts';

const draft = (parts: Partial<ManifestDraft> = {}): ManifestDraft => ({
  adapter: 'books',
  task: 'invoice-4711',
  planRevision: 1,
  effects: [],
  ...parts,
});

/** For calls that the types forbid. */
const untyped = <T>(value: unknown): T => value as T;

test('the example of the design becomes its manifest', () => {
  const manifest = draftManifest(
    draft({
      effects: [
        update('invoice', { id: 4711 }, { status: ['pending', 'paid'] }),
        insert('notification', {
          id: generated('n1'),
          invoice: 4711,
          sent_at: now({ within: '5s' }),
        }),
      ],
      requires: [row('vendor', { id: 7 }, { blocked: false }), absent('lock', { id: 1 })],
      watch: [read('invoice', { id: 4711 }, ['total']), read('vendor', { id: 7 })],
    }),
  );
  assert.deepEqual(manifest, {
    version: 1,
    adapter: 'books',
    task: 'invoice-4711',
    planRevision: 1,
    effects: [
      {
        op: 'update',
        target: 'invoice',
        key: { id: { is: 4711 } },
        before: { status: { is: 'pending' } },
        after: { status: { is: 'paid' } },
        count: 1,
      },
      {
        op: 'insert',
        target: 'notification',
        after: {
          id: { generated: 'n1' },
          invoice: { is: 4711 },
          sent_at: { now: { withinMs: 5000, unit: 'iso' } },
        },
        count: 1,
      },
    ],
    requires: [
      { target: 'vendor', key: { id: 7 }, row: { blocked: false } },
      { target: 'lock', key: { id: 1 }, row: null },
    ],
    watch: [
      { target: 'invoice', key: { id: 4711 }, columns: ['total'] },
      { target: 'vendor', key: { id: 7 } },
    ],
  });
});

test('each constraint becomes its plain cell', () => {
  const effect = insert('t', {
    a: generated('x'),
    b: oneOf(1, null, 9007199254740993n),
    c: between(1, 5n),
    d: matches('a+'),
    e: any(),
    f: now({ within: 250, unit: 'ms' }),
    g: now({ within: '2m', unit: 's' }),
    h: new Uint8Array([255]),
  });
  assert.deepEqual(effect, {
    op: 'insert',
    target: 't',
    after: {
      a: { generated: 'x' },
      b: { oneOf: [1, null, { $int: '9007199254740993' }] },
      c: { between: [1, 5] },
      d: { matches: 'a+' },
      e: { any: true },
      f: { now: { withinMs: 250, unit: 'ms' } },
      g: { now: { withinMs: 120_000, unit: 's' } },
      h: { is: { $bytes: 'ff' } },
    },
    count: 1,
  });
  canonical(effect); // a brand that survived would be a symbol key, which has no canonical text
});

test('a change is [from, to], the new value alone, or said in full', () => {
  const { before, after } = update(
    't',
    { id: 1 },
    {
      pair: ['a', 'b'],
      pairOfCells: [oneOf('a', 'b'), any()],
      pairOfLists: [[1], [1, 2]],
      alone: 'b',
      nothing: null,
      cell: oneOf(1, 2),
      list: to([1, 2]),
      toCell: to(any()),
      spelt: from([0, 1], [1, 2]),
    },
  );
  assert.deepEqual(before, {
    pair: { is: 'a' },
    pairOfCells: { oneOf: ['a', 'b'] },
    pairOfLists: { is: [1] },
    alone: { any: true },
    nothing: { any: true },
    cell: { any: true },
    list: { any: true },
    toCell: { any: true },
    spelt: { is: [0, 1] },
  });
  assert.deepEqual(after, {
    pair: { is: 'b' },
    pairOfCells: { any: true },
    pairOfLists: { is: [1, 2] },
    alone: { is: 'b' },
    nothing: { is: null },
    cell: { oneOf: [1, 2] },
    list: { is: [1, 2] },
    toCell: { any: true },
    spelt: { is: [1, 2] },
  });
});

test('removals, multiplicities and relation writes', () => {
  assert.deepEqual(remove('t', { id: 1 }), {
    op: 'delete',
    target: 't',
    key: { id: { is: 1 } },
    count: 1,
  });
  assert.deepEqual(remove('t', null, { a: 1 }), {
    op: 'delete',
    target: 't',
    before: { a: { is: 1 } },
    count: 1,
  });
  assert.deepEqual(count(remove('t', { id: 1 }, { a: any() }), 3), {
    op: 'delete',
    target: 't',
    key: { id: { is: 1 } },
    before: { a: { any: true } },
    count: 3,
  });
  assert.deepEqual(writes('update', 't', 12), { op: 'update', target: 't', count: 12 });
  assert.equal(draftManifest(draft({ effects: [writes('update', 't', 12)] })).effects.length, 1);
});

test('a row may be required merely to exist', () => {
  assert.deepEqual(row('vendor', { id: 7 }, {}), { target: 'vendor', key: { id: 7 }, row: {} });
});

const cellLike = fc.constantFrom<Value>(
  { any: true },
  { is: 1 },
  { generated: 'n1' },
  { oneOf: [1] },
  { matches: 'a' },
  { between: [1, 2] },
  { now: { withinMs: 1, unit: 'ms' } },
  { $int: '5' },
);
const data = fc.letrec<{ value: Value }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    cellLike,
    fc.constantFrom<Value>(null, 1, 'x'),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('any', 'is', '$int', 'a'), tie('value'), {
      maxKeys: 2,
      noNullPrototype: true,
    }),
  ),
})).value;

test('property: whatever plain data is written, it is data and not a constraint', () => {
  fc.assert(
    fc.property(data, (value) => {
      const effects = [
        insert('t', { a: value }),
        update('t', { a: value }, { b: to(value), c: [value, value] }),
      ];
      const [inserted, updated] = draftManifest(draft({ effects })).effects;
      const exact = { is: encodeData(value) };
      assert.deepEqual(inserted?.after?.a, exact);
      assert.deepEqual(updated?.key?.a, exact);
      for (const cell of [updated?.after?.b, updated?.before?.c, updated?.after?.c]) {
        assert.deepEqual(cell, exact);
      }
    }),
    { numRuns: 1_000 },
  );
});

for (const [what, attempt, message] of [
  [
    'an array of three as a change',
    () => update('t', { id: 1 }, { a: [1, 2, 3] }),
    /column a: .*write to\(\[…\]\)/,
  ],
  [
    'an empty array as a change',
    () => update('t', { id: 1 }, { a: [] }),
    /an array means \[from, to\]/,
  ],
  ['an update without a key', () => update('t', {}, { a: 1 }), /update t: the key is empty/],
  ['a removal without a key', () => remove('t', {}), /the key is empty/],
  ['a removal of an unknown row', () => remove('t', null), /say what the row held/],
  ['to() in an insert', () => insert('t', { a: untyped(to(1)) }), /belong directly in the changes/],
  [
    'to() inside a pair',
    () => update('t', { id: 1 }, { a: untyped([to(1), 2]) }),
    /belong directly in the changes/,
  ],
  [
    'a constraint inside data',
    () => insert('t', { a: untyped([any()]) }),
    /a constraint must stand for a whole column/,
  ],
  ['a constraint as a row', () => insert('t', untyped(any())), /insert t: expected a plain object/],
  ['an array as a row', () => insert('t', untyped([1])), /expected a plain object/],
  ['a Map as a row', () => insert('t', untyped(new Map())), /expected a plain object/],
  [
    'undefined as a value',
    () => insert('t', { a: untyped(undefined) }),
    /insert t, column a is undefined/,
  ],
  ['a Date as a value', () => insert('t', { a: untyped(new Date(0)) }), /column a is a Date/],
  [
    'a constraint in a requirement',
    () => row('t', { id: 1 }, { a: untyped(any()) }),
    /only an exact value/,
  ],
  [
    'a constraint in a required key',
    () => row('t', { id: untyped(any()) }, {}),
    /only an exact value/,
  ],
  ['a requirement without a key', () => absent('t', {}), /absent t: the key is empty/],
  ['a read without a key', () => read('t', {}), /read t: the key is empty/],
  ['an empty label', () => generated(''), /1 to 128 characters/],
  ['an empty choice', () => oneOf(), /1 to 1000 values/],
  ['a range that is empty', () => between(2, 1), /the lower one first/],
  ['a range of two kinds', () => between('a', 1), /two numbers or two texts/],
  ['a pattern outside the language', () => matches('^a'), /an anchor/],
  ['an empty pattern', () => matches(''), /needs a pattern/],
  ['a tolerance without a unit', () => now({ within: '5' }), /milliseconds or text like '5s'/],
  ['a tolerance over a day', () => now({ within: '25h' }), /at most a day/],
  ['a negative tolerance', () => now({ within: -1 }), /milliseconds or text/],
  ['now without a tolerance', () => now(untyped(undefined)), /within must be/],
  ['an unknown unit', () => now({ within: 1, unit: untyped('us') }), /unit must be/],
  ['a count of zero', () => count(insert('t', { a: 1 }), 0), /at least 1/],
] as const) {
  test(`${what} is refused`, () => {
    assert.throws(attempt, { code: 'ERR_EM_MANIFEST_INVALID', message });
  });
}

for (const [what, input, message] of [
  [
    'an unknown field',
    { ...draft(), effect: [] },
    /unknown field "effect"; it may have adapter, task/,
  ],
  ['no object', null, /the manifest: expected a plain object/],
  ['no adapter', { ...draft(), adapter: undefined }, /adapter must be/],
  ['an adapter name with a space', draft({ adapter: 'my books' }), /adapter/],
  ['a task that is no text', { ...draft(), task: 1 }, /task must be text/],
  ['a task with a control character', draft({ task: 'a\nb' }), /task/],
  [
    'a fractional plan revision',
    draft({ planRevision: 1.5 }),
    /planRevision must be a whole number/,
  ],
  ['effects that are no array', { ...draft(), effects: {} }, /effects must be an array/],
  ['requires that are no array', { ...draft(), requires: 'x' }, /requires must be an array/],
  [
    'an unknown field in an effect',
    draft({ effects: [untyped({ ...insert('t', { a: 1 }), key2: {} })] }),
    /effects\.0/,
  ],
  [
    'an unknown operation',
    draft({ effects: [untyped({ op: 'upsert', target: 't', count: 1 })] }),
    /effects\.0\.op/,
  ],
  ['an empty target', draft({ effects: [insert('', { a: 1 })] }), /effects\.0\.target/],
  ['an empty column name', draft({ effects: [insert('t', { '': 1 })] }), /effects\.0\.after/],
  [
    'a cell that is not one',
    draft({ effects: [untyped({ op: 'insert', target: 't', after: { a: 1 }, count: 1 })] }),
    /effects\.0\.after\.a/,
  ],
  [
    'a constraint not made plain',
    draft({ effects: [untyped({ op: 'insert', target: 't', after: { a: any() }, count: 1 })] }),
    /effects\[0\]\.after\.a is a symbol key/,
  ],
  [
    'an empty key',
    draft({ effects: [{ ...insert('t', { a: 1 }), key: {} }] }),
    /effects\[0\] \(insert t\): the key is empty/,
  ],
  [
    'an empty required key',
    draft({ requires: [{ target: 't', key: {}, row: null }] }),
    /requires\[0\] \(t\): the key is empty/,
  ],
  [
    'an empty watched key',
    draft({ watch: [{ target: 't', key: {} }] }),
    /watch\[0\] \(t\): the key is empty/,
  ],
  [
    'an insert with a before',
    draft({ effects: [{ ...insert('t', { a: 1 }), before: {} }] }),
    /an insert has no before/,
  ],
  [
    'a delete with an after',
    draft({ effects: [{ ...remove('t', { a: 1 }), after: {} }] }),
    /a delete has no after/,
  ],
  [
    'an update with unequal sides',
    draft({ effects: [{ ...update('t', { id: 1 }, { a: 1 }), before: {} }] }),
    /the same columns/,
  ],
  [
    'a bad pattern written by hand',
    draft({ effects: [{ op: 'insert', target: 't', after: { a: { matches: '(' } }, count: 1 }] }),
    /pattern/,
  ],
  [
    'a bad range written by hand',
    draft({
      effects: [{ op: 'insert', target: 't', after: { a: { between: [2, 1] } }, count: 1 }],
    }),
    /effects\[0\] \(insert t\), after a: between/,
  ],
] as const) {
  test(`a manifest with ${what} is refused`, () => {
    assert.throws(() => draftManifest(untyped(input)), {
      code: 'ERR_EM_MANIFEST_INVALID',
      message,
    });
  });
}
