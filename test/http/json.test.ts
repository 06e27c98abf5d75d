// Goal: what a service says in JSON is compared as it was said: no number becomes its neighbour, no
// text becomes a tag. Method: texts whose numbers a double cannot carry, with the expected digits
// written out.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseJson } from '../../src/http/json.ts';

const parse = (text: string) => parseJson(Buffer.from(text));

test('whole numbers are plain up to 2^53 - 1 on both sides, and keep every digit beyond', () => {
  assert.deepEqual(
    parse('[9007199254740991, -9007199254740991]'),
    [9007199254740991, -9007199254740991],
  );
  assert.deepEqual(parse('[9007199254740992, -9007199254740992]'), [
    { $int: '9007199254740992' },
    { $int: '-9007199254740992' },
  ]);
  assert.deepEqual(parse('-1e16'), { $int: '-10000000000000000' });
  assert.deepEqual(parse('12e998'), { $int: `12${'0'.repeat(998)}` });
});

test('numbers keep their digits', () => {
  assert.deepEqual(
    parse('[1, 1.5, 0.1, -0, 1e3, 9007199254740991]'),
    [1, 1.5, 0.1, 0, 1000, 9007199254740991],
  );
  assert.deepEqual(parse('9007199254740993'), { $int: '9007199254740993' });
  assert.deepEqual(parse('[-9223372036854775808]'), [{ $int: '-9223372036854775808' }]);
  assert.deepEqual(parse('0.10000000000000000001'), { $dec: '0.10000000000000000001' });
  assert.deepEqual(parse('123456789012345678.50'), { $dec: '123456789012345678.5' });
});

test('a decimal is carried by a double when the shortest text of that double has its digits', () => {
  assert.deepEqual(parse('[0.30000000000000004, 52.520006599999995, -0.1234567890123457]'), [
    0.1 + 0.2,
    52.520006599999995,
    -0.1234567890123457,
  ]);
  assert.deepEqual(parse('[3.0000000000000004e-1, 30000000000000004E-17, 0.300000000000000040]'), [
    0.1 + 0.2,
    0.1 + 0.2,
    0.1 + 0.2,
  ]);
  assert.deepEqual(parse('{"at":[{"lat":3.3333333333333335e-11}]}'), {
    at: [{ lat: 3.3333333333333335e-11 }],
  });
  // 0.1 is 0.1000000000000000055…: seventeen digits of it are not its shortest text, and may be
  // another number.
  assert.deepEqual(parse('0.10000000000000001'), { $dec: '0.10000000000000001' });
  assert.deepEqual(parse('0.30000000000000005'), { $dec: '0.30000000000000005' });
});

test('a number is the same number with an exponent and without', () => {
  assert.deepEqual(parse('[1e3, 1.5e2, 15E-1, 2e-310]'), [1000, 150, 1.5, 2e-310]);
  assert.deepEqual(parse('[9007199254740993e0, 9.007199254740993e15]'), [
    { $int: '9007199254740993' },
    { $int: '9007199254740993' },
  ]);
  assert.deepEqual(parse('[1e+21, 1000000000000000000000]'), [
    { $int: '1000000000000000000000' },
    { $int: '1000000000000000000000' },
  ]);
  assert.deepEqual(parse('1.23456789012345678e5'), { $dec: '123456.789012345678' });
  assert.deepEqual(parse('-4.00e-324'), { $dec: `-0.${'0'.repeat(323)}4` });
  assert.deepEqual(parse('[0e99999, -0.0e-99999]'), [0, 0]);
});

test('keys that look like tags are data', () => {
  assert.deepEqual(parse('{"$int":"7","a":{"$dec":"1"}}'), { $$int: '7', a: { $$dec: '1' } });
});

test('what is not JSON in UTF-8 is no answer', () => {
  for (const text of ['', '{', '{"a":1}x', '1e999999', '{"__proto__":1}', '1e-999999']) {
    assert.equal(parse(text), undefined, text);
  }
  assert.equal(parseJson(Buffer.from([0x22, 0xff, 0x22])), undefined);
});

test('a key that is named twice says nothing, however it is written', () => {
  for (const text of [
    '{"a":1,"a":1}',
    '[{"b":{"a":3500 , "a" :35}}]',
    '{"a":1,"\\u0061":2}',
    '{"\\"":1,"\\u0022":2}',
  ]) {
    assert.equal(parse(text), undefined, text);
  }
  assert.deepEqual(parse('{"a":{"a":"a"},"b":[{"a":":"},{"a":"\\"a\\":"}]}'), {
    a: { a: 'a' },
    b: [{ a: ':' }, { a: '"a":' }],
  });
});

test('a number too small for a double does not become nothing, and zeros at the end do not count', () => {
  const tiny = `0.${'0'.repeat(400)}1`;
  assert.deepEqual(parse(tiny), { $dec: tiny });
  assert.deepEqual(parse('1e-400'), { $dec: `0.${'0'.repeat(399)}1` });
  assert.deepEqual(parse('[35.0000000000000000000, 0.0e5, -0.000]'), [35, 0, 0]);
});

test('no number keeps a reader busy', () => {
  const long = 900_000;
  const started = process.cpuUsage();
  for (const text of [`1.${'0'.repeat(long)}1`, '9'.repeat(long)])
    assert.equal(parse(text), undefined);
  const list = `[${`1.${'0'.repeat(990)}1,`.repeat(900)}1]`;
  assert.ok(Array.isArray(parse(list)));
  // A reader that tries every zero again needs minutes for the first of these alone.
  assert.ok(process.cpuUsage(started).user < 20_000_000);
});

test('a number that is too long makes the whole text no answer, wherever it stands', () => {
  const long = `1.${'0'.repeat(999)}`;
  for (const text of [long, `[1,${long}]`, `{"a":1,"b":{"c":${long}}}`])
    assert.equal(parse(text), undefined);
  assert.deepEqual(parse(`[1,1.${'0'.repeat(998)}]`), [1, 1], 'a thousand characters are read');
});

test('null is a value like any other', () => {
  assert.equal(parse('null'), null);
  assert.deepEqual(parse('[null, {"a": null, "$b": null}]'), [null, { a: null, $$b: null }]);
});

test('a key that V8 may have misread makes the whole text no answer', () => {
  assert.equal(parse('{"a":0,"\\\\":1}'), undefined);
  // V8 13.6 reads this key as a backslash after the text above.
  assert.notDeepEqual(parse('{"a":0,"\\"":1}'), { a: 0, '\\': 1 });
});
