// Goal: the text a person approves says what is in A, all of it, and no name or value can make it
// say something else. Method: expected texts written out by hand; fast-check over hostile text for
// injectivity and for what must not show.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { canonical } from '../../src/protocol/canon.ts';
import type { Diff } from '../../src/protocol/diff.ts';
import {
  any,
  between,
  count,
  from,
  generated,
  insert,
  matches,
  now,
  oneOf,
  remove,
  row,
  update,
  writes,
} from '../../src/protocol/draft.ts';
import type { ApprovedEffect, Profile } from '../../src/protocol/effect.ts';
import type { Approved } from '../../src/protocol/manifest.ts';
import {
  renderApproved,
  renderDiff,
  renderEffect,
  renderObserved,
} from '../../src/protocol/render.ts';
import type { Value } from '../../src/protocol/value.ts';

function approved(parts: Partial<Approved>, profile: Profile = 'net-state'): Approved {
  return {
    version: 1,
    adapter: 'books',
    registration: {
      profile,
      values: 'plain',
      targets: ['invoice', 'notification', 'vendor'].map((name) => ({
        name,
        columns: ['id'],
        key: ['id'],
        volatile: [],
      })),
    },
    effects: [],
    requires: [],
    watch: [],
    salt: '0'.repeat(32),
    ...parts,
  };
}

const notification: ApprovedEffect = {
  ...insert('notification', { invoice: 4711, sent_at: now({ within: '5s' }) }),
  key: { id: { generated: 'n1' } },
};

test('an approval reads like a diff, with its conditions and its limits', () => {
  const base = approved({});
  const text = renderApproved(
    approved({
      registration: {
        ...base.registration,
        targets: base.registration.targets.map((target) =>
          target.name === 'invoice' ? { ...target, volatile: ['updated_at', 'last seen'] } : target,
        ),
      },
      effects: [update('invoice', { id: 4711 }, { status: ['pending', 'paid'] }), notification],
      requires: [
        row('vendor', { id: 7 }, { blocked: 0, name: 'ACME' }),
        row('vendor', { id: 8 }, {}),
        { target: 'vendor', key: { id: 9 }, row: null },
      ],
      watch: [
        { target: 'invoice', key: { id: 4711 }, columns: ['total', 'vendor id'] },
        { target: 'vendor', key: { id: 7 } },
      ],
    }),
  );
  assert.equal(
    text,
    [
      'Approved changes in books: 2 (net-state)',
      '  ~ invoice id=4711  status: "pending" -> "paid"',
      '  + notification id=<generated n1>  invoice=4711, sent_at=<now within 5s>',
      'requires  vendor id=7: blocked = 0, name = "ACME"',
      'requires  vendor id=8: exists',
      'requires  vendor id=9: does not exist',
      'watches   invoice id=4711: total, "vendor id" unchanged',
      'watches   vendor id=7: every column unchanged',
      'Nothing else may change in: invoice, notification, vendor',
      'Not compared: invoice.updated_at, invoice."last seen"',
    ].join('\n'),
  );
});

test('an approval of nothing says so, and the weakest profile says what it does not look at', () => {
  assert.equal(
    renderApproved(approved({})),
    'Approved changes in books: 0 (net-state)\nNothing else may change in: invoice, notification, vendor',
  );
  assert.equal(
    renderApproved(
      approved(
        { effects: [writes('update', 'invoice', 12), writes('insert', 'vendor', 1)] },
        'relation-write',
      ),
    ),
    [
      'Approved changes in books: 13 (relation-write)',
      '  ~ invoice: 12 updates',
      '  + vendor: 1 insert',
      'Nothing else may change in: invoice, notification, vendor',
      'Not compared: rows and values; only how often each table is written, and by which operation',
    ].join('\n'),
  );
});

