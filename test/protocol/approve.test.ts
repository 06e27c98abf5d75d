// Goal: the same approval always has the same bytes, and names nothing that is not registered.
// Method: manifests that differ in order and in how they count, and the outcome that follows by the
// rule.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { approvedOutcome, checkCells } from '../../src/protocol/approve.ts';
import { canonical } from '../../src/protocol/canon.ts';
import { between, count, draftManifest, insert, remove, update } from '../../src/protocol/draft.ts';
import type { ApprovedEffect } from '../../src/protocol/effect.ts';
import type { Registration } from '../../src/protocol/registration.ts';

const REGISTRATION: Registration = {
  profile: 'net-state',
  values: 'plain',
  targets: [{ name: 'note', columns: ['id', 'text'], key: ['id'], volatile: [] }],
};
const outcomeOf = (...effects: ApprovedEffect[]) =>
  approvedOutcome(
    draftManifest({ adapter: 'a', task: 't', planRevision: 0, effects }),
    REGISTRATION,
    '0'.repeat(32),
  );

const one = insert('note', { id: 1 });
const two = update('note', { id: 2 }, { text: ['a', 'b'] });
const three = remove('note', { id: 3 });

test('equal effects are one with their counts together, and order does not show', () => {
  assert.deepEqual(
    outcomeOf(one, count(one, 2), one).effects.map((effect) => effect.count),
    [4],
  );
  const texts = [
    [one, two, three],
    [three, two, one],
    [two, three, one],
    [two, one, three],
  ].map((effects) => canonical(outcomeOf(...effects)));
  assert.equal(new Set(texts).size, 1);
  assert.deepEqual(
    outcomeOf(one, two, three).effects.map(({ op }) => op),
    ['insert', 'update', 'delete'],
    'by canonical text: "after" comes first, in it "id" before "text", and a delete has none',
  );
});

test('an effect on what is not registered is no outcome', () => {
  assert.throws(() => outcomeOf(one, insert('nowhere', { id: 1 })), /"nowhere" is not registered/);
});

test('an update of no column is an effect only where every write is one', () => {
  const unchanged = update('note', { id: 1 }, {});
  assert.throws(() => outcomeOf(unchanged), /changes no column.*leave the effect out/);
  const others: ApprovedEffect[] = [
    { op: 'update', target: 'note', count: 1 },
    { op: 'insert', target: 'note', after: {}, count: 1 },
  ];
  for (const effect of others)
    assert.deepEqual(outcomeOf(effect).effects, [effect], 'a count, and a row of defaults');
  const manifest = draftManifest({
    adapter: 'notes',
    task: 't',
    planRevision: 1,
    effects: [unchanged],
  });
  const { effects } = approvedOutcome(
    manifest,
    { ...REGISTRATION, profile: 'row-event' },
    '0'.repeat(32),
  );
  assert.deepEqual(effects, [
    { op: 'update', target: 'note', key: { id: { is: 1 } }, before: {}, after: {}, count: 1 },
  ]);
});

test('constraints are checked wherever they stand', () => {
  checkCells([one, two, three]);
  for (const side of ['key', 'before', 'after'] as const) {
    const effect = {
      op: 'update',
      target: 'note',
      [side]: { text: { between: [2, 1] } },
      count: 1,
    } as ApprovedEffect;
    assert.throws(() => checkCells([one, effect]), /note\.text: between/);
    assert.throws(() => outcomeOf(effect), { code: 'ERR_EM_MANIFEST_INVALID' });
  }
  checkCells([update('note', { id: 1 }, { text: between('a', 'b') })]);
});

test('the patterns of one outcome are bounded together, equal ones counted once', () => {
  const note = (pattern: string): ApprovedEffect => ({
    op: 'insert',
    target: 'note',
    after: { text: { matches: pattern } },
    count: 1,
  });
  const large = (index: number) => note(`(a{16}){100}${index}`);
  checkCells(Array.from({ length: 1000 }, () => large(1)));
  assert.throws(() => checkCells(Array.from({ length: 1000 }, (_, index) => large(index))), {
    code: 'ERR_EM_MANIFEST_INVALID',
    message: /patterns.*together/,
  });
});
