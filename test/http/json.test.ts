// Goal: what a service says in JSON is compared as it was said: no number becomes its neighbour, no text becomes a tag.
// Method: texts whose numbers a double cannot carry, with the expected digits written out.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseJson } from '../../src/http/json.ts';

const parse = (text: string) => parseJson(Buffer.from(text));

test('numbers keep their digits', () => {
  assert.deepEqual(parse('[1, 1.5, 0.1, -0, 1e3, 9007199254740991]'), [1, 1.5, 0.1, 0, 1000, 9007199254740991]);
  assert.deepEqual(parse('9007199254740993'), { $int: '9007199254740993' });
  assert.deepEqual(parse('[-9223372036854775808]'), [{ $int: '-9223372036854775808' }]);
  assert.deepEqual(parse('0.10000000000000000001'), { $dec: '0.10000000000000000001' });
  assert.deepEqual(parse('123456789012345678.50'), { $dec: '123456789012345678.5' });
});

test('keys that look like tags are data', () => {
  assert.deepEqual(parse('{"$int":"7","a":{"$dec":"1"}}'), { $$int: '7', a: { $$dec: '1' } });
});

test('what is not JSON in UTF-8 is no answer', () => {
  for (const text of ['', '{', '{"a":1}x', '1e999999', '{"__proto__":1}', '1.23456789012345678e5']) {
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
  for (const text of ['1e-400', '4e-324', '2e-310']) assert.equal(parse(text), undefined, text);
  assert.deepEqual(parse('[35.0000000000000000000, 0.0e5, -0.000]'), [35, 0, 0]);
});

test('no number keeps a reader busy', () => {
  const long = 900_000;
  const started = process.cpuUsage();
  for (const text of [`1.${'0'.repeat(long)}1`, '9'.repeat(long)]) assert.equal(parse(text), undefined);
  const list = `[${`1.${'0'.repeat(990)}1,`.repeat(900)}1]`;
  assert.ok(Array.isArray(parse(list)));
  // A reader that tries every zero again needs minutes for the first of these alone.
  assert.ok(process.cpuUsage(started).user < 20_000_000);
});