for (const [effect, line] of [
  [remove('t', { id: 1 }), '- t id=1'],
  [remove('t', { id: 1, a: 2 }, { x: any(), b: null }), '- t a=2, id=1  was b=null, x=<any>'],
  [remove('t', null, { b: true }), '- t  was b=true'],
  [count(insert('public.log', { a: 'x' }), 3), '+ public.log  a="x"  (3 times)'],
  [insert('my table', { 'a b': 1, '1st': 2, é: 3 }), '+ "my table"  "1st"=2, "a b"=1, "é"=3'],
  [
    update('t', { id: 1 }, { b: oneOf(1, 'x'), a: from(any(), between(1, 5)) }),
    '~ t id=1  a: <any> -> <between 1 and 5>, b: <any> -> <one of 1, "x">',
  ],
  [
    insert('t', { a: matches('INV-\\d+'), b: generated('two words') }),
    '+ t  a=<matches "INV-\\\\d+">, b=<generated "two words">',
  ],
  [
    insert('t', {
      a: now({ within: 1500, unit: 'ms' }),
      b: now({ within: '2m', unit: 's' }),
      c: now({ within: 0 }),
    }),
    '+ t  a=<now within 1500ms, in milliseconds>, b=<now within 2m, in seconds>, c=<now within 0ms>',
  ],
  [
    insert('t', { a: 9007199254740993n, b: -0, c: new Uint8Array([0xc0, 0xff]) }),
    '+ t  a=9007199254740993, b=-0.0, c=bytes 0xc0ff',
  ],
  [
    insert('t', { a: { $id: [1, 'x', null], b: {} }, c: [] }),
    '+ t  a={"$id": [1, "x", null], "b": {}}, c=[]',
  ],
] as const) {
  test(`rendered: ${line}`, () => assert.equal(renderEffect(effect), line));
}

test('tagged values that only a backend writes are shown as what they are', () => {
  const after = {
    a: { $real: '5' },
    b: { $dec: '35.5' },
    c: { $text: 'ff' },
    d: { $digest: 'ab'.repeat(32) },
    e: { $real: '1e+21' },
  };
  assert.equal(
    renderObserved({ op: 'insert', target: 't', after, count: 1 }),
    '+ t  a=5.0, b=35.5, c=bytes 0xff (as text), d=<value kept as digest abababababababab>, e=1e+21',
  );
});

test('observed data that looks like a constraint is shown as data', () => {
  const line = renderObserved({
    op: 'insert',
    target: 't',
    after: { a: { any: true }, b: { is: 1 }, c: '<any>' },
    count: 1,
  });
  assert.equal(line, '+ t  a={"any": true}, b={"is": 1}, c="<any>"');
});

for (const [what, text, shown] of [
  ['a line break', 'paid\n  + vendor id=1', '"paid\\n  + vendor id=1"'],
  ['a quote and a backslash', 'a" -> "b\\', '"a\\" -> \\"b\\\\"'],
  ['an escape sequence of a terminal', '\u001b[2K', '"\\u{1b}[2K"'],
  ['a carriage return', 'a\rb', '"a\\u{d}b"'],
  ['a bidirectional override', 'a\u202eb', '"a\\u{202e}b"'],
  ['a bidirectional isolate', '\u2066a', '"\\u{2066}a"'],
  ['a zero-width space', 'pa\u200bid', '"pa\\u{200b}id"'],
  ['a byte order mark', '\ufeffpaid', '"\\u{feff}paid"'],
  ['a soft hyphen', 'pa\u00adid', '"pa\\u{ad}id"'],
  ['a no-break space', 'a\u00a0b', '"a\\u{a0}b"'],
  ['an ideographic space', 'a\u3000b', '"a\\u{3000}b"'],
  ['a Hangul filler', 'a\u3164b', '"a\\u{3164}b"'],
  ['a blank Braille pattern', 'a\u2800b', '"a\\u{2800}b"'],
  ['a variation selector', 'a\ufe0f', '"a\\u{fe0f}"'],
  ['a tag character', 'a\u{e0061}', '"a\\u{e0061}"'],
  ['a private use character', 'a\ue000', '"a\\u{e000}"'],
  ['a line separator', 'a\u2028b', '"a\\u{2028}b"'],
  ['an accent at the start', '\u0301a', '"\\u{301}a"'],
  ['an accent on a letter', 'e\u0301', '"e\u0301"'],
  ['an accent on a space', 'a \u0301', '"a \\u{301}"'],
  ['an accent on an escaped letter', '\u3164\u0301', '"\\u{3164}\\u{301}"'],
  ['an overlay that strikes out', 'p\u0336', '"p\\u{336}"'],
  ['an enclosing mark', 'a\u20dd', '"a\\u{20dd}"'],
  ['too many accents', 'e\u0301\u0302\u0303\u0304', '"e\u0301\u0302\u0303\\u{304}"'],
  ['a Hebrew word', '\u05e9\u05dc\u05d5\u05dd', '"\u05e9\u05dc\u05d5\u05dd"(rtl)'],
  ['an emoji', '😀', '"😀"'],
] as const) {
  test(`${what} is shown for what it is, in values and in names`, () => {
    assert.equal(renderEffect(insert('t', { a: text })), `+ t  a=${shown}`);
    assert.equal(renderEffect(insert(text, { [text]: 1 })), `+ ${shown}  ${shown}=1`);
    assert.equal(renderEffect(insert('t', { a: generated(text) })), `+ t  a=<generated ${shown}>`);
  });
}

