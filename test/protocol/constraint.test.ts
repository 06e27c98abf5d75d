// Goal: a constraint accepts exactly the values it names, and time counts in UTC whatever the
// process thinks. Method: named cases per kind of cell, and fast-check against Date's own rendering
// of instants as oracle.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { checkCell, isExact, satisfies, withinAssigned } from '../../src/protocol/constraint.ts';
import type { Cell } from '../../src/protocol/effect.ts';
import { readInstant } from '../../src/protocol/time-text.ts';
import type { Value } from '../../src/protocol/value.ts';

const NOON = Date.UTC(2026, 0, 31, 12, 0, 0, 250);
const context = { window: { fromMs: NOON, toMs: NOON + 100 } };
const accepts = (cell: Cell, value: Value): boolean => satisfies(cell, value, context);

test('an exact cell accepts its value and no other representation of it', () => {
  assert.ok(accepts({ is: 'paid' }, 'paid'));
  assert.ok(accepts({ is: null }, null));
  assert.ok(accepts({ is: { b: [1], a: 2 } }, { a: 2, b: [1] }));
  assert.ok(accepts({ is: { $int: '9007199254740993' } }, { $int: '9007199254740993' }));
  const other: [Value, Value][] = [
    [1, '1'],
    [1, true],
    [0, false],
    [null, ''],
    [1, { $real: '1' }],
    [0, { $real: '-0.0' }],
    ['paid', 'Paid'],
    ['é', 'e\u0301'],
    [
      [1, 2],
      [2, 1],
    ],
    [{ $int: '1' }, { $dec: '1' }],
    [null, {}],
  ];
  for (const [is, value] of other) assert.ok(!accepts({ is }, value), JSON.stringify([is, value]));
});

test('only `is` is exact', () => {
  assert.ok(isExact({ is: null }));
  for (const cell of [{ any: true }, { oneOf: [1] }, { generated: 'a' }] as Cell[])
    assert.ok(!isExact(cell));
});

test('any accepts everything, oneOf only what it lists', () => {
  for (const value of [null, 0, '', [], {}, { $bytes: '' }] as Value[])
    assert.ok(accepts({ any: true }, value));
  const cell: Cell = { oneOf: ['open', null, { $dec: '1.5' }] };
  for (const value of ['open', null, { $dec: '1.5' }] as Value[]) assert.ok(accepts(cell, value));
  for (const value of ['closed', 0, 1.5, 'null'] as Value[]) assert.ok(!accepts(cell, value));
});

test('between includes both ends and refuses another kind of value', () => {
  const cell: Cell = { between: [1, { $int: '9007199254740993' }] };
  for (const value of [1, 1.5, { $dec: '1.0001' }, { $int: '9007199254740993' }] as Value[])
    assert.ok(accepts(cell, value));
  const outside: Value[] = [
    0,
    0.999,
    { $int: '9007199254740994' },
    { $real: 'Infinity' },
    '1',
    null,
    [1],
    true,
  ];
  for (const value of outside) assert.ok(!accepts(cell, value), JSON.stringify(value));
  assert.ok(accepts({ between: ['2026-01-01', '2026-12-31'] }, '2026-12-31'));
  assert.ok(!accepts({ between: ['2026-01-01', '2026-12-31'] }, '2026-12-31 '));
  assert.ok(!accepts({ between: ['a', 'b'] }, 1));
});

test('between two dates lie dates of four digits for the year only, whose texts have their order', () => {
  const year: Cell = { between: ['2024-01-01', '2025-01-01'] };
  for (const inside of [
    '2024-01-01',
    '2024-06-01',
    '2024-06-01 10:00:00.5+00',
    '2024-06-01T10:00:00Z',
    '2025-01-01',
  ])
    assert.ok(accepts(year, inside), inside);
  for (const outside of [
    '20240-06-01',
    '2024-06-01 BC',
    '2024-06-01 00:00:00+00 BC',
    '2024-06-01 or so',
    '2025-01-02',
  ])
    assert.ok(!accepts(year, outside), outside);
  const open: Cell = { between: ['2024-01-01', 'infinity'] };
  assert.ok(accepts(open, '2999-06-01') && accepts(open, 'infinity'));
  assert.ok(
    !accepts(open, '2024-06-01 BC') && !accepts(open, '-infinity') && !accepts(open, '2023-12-31'),
  );
  for (const far of ['12024-01-01', '2024-01-01 BC']) {
    assert.throws(() => checkCell({ between: ['0001-01-01', far] }, 'due'), /0001 to 9999/);
  }
});

