// Goal: a scan of JSON text counts what parsing does not show. Method: fast-check makes values
// whose members and nesting are counted on the value; repeated members are put in by hand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { scanJson } from '../../src/protocol/json-text.ts';

function membersOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const own = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce((sum: number, inner) => sum + membersOf(inner), own);
}

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

// Texts with the characters that the scan looks for, so that one inside a string would be counted.
const tricky = fc.string({ unit: fc.constantFrom('"', ':', '\\', '[', '}', 'é', 'a') });
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    tricky,
    fc.constantFrom(null, true, -1.5e21),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(tricky, tie('value'), { maxKeys: 3 }),
  ),
}));

test('property: the members and the depth of a text are those of its value', () => {
  fc.assert(
    fc.property(value, fc.constantFrom(undefined, 2), (json, indentation) => {
      const scanned = scanJson(JSON.stringify(json, null, indentation));
      assert.deepEqual(scanned, { members: membersOf(json), depth: depthOf(json) });
    }),
    { numRuns: 2000 },
  );
});

test('a repeated member counts twice, and the depth is that of the deepest part', () => {
  assert.deepEqual(scanJson('{"a":1,"a":2,"b":[[]],"c":{}}'), { members: 4, depth: 3 });
});
