// Goal: every number that an execution drew is accounted for by a row, or is an effect; a sequence
// that went back is a gap. Method: outcomes written by hand, and what is left of the draws counted
// by hand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Drawn, findSetBack, findUnused } from '../../src/protocol/drawn.ts';
import type { Effect } from '../../src/protocol/effect.ts';
import type { Evidence } from '../../src/protocol/observation.ts';
import { establish } from '../../src/protocol/observation.ts';
import type { Registration } from '../../src/protocol/registration.ts';

const drew = (times: number, more: Partial<Drawn> = {}): Drawn => ({
  sequence: 'note_id_seq',
  times,
  each: 1,
  moved: BigInt(times),
  columns: [{ target: 'note', column: 'id' }],
  ...more,
});
const RANGE = { target: 'note', column: 'id', above: '10', upTo: '20' };
const row = (id: number, target = 'note'): Effect => ({
  op: 'insert',
  target,
  key: { id },
  after: { body: 'x' },
});
const changed: Effect = {
  op: 'update',
  target: 'note',
  key: { id: 3 },
  before: { body: 'x' },
  after: { body: 'y' },
};
const unused = (
  drawn: Drawn,
  effects: readonly Effect[],
  assigned: Evidence['assigned'] = [RANGE],
) => findUnused([drawn], assigned, effects).map(({ after }) => after?.unused);

test('a number is accounted for by the row that has it, and by an updated row of its table', () => {
  assert.deepEqual(unused(drew(3), []), [3]);
  assert.deepEqual(unused(drew(3), [row(11), row(12)]), [1]);
  assert.deepEqual(unused(drew(3), [row(11), row(20), changed]), []);
  assert.deepEqual(unused(drew(1), [row(11), row(12)]), [], 'rows with chosen numbers may be more');
  assert.deepEqual(unused(drew(2), [row(11), row(10)]), [1], 'the number was there before');
  assert.deepEqual(unused(drew(2), [row(11), row(21)]), [1], 'the number is beyond what was drawn');
  assert.deepEqual(unused(drew(2), [row(11), row(12, 'other')]), [1], 'another table');
  assert.deepEqual(
    unused(drew(2), [row(11), { op: 'delete', target: 'note', key: { id: 12 }, before: {} }]),
    [1],
  );
  const [effect] = findUnused([drew(2)], [RANGE], []);
  assert.deepEqual(effect, {
    op: 'update',
    target: 'note_id_seq',
    before: { unused: 0 },
    after: { unused: 2 },
  });
});

test('where values are not seen, or nothing says which numbers are the sequence’s, every inserted row counts', () => {
  assert.deepEqual(
    unused(drew(3), [
      { op: 'insert', target: 'note' },
      { op: 'update', target: 'note' },
    ]),
    [1],
  );
  assert.deepEqual(unused(drew(2), [row(99)], []), [1]);
  assert.deepEqual(unused(drew(2), [row(99)], [{ target: 'note', column: 'id', fresh: [] }]), [1]);
  assert.deepEqual(
    unused(
      drew(2),
      [row(99)],
      [
        { ...RANGE, column: 'other' },
        { ...RANGE, target: 'other' },
      ],
    ),
    [1],
  );
});

test('the number is found in the key or beside it, and in a table without a key', () => {
  const columns = [{ target: 'note', column: 'number' }];
  const range = [{ ...RANGE, column: 'number' }];
  const numbered = (number: number): Effect => ({
    op: 'insert',
    target: 'note',
    key: { id: 1 },
    after: { number },
  });
  assert.deepEqual(unused(drew(1, { columns }), [numbered(11)], range), []);
  assert.deepEqual(unused(drew(1, { columns }), [numbered(9)], range), [1]);
  assert.deepEqual(
    unused(drew(1, { columns }), [{ op: 'insert', target: 'note', after: { number: 11 } }], range),
    [],
  );
  assert.deepEqual(
    unused(drew(1, { columns }), [{ op: 'insert', target: 'note', after: { number: 9 } }], range),
    [1],
  );
});

