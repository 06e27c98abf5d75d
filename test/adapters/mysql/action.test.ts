// Goal: an action is checked completely and copied before anything is claimed, and described the
// same however it is written. Method: every shape, every kind of value and every refusal.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import mysql from 'mysql2/promise';
import {
  bindValues,
  describeAction,
  isProbe,
  parseAction,
  probeAction,
  splitScript,
} from '../../../src/adapters/mysql/action.ts';

const valuesOf = (...values: unknown[]) => parseAction({ sql: 'x', values }).statements[0]?.values;
const BYTES = Buffer.from('bytes');
const refused = (input: unknown, why: RegExp) =>
  assert.throws(() => parseAction(input), { code: 'ERR_EM_ACTION_INVALID', message: why });

test('a script is divided at semicolons outside quotes and comments', () => {
  assert.deepEqual(splitScript("select ';'; select 2"), ["select ';'", 'select 2']);
  assert.deepEqual(splitScript('a;;b; '), ['a', 'b']);
  assert.deepEqual(splitScript('select "a\\";"; b'), ['select "a\\";"', 'b']);
  assert.deepEqual(splitScript("select `;`, 'it'';' -- ;\n, 1 # ;\n; b"), [
    "select `;`, 'it'';' -- ;\n, 1 # ;",
    'b',
  ]);
  assert.deepEqual(splitScript('select 1 /* ; */; /* only this */; -- and this\n; # this'), [
    'select 1 /* ; */',
  ]);
  // What the server would run is not left out.
  assert.deepEqual(splitScript('a; /*! commit */; /*M! commit */'), [
    'a',
    '/*! commit */',
    '/*M! commit */',
  ]);
  for (const open of ["'", '"', '`', '/*'])
    assert.throws(() => splitScript(`select 1; select ${open}x`), {
      code: 'ERR_EM_ACTION_INVALID',
      message: /is not closed/,
    });
});

test('one statement, several and a script are the same action', () => {
  const one = parseAction({ sql: 'select 1' });
  assert.deepEqual(one, { statements: [{ sql: 'select 1', values: [] }] });
  assert.deepEqual(parseAction({ statements: [{ sql: 'select 1' }] }), one);
  assert.deepEqual(parseAction({ script: 'select 1;' }), one);
});

test('values keep their kind', () => {
  assert.deepEqual(valuesOf(null, true, false, 7, -1.5, -0, 9n, 'text'), [
    ...[null, 1n, 0n, 7n, -1.5, -0, 9n, 'text'],
  ]);
  assert.deepEqual(valuesOf(-(2n ** 63n), 2n ** 64n - 1n), [-(2n ** 63n), 2n ** 64n - 1n]);
  assert.deepEqual(
    valuesOf({ $int: '99999999999999999' }, { $real: '0.5' }, { $dec: '1.10' }, { $bytes: '00ff' }),
    [99_999_999_999_999_999n, 0.5, { $dec: '1.10' }, Buffer.from('00ff', 'hex')],
  );
  const bytes = new Uint8Array([1, 2, 3, 4]);
  const [copied] = valuesOf(bytes.subarray(1, 3)) ?? [];
  bytes.fill(9);
  assert.deepEqual(copied, Buffer.from([2, 3]), 'it is a copy of its own part');
});

test('values that have no exact form are refused', () => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, { $real: 'Infinity' }])
    refused({ sql: 'x', values: [value] }, /not finite/);
  for (const value of [2n ** 64n, -(2n ** 63n) - 1n, { $int: '18446744073709551616' }])
    refused({ sql: 'x', values: [value] }, /does not fit into 64 bits/);
  refused({ sql: 'x', values: [2 ** 60] }, /write a BigInt/);
  for (const value of [undefined, {}, [], () => 1, Symbol('x'), new Date(), { $text: '00' }])
    refused({ sql: 'x', values: [value] }, /value 1/);
  refused({ sql: 'x', values: 'abc' }, /values must be a list/);
  refused({ sql: 'x', values: { length: 1, 0: 1 } }, /values must be a list/);
  const many = Array.from({ length: 65_536 }, () => null);
  refused({ sql: 'x', values: many }, /at most 65535/);
  assert.equal(valuesOf(...many.slice(1))?.length, 65_535);
  refused({ sql: 'x', value: [] }, /value/);
  refused({ sql: 5 }, /sql/);
});

test('values are bound with their types', () => {
  const { TypedParameter } = mysql;
  assert.deepEqual(
    bindValues([2n ** 63n - 1n, 2n ** 63n, { $dec: '1.5' }, 0.5, 'x', null, BYTES]),
    [
      TypedParameter.LONGLONG(2n ** 63n - 1n),
      TypedParameter.LONGLONG.unsigned(2n ** 63n),
      TypedParameter.NEWDECIMAL('1.5'),
      ...[0.5, 'x', null, BYTES],
    ],
  );
});

test('an action is described as plain data', () => {
  const action = parseAction({
    sql: 'x',
    values: [1, 2n ** 60n, 0.5, 'a', null, Buffer.from('b')],
  });
  assert.deepEqual(describeAction(action), {
    statements: [
      {
        sql: 'x',
        values: [1, { $int: String(2n ** 60n) }, { $real: '0.5' }, 'a', null, { $bytes: '62' }],
      },
    ],
  });
});

test('only the probe is a probe', () => {
  const probe = probeAction('con`trol', 'token');
  assert.ok(isProbe(probe));
  assert.deepEqual(probe.statements, [
    { sql: 'insert into `con``trol`.probe (token) values (?)', values: ['token'] },
  ]);
  assert.ok(!isProbe({ statements: probe.statements }));
});
