// Goal: an action is either checked completely and bound as written, or refused before anything runs.
// Method: hand-written bad input; good values are written by a stage and read back with typeof().

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeAction, parseAction, probeAction } from '../../../src/adapters/sqlite/action.ts';
import { canonical } from '../../../src/protocol/canon.ts';
import { freshFile, held, observe, open, stage } from './database.ts';

const sql = 'select 1';
const REFUSED: readonly (readonly [what: string, action: unknown])[] = [
  ['null', null],
  ['a text', sql],
  ['a list', [{ sql }]],
  ['nothing', {}],
  ['no text', { sql: 5 }],
  ['blank text', { sql: ' \n' }],
  ['a NUL character', { sql: 'select 1\0; drop table t' }],
  ['a lone surrogate', { sql: "select '\ud800'" }],
  ['too long a text', { sql: `select '${'x'.repeat(1024 * 1024)}'` }],
  ['an unknown field', { sql, params: [] }],
  ['both forms', { sql, statements: [{ sql }] }],
  ['no statements', { statements: [] }],
  ['too many statements', { statements: Array.from({ length: 1001 }, () => ({ sql })) }],
  ['a statement that is a text', { statements: [sql] }],
  ['nested statements', { statements: [{ statements: [{ sql }] }] }],
  ['values that are a text', { sql, values: 'x' }],
  ['values that are a map', { sql, values: new Map() }],
  ['an undefined value', { sql, values: [undefined] }],
  ['a hole', { sql, values: new Array(1) }],
  ['NaN', { sql, values: [Number.NaN] }],
  ['too large an integer', { sql, values: [2n ** 63n] }],
  ['too small an integer', { sql, values: [-(2n ** 63n) - 1n] }],
  ['too large a tagged integer', { sql, values: [{ $int: '9223372036854775808' }] }],
  ['text with a lone surrogate', { sql, values: ['\udc00'] }],
  ['a date', { sql, values: [new Date(0)] }],
  ['an object', { sql, values: [{ a: 1 }] }],
  ['a tag that is none', { sql, values: [{ $real: 'NaN' }] }],
  ['a decimal', { sql, values: [{ $dec: '1.5' }] }],
  ['a shared buffer', { sql, values: [new Uint8Array(new SharedArrayBuffer(4))] }],
  ['a function', { sql, values: [() => 1] }],
  ['a symbol', { sql, values: [Symbol('x')] }],
  ['too many values', { sql, values: new Array(32_767).fill(1) }],
  ['a bad parameter name', { sql, values: { 'a b': 1 } }],
  ['a parameter named __proto__', { sql, values: JSON.parse('{"__proto__": 1}') }],
  [
    'a class instance',
    new (class {
      sql = sql;
    })(),
  ],
];

test('whatever is not an action is refused with the one code', () => {
  for (const [what, action] of REFUSED) {
    assert.throws(() => parseAction(action), { code: 'ERR_EM_ACTION_INVALID' }, what);
  }
});

test('values are stored as written: whole numbers as INTEGER, other numbers as REAL, bytes as BLOB', async () => {
  const file = freshFile('create table t (id integer primary key, v)');
  await using adapter = await open({ file, relations: ['t'] });
  const values = [
    null,
    true,
    false,
    1,
    -0,
    1.5,
    Number.POSITIVE_INFINITY,
    2n ** 62n,
    'text',
    'n\0ul',
    new Uint8Array([1, 255]),
    { $int: '9007199254740993' },
    { $real: '1.0' },
    { $bytes: 'c0' },
  ];
  const action = { sql: `insert into t (v) values ${values.map(() => '(?)')}`, values };
  const { records } = await observe(adapter, action);
  const stored = new Map(records.map((record) => [record.key?.id, record.after?.v]));
  assert.deepEqual(
    values.map((_, index) => stored.get(index + 1)),
    [
      null,
      1,
      0,
      1,
      { $real: '-0.0' },
      { $real: '1.5' },
      { $real: 'Infinity' },
      { $int: String(2n ** 62n) },
      'text',
      'n\0ul',
      { $bytes: '01ff' },
      { $int: '9007199254740993' },
      { $real: '1.0' },
      { $bytes: 'c0' },
    ],
  );
  const named = await observe(adapter, {
    sql: 'insert into t (id, v) values ($id, :v)',
    values: { id: 9, ':v': 'named' },
  });
  assert.deepEqual(named.records[0]?.after, { v: 'named' });
  const wrong = await stage(adapter, { sql: 'insert into t (v) values (?)', values: [1, 2] });
  assert.equal(wrong.kind === 'failed' && wrong.reason, 'action-failed');
  const unknown = await stage(adapter, { sql: 'insert into t (v) values (:v)', values: { w: 1 } });
  assert.equal(unknown.kind === 'failed' && unknown.reason, 'action-failed');
});

test('a description can be submitted again and is the same for the same meaning', () => {
  const bytes = new Uint8Array([1]);
  const action = { sql, values: [1, 1.5, null, 'x', bytes, 2n ** 60n, -0] };
  const described = canonical(describeAction(parseAction(action)));
  assert.equal(canonical(describeAction(parseAction({ statements: [action] }))), described);
  assert.equal(canonical(describeAction(parseAction(JSON.parse(described)))), described);
  const parsed = parseAction(action);
  bytes[0] = 7;
  assert.equal(canonical(describeAction(parsed)), described, 'a copy was taken');
  assert.notEqual(
    canonical(describeAction(parseAction({ sql, values: { a: 1 } }))),
    canonical(describeAction(parseAction({ sql, values: [1] }))),
  );
});

test('only the very object that the probe made may write to the probe table', async () => {
  const file = freshFile('create table t (id integer primary key, v)');
  await using adapter = await open({ file, relations: ['t'] });
  await adapter.survey();
  const claim = { sealed: { record: { occurrence: 'occ_probe' } } } as unknown as Parameters<typeof adapter.stage>[0];
  const certificate = {} as unknown as Parameters<typeof adapter.stage>[1];
  const staged = await adapter.stage(claim, certificate, adapter.probe.action('token'));
  assert.equal(staged.kind, 'held');
  if (staged.kind !== 'held') return;
  const evidence = await staged.stage.observe();
  assert.deepEqual(evidence.records, [
    { op: 'insert', target: adapter.probe.target, key: { token: 'token' }, before: null, after: {} },
  ]);
  assert.equal(await adapter.probe.durable('token'), false);
  await staged.stage.discard();
  const copy = structuredClone(probeAction('token'));
  const forged = await adapter.stage(claim, certificate, copy);
  assert.equal(forged.kind === 'failed' && forged.reason, 'outlet-denied');
  const submitted = await stage(adapter, { sql: copy.statements[0]?.sql, values: ['token'] });
  assert.equal(submitted.kind === 'failed' && submitted.reason, 'outlet-denied');
  await using candidate = await held(adapter, { sql: 'insert into t (v) values (1)' });
  assert.equal((await candidate.observe()).records.length, 1);
});
