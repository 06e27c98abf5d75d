// Goal: whatever an approval would let happen is within its issuer's limits, or it is refused with
// the limit's name. Method: one case per limit at its edge, and a property: no value that a bounded
// cell admits is above the limit.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { satisfies } from '../../src/protocol/constraint.ts';
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
  real,
  remove,
  update,
  writes,
} from '../../src/protocol/draft.ts';
import type { ApprovedEffect, Cell } from '../../src/protocol/effect.ts';
import {
  type Exceeded,
  findExceeded,
  findOverlong,
  type Limits,
} from '../../src/protocol/limits.ts';
import type { Registration } from '../../src/protocol/registration.ts';

const REGISTRATION: Registration = {
  profile: 'net-state',
  values: 'plain',
  targets: [
    {
      name: 'invoice',
      columns: ['id', 'status', 'amount', 'constructor', 'seen'],
      key: ['id'],
      volatile: ['seen'],
    },
    { name: 'order', columns: ['id', 'amount'], key: ['id'], volatile: ['amount'] },
  ],
};

function check(
  limits: Limits,
  effects: ApprovedEffect[],
  license: { operation?: string; occurrences?: number } = {},
) {
  return findExceeded(
    limits,
    { occurrences: 1, ...license },
    { effects, registration: REGISTRATION },
  );
}

function assertExceeds(
  found: Exceeded | undefined,
  reason: Exceeded['reason'],
  ...names: readonly (string | number)[]
) {
  assert.equal(found?.reason, reason, JSON.stringify(found));
  for (const name of names)
    assert.ok(found?.detail.includes(String(name)), `${found?.detail} names ${name}`);
}

const pay = update('invoice', { id: 1 }, { status: ['pending', 'paid'] });
const amountOf = (cell: Parameters<typeof from>[1]) =>
  update('invoice', { id: 1 }, { amount: from(1, cell) });
const AMOUNT: Limits = { amounts: [{ target: 'invoice', column: 'amount', max: '100.5' }] };

test('without limits everything is within them', () => {
  assert.equal(
    check({}, [count(pay, 1_000_000), insert('anything', { x: any() })], { occurrences: 1000 }),
    undefined,
  );
});

test('lifetime: to the millisecond, apart from the minute that licenses begin early', () => {
  const from = (notBefore: string, expiresAt: string) =>
    findOverlong({ maxLifetimeMs: 600_000 }, { notBefore, expiresAt });
  assert.equal(from('2026-01-01T09:59:00.000Z', '2026-01-01T10:10:00.000Z'), undefined);
  const end = '2026-01-01T10:10:00.001Z';
  assertExceeds(from('2026-01-01T09:59:00.000Z', end), 'limit-lifetime', end, '600 seconds');
  assertExceeds(from('2026-01-01T09:59:00.000Z', '9999-13-45T10:10:00.001Z'), 'limit-lifetime');
  assert.equal(
    findOverlong(
      {},
      { notBefore: '2026-01-01T00:00:00.000Z', expiresAt: '9998-01-01T00:00:00.000Z' },
    ),
    undefined,
  );
});

test('operations: only those named, and nothing that is no operation', () => {
  const limits = { operations: ['payInvoice', 'close'] };
  assert.equal(check(limits, [pay], { operation: 'close' }), undefined);
  assertExceeds(
    check(limits, [pay], { operation: 'open' }),
    'limit-operation',
    'open',
    'payInvoice, close',
  );
  assertExceeds(check(limits, [pay]), 'limit-operation', 'no operation', 'payInvoice');
  assertExceeds(
    check({ operations: [] }, [pay], { operation: 'close' }),
    'limit-operation',
    'no operation',
  );
});

test('relations: only those named, and only with the operations named', () => {
  const limits: Limits = { relations: [{ name: 'invoice', ops: ['update'] }] };
  assert.equal(check(limits, [pay]), undefined);
  assert.equal(check(limits, []), undefined);
  assertExceeds(
    check(limits, [pay, remove('invoice', { id: 1 })]),
    'limit-relations',
    'delete',
    'invoice',
    'update',
  );
  assertExceeds(
    check(limits, [update('vendor', { id: 1 }, { x: 1 })]),
    'limit-relations',
    'vendor',
    'invoice',
  );
  assertExceeds(check({ relations: [] }, [pay]), 'limit-relations', 'invoice', 'no change');
});