const hostile = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        ...'ab"\\,=:>< -+~(){}[]n\n\t',
        ' -> ',
        '  ',
        '<any>',
        '\\u{a}',
        '\\n',
        '(2 times)',
        '\u202e',
        '\u200b',
        '\u0301',
        '\u05d0',
        '1',
        '0',
      ),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
    ),
    { maxLength: 5 },
  )
  .map((parts) => parts.join(''))
  .filter((text) => text.isWellFormed() && text !== '__proto__');
const name = fc.oneof(
  fc.constantFrom('a', 'b', 'id', 'null', 'a.b'),
  hostile.filter((text) => text !== ''),
);
const value: fc.Arbitrary<Value> = fc.oneof(
  hostile,
  fc.constantFrom<Value>(
    null,
    true,
    0,
    1,
    10,
    -1,
    [],
    {},
    [1],
    ['1'],
    { a: 1 },
    { $$any: 1 },
    { $bytes: '00' },
    { $text: '00' },
    { $real: '1' },
  ),
  fc.array(hostile, { maxLength: 2 }),
  fc.dictionary(name, hostile, { maxKeys: 2, noNullPrototype: true }),
);
const cell = fc.oneof(
  { weight: 4, arbitrary: value.map((is) => ({ is })) },
  { weight: 1, arbitrary: fc.constant({ any: true as const }) },
  { weight: 1, arbitrary: name.map((label) => ({ generated: label })) },
  { weight: 1, arbitrary: name.map((pattern) => ({ matches: pattern })) },
  {
    weight: 1,
    arbitrary: fc.array(value, { minLength: 1, maxLength: 2 }).map((list) => ({ oneOf: list })),
  },
  { weight: 1, arbitrary: fc.tuple(value, value).map((pair) => ({ between: pair })) },
);
const cells = (minKeys: number) =>
  fc.dictionary(name, cell, { minKeys, maxKeys: 2, noNullPrototype: true });
