// Goal: records say what was written, how many undo entries that explains, and when they contradict
// each other. Method: records made by hand, in the form that recorders write.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MysqlFailure } from '../../../src/adapters/mysql/connection.ts';
import { describeFailure, explainError } from '../../../src/adapters/mysql/failure.ts';
import { readRecords, type TracedRelation } from '../../../src/adapters/mysql/observation.ts';

const T: TracedRelation = {
  target: 't',
  key: ['id'],
  columns: [
    { name: 'id', kind: 'integer', isAssigned: true },
    { name: 'v', kind: 'text' },
  ],
};
const PLAIN: TracedRelation = {
  target: 'p',
  key: ['id'],
  columns: [{ name: 'id', kind: 'integer' }],
};
const RELATIONS = new Map([T, PLAIN].map((relation) => [relation.target, relation]));

type Cells = readonly (number | string | null)[];

const imageOf = (cells: Cells) =>
  Buffer.from(
    cells.map((cell) => (cell === null ? '-' : `${String(cell).length}:${cell}`)).join(''),
  );
const record = (op: string, before: Cells | null, after: Cells | null, target = 't') => [
  Buffer.from(target),
  Buffer.from(op),
  before && imageOf(before),
  after && imageOf(after),
];
const chosen = (id: string, target = 't') => [
  ...[Buffer.from(target), Buffer.from('chosen')],
  ...[null, Buffer.from(id)],
];
const read = (...rows: ReturnType<typeof record>[]) => readRecords(RELATIONS, rows);
const row = (id: number, v: string | null) => ({ id, v });

test('each record is a change with its rows, and has as many undo entries as InnoDB writes', () => {
  const recorded = read(
    record('insert', null, [1, 'a']),
    record('update', [2, 'b'], [2, null]),
    record('update', [3, 'c'], [3, 'c']),
    record('update', [4, 'd'], [5, 'd']),
    record('delete', [6, 'f'], null),
  );
  assert.deepEqual(
    recorded.records.map(({ op, target, key, before, after }) => [op, target, key, before, after]),
    [
      ['insert', 't', null, null, row(1, 'a')],
      ['update', 't', null, row(2, 'b'), row(2, null)],
      ['update', 't', null, row(3, 'c'), row(3, 'c')],
      ['update', 't', null, row(4, 'd'), row(5, 'd')],
      ['delete', 't', null, row(6, 'f'), null],
    ],
  );
  assert.deepEqual([recorded.written, recorded.undo], [5, 1 + 1 + 0 + 2 + 1]);
  assert.equal(read(record('update', [3, 'c'], [3, 'c'])).undo, 0);
  assert.equal(read(record('update', [4, 'd'], [5, 'd'])).undo, 2);
  assert.equal(recorded.contradiction, undefined);
});

test('a row is followed from its first record to its last, also where its key changes', () => {
  const { histories, contradiction } = read(
    record('update', [1, 'a'], [1, 'b']),
    record('update', [1, 'b'], [2, 'b']),
    record('delete', [2, 'b'], null),
    record('insert', null, [2, 'c']),
    record('insert', null, [8], 'p'),
  );
  assert.equal(contradiction, undefined);
  assert.deepEqual(
    histories.map(({ relation, key, first, last }) => [
      ...[relation.target, key, first?.row ?? null, last?.row ?? null],
    ]),
    [
      ['t', { id: 1 }, row(1, 'a'), null],
      ['t', { id: 2 }, null, row(2, 'c')],
      ['p', { id: 8 }, null, { id: 8 }],
    ],
  );
});

test('records that do not follow from each other are a contradiction', () => {
  for (const rows of [
    [record('update', [1, 'a'], [1, 'b']), record('update', [1, 'a'], [1, 'c'])],
    [record('delete', [1, 'a'], null), record('delete', [1, 'a'], null)],
    [record('insert', null, [1, 'a']), record('insert', null, [1, 'a'])],
    [record('insert', null, [2, 'a']), record('update', [1, 'b'], [2, 'b'])],
  ])
    assert.match(String(read(...rows).contradiction), /records of "t" do not follow/);
});

