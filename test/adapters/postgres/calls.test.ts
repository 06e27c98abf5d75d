// Goal: a call reaches the one registered entry point that it names, and no statement or value
// stands for another. Method: entry points written by hand, without a server; `overloads.test.ts`
// calls real ones.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAction } from '../../../src/adapters/postgres/action.ts';
import type { EntryRoutine } from '../../../src/adapters/postgres/entry.ts';
import { loadGate } from '../../../src/adapters/postgres/statement-gate.ts';

const entry = (
  target: string,
  types: readonly string[],
  more: Partial<EntryRoutine> = {},
): EntryRoutine => ({
  ...{
    schema: 'app',
    name: 'pay',
    oid: 1,
    target,
    kind: 'function',
    securityDefiner: false,
    language: 'sql',
  },
  arguments: types.map((type) => ({ type, input: true })),
  signature: { types, spellings: types.map((type) => [type]), identity: types.join(', ') },
  ...more,
});
const PAY = entry('app.pay(integer)', ['integer']);
const PAY_TEXT = entry('app.pay(text)', ['text']);
const MOVE = entry('app.move', ['integer'], { name: 'move', kind: 'procedure' });

async function parse(input: unknown, ...entries: readonly EntryRoutine[]) {
  const known = new Map(entries.map((one) => [one.target, one]));
  return parseAction({ gate: await loadGate(), entries: known }, input).statements[0];
}
const refused = (message: RegExp) => ({ code: 'ERR_EM_ACTION_INVALID', message });

test('a call by its name alone needs the name to be of one entry point', async () => {
  assert.equal(
    (await parse({ call: 'app.pay', values: [1] }, PAY, MOVE))?.sql,
    'select * from "app"."pay"($1::integer)',
  );
  assert.equal(
    (await parse({ call: 'app.move', values: [1] }, PAY, MOVE))?.sql,
    'call "app"."move"($1::integer)',
  );
  await assert.rejects(
    parse({ call: 'app.pay', values: [1] }, PAY, PAY_TEXT),
    refused(
      /several entry points have this name; call one of app\.pay\(integer\), app\.pay\(text\)/,
    ),
  );
});

test('a call with a signature is of that one', async () => {
  const call = async (text: string) =>
    (await parse({ call: text, values: ['1'] }, PAY, PAY_TEXT))?.sql;
  assert.equal(await call('app.pay(int)'), 'select * from "app"."pay"($1::integer)');
  assert.equal(await call('app.pay(text)'), 'select * from "app"."pay"($1::text)');
  await assert.rejects(
    call('app.pay(date)'),
    refused(/must name a registered entry point; registered are app\.pay/),
  );
});

test('what names something else, or is no text, calls nothing', async () => {
  for (const call of [
    'pay',
    'other.pay',
    'app.payout',
    'app.pay(',
    ['app.pay'],
    { toString: () => 'app.pay' },
    5,
    null,
  ]) {
    await assert.rejects(
      parse({ call, values: [1] }, PAY),
      refused(/call must name a registered entry point/),
    );
  }
  await assert.rejects(parse({ call: 'app.pay', values: [1] }), refused(/none is registered/));
});

test('the statement CALL is for registered procedures, not for functions', async () => {
  assert.equal((await parse({ sql: 'call app.move(1)' }, PAY, MOVE))?.sql, 'call app.move(1)');
  await assert.rejects(parse({ sql: 'call app.pay(1)' }, PAY, MOVE), refused(/./));
});

test('tags that PostgreSQL has no value for are refused', async () => {
  const bound = async (value: unknown) =>
    (await parse({ sql: 'select $1', values: [value] }))?.values;
  assert.deepEqual(await bound({ $int: '9007199254740993' }), ['9007199254740993']);
  assert.deepEqual(await bound({ $bytes: '00ff' }), ['\\x00ff']);
  for (const value of [{ $text: '00ff' }, { int: '5' }, { a: 1 }, Symbol('x'), () => 1]) {
    await assert.rejects(bound(value), refused(/a value is null, a boolean/));
  }
});
