// Goal: the text of a row is read exactly, and a text that no output function writes is refused.
// Method: rows with generated texts through a writer of the documented rules; damaged texts one by
// one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseImage, parseImages } from '../../../src/adapters/postgres/image.ts';
import { formatImage } from './image-text.ts';

test('property: every row of texts and NULLs reads back', () => {
  const field = fc.oneof(
    fc.constant(null),
    fc.string({ unit: fc.constantFrom('a', '"', '\\', '(', ')', ',', ' ', '\n', '🦊') }),
    fc.string({ unit: 'binary' }),
  );
  fc.assert(
    fc.property(fc.array(field, { minLength: 1, maxLength: 8 }), (fields) => {
      assert.deepEqual(parseImage(formatImage(fields), fields.length), fields);
    }),
    { numRuns: 2000 },
  );
});

test('property: a text is read as the one row that is written so, or refused', () => {
  const text = fc.string({
    unit: fc.constantFrom('a', '"', '\\', '(', ')', ',', ' '),
    maxLength: 12,
  });
  let read = 0;
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 3 }), (inner, columns) => {
      for (const given of [inner, `(${inner})`]) {
        try {
          const images = parseImages(given, columns);
          read += 1;
          assert.equal(images.map(formatImage).join(''), given);
        } catch (error) {
          assert.equal((error as { code?: string }).code, 'ERR_EM_INVARIANT', String(error));
        }
      }
    }),
    { numRuns: 20_000 },
  );
  assert.ok(read > 100, `only ${read} texts were rows`);
});

test('NULL, the empty text and quoted specials are told apart', () => {
  assert.deepEqual(parseImage('(1,,"","a ""b"" \\\\ c",x)', 5), ['1', null, '', 'a "b" \\ c', 'x']);
  assert.deepEqual(parseImage('()', 1), [null]);
});

for (const damaged of [
  '',
  '(',
  '1,2)',
  '(1,2',
  '(1,2))',
  '(1,2) ',
  '(1,"2")',
  '(1,"2)',
  '(1,"2"x)',
  '(1,2"3")',
  '(1,a b)',
  '(1,a\\b)',
  '(1,"a\\b")',
  '(1,"a\\\\\\b")',
  '(1,(2)',
  '(1)',
  '(1,2,3)',
  '((1,2)',
]) {
  test(`${JSON.stringify(damaged)} is not a row of two columns`, () => {
    assert.throws(() => parseImage(damaged, 2), { code: 'ERR_EM_INVARIANT' });
  });
}

test('rows that stand one after another are told apart, and nothing may stand between them', () => {
  const rows = [
    ['1', null],
    ['', ')('],
    [null, '"'],
  ] as const;
  assert.deepEqual(parseImages(rows.map(formatImage).join(''), 2), rows);
  assert.throws(() => parseImages('(1,2) (3,4)', 2), { code: 'ERR_EM_INVARIANT' });
  assert.throws(() => parseImages('(1,2)(3)', 2), { code: 'ERR_EM_INVARIANT' });
  assert.throws(() => parseImage('(1,2)(3,4)', 2), { code: 'ERR_EM_INVARIANT' });
});
