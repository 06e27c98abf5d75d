// Goal: a `matches` pattern means what its author reads, whatever text an agent writes into the
// column, at linear cost. Method: random patterns of the whole grammar against JavaScript's RegExp
// as oracle; step counts for hostile inputs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { compilePattern, runPattern } from '../../src/protocol/pattern.ts';

function matches(source: string, text: string): boolean {
  return runPattern(compilePattern(source), text).matched;
}

const ALPHABET = ['a', 'b', 'c', '0', '_', '-', ' ', '.', '😀', 'é', '\n', '\u2029', ']', '^'];
const literal = fc.constantFrom(
  'a',
  'b',
  'c',
  '0',
  '_',
  '-',
  ' ',
  '😀',
  'é',
  '\\.',
  '\\]',
  '\\^',
  '\\*',
  '\\\\',
);
const shorthand = fc.constantFrom('\\d', '\\w', '\\s', '\\D', '\\W', '\\S');
const member = fc.oneof(
  fc.constantFrom('a', 'b', '_', '😀', '\\]', '\\-', '\\^', '.', '*'),
  fc.constantFrom('a-c', '0-9', 'a-b', '\\.-0', 'é-😀', ' -0'),
  shorthand,
);
const characterClass = fc
  .tuple(
    fc.constantFrom('', '^'),
    fc.array(member, { minLength: 1, maxLength: 3 }),
    fc.constantFrom('', '', '-'),
  )
  .map(([negation, members, dash]) => `[${negation}${members.join('')}${dash}]`);
const quantifier = fc.constantFrom('*', '+', '?', '{0}', '{2}', '{0,}', '{2,}', '{0,2}', '{1,3}');
const source = fc.letrec<{ choice: string; sequence: string; item: string }>((tie) => ({
  choice: fc.array(tie('sequence'), { minLength: 1, maxLength: 3 }).map((parts) => parts.join('|')),
  sequence: fc.array(tie('item'), { maxLength: 3 }).map((items) => items.join('')),
  item: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    fc.oneof(literal, fc.constant('.'), shorthand, characterClass),
    fc
      .tuple(fc.oneof(literal, fc.constant('.'), shorthand, characterClass), quantifier)
      .map(([a, q]) => a + q),
    fc
      .tuple(fc.constantFrom('(', '(?:'), tie('choice'), fc.oneof(fc.constant(''), quantifier))
      .map(([open, inner, q]) => `${open}${inner})${q}`),
  ),
})).choice;

/**
 * RegExp backtracks: a few repeated groups inside each other can keep it, as an oracle, busy for
 * hours.
 */
const repeatedGroups = (pattern: string) => pattern.match(/\)[*+?{]/g)?.length ?? 0;

test('property: agrees with RegExp on random patterns and texts', () => {
  const seen = { matched: 0, unmatched: 0 };
  const text = fc
    .array(fc.constantFrom(...ALPHABET), { maxLength: 6 })
    .map((list) => list.join(''));
  fc.assert(
    fc.property(
      source.filter((text) => text.length <= 120 && repeatedGroups(text) <= 2),
      fc.array(text, { minLength: 1, maxLength: 5 }),
      (pattern, texts) => {
        const oracle = new RegExp(`^(?:${pattern})$`, 'us');
        const compiled = compilePattern(pattern);
        for (const candidate of texts) {
          const expected = oracle.test(candidate);
          seen[expected ? 'matched' : 'unmatched'] += 1;
          assert.equal(
            runPattern(compiled, candidate).matched,
            expected,
            `${pattern} on ${JSON.stringify(candidate)}`,
          );
        }
      },
    ),
    { numRuns: 10_000 },
  );
  assert.ok(seen.matched > 1_000 && seen.unmatched > 1_000, JSON.stringify(seen));
});

test('shorthand classes hold exactly the characters RegExp gives them', () => {
  for (const shorthandClass of ['\\d', '\\w', '\\s', '\\D', '\\W', '\\S', '[^\\s]', '[^\\Wx]']) {
    const oracle = new RegExp(`^${shorthandClass}$`, 'us');
    const compiled = compilePattern(shorthandClass);
    for (let unit = 0; unit <= 0xffff; unit += 1) {
      const character = String.fromCodePoint(unit);
      if (oracle.test(character) !== runPattern(compiled, character).matched)
        assert.fail(`${shorthandClass} ${unit}`);
    }
  }
});

test('the whole text must match, not a part of it', () => {
  assert.ok(matches('INV-\\d{4}', 'INV-4711'));
  assert.ok(!matches('INV-\\d{4}', 'INV-47110'));
  assert.ok(!matches('INV-\\d{4}', 'xINV-4711'));
  assert.ok(!matches('INV-\\d{4}', 'INV-4711\n'));
  assert.ok(matches('a|b', 'b') && !matches('a|b', 'ab'));
});

