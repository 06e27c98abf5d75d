// Goal: an instant is the text that the platform gives, whatever was asked before.
// Method: fast-check over times near to and far from each other, compared with Date.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { instant } from '../../src/contract/clock.ts';

test('property: an instant is ISO 8601 in UTC with milliseconds', () => {
  const near = fc.integer({ min: -3000, max: 3000 });
  const far = fc.integer({ min: -8.64e15, max: 8.64e15 });
  const fraction = fc.double({ min: -8.64e15, max: 8.64e15, noNaN: true });
  fc.assert(
    fc.property(fc.array(fc.oneof(near, far, fraction), { minLength: 1 }), (times) => {
      for (const ms of times) assert.equal(instant(ms), new Date(ms).toISOString());
    }),
    { numRuns: 1000 },
  );
});

test('what is no time is refused', () => {
  for (const ms of [Number.NaN, Number.POSITIVE_INFINITY, 8.64e15 + 1])
    assert.throws(() => instant(ms), RangeError);
  assert.equal(instant(0), '1970-01-01T00:00:00.000Z');
});