test('identifiers that were not chosen were assigned, in ranges', () => {
  const inserts = [7, 3, 4, 5, 9].map((id) => record('insert', null, [id, 'x']));
  const recorded = read(...inserts, chosen('4'), record('update', [1, 'a'], [1, 'b']));
  assert.deepEqual(recorded.assigned, [
    { target: 't', column: 'id', above: '2', upTo: '3' },
    { target: 't', column: 'id', above: '4', upTo: '5' },
    { target: 't', column: 'id', above: '6', upTo: '7' },
    { target: 't', column: 'id', above: '8', upTo: '9' },
  ]);
  assert.equal(recorded.written, 7);
  assert.equal(recorded.records.length, 6);
  const [range] = read(...[12, 11, 10].map((id) => record('insert', null, [id, 'x']))).assigned;
  assert.deepEqual(range, { target: 't', column: 'id', above: '9', upTo: '12' });
  const large = '9007199254740993';
  const [exact] = read(record('insert', null, [large, 'x'])).assigned;
  assert.deepEqual(exact, { target: 't', column: 'id', above: '9007199254740992', upTo: large });
  assert.deepEqual(read(record('insert', null, [8], 'p')).assigned, []);
});

test('evidence depends on every record, its order and its images', () => {
  const one = record('insert', null, [1, 'a']);
  const other = record('insert', null, [2, 'b']);
  const all = [read(), read(one), read(one, other), read(other, one)];
  all.push(read(record('insert', null, [1, 'A'])), read(record('delete', [1, 'a'], null)));
  assert.equal(new Set(all.map(({ evidence }) => evidence)).size, all.length);
  assert.equal(read(one).evidence, read(record('insert', null, [1, 'a'])).evidence);
});

test('evidence tells a record of an oddly named table from two records', () => {
  const odd = { ...T, target: 't-chosen--1-t' };
  const relations = new Map([...RELATIONS, [odd.target, odd]]);
  const { evidence } = readRecords(relations, [chosen('1', odd.target)]);
  assert.notEqual(evidence, read(chosen('1'), chosen('1')).evidence);
});

test('a record that names another table, lacks an image or cannot be read is an error', () => {
  for (const [wrong, why] of [
    [record('insert', null, [1], 'other'), /names "other", which is not registered/],
    [record('insert', [1, 'a'], [1, 'a']), /lacks an image/],
    [record('delete', [1, 'a'], [1, 'a']), /lacks an image/],
    [record('update', null, [1, 'a']), /lacks an image/],
    [record('update', [1, 'a'], null), /lacks an image/],
    [record('delete', null, null), /lacks an image/],
    [record('insert', null, [1]), /cannot be read/],
    [record('insert', null, [1, 'a', 'b']), /cannot be read/],
    [record('insert', null, ['one', 'a']), /cannot be read/],
  ] as const)
    assert.throws(() => read(wrong), why);
});

const serverError = (errno: number) =>
  new MysqlFailure({ message: "Duplicate entry 'secret'", errno, sqlState: '23000' });

test('a failure has a reason by its number, and quotes no private value', () => {
  const reasonOf = (error: unknown) => {
    const { reason, transient = false } = describeFailure(error, 'it failed', 'plain');
    return `${reason}${transient ? ', transient' : ''}`;
  };
  assert.deepEqual([1205, 1213, 1062, 1142, 1969, 1064].map(serverError).map(reasonOf), [
    ...['busy, transient', 'deadlock, transient', 'constraint', 'denied', 'timeout'],
    'action-failed',
  ]);
  const lost = new MysqlFailure(new Error('the connection was lost'));
  assert.deepEqual([lost, new Error('other')].map(reasonOf), ['unavailable', 'unavailable']);
  assert.equal(explainError(serverError(1062), 'plain'), "Duplicate entry 'secret'");
  assert.equal(explainError(serverError(1062), 'digest'), 'the database refused it [1062]');
  assert.equal(explainError(lost, 'digest'), 'the connection was lost');
  assert.equal(explainError('text', 'plain'), 'text');
  assert.equal(
    describeFailure(serverError(1062), 'it failed', 'digest').detail,
    'it failed: the database refused it [1062]',
  );
});
