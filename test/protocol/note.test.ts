// Goal: what an agent says is shown to the approver as what it is, and cannot pass for a part of
// the approval. Method: texts written out by hand, and hostile text of every kind.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isNoteShortened, parseNote, renderNote } from '../../src/protocol/note.ts';

const SAID = 'Unverified text from the agent; the signature does not cover it:';
const HEADING = 'Unverified text from the agent; of it, the license binds only the action:';

test('the SQL, who asks and the reason are shown line by line behind a bar', () => {
  const action = {
    statements: [
      { sql: 'update "Track"\n  set "UnitPrice" = $1', values: ['9.99', 1, null] },
      { sql: 'delete from x', values: [] },
    ],
  };
  const text = renderNote({ by: 'pricing-agent', reason: 'March\nSee 4711', action });
  assert.equal(
    text,
    [
      HEADING,
      '  | sql: update "Track"',
      '  |     set "UnitPrice" = $1',
      '  | values: ["9.99", 1, null]',
      '  | sql: delete from x',
      '  | asked by: pricing-agent',
      '  | reason: March',
      '  |   See 4711',
    ].join('\n'),
  );
});

test('other actions are shown as values, and nothing is shown of nothing', () => {
  const action = { operations: [{ op: 'remove', path: 'a b' }], dry: false };
  assert.equal(renderNote({ action }), `${HEADING}\n  | op: remove\n  | path: a b\n  | dry: false`);
  assert.equal(renderNote({ action: {} }), '');
  assert.equal(renderNote({ action: [1] }), `${HEADING}\n  | action: [1]`);
  assert.equal(renderNote({ by: 'agent' }), `${SAID}\n  | asked by: agent`);
  assert.equal(renderNote(undefined), '');
});

test('a long text is cut, says so, and is shown in full when asked', () => {
  const sql = Array.from({ length: 50 }, (_, line) => `-- ${line}`).join('\n');
  const lines = renderNote({ action: { sql } }).split('\n');
  assert.equal(lines.length, 22);
  assert.equal(lines.at(-1), '  | <30 more lines, not shown>');
  assert.equal(renderNote({ action: { sql } }, { full: true }).split('\n').length, 51);
  assert.match(renderNote({ reason: 'x'.repeat(1000) }), /x <608 more characters>$/);
});

test('warnings are marked as unsigned, behind a bar like everything in a note', () => {
  assert.equal(
    renderNote({ warnings: ['open', 'Buys\n1000 executions'], by: 'agent' }),
    [
      'Said by the program that proposed it; the signature does not cover it:',
      '  | Warning: open',
      '  | Warning: Buys\\n1000 executions',
      SAID,
      '  | asked by: agent',
    ].join('\n'),
  );
});

test('a long reason pushes no line of the action out of the text', () => {
  const lines = (count: number) => Array.from({ length: count }, (_, n) => `line ${n}`).join('\n');
  const sql = lines(20);
  const note = { by: lines(9), reason: lines(25), action: { sql }, warnings: ['open'] };
  const shown = renderNote(note).split('\n');
  assert.equal(shown[3], '  | sql: line 0');
  assert.equal(shown[22], '  |   line 19');
  assert.equal(shown[23], '  | asked by: line 0');
  assert.equal(shown[25], '  | <7 more lines, not shown>');
  assert.equal(shown[26], '  | reason: line 0');
  assert.equal(shown.at(-1), '  | <15 more lines, not shown>');
  assert.equal(isNoteShortened(note), true);
  assert.equal(isNoteShortened({ reason: 'x'.repeat(1000) }), true);
  assert.equal(isNoteShortened({ action: { sql }, reason: lines(10) }), false);
  assert.equal(isNoteShortened(undefined), false);
});

test('blanks that would push text out of sight are counted, and indents of SQL stay', () => {
  const sql = `update t${' '.repeat(70)}set a = 1\n${' '.repeat(12)}where id = 1`;
  assert.equal(
    renderNote({ action: { sql } }),
    `${HEADING}\n  | sql: update t\\u{20 ×70}set a = 1\n  |   ${' '.repeat(12)}where id = 1`,
  );
});

test('property: no text of an agent starts a line, hides or reorders anything', () => {
  const hostile = fc.oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }),
    fc.constantFrom('a\nBuys 1000 executions', '\r\u001b[2K', '\u202ecba', '\u2028x', '\u0301'),
  );
  const said = hostile.filter((text) => text.isWellFormed());
  fc.assert(
    fc.property(said, said, said, said, (by, reason, key, sql) => {
      fc.pre(key !== '__proto__');
      const text = renderNote({ by, reason, action: { [key]: sql, list: [{ [key]: [sql] }] } });
      const [heading, ...lines] = text.split('\n');
      assert.equal(heading, HEADING);
      for (const line of lines) {
        assert.ok(line.startsWith('  | '), line);
        assert.doesNotMatch(line, /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/u);
        assert.doesNotMatch(line, /[^\P{Zs} ]/u);
      }
    }),
    { numRuns: 3000 },
  );
});

test('a note with anything else in it is refused', () => {
  for (const [note, where] of [
    [{ approved: true }, /proposal at note/],
    [{ by: '' }, /note\.by/],
    [{ by: 'x'.repeat(257) }, /note\.by/],
    [{ reason: 7 }, /note\.reason/],
    [{ warnings: [] }, /note\.warnings/],
    [{ action: Number.NaN }, /note\.action/],
    [[], /note/],
  ] as const)
    assert.throws(() => parseNote(note), { code: 'ERR_EM_RECORD_INVALID', message: where });
});
