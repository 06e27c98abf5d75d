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
