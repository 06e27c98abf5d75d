// Goal: an action is either checked completely and bound as written, or refused before anything
// runs. Method: hand-written bad input; good values are written by a stage and read back with
// typeof().

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { describeAction, parseAction, probeAction } from '../../../src/adapters/sqlite/action.ts';
import { canonical } from '../../../src/protocol/canon.ts';
import { freshFile, held, observe, open, stage } from './database.ts';

const sql = 'select 1';
const one = 'select ?';
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
  ['an undefined value', { sql: one, values: [undefined] }],
  ['a hole', { sql, values: new Array(1) }],
  ['NaN', { sql: one, values: [Number.NaN] }],
  ['an integer that may have been rounded', { sql: one, values: [2 ** 53] }],
  ['too large an integer', { sql: one, values: [2n ** 63n] }],
  ['too small an integer', { sql: one, values: [-(2n ** 63n) - 1n] }],
  ['too large a tagged integer', { sql: one, values: [{ $int: '9223372036854775808' }] }],
  ['text with a lone surrogate', { sql: one, values: ['\udc00'] }],
  ['a date', { sql: one, values: [new Date(0)] }],
  ['an object', { sql: one, values: [{ a: 1 }] }],
  ['a tag that is none', { sql: one, values: [{ $real: 'NaN' }] }],
  ['a decimal', { sql: one, values: [{ $dec: '1.5' }] }],
  ['a shared buffer', { sql: one, values: [new Uint8Array(new SharedArrayBuffer(4))] }],
  ['a function', { sql: one, values: [() => 1] }],
  ['a symbol', { sql: one, values: [Symbol('x')] }],
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

const MISCOUNTED: readonly (readonly [sql: string, values: unknown, message: RegExp])[] = [
  ['select ?', undefined, /takes 1 value, but 0 were given/],
  ['select ?', [], /takes 1 value, but 0 were given/],
  ['select ?, ?', [1], /takes 2 values, but 1 was given/],
  ['select ?', [1, 2], /takes 1 value, but 2 were given/],
  ['select 1', [1], /takes no values, but 1 was given/],
  ['select ?3', [1], /takes 3 values, but 1 was given/],
  ['select ?2, ?', [1, 2], /takes 3 values, but 2 were given/],
  ['select ?0', [1], /numbered from \?1/],
  ['select ?32767', [1], /numbered from \?1/],
  ['select :a', [1], /:a has a name/],
  ['select :a, ?', { a: 1 }, /\? has no name/],
  ['select ?1', { a: 1 }, /\?1 has no name/],
  ['select :a', {}, /no value for the parameter :a/],
  ['select :a, @b', { a: 1 }, /no value for the parameter @b/],
  ['select :a', { a: 1, b: 2 }, /no parameter "b"/],
  ['select :a', { $a: 1 }, /no parameter "\$a"/],
  ['select :a', { a: 1, ':a': 2 }, /":a" has two values/],
  ['select :a, $a', { a: 1 }, /:a and \$a must have different names/],
];

test('too few or too many values are refused before anything runs', () => {
  for (const [text, values, message] of MISCOUNTED) {
    const action = { sql: text, ...(values !== undefined && { values }) };
    assert.throws(() => parseAction(action), { code: 'ERR_EM_ACTION_INVALID', message }, text);
    assert.throws(
      () => parseAction({ statements: [{ sql }, action] }),
      { message: /^statement 2: / },
      text,
    );
  }
});

/** Statements whose parameters are easily miscounted, each with as many values as SQLite takes. */
const COUNTED: readonly (readonly [sql: string, values: unknown])[] = [
  ["select '?', ?", [1]],
  ["select 'it''s ?', ?", [1]],
  ['select ? as "a?b"', [1]],
  ['select ? as [a?]', [1]],
  ['select ? as `a?`', [1]],
  ['select ? -- and ?', [1]],
  ['select ? -- and ?\n, ?', [1, 2]],
  ['select /* ? */ ?', [1]],
  ['select ? /* and ?', [1]],
  ['select 1 as a$b, ?', [1]],
  ['select 1 as ä$b, ?', [1]],
  ["select x'00', ?", [1]],
  ['select 1.5, ?', [1]],
  ['select 1e-5, ?', [1]],
  ["select '{}' ->> '$.a', ?", [1]],
  ['select ?1, ?1', [1]],
  ['select ?2, ?1', [1, 2]],
  ['select ?3', [1, 2, 3]],
  ['select ?, ?3, ?', [1, 2, 3, 4]],
  ['select :a, :a, @b', { a: 1, b: 2 }],
  ['select $a, $b', { $a: 1, b: 2 }],
  ['select :ä', { ä: 1 }],
  ['select iif(:a, :b, :c)', { a: 1, b: 2, c: 3 }],
  ['select ?|?||?', [1, 2, 3]],
  ['select 5 % ? - -?', [1, 2]],
];

