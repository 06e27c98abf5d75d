// Goal: a process that sends for years does not keep all of it in memory.
// Method: more entries than are kept; the newest are there, the oldest are not.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Recent } from '../../src/http/recent.ts';

test('the newest ten thousand are kept', () => {
  const recent = new Recent<number>();
  for (let n = 0; n < 10_005; n += 1) recent.set(`key ${n}`, n);
  assert.deepEqual(
    [recent.get('key 4'), recent.get('key 5'), recent.get('key 10004')],
    [undefined, 5, 10_004],
  );
});