test('matches accepts only text that matches as a whole', () => {
  assert.ok(accepts({ matches: 'INV-\\d+' }, 'INV-1'));
  for (const value of ['INV-', 'INV-1\n', 1, null, { $text: 'ff' }] as Value[])
    assert.ok(!accepts({ matches: 'INV-\\d+' }, value));
  assert.ok(!accepts({ matches: '\\d+' }, 12));
});

test('more patterns than are kept compiled stay correct', () => {
  for (let turn = 0; turn < 3; turn += 1) {
    for (let id = 0; id < 100; id += 1) {
      assert.ok(accepts({ matches: `x${id}` }, `x${id}`));
      assert.ok(!accepts({ matches: `x${id}` }, `x${id + 1}`));
    }
  }
});

test('generated is not decided cell by cell', () => {
  assert.throws(() => accepts({ generated: 'n1' }, 1), { code: 'ERR_EM_INVARIANT' });
});

const now = (withinMs: number, unit: 'iso' | 's' | 'ms' = 'iso'): Cell => ({
  now: { withinMs, unit },
});

test('now in milliseconds holds from the window less the tolerance to the window plus it', () => {
  for (const value of [NOON - 50, NOON, NOON + 150]) assert.ok(accepts(now(50, 'ms'), value));
  for (const value of [NOON - 51, NOON + 151, NOON + 0.5, String(NOON), null])
    assert.ok(!accepts(now(50, 'ms'), value));
});

test('now in seconds takes a whole number as its whole second and a real as the instant', () => {
  const second = Math.floor(NOON / 1000);
  assert.ok(accepts(now(0, 's'), second));
  assert.ok(!accepts(now(0, 's'), second - 1));
  assert.ok(!accepts(now(0, 's'), second + 1));
  assert.ok(accepts(now(1000, 's'), second - 1));
  assert.ok(accepts(now(0, 's'), { $real: String(NOON / 1000) }));
  assert.ok(!accepts(now(0, 's'), { $real: String((NOON - 1) / 1000) }));
  assert.ok(accepts(now(0, 's'), { $real: `${second}` }));
  assert.ok(
    !accepts(now(0, 's'), second + 0.3),
    'a JSON fraction is not a stored floating-point number',
  );
  assert.ok(!accepts(now(0, 's'), { $real: 'Infinity' }));
  assert.ok(!accepts(now(0, 's'), String(second)));
});

test('now as text is read in UTC at the resolution it is written in', () => {
  const accepted = [
    '2026-01-31T12:00:00.250Z',
    '2026-01-31T12:00:00.250',
    '2026-01-31T12:00:00.250+00:00',
    '2026-01-31T12:00:00Z',
    '2026-01-31T12:00:00.2Z',
    '2026-01-31T12:00:00.25Z',
    '2026-01-31T12:00:00.350999999Z',
    '2026-01-31 12:00:00',
    '2026-01-31 12:00:00.3',
    '2026-01-31 12:00:00.350',
    '2026-01-31 12:00:00+00',
  ];
  for (const text of accepted) assert.ok(accepts(now(0), text), text);
  const refused = [
    '2026-01-31T12:00:00.249Z',
    '2026-01-31T12:00:00.1Z',
    '2026-01-31T12:00:00.24Z',
    '2026-01-31T12:00:00.351Z',
    '2026-01-31T11:59:59Z',
    '2026-01-31T12:00:01Z',
    '2026-01-31 11:59:59',
  ];
  for (const text of refused) assert.ok(!accepts(now(0), text), text);
  assert.ok(
    accepts(now(250), '2026-01-31T12:00:00.000Z') && !accepts(now(249), '2026-01-31T12:00:00.000Z'),
  );
});

test('a time that was rounded to fewer digits than milliseconds may lie half a unit after the clock', () => {
  const at = Date.parse('2026-01-31T12:00:00.600Z');
  const told = (unit: 'iso' | 's', value: Value, atMs = at) =>
    satisfies({ now: { withinMs: 0, unit } }, value, { window: { fromMs: atMs, toMs: atMs } });
  assert.ok(
    told('iso', '2026-01-31 12:00:01+00') && told('iso', '2026-01-31 12:00:00+00'),
    'rounded, cut off',
  );
  assert.ok(!told('iso', '2026-01-31 12:00:02+00') && !told('iso', '2026-01-31 11:59:59+00'));
  assert.ok(
    !told('iso', '2026-01-31 12:00:01+00', at - 101),
    'a second is rounded up from its middle on',
  );
  assert.ok(told('s', at / 1000 + 0.4) && !told('s', at / 1000 + 1.4));
  assert.ok(
    told('iso', '2026-01-31 12:00:00.6+00', at - 50) &&
      !told('iso', '2026-01-31 12:00:00.6+00', at - 51),
  );
  assert.ok(!told('iso', '2026-01-31 12:00:00.601+00'), 'milliseconds are what they are');
});