test('values are counted as SQLite counts parameters', () => {
  using db = new DatabaseSync(':memory:');
  for (const [text, values] of COUNTED) {
    const [checked] = parseAction({ sql: text, values }).statements;
    assert.ok(checked !== undefined);
    const { named, positional } = checked;
    const rows = db.prepare(text).all(named, ...positional);
    assert.equal(rows.length, 1, text);
    // One value more is one too many for SQLite: the last of the checked ones was bound to the last
    // parameter.
    assert.throws(() => db.prepare(text).all(named, ...positional, 0), /out of range/, text);
  }
});

test('no text, however it is made, takes much longer to read than its length', () => {
  const names = Array.from({ length: 149_000 }, (_, at) => `:p${at.toString(36).padStart(4, '0')}`);
  const fewer = names.slice(0, 32_766);
  const texts: readonly (readonly [sql: string, values?: unknown])[] = [
    [`select ${names.join(',')}`],
    [`select ${fewer.join(',')}`, Object.fromEntries(fewer.toReversed().map((name) => [name, 1]))],
    [`select ${':a('.repeat(349_000)}`],
    [`select ${'?'.repeat(1_048_000)}`],
    [`select /*${'*'.repeat(1_048_000)}`],
  ];
  const begun = performance.now();
  for (const [text, values] of texts) {
    try {
      parseAction({ sql: text, values });
    } catch (error) {
      assert.equal((error as { code?: unknown }).code, 'ERR_EM_ACTION_INVALID');
    }
  }
  const ms = performance.now() - begun;
  assert.ok(ms < 10_000, `${ms} ms; comparing every name with every other took more than a minute`);
  assert.throws(
    () => parseAction({ sql: `select ${'?,'.repeat(32_766)}?` }),
    /more than 32766 parameters/,
  );
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
  const stored = new Map([...records].map((record) => [record.key?.id, record.after?.v]));
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
  assert.deepEqual([...named.records][0]?.after, { v: 'named' });
  const numbered = await observe(adapter, {
    sql: 'insert into t (id, v) values (?2, ?1)',
    values: ['numbered', 10],
  });
  assert.deepEqual([...numbered.records][0], {
    ...{ op: 'insert', target: 't', key: { id: 10 }, before: null, after: { v: 'numbered' } },
  });
});

test('a description can be submitted again and is the same for the same meaning', () => {
  const bytes = new Uint8Array([1]);
  const action = {
    sql: 'select ?, ?, ?, ?, ?, ?, ?',
    values: [1, 1.5, null, 'x', bytes, 2n ** 60n, -0],
  };
  const described = canonical(describeAction(parseAction(action)));
  assert.equal(canonical(describeAction(parseAction({ statements: [action] }))), described);
  assert.equal(canonical(describeAction(parseAction(JSON.parse(described)))), described);
  const parsed = parseAction(action);
  bytes[0] = 7;
  assert.equal(canonical(describeAction(parsed)), described, 'a copy was taken');
  assert.notEqual(
    canonical(describeAction(parseAction({ sql: 'select :a', values: { a: 1 } }))),
    canonical(describeAction(parseAction({ sql: one, values: [1] }))),
  );
});

test('only the very object that the probe made may write to the probe table', async () => {
  const file = freshFile('create table t (id integer primary key, v)');
  await using adapter = await open({ file, relations: ['t'] });
  await adapter.survey();
  const claim = { sealed: { record: { occurrence: 'occ_probe' } } } as unknown as Parameters<
    typeof adapter.stage
  >[0];
  const certificate = {} as unknown as Parameters<typeof adapter.stage>[1];
  const staged = await adapter.stage(claim, certificate, adapter.probe.action('token'));
  assert.equal(staged.kind, 'held');
  if (staged.kind !== 'held') return;
  const evidence = await staged.stage.observe();
  assert.deepEqual(evidence.records, [
    {
      op: 'insert',
      target: adapter.probe.target,
      key: { token: 'token' },
      before: null,
      after: {},
    },
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
