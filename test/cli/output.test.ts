// Goal: colour appears only where it is wanted, and nothing that was stored can act on a terminal.
// Method: streams that say they are terminals or not, under each setting; text with the characters
// that do harm.
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { createOutput, printable, printableLine, wrap, wrapMarked } from '../../src/cli/output.ts';

/** A stream that says whether it is a terminal, and keeps what is written to it. */
function openStream(isTTY: boolean): NodeJS.WriteStream {
  return Object.assign(new PassThrough(), { isTTY }) as unknown as NodeJS.WriteStream;
}

function paintedWith(
  isTTY: boolean,
  noColor: boolean,
  env: Readonly<Record<string, string>>,
): boolean {
  const kept = { NO_COLOR: process.env.NO_COLOR, TERM: process.env.TERM };
  Object.assign(process.env, { NO_COLOR: '', TERM: 'xterm' }, env);
  try {
    return (
      createOutput(openStream(isTTY), { json: false, noColor }).paint('bad', 'text') !== 'text'
    );
  } finally {
    for (const [name, value] of Object.entries(kept)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
}

test('colour needs a terminal and nobody who objects', () => {
  assert.equal(paintedWith(true, false, {}), true);
  assert.equal(paintedWith(false, false, {}), false);
  assert.equal(paintedWith(true, true, {}), false);
  assert.equal(paintedWith(true, false, { NO_COLOR: '1' }), false);
  assert.equal(paintedWith(true, false, { TERM: 'dumb' }), false);
});

test('lines and documents never meet on one stream', () => {
  for (const json of [true, false]) {
    const stream = openStream(false);
    const output = createOutput(stream, { json, noColor: true });
    output.line('for people');
    output.document({ for: 'programs' });
    const written = String((stream as unknown as PassThrough).read());
    if (json) assert.deepEqual(JSON.parse(written), { for: 'programs' });
    else assert.equal(written, 'for people\n');
  }
});

test('characters that move the cursor or reorder text are spelt out', () => {
  assert.equal(printable('a\u001b[2Jb'), 'a\\u{1b}[2Jb');
  assert.equal(printable('pay\u202eeye'), 'pay\\u{202e}eye');
  assert.equal(
    printable('vendor\u200b 7\u{e0041}\u2028x\u009b1m'),
    'vendor\\u{200b} 7\\u{e0041}\\u{2028}x\\u{9b}1m',
  );
  assert.equal(printable('two\nlines, Grüße 🧾'), 'two\nlines, Grüße 🧾');
  assert.equal(printableLine('gap\n99  terminal  committed'), 'gap\\n99  terminal  committed');
});

test('a JSON document holds nothing that acts on a terminal, and still says the same', () => {
  const stream = openStream(false);
  const value = {
    'a\u009b2J': [
      '\u202epaid',
      'x\u200by',
      '\u{e0041}',
      '\u007f',
      '\u2028',
      'Grüße 🧾',
      'two\nlines \\u009b',
    ],
  };
  createOutput(stream, { json: true, noColor: true }).document(value);
  const written = String((stream as unknown as PassThrough).read());
  assert.deepEqual(JSON.parse(written), value);
  assert.match(written, /Grüße 🧾/);
  assert.match(written, /\\u009b2J.*\\u202epaid.*\\udb40\\udc41/s);
  assert.doesNotMatch(written.replaceAll('\n', ''), /[\p{Cc}\p{Cf}\u2028]/u);
});

test('long lines break at spaces, and nothing gets lost', () => {
  assert.deepEqual(wrap('short\nlines', 10), ['short', 'lines']);
  assert.deepEqual(wrap('one two three four', 10), ['one two', '  three', '  four']);
  assert.deepEqual(wrap('abcdefghijklmno', 10), ['abcdefghij', '  klmno']);
});

test('a long line of an approval goes on behind a mark, with its indent or its bar', () => {
  const words = 'one two three four five six seven';
  assert.deepEqual(wrapMarked(words, 40), [words]);
  assert.deepEqual(wrapMarked(words, 30), ['one two three four five six', '  > seven']);
  assert.deepEqual(wrapMarked(`  | ${words}`, 30), [
    '  | one two three four five',
    '  |   > six seven',
  ]);
  assert.deepEqual(wrapMarked(`    ${'x'.repeat(30)}`, 30), [
    `    ${'x'.repeat(26)}`,
    '      > xxxx',
  ]);
  // What is not ASCII may be two columns wide.
  assert.deepEqual(wrapMarked('界'.repeat(16), 30), ['界'.repeat(15), '  > 界']);
  for (const unknown of [0, Number.NaN, Number.POSITIVE_INFINITY])
    assert.deepEqual(wrapMarked('y'.repeat(81), unknown), ['y'.repeat(80), '  > y']);
});