test('effects and rows: counted with their multiplicity and over all occurrences', () => {
  assert.equal(check({ maxEffects: 3 }, [count(pay, 3)]), undefined);
  assertExceeds(check({ maxEffects: 3 }, [count(pay, 2), count(pay, 2)]), 'limit-effects', 4, 3);
  assertExceeds(
    check({ maxEffects: 3 }, [count(pay, 2)], { occurrences: 2 }),
    'limit-effects',
    4,
    3,
    '2 occurrences',
  );
  assert.equal(
    check({ maxRows: { invoice: 1 } }, [pay, insert('note', { id: 1 }), insert('note', { id: 2 })]),
    undefined,
  );
  assertExceeds(
    check({ maxRows: { invoice: 1 } }, [pay, remove('invoice', { id: 2 })]),
    'limit-rows',
    'invoice',
    2,
    1,
  );
  assert.equal(check({ maxRows: { vendor: 0 } }, [pay]), undefined);
  assert.doesNotMatch(check({ maxEffects: 0 }, [pay])?.detail ?? '', /occurrence/);
  assertExceeds(
    check({ maxRows: { invoice: 0 } }, [writes('insert', 'invoice', 1)]),
    'limit-rows',
    1,
    0,
  );
});

test('amounts: exact values, at the edge and beyond it, in every form of a number', () => {
  const within = [100.5, 100, -1e9, 0, null, 100n];
  for (const value of within)
    assert.equal(check(AMOUNT, [amountOf(value)]), undefined, String(value));
  assert.equal(check(AMOUNT, [insert('invoice', { id: 1, amount: 100.5 })]), undefined);
  for (const value of [100.51, 101, real(1e300), 10n ** 30n, Number.POSITIVE_INFINITY]) {
    assertExceeds(check(AMOUNT, [amountOf(value)]), 'limit-amount', 'invoice', 'amount', '100.5');
    assertExceeds(
      check(AMOUNT, [insert('invoice', { id: 1, amount: value })]),
      'limit-amount',
      '100.5',
    );
  }
  for (const cell of [
    { is: { $dec: '100.50000000000000000001' } },
    { is: { $real: '100.6' } },
  ] as Cell[]) {
    const effect = { op: 'insert', target: 'invoice', after: { amount: cell }, count: 1 } as const;
    assertExceeds(check(AMOUNT, [effect]), 'limit-amount', '100.5');
  }
  const stated = (cell: Cell) =>
    check(AMOUNT, [{ op: 'insert', target: 'invoice', after: { amount: cell }, count: 1 }]);
  assertExceeds(stated({ is: { $real: '100.6' } }), 'limit-amount', '100.6 is approved');
  assertExceeds(stated({ is: 101 }), 'limit-amount', '101 is approved');
  assertExceeds(stated({ is: [1] }), 'limit-amount', 'a list is approved');
  assertExceeds(stated({ is: true }), 'limit-amount', 'a boolean is approved');
  assertExceeds(stated({ between: [1, null] }), 'limit-amount', 'up to');
});

test('amounts: where values are not stored, the sentence has the limit and not the value', () => {
  const registration: Registration = { ...REGISTRATION, values: 'digest' };
  for (const cell of [{ is: 4711 }, { oneOf: [1, 4711] }, { between: [1, 4711] }] as Cell[]) {
    const effects = [
      { op: 'insert', target: 'invoice', after: { amount: cell }, count: 1 } as const,
    ];
    const found = findExceeded(AMOUNT, { occurrences: 1 }, { effects, registration });
    assertExceeds(found, 'limit-amount', 'amount', '100.5');
    assert.doesNotMatch(found?.detail ?? '', /4711/);
  }
});

