// Goal: of every sequence it is known how often the session turned to it, how far it went, and what
// is reported of that. Method: positions written by hand, as the server answers them: object id,
// value and, after an action, number of looks.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PostgresRelation } from '../../../src/adapters/postgres/relation.ts';
import {
  comparePositions,
  describeDrawn,
  describeMoved,
  drawableSequences,
  type Moved,
  stepsOf,
} from '../../../src/adapters/postgres/residue.ts';

type Movement = readonly [oid: number, from: string, to: string, times: number];
const moved = (...entries: readonly Movement[]): Moved =>
  new Map(entries.map(([oid, from, to, times]) => [oid, { from, to, times }]));

test('a sequence moved if it stands elsewhere, or if the session turned to it', () => {
  const before = '7:5 8:6';
  assert.deepEqual(comparePositions(before, ''), moved(), 'no sequence was touched');
  assert.deepEqual(comparePositions(before, '7:5 8:6'), moved(), 'they stand where they stood');
  assert.deepEqual(comparePositions(before, '7:9 8:6'), moved([7, '5', '9', 0]), 'others moved it');
  assert.deepEqual(comparePositions(before, '7:5:2'), moved([7, '5', '5', 2]));
  assert.deepEqual(comparePositions('7: 8:6', '7:1:1'), moved([7, '', '1', 1]));
  assert.deepEqual(comparePositions(before, '7:5 8:'), moved([8, '6', '', 0]));
  assert.deepEqual(comparePositions('', ''), moved(), 'there is no sequence');
});

test('how far a sequence stands is counted in its own steps, from its start on', () => {
  assert.equal(stepsOf({ start: 1n, increment: 1n }, ''), 0n);
  assert.equal(stepsOf({ start: 1n, increment: 1n }, '1'), 1n);
  assert.equal(stepsOf({ start: 10n, increment: 5n }, ''), 0n);
  assert.equal(stepsOf({ start: 10n, increment: 5n }, '20'), 3n);
  assert.equal(stepsOf({ start: -1n, increment: -1n }, '-3'), 3n);
});

const SEQUENCE = {
  oid: 7,
  schema: 'public',
  name: 'a_seq',
  start: '1',
  increment: '1',
  cache: '5',
};
const column = (name: string, ...oids: readonly number[]) => ({
  ...{ name, draws: oids.map((oid) => ({ ...SEQUENCE, oid })) },
});
const RELATIONS = [
  { target: 'a', columns: [column('id', 7), column('note')] },
  { target: 'b', columns: [column('id', 8, 7)] },
] as unknown as readonly PostgresRelation[];
const READABLE = [
  { oid: 7, name: 'a_seq' },
  { oid: 9, name: 'free' },
];

test('a registered sequence is one that can be read and is for a column, with all its columns', () => {
  assert.deepEqual(drawableSequences(RELATIONS, READABLE), [
    {
      ...{ oid: 7, name: 'a_seq', start: 1n, increment: 1n, cache: 5 },
      columns: [
        { target: 'a', column: 'id' },
        { target: 'b', column: 'id' },
      ],
    },
  ]);
});

test('what the session drew is told of sequences that it turned to', () => {
  const sequences = drawableSequences(RELATIONS, READABLE);
  const drawn = (...entries: readonly Movement[]) =>
    describeDrawn(sequences, moved(...entries)).map(({ sequence, times, each, moved: by }) => [
      sequence,
      times,
      each,
      by,
    ]);
  assert.deepEqual(drawn([7, '5', '15', 2]), [['a_seq', 2, 5, 10n]]);
  assert.deepEqual(drawn([7, '', '5', 1]), [['a_seq', 1, 5, 5n]]);
  assert.deepEqual(drawn([7, '5', '15', 0]), [], 'others moved it');
  assert.deepEqual(drawn(), []);
  assert.deepEqual(drawn([9, '5', '15', 2]), [], 'it is not registered');
});

test('a movement is reported with where it began, if it went anywhere', () => {
  const reported = (from: string, to: string) =>
    describeMoved(READABLE, moved([9, from, to, 1])).map((one) => [one.name, one.from, one.to]);
  assert.deepEqual(reported('5', '6'), [['free', '5', '6']]);
  assert.deepEqual(reported('', '1'), [['free', null, '1']]);
  assert.deepEqual(reported('5', '5'), []);
  assert.deepEqual(reported('5', ''), []);
  assert.deepEqual(describeMoved(READABLE, moved()), []);
});
