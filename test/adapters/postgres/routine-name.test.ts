// Goal: a routine is found by every text that names it, and by no other.
// Method: names and signatures as people and the server write them, without a server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSignature, parseRoutine } from '../../../src/adapters/postgres/routine-name.ts';

const signatureIn = (text: string) => parseRoutine(text)?.signature;

test('a name, with a schema or without, and with the types of its arguments or without', () => {
  assert.deepEqual(parseRoutine('pay'), { schema: 'public', name: 'pay' });
  assert.deepEqual(parseRoutine(' app.pay '), { schema: 'app', name: 'pay' });
  assert.deepEqual(parseRoutine('app."Pay (all)"'), { schema: 'app', name: 'Pay (all)' });
  assert.deepEqual(parseRoutine('app.pay()'), { schema: 'app', name: 'pay', signature: [] });
  assert.deepEqual(parseRoutine('app.pay (int, "My Type") '), {
    ...{ schema: 'app', name: 'pay', signature: ['integer', '"My Type"'] },
  });
  for (const text of [
    '',
    ' ',
    'a b',
    'pay(',
    'pay)',
    'a.b.c',
    'a.b.c(int)',
    '(int)',
    'pay(int) x',
  ]) {
    assert.equal(parseRoutine(text), undefined, text);
  }
});

test('types are folded and spelt out as the server prints them', () => {
  for (const [written, types] of [
    ['INT', ['integer']],
    ['varchar(3), numeric(10, 2)', ['character varying', 'numeric']],
    ['dec,decimal , Float', ['numeric', 'numeric', 'double precision']],
    ['timestamp, time', ['timestamp without time zone', 'time without time zone']],
    ['int[], INT [3][4]', ['integer[]', 'integer[]']],
    ['"INT", "a,b"', ['"INT"', '"a,b"']],
    ['timestamp  with   time zone', ['timestamp with time zone']],
    ['constructor', ['constructor']],
    [' , ', []],
  ] as const) {
    assert.deepEqual(signatureIn(`f(${written})`), types, written);
  }
});

test('a signature is stated in its printed form, in another spelling, or as it is reported', () => {
  const signature = {
    types: ['integer', 'text'],
    spellings: [
      ['integer', 'pg_catalog.int4', 'int4'],
      ['text', 'pg_catalog.text'],
    ],
    identity: 'which integer, OUT total numeric, note text',
  };
  const isIt = (...stated: readonly string[]) => isSignature(signature, stated);
  assert.ok(isIt('integer', 'text'));
  assert.ok(isIt('int4', 'pg_catalog.text'));
  assert.ok(isIt(...(signatureIn(`f(${signature.identity})`) ?? [])));
  assert.ok(!isIt('integer'));
  assert.ok(!isIt('integer', 'text', 'text'));
  assert.ok(!isIt('text', 'integer'));
  assert.ok(!isIt('integer', 'numeric'));
  assert.ok(!isIt('which integer', 'out total numeric'));
  assert.ok(!isIt('which integer', 'out total numeric', 'note integer'));
  assert.ok(isSignature({ types: [], spellings: [], identity: '' }, []));
  assert.ok(!isSignature({ types: [], spellings: [], identity: '' }, ['integer']));
});