test('amounts: what is no number has no upper bound', () => {
  for (const value of ['100', 'abc', true, [1], new Uint8Array([1])]) {
    assertExceeds(check(AMOUNT, [amountOf(value)]), 'limit-amount', 'amount', '100.5');
  }
});

test('amounts: a constraint counts with the largest value it admits', () => {
  for (const cell of [oneOf(1, 100.5, null), between(-5, 100.5)]) {
    assert.equal(check(AMOUNT, [amountOf(cell)]), undefined);
  }
  const unbounded = [
    any(),
    matches('1'),
    generated('x'),
    now({ within: 1, unit: 's' }),
    between('1', '2'),
  ];
  for (const cell of [...unbounded, oneOf(1, 101), oneOf('1'), between(1, 100.6)]) {
    assertExceeds(check(AMOUNT, [amountOf(cell)]), 'limit-amount', 'amount', '100.5');
  }
});

test('amounts: other columns, other relations and deleted rows are not looked at', () => {
  assert.equal(check(AMOUNT, [pay, remove('invoice', { id: 1 }, { amount: 1e9 })]), undefined);
  assert.equal(check(AMOUNT, [update('order', { id: 1 }, { amount: 1e9 })]), undefined);
  const inherited: Limits = { amounts: [{ target: 'invoice', column: 'constructor', max: '5' }] };
  assert.equal(check(inherited, [pay]), undefined);
});

test('amounts: what is not compared may be anything', () => {
  assertExceeds(check(AMOUNT, [writes('update', 'invoice', 1)]), 'limit-amount', 'not compared');
  assertExceeds(check(AMOUNT, [insert('invoice', { id: 1 })]), 'limit-amount', 'not compared');
  const limits: Limits = { amounts: [{ target: 'invoice', column: 'seen', max: '5' }] };
  assertExceeds(check(limits, [pay]), 'limit-amount', 'seen', 'not compared');
});

test('an amount in the key counts when the row is inserted', () => {
  const limits: Limits = { amounts: [{ target: 'invoice', column: 'id', max: '5' }] };
  const effect = {
    op: 'insert',
    target: 'invoice',
    key: { id: { is: 6 } },
    after: {},
    count: 1,
  } as const;
  assertExceeds(check(limits, [effect]), 'limit-amount', 6, 5);
  assert.equal(
    check(limits, [update('invoice', { id: 6 }, { status: 'x' })]),
    undefined,
    'but not when it exists',
  );
});

test('property: no number that an accepted cell admits is above the limit', () => {
  const number = fc.integer({ min: -200, max: 200 });
  const cell: fc.Arbitrary<Cell> = fc.oneof(
    number.map((value) => ({ is: value })),
    fc.array(number, { minLength: 1, maxLength: 4 }).map((values) => ({ oneOf: values })),
    fc
      .tuple(number, number)
      .map(([a, b]) => ({ between: [Math.min(a, b), Math.max(a, b)] as const })),
    fc.constant({ any: true } as const),
  );
  let accepted = 0;
  fc.assert(
    fc.property(cell, number, fc.integer({ min: -200, max: 200 }), (approved, max, value) => {
      const limits: Limits = {
        amounts: [{ target: 'invoice', column: 'amount', max: String(max) }],
      };
      const effect = {
        op: 'insert',
        target: 'invoice',
        after: { amount: approved },
        count: 1,
      } as const;
      const admits = satisfies(approved, value, { window: { fromMs: 0, toMs: 0 } });
      if (check(limits, [effect]) !== undefined) return;
      accepted += 1;
      if (admits)
        assert.ok(value <= max, `${JSON.stringify(approved)} admits ${value}, above ${max}`);
    }),
    { numRuns: 3000 },
  );
  assert.ok(accepted > 300, `only ${accepted} cells were accepted`);
});

test('amounts: an amount that is not compared is named as that, also where values are not stored', () => {
  const registration: Registration = { ...REGISTRATION, values: 'digest' };
  const effects = [writes('update', 'invoice', 1)];
  const found = findExceeded(AMOUNT, { occurrences: 1 }, { effects, registration });
  assertExceeds(found, 'limit-amount', 'an amount that is not compared');
});