test('numbers beyond what a double holds are compared exactly', () => {
  const huge = {
    target: 'note',
    column: 'id',
    above: '9223372036854775800',
    upTo: '9223372036854775801',
  };
  const at = (id: string): Effect => ({
    op: 'insert',
    target: 'note',
    key: { id: { $int: id } },
    after: {},
  });
  assert.deepEqual(unused(drew(1), [at('9223372036854775801')], [huge]), []);
  assert.deepEqual(unused(drew(1), [at('9223372036854775800')], [huge]), [1]);
  assert.deepEqual(unused(drew(1), [at('9223372036854775802')], [huge]), [1]);
  assert.deepEqual(unused(drew(1), [row(11)], [{ ...huge, above: '10' }]), []);
  assert.deepEqual(unused(drew(1), [at('9223372036854775801')], [RANGE]), [1]);
});

test('a row accounts for one number in each column, and tables share a sequence', () => {
  const columns = [
    ...drew(0).columns,
    { target: 'note', column: 'serial' },
    { target: 'entry', column: 'id' },
  ];
  assert.deepEqual(unused(drew(4, { columns }), [row(11)]), [2]);
  assert.deepEqual(unused(drew(4, { columns }), [row(11), row(12, 'entry')]), [1]);
});

test('numbers that a session takes ahead count by the time it takes them', () => {
  assert.deepEqual(unused(drew(1, { each: 5 }), [row(11)]), []);
  assert.deepEqual(unused(drew(2, { each: 5 }), [row(11)]), [5]);
  assert.deepEqual(
    unused(
      drew(2, { each: 5 }),
      [11, 12, 13, 14, 15, 16].map((id) => row(id)),
    ),
    [],
  );
  assert.deepEqual(unused(drew(1, { each: 5 }), []), [5]);
});

test('a sequence that went on by less than was drawn is a gap, whoever moved it further', () => {
  const gaps = (drawn: Drawn) => findSetBack([drawn]).length;
  assert.equal(gaps(drew(3)), 0);
  assert.equal(gaps(drew(3, { moved: 500n })), 0);
  assert.equal(gaps(drew(3, { moved: 2n })), 1);
  assert.equal(gaps(drew(3, { moved: -5n })), 1);
  assert.equal(gaps(drew(2, { each: 5, moved: 10n })), 0);
  assert.equal(gaps(drew(2, { each: 5, moved: 9n })), 1);
  assert.equal(gaps(drew(0, { moved: -5n })), 0, 'nothing was drawn, so others set it back');
  assert.equal(gaps(drew(-1, { moved: 0n })), 1, 'no count at all');
  assert.match(
    findSetBack([drew(3, { moved: 2n })])[0] ?? '',
    /"note_id_seq" was used for 3 numbers and went on by 2/,
  );
});

test('an observation has both: the gap leaves it incomplete, the numbers are in E', () => {
  const registration: Registration = {
    profile: 'net-state',
    values: 'plain',
    targets: [{ name: 'note', columns: ['id', 'body'], key: ['id'], volatile: [] }],
  };
  const evidence: Evidence = {
    candidate: 'c',
    evidence: 'e',
    records: [
      { op: 'insert', target: 'note', key: { id: 11 }, before: null, after: { body: 'x' } },
    ],
    channels: [],
    unattributed: 0,
    assigned: [RANGE],
    drawn: [drew(2)],
    window: { fromMs: 0, toMs: 0 },
  };
  const seen = establish(evidence, registration, []);
  assert.deepEqual(seen.kind === 'complete' && seen.effects.map(({ target }) => target), [
    'note',
    'note_id_seq',
  ]);
  assert.equal(
    establish({ ...evidence, drawn: [drew(2, { moved: 1n })] }, registration, []).kind,
    'incomplete',
  );
});
