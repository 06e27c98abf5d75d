// Goal: EXACT needs complete evidence and equal bags; whatever could not be decided is
// INDETERMINATE. Method: one case per verdict, and a property over bags for the text that stands
// for E.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { canonical } from '../../src/protocol/canon.ts';
import type { ApprovedEffect, Effect } from '../../src/protocol/effect.ts';
import { prepareApproved } from '../../src/protocol/match.ts';
import type { Observation } from '../../src/protocol/observation.ts';
import { classify, observedLines } from '../../src/protocol/outcome.ts';
import { is, registration } from './match-cases.ts';

const effect: Effect = {
  op: 'update',
  target: 't',
  key: { id: 1 },
  before: { a: 1 },
  after: { a: 2 },
};
const approved: ApprovedEffect = {
  op: 'update',
  target: 't',
  key: is({ id: 1 }),
  before: is({ a: 1 }),
  after: is({ a: 2 }),
  count: 1,
};
const textOf = (effects: readonly Effect[]) => [...observedLines(effects)].join('');
const context = { assigned: [], window: { fromMs: 0, toMs: 0 } };
const outcomeOf = (effects: readonly ApprovedEffect[], observation: Observation, budget?: number) =>
  classify(prepareApproved({ registration: registration(), effects }), observation, {
    ...context,
    ...(budget !== undefined && { budget }),
  });

test('complete and equal is EXACT', () => {
  assert.deepEqual(outcomeOf([approved], { kind: 'complete', effects: [effect] }), {
    kind: 'EXACT',
    effects: [effect],
  });
  assert.deepEqual(outcomeOf([], { kind: 'complete', effects: [] }), {
    kind: 'EXACT',
    effects: [],
  });
});

test('complete and different is DIVERGED, with what was observed and how it differs', () => {
  const other = { ...effect, after: { a: 3 } };
  assert.deepEqual(outcomeOf([approved], { kind: 'complete', effects: [other] }), {
    kind: 'DIVERGED',
    effects: [other],
    diff: {
      extra: [],
      missing: [],
      altered: [{ approved, observed: { ...other, count: 1 } }],
      omitted: 0,
    },
  });
});

test('an incomplete observation is INDETERMINATE, even where nothing was approved', () => {
  const gaps = ['Channel "x" is required and did not report.'];
  assert.deepEqual(outcomeOf([], { kind: 'incomplete', gaps }), { kind: 'INDETERMINATE', gaps });
});

test('a comparison that is given up is INDETERMINATE with a reason of its own', () => {
  const vague: ApprovedEffect = { ...approved, key: { id: { any: true } } };
  const outcome = outcomeOf([vague], { kind: 'complete', effects: [effect] }, 0);
  assert.ok(outcome.kind === 'INDETERMINATE' && outcome.gaps.length === 1);
  assert.match(outcome.gaps[0] ?? '', /^Comparison was given up after \d+ steps/);
  assert.equal(outcomeOf([vague], { kind: 'complete', effects: [effect] }).kind, 'EXACT');
});

const small: fc.Arbitrary<Effect> = fc
  .record({ target: fc.constantFrom('a', 'b', '1:a'), id: fc.constantFrom(1, 2, '1', 'x\n1x') })
  .map(({ target, id }) => ({ op: 'insert', target, key: { id } }));

test('property: the text of E is the same for the same bag in any order and different for different bags', () => {
  const bags = fc.tuple(fc.array(small, { maxLength: 5 }), fc.array(small, { maxLength: 5 }));
  const reordered = fc
    .array(small, { maxLength: 6 })
    .chain((one) =>
      fc.tuple(fc.constant(one), fc.shuffledSubarray(one, { minLength: one.length })),
    );
  fc.assert(
    fc.property(fc.oneof(bags, reordered), ([a, b]) => {
      const same = canonical(a.map(canonical).sort()) === canonical(b.map(canonical).sort());
      assert.equal(textOf(a) === textOf(b), same);
    }),
    { numRuns: 2000 },
  );
});

test('the text of E has a fixed form, because digests of it are stored', () => {
  const rows: Effect[] = [
    {
      op: 'update',
      target: 'invoice',
      key: { id: 4711 },
      before: { status: 'pending' },
      after: { status: 'paid' },
    },
    { op: 'insert', target: 'log', after: { b: [true, null], a: { $real: '1.5' } } },
    { op: 'insert', target: 'log', after: { a: { $real: '1.5' }, b: [true, null] } },
    { op: 'delete', target: 'é', key: { id: '😀' }, before: {} },
  ];
  assert.equal(
    textOf(rows),
    [
      '1xd1:ér1:2:ids2:😀r0:-',
      '2xi3:log--r2:1:ar1:5:$reals3:1.51:ba2:tn',
      '1xu7:invoicer1:2:idd4711;r1:6:statuss7:pendingr1:6:statuss4:paid',
      '',
    ].join('\n'),
  );
  assert.equal(textOf([]), '');
});

test('text that UTF-8 cannot carry is refused: different values would share a digest', () => {
  assert.throws(() => textOf([{ op: 'insert', target: 't', after: { a: '\ud800' } }]), {
    code: 'ERR_EM_INVARIANT',
  });
});
