// Goal: a command line is either understood completely or refused before anything is done. Method:
// a table of right and wrong command lines for one made-up verb, each wrong one with the sentence
// it deserves.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readArguments, unknownWord } from '../../src/cli/command.ts';
import { EffectMatchError } from '../../src/errors.ts';

const SPEC = {
  flags: {
    limit: { value: 'N', about: '' },
    file: { value: 'FILE', about: '' },
    force: { about: '' },
    deep: { about: '', needs: 'file' },
    flat: { about: '', excludes: ['deep', 'limit'] },
  },
  positionals: ['name'],
};
const parse = (...argv: string[]) => readArguments('copy', argv, SPEC);

test('flags are read in any order, with the value attached or apart', () => {
  for (const argv of [
    ['a', '--limit', '3', '--force'],
    ['--force', '--limit=3', 'a'],
  ]) {
    const args = parse(...argv);
    assert.deepEqual(args.positionals, ['a']);
    assert.equal(args.value('limit'), '3');
    assert.equal(args.count('limit', 1), 3);
    assert.equal(args.has('force'), true);
    assert.equal(args.has('file'), false);
    assert.equal(args.value('file'), undefined);
    assert.equal(args.count('file', 0), undefined);
  }
});

test('help needs none of the required words, under its long and its short name', () => {
  assert.equal(parse('--help').has('help'), true);
  assert.equal(parse('-h').has('help'), true);
});

test('everything after -- is a word, also when it looks like a flag', () => {
  assert.deepEqual(parse('--', '--force').positionals, ['--force']);
});

const REFUSED: readonly [readonly string[], RegExp][] = [
  [[], /<name> is missing: effectmatch copy <name>/],
  [['a', 'b'], /does not take "b"/],
  [['a', '--limt', '3'], /unknown flag "--limt" \(did you mean "--limit"\?\)/],
  [['a', '--zzzzzz'], /unknown flag "--zzzzzz"$/],
  [['a', '-x'], /unknown flag "-x"/],
  [['a', '--constructor'], /unknown flag "--constructor"/],
  [['a', '--force', '--force'], /--force is given twice/],
  [['a', '--limit', '1', '--limit', '2'], /--limit is given twice/],
  [['a', '--force=yes'], /--force takes no value/],
  [['a', '--limit'], /--limit needs a value: --limit N/],
  [['a', '--limit='], /--limit needs a value/],
  [['a', '--file', '--force'], /--file needs a value/],
  [['a', '--deep'], /--deep needs --file/],
  [['a', '--flat', '--deep', '--file', 'b'], /--deep cannot be combined with --flat/],
  [['a', '--limit', '1', '--flat'], /--limit cannot be combined with --flat/],
];

for (const [argv, sentence] of REFUSED) {
  test(`refused: copy ${argv.join(' ')}`, () => {
    assert.throws(
      () => parse(...argv),
      (error) =>
        error instanceof EffectMatchError &&
        error.code === 'ERR_EM_USAGE' &&
        sentence.test(error.message),
    );
  });
}

test('a count is a whole number that is not too small', () => {
  for (const text of ['0', '1.5', '1e3', ' 1', '0x10', '9999999999999999', 'ten']) {
    assert.throws(
      () => parse('a', `--limit=${text}`).count('limit', 1),
      /whole number of at least 1/,
      text,
    );
  }
});

test('a needed flag and a choice of words are checked when they are read', () => {
  assert.equal(parse('a', '--file', 'b').needed('file'), 'b');
  assert.throws(() => parse('a').needed('file'), /--file is required/);
  assert.equal(parse('a', '--file', 'b').choice('file', ['a', 'b']), 'b');
  assert.equal(parse('a').choice('file', ['a', 'b']), undefined);
  assert.throws(
    () => parse('a', '--file', 'c').choice('file', ['a', 'b']),
    /--file takes one of a, b, not "c"/,
  );
});

test('a suggestion is made for a slip of the finger and not for another word', () => {
  const verbs = ['demo', 'journal', 'show', 'recover', '--version'];
  assert.match(unknownWord('verb', 'joural', verbs), /did you mean "journal"/);
  assert.match(unknownWord('verb', 'Recover', verbs), /did you mean "recover"/);
  assert.match(unknownWord('verb', 'version', verbs), /did you mean "--version"/);
  assert.doesNotMatch(unknownWord('verb', 'delete', verbs), /did you mean/);
});