const effect: fc.Arbitrary<ApprovedEffect> = fc.oneof(
  fc.record({
    op: fc.constant('insert' as const),
    target: name,
    after: cells(1),
    count: fc.integer({ min: 1, max: 2 }),
  }),
  fc.record({
    op: fc.constant('insert' as const),
    target: name,
    key: cells(1),
    after: cells(1),
    count: fc.constant(1),
  }),
  fc.record({
    op: fc.constant('delete' as const),
    target: name,
    key: cells(1),
    before: cells(1),
    count: fc.constant(1),
  }),
  fc.record({
    op: fc.constant('delete' as const),
    target: name,
    key: cells(1),
    count: fc.integer({ min: 1, max: 2 }),
  }),
  fc
    .tuple(
      name,
      cells(1),
      fc.uniqueArray(fc.tuple(name, cell, cell), {
        selector: ([column]) => column,
        minLength: 1,
        maxLength: 2,
      }),
    )
    .map(([target, key, changes]) => ({
      op: 'update' as const,
      target,
      key,
      before: Object.fromEntries(changes.map(([column, before]) => [column, before])),
      after: Object.fromEntries(changes.map(([column, , after]) => [column, after])),
      count: 1,
    })),
  fc.record({
    op: fc.constantFrom('insert', 'update', 'delete'),
    target: name,
    count: fc.integer({ min: 1, max: 2 }),
  }),
);

test('property: different changes have different texts', () => {
  fc.assert(
    fc.property(effect, effect, (a, b) => {
      assert.equal(
        renderEffect(a, { full: true }) === renderEffect(b, { full: true }),
        canonical(a) === canonical(b),
      );
    }),
    { numRuns: 5_000 },
  );
  fc.assert(
    fc.property(name, value, value, name, (column, a, b, other) => {
      const text = (x: Value, y: string): string =>
        renderEffect({
          op: 'insert',
          target: 't',
          after: { [column]: { is: x }, [y]: { is: b } },
          count: 1,
        });
      assert.equal(
        text(a, other) === text(b, other),
        column === other || canonical(a) === canonical(b),
      );
    }),
    { numRuns: 5_000 },
  );
});

test('property: a change is one line in which nothing hides and nothing reorders', () => {
  fc.assert(
    fc.property(effect, (change) => {
      const line = renderEffect(change);
      assert.doesNotMatch(line, /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/u);
      assert.doesNotMatch(line, /[^\P{Zs} ]/u);
      assert.doesNotMatch(line, /(?:^|[^\p{L}\p{M}])\p{M}/u);
      for (const [quoted, , fence] of line.matchAll(/"((?:[^"\\]|\\.)*)"(\(rtl\))?/gu)) {
        const reorders =
          /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Adlam}]/u.test(quoted);
        if (reorders) assert.equal(fence, '(rtl)', line);
      }
    }),
    { numRuns: 5_000 },
  );
});

test('property: the text does not depend on the order in which columns were written', () => {
  fc.assert(
    fc.property(cells(2), (after) => {
      const reversed = Object.fromEntries(Object.entries(after).reverse());
      const text = (columns: typeof after): string =>
        renderEffect({ op: 'insert', target: 't', after: columns, count: 1 });
      assert.equal(text(after), text(reversed));
    }),
  );
});

test('a long value is shortened with its length, and shown in full when asked', () => {
  const long = `${'a'.repeat(150)}${'b'.repeat(300)}${'c'.repeat(50)}`;
  const outcome = approved({ effects: [insert('invoice', { note: long })] });
  const short = renderApproved(outcome);
  assert.ok(
    short.includes(`note="${'a'.repeat(120)}" ... "${'c'.repeat(40)}" (500 characters, shortened)`),
    short,
  );
  assert.ok(
    short.endsWith('\nShortened: an approval covers all of it, also what is not shown here'),
  );
  const full = renderApproved(outcome, { full: true });
  assert.ok(full.includes(`note="${long}"`));
  assert.ok(!full.includes('hortened'));
});

test('a value just at the limit is not shortened, and characters count as code points', () => {
  assert.equal(renderEffect(insert('t', { a: '😀'.repeat(200) })), `+ t  a="${'😀'.repeat(200)}"`);
  assert.match(
    renderEffect(insert('t', { a: '😀'.repeat(201) })),
    /\(201 characters, shortened\)$/,
  );
});

