// Goal: rows that a statement returns reach the caller as JSON can carry them. Method: cells as the
// driver gives them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readReturned } from '../../../src/adapters/mysql/result-rows.ts';

test('numbers and null stay, bytes and everything else become text', () => {
  const row = { n: 1.5, z: 0, none: null, text: 'x', big: 5n, bytes: Buffer.from('00ff', 'hex') };
  const read = readReturned(row);
  assert.deepEqual(
    { ...read, bytes: undefined },
    {
      ...{ n: 1.5, z: 0, none: null, text: 'x', big: '5', bytes: undefined },
    },
  );
  assert.match(String(read.bytes), /00ff/);
  assert.equal(typeof read.bytes, 'string');
});