test('texts that Date would read leniently are not timestamps', () => {
  const wrong = [
    '',
    '2026-01-31',
    '2026-1-31T12:00:00Z',
    '2026-01-31t12:00:00z',
    '2026-01-31T12:00Z',
    '2026-01-31T12:00:00+01:00',
    '2026-01-31T12:00:00-00:00',
    '2026-01-31T12:00:00+00',
    '2026-01-31 12:00:00Z',
    '2026-01-31  12:00:00',
    '2026-01-31T12:00:00.Z',
    '2026-01-31T12:00:00.1234567890Z',
    '2026-01-31T12:00:00Z ',
    '2026-01-31T12:00:00Z\n',
    '2026-01-31T24:00:00Z',
    '2026-01-31T12:60:00Z',
    '2026-01-31T12:00:60Z',
    '2026-02-29T12:00:00Z',
    '1900-02-29T12:00:00Z',
    '2026-04-31T12:00:00Z',
    '2026-13-01T12:00:00Z',
    '2026-00-01T12:00:00Z',
    '2026-01-00T12:00:00Z',
    '12026-01-31T12:00:00Z',
    'Sat, 31 Jan 2026 12:00:00 GMT',
    '２026-01-31T12:00:00Z',
  ];
  for (const text of wrong) assert.equal(readInstant(text), undefined, text);
});

test('property: every instant of years 0 to 9999 is read as the instant it was written for', () => {
  const date = fc.date({
    min: new Date(Date.UTC(2000, 0, 1) - 2000 * 365.2425 * 86_400_000),
    max: new Date(253402300799999),
    noInvalidDate: true,
  });
  fc.assert(
    fc.property(date, (at) => {
      const text = at.toISOString();
      fc.pre(/^\d{4}-/.test(text));
      assert.deepEqual(readInstant(text), { earliestMs: at.getTime(), latestMs: at.getTime() });
      const cut = Math.floor(at.getTime() / 1000) * 1000;
      assert.deepEqual(readInstant(text.slice(0, 19).replace('T', ' ')), {
        earliestMs: cut,
        latestMs: cut + 999,
      });
    }),
    { numRuns: 5_000 },
  );
});

test('every day from 1999 to 2004 and around 1900 and 2100 exists exactly when Date says so', () => {
  for (const year of [1899, 1900, 1999, 2000, 2001, 2003, 2004, 2100]) {
    for (let month = 1; month <= 12; month += 1) {
      for (let day = 1; day <= 31; day += 1) {
        const text = `${year}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}T00:00:00Z`;
        const oracle = new Date(Date.UTC(year, month - 1, day));
        const exists = oracle.getUTCMonth() === month - 1;
        assert.equal(readInstant(text)?.earliestMs, exists ? oracle.getTime() : undefined, text);
      }
    }
  }
});

test('an assigned range excludes its start, includes its end, and holds integers only', () => {
  const range = { above: '10', upTo: '12' };
  for (const value of [11, 12, { $int: '11' }, { $dec: '12' }] as Value[])
    assert.ok(withinAssigned(range, value));
  const outside: Value[] = [
    10,
    13,
    11.5,
    { $real: '11' },
    { $dec: '11.5' },
    '11',
    null,
    { $int: '13' },
  ];
  for (const value of outside) assert.ok(!withinAssigned(range, value), JSON.stringify(value));
  const high = { above: '9007199254740992', upTo: '9007199254740993' };
  assert.ok(withinAssigned(high, { $int: '9007199254740993' }));
  assert.ok(!withinAssigned(high, { $int: '9007199254740992' }));
  assert.ok(
    !withinAssigned({ above: '', upTo: '99' }, 5),
    'evidence that is no number accepts nothing',
  );
});

test('fresh values are assigned exactly when listed', () => {
  assert.ok(withinAssigned({ fresh: ['a', { $bytes: '01' }] }, { $bytes: '01' }));
  assert.ok(!withinAssigned({ fresh: ['a', { $bytes: '01' }] }, 'b'));
  assert.ok(!withinAssigned({ fresh: [] }, null));
});

test('a cell that cannot be evaluated is refused before anyone signs it', () => {
  checkCell({ between: [1, 1] }, 'amount');
  checkCell({ matches: 'a*' }, 'note');
  checkCell({ any: true }, 'note');
  for (const between of [
    [2, 1],
    ['a', 1],
    [null, 1],
    ['b', 'a'],
  ] as [Value, Value][]) {
    assert.throws(() => checkCell({ between }, 'amount'), {
      code: 'ERR_EM_MANIFEST_INVALID',
      message: /^amount: between/,
    });
  }
  assert.throws(() => checkCell({ matches: '(a' }, 'note'), { code: 'ERR_EM_MANIFEST_INVALID' });
});