test('long bytes and long lists are shortened outside any quotes', () => {
  assert.equal(
    renderEffect(insert('t', { a: new Uint8Array(500).fill(0xab) })),
    `+ t  a=bytes 0x${'ab'.repeat(60)} ... ${'ab'.repeat(20)} (500 bytes, shortened)`,
  );
  const list = Array.from({ length: 1000 }, (_, index) => 1000 + index);
  assert.match(
    renderEffect(insert('t', { a: list })),
    /^\+ t {2}a=\[1000, .*, <\d+ more, shortened>\]$/,
  );
  assert.match(
    renderEffect(insert('t', { a: oneOf(...list) })),
    /<one of 1000, .*, <\d+ more, shortened>>$/,
  );
  assert.ok(renderEffect(insert('t', { a: list }), { full: true }).endsWith(', 1998, 1999]'));
});

test('a value that claims to be shortened is only a value', () => {
  const text = renderApproved(
    approved({ effects: [insert('invoice', { note: 'x" ... "y" (500 characters, shortened)' })] }),
  );
  assert.ok(text.includes('note="x\\" ... \\"y\\" (500 characters, shortened)"'));
  assert.ok(!text.includes('Shortened:'));
});

test('a large approval is summed up by table and column, with samples and the number not shown', () => {
  const effects = [
    ...Array.from({ length: 190 }, (_, id) => insert('notification', { id })),
    ...Array.from({ length: 15 }, (_, id) => count(remove('invoice', { id }), 2)),
  ];
  const lines = renderApproved(approved({ effects })).split('\n');
  assert.deepEqual(lines.slice(0, 6), [
    'Approved changes in books: 220 (net-state)',
    '  + notification: 190 inserts',
    '      id: 190 different values, 0 to 189, sum 17955',
    '  - invoice: 30 deletes',
    '      id: 15 different values, 0 to 14, sum 210',
    '  + notification, by key:',
  ]);
  assert.equal(lines[6], '      + notification  id=0');
  assert.equal(lines[25], '      + notification  id=19');
  assert.equal(lines[26], '      170 more of these, not shown');
  assert.equal(lines[27], '  - invoice, by key:');
  assert.equal(lines[42], '      - invoice id=14  (2 times)');
  assert.equal(lines[43], 'Nothing else may change in: invoice, notification, vendor');
  assert.equal(lines[44], 'Shortened: an approval covers all of it, also what is not shown here');
  assert.equal(lines.length, 45);
  const full = renderApproved(approved({ effects }), { full: true }).split('\n');
  assert.equal(full.length, 1 + 205 + 1);
  assert.equal(full[190], '  + notification  id=189');
});

const price = (id: number, from: unknown, to: unknown): ApprovedEffect =>
  update('Track', { TrackId: id }, { UnitPrice: [from as number, to as number] });

test('of five thousand updates, the one that stands out is on the first screen', () => {
  const usual = (id: number) => price(id, id / 100, id / 50);
  const all = Array.from({ length: 5000 }, (_, index) => usual(index + 1));
  for (const [outlier, lines] of [
    [
      [7.7, 99_999],
      ['largest, largest rise: 7.7 -> 99999 (TrackId=4711)', 'smallest: 0.01 -> 0.02 (TrackId=1)'],
    ],
    [[10, 99.99], ['largest rise: 10 -> 99.99 (TrackId=4711)']],
    [[50, 0.03], ['largest fall: 50 -> 0.03 (TrackId=4711)']],
    [[5, -1], ['largest fall, smallest: 5 -> -1 (TrackId=4711)']],
  ] as const) {
    const effects = all.map((effect, index) =>
      index === 4710 ? price(4711, outlier[0], outlier[1]) : effect,
    );
    const screen = renderApproved(approved({ effects })).split('\n').slice(0, 40);
    for (const line of lines) assert.ok(screen.includes(`        ${line}`), screen.join('\n'));
    assert.equal(screen[2], '      UnitPrice: 5000 different changes');
  }
});