test('one character is one code point', () => {
  assert.ok(matches('.', '😀'));
  assert.ok(!matches('..', '😀'));
  assert.ok(matches('[^a]', '\u{10ffff}'));
});

test('any ASCII punctuation can be escaped', () => {
  for (const character of '!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~') {
    assert.ok(matches(`\\${character}`, character), character);
    assert.ok(matches(`[\\${character}]`, character), character);
  }
});

for (const hostile of [
  '(a*)*b',
  '(a|a)*b',
  '(a+)+b',
  '((a?)*)*b',
  '(a?){200}a{200}',
  '(.*)(.*)(.*)(.*)x',
]) {
  test(`${hostile} costs at most states times length on 10,000 letters`, () => {
    const compiled = compilePattern(hostile);
    const { matched, steps } = runPattern(compiled, 'a'.repeat(10_000));
    assert.equal(matched, false);
    assert.ok(compiled.states.length <= 1_100, `${compiled.states.length} states`);
    assert.ok(steps <= (compiled.states.length + 1) * 10_001, `${steps} steps`);
  });
}

test('the cost of a hostile pattern grows linearly with the text', () => {
  const compiled = compilePattern('(a*)*b');
  const cost = (length: number): number => runPattern(compiled, 'a'.repeat(length)).steps;
  assert.ok(cost(10_000) <= 10.5 * cost(1_000));
});

for (const [pattern, why, position] of [
  ['(a)\\1', 'an escape', 5],
  ['\\k<n>', 'an escape', 2],
  ['a\\b', 'an escape', 3],
  ['\\n', 'an escape', 2],
  ['\\u0041', 'an escape', 2],
  ['\\p{L}', 'an escape', 2],
  ['(?=a)', 'a group', 2],
  ['(?!a)', 'a group', 2],
  ['(?<=a)b', 'a group', 2],
  ['(?<n>a)', 'a group', 2],
  ['a(?i:b)', 'a group', 3],
  ['^a', 'an anchor', 1],
  ['a$', 'an anchor', 2],
  ['a*?', 'a lazy one', 3],
  ['a+?', 'a lazy one', 3],
  ['a??', 'a lazy one', 3],
  ['a{2}?', 'a lazy one', 5],
  ['a**', 'a repetition of a repetition', 3],
  ['a*{2}', 'a repetition of a repetition', 3],
  ['*a', 'a repetition of nothing', 1],
  ['(+a)', 'a repetition of nothing', 2],
  ['a|?', 'a repetition of nothing', 3],
  ['(a', 'a ( without its )', 1],
  ['a)', 'a ) without its (', 2],
  ['a(b(c)', 'a ( without its )', 2],
  ['[a', 'cut short', 3],
  ['a\\', 'cut short', 3],
  ['[]', 'an empty class', 2],
  ['[^]', 'an empty class', 3],
  ['[z-a]', 'a range', 4],
  ['[\\d-z]', 'a range', 5],
  ['[[:alpha:]]', 'must be written \\[', 2],
  ['a{', 'a repetition that is not', 3],
  ['a{,3}', 'a repetition that is not', 3],
  ['a{x}', 'a repetition that is not', 3],
  ['a{3', 'a repetition that is not', 4],
  ['a{3,2}', 'upper bound', 6],
  ['a{257}', 'more than 256', 5],
  ['a{1,257}', 'more than 256', 7],
  ['{', 'must be written \\{', 1],
  [']', 'must be written \\]', 1],
  ['}', 'must be written \\}', 1],
] as const) {
  test(`${pattern} is refused: ${why}, at character ${position}`, () => {
    assert.throws(
      () => compilePattern(pattern),
      (error: Error & { code?: string }) =>
        error.code === 'ERR_EM_MANIFEST_INVALID' &&
        error.message.includes(why) &&
        error.message.endsWith(`(at character ${position})`),
    );
  });
}

for (const big of [
  '(a{256}){256}',
  '((a{200}){200}){200}',
  `${'('.repeat(30)}${'){256}'.repeat(30)}`,
]) {
  test(`a pattern of too many states is refused before they are made: ${big.slice(0, 30)}`, () => {
    assert.throws(() => compilePattern(big), {
      code: 'ERR_EM_MANIFEST_INVALID',
      message: /more than 4096 states/,
    });
  });
}

test('a source longer than 256 characters is refused', () => {
  assert.equal(compilePattern('a'.repeat(256)).states.length, 256);
  assert.throws(() => compilePattern('a'.repeat(257)), {
    code: 'ERR_EM_MANIFEST_INVALID',
    message: /longer than 256 .*\(at character 257\)/,
  });
});