test('the rare change among few kinds is counted and named', () => {
  const role = (id: number, to: string) => update('invoice', { id }, { role: ['user', to] });
  const effects = Array.from({ length: 5000 }, (_, id) => role(id, id === 77 ? 'admin' : 'member'));
  const lines = renderApproved(approved({ effects })).split('\n');
  assert.deepEqual(lines.slice(1, 5), [
    '  ~ invoice: 5000 updates',
    '      role: 2 different changes',
    '        4999 times: "user" -> "member"',
    '        once: "user" -> "admin" (id=77)',
  ]);
});

test('sums are exact, of every kind of number, and left out where something else is among them', () => {
  const effects = (values: readonly Value[]) =>
    Array.from({ length: 60 }, (_, id): ApprovedEffect => {
      const after = { id: { is: id }, v: { is: values[id % values.length] ?? null } };
      return { op: 'insert', target: 't', after, count: 1 };
    });
  const summary = (values: readonly Value[]) =>
    renderApproved(approved({ effects: effects(values) })).split('\n');
  const ends = (values: readonly Value[], text: string) =>
    assert.ok(
      summary(values).some((line) => line.endsWith(text)),
      summary(values).slice(0, 12).join('\n'),
    );
  ends([0.1, 0.2], '0.1 to 0.2, sum 9');
  ends([{ $dec: '0.05' }, { $dec: '-7.125' }], 'sum -212.25');
  ends([{ $int: '9007199254740993' }, 1], '1 to 9007199254740993, sum 270215977642229820');
  ends([5], 'v: 5 in all; sum 300');
  ends([1, 'x'], '30 times: "x"');
  ends([1, null], '30 times: null');
});

test('fewer changes than would be cut are summarised first as soon as they fill a screen', () => {
  const of = (length: number) =>
    renderApproved(approved({ effects: Array.from({ length }, (_, id) => price(id, 1, 2)) }));
  assert.doesNotMatch(of(40), /in all/);
  const lines = of(41).split('\n');
  assert.deepEqual(lines.slice(1, 4), [
    '  ~ Track: 41 updates',
    '      UnitPrice: 1 -> 2 in all; before sum 41; after sum 82',
    '  ~ Track TrackId=0  UnitPrice: 1 -> 2',
  ]);
  assert.equal(lines.filter((line) => line.startsWith('  ~ Track TrackId=')).length, 41);
  assert.doesNotMatch(of(41), /hortened|not shown/);
});

test('changes are listed by table, operation and key, with 9 before 10', () => {
  const effects = [
    ...[10, 9, 100].map((id) => price(id, 1, 2)),
    remove('invoice', { id: 'T10' }),
    remove('invoice', { id: 'T9' }),
    price(2, 1, 2),
    remove('invoice', { id: 3 }),
    remove('invoice', { id: 'A99' }),
  ];
  const lines = renderApproved(approved({ effects })).split('\n').slice(1, 9);
  assert.deepEqual(
    lines.map((line) => /^ {2}. \w+ \w+=(\S+)/.exec(line)?.[1]),
    ['2', '9', '10', '100', '3', '"A99"', '"T9"', '"T10"'],
  );
});

test('names and values in a summary are quoted as everywhere', () => {
  const effects = Array.from({ length: 60 }, (_, id) =>
    update('t', { id }, { 'a\nb': [`x\u202e${id % 2}`, '\u001b[2K'] }),
  );
  const text = renderApproved(approved({ effects }));
  assert.ok(text.includes('      "a\\nb": 2 different changes\n'), text);
  assert.ok(text.includes('        30 times: "x\\u{202e}0" -> "\\u{1b}[2K"\n'), text);
});

test('many requirements are shown as samples with the number of the rest', () => {
  const requires = Array.from({ length: 300 }, (_, id) => row('vendor', { id }, {}));
  const text = renderApproved(approved({ requires }));
  assert.ok(text.includes('requires  vendor id=19: exists\n280 more of these, not shown\n'));
});

const difference: Diff = {
  extra: [
    { op: 'insert', target: 'notification', key: { id: 1 }, after: { text: 'paid' }, count: 1 },
  ],
  missing: [notification],
  altered: [
    {
      approved: update('invoice', { id: 4711 }, { status: ['pending', 'paid'] }),
      observed: {
        op: 'update',
        target: 'invoice',
        key: { id: 4711 },
        before: { status: 'pending' },
        after: { status: 'void' },
        count: 1,
      },
    },
  ],
  omitted: 0,
};

test('a diff says of each line whether it was approved or observed', () => {
  assert.equal(
    renderDiff(difference),
    [
      '3 differences: 1 extra, 1 missing, 1 altered',
      'extra    + notification id=1  text="paid"   (observed, not approved)',
      'missing  + notification id=<generated n1>  invoice=4711, sent_at=<now within 5s>   (approved, not observed)',
      'altered  ~ invoice id=4711  status: "pending" -> "paid"   (approved)',
      '         ~ invoice id=4711  status: "pending" -> "void"   (observed instead)',
    ].join('\n'),
  );
});

test('a diff without entries, with omitted entries, and with very many', () => {
  const none: Diff = { extra: [], missing: [], altered: [], omitted: 0 };
  assert.equal(renderDiff(none), 'no differences');
  assert.equal(
    renderDiff({ ...none, omitted: 5 }),
    '5 differences: 0 extra, 0 missing, 0 altered, 5 not kept',
  );
  const many = Array.from({ length: 1000 }, () => difference.extra).flat();
  const lines = renderDiff({ ...difference, extra: many }).split('\n');
  assert.equal(lines[0], '1002 differences: 1000 extra, 1 missing, 1 altered');
  assert.equal(lines[21], '980 more of these, not shown');
  assert.equal(
    renderDiff({ ...difference, extra: many }, { full: true }).split('\n').length,
    1 + 1000 + 1 + 2,
  );
});

test('the counts of a diff agree: changes that occur several times count as often', () => {
  const [entry] = difference.extra;
  assert.ok(entry !== undefined);
  const lines = renderDiff({
    extra: Array.from({ length: 250 }, () => ({ ...entry, count: 3 })),
    missing: [{ ...notification, count: 2 }],
    altered: difference.altered,
    omitted: 7,
  }).split('\n');
  assert.equal(lines[0], '760 differences: 750 extra, 2 missing, 1 altered, 7 not kept');
  assert.equal(lines[21], '690 more of these, not shown');
});

test('an update whose sides name different columns is shown without inventing a value', () => {
  const line = renderEffect({
    op: 'update',
    target: 't',
    key: { id: { is: 1 } },
    before: { a: { is: 0 } },
    after: { toString: { is: 1 } },
    count: 1,
  });
  assert.equal(line, '~ t id=1  a: 0 -> <not stated>, toString: <not stated> -> 1');
});

test('an update that says nothing about before, as for registered fields, is shown as the fields it leaves', () => {
  const after = { title: { is: 'x' }, state: { is: 'open' } };
  const effect = {
    op: 'update' as const,
    target: 'issue',
    key: { number: { is: 7 } },
    after,
    count: 1,
  };
  assert.equal(renderEffect(effect), '~ issue number=7  state="open", title="x"');
});

test('what cannot be held or attributed is said to the approver', () => {
  const approved = (registration: object) => ({
    version: 1 as const,
    adapter: 'bank',
    registration: {
      profile: 'row-event' as const,
      values: 'plain' as const,
      targets: [],
      ...registration,
    },
    effects: [],
    requires: [],
    watch: [],
    salt: '0'.repeat(32),
  });
  assert.doesNotMatch(renderApproved(approved({})), /Sent once|Compared:/);
  assert.match(
    renderApproved(approved({ capability: 'MEDIATED' })),
    /Sent once by the gateway .* nothing is rolled back/,
  );
  assert.match(
    renderApproved(approved({ capability: 'OPAQUE' })),
    /not controlled here.* no promise of rollback/,
  );
  assert.match(
    renderApproved(approved({ profile: 'registered-fields' })),
    /Compared: the registered fields as read back afterwards; who wrote them is not established/,
  );
});
