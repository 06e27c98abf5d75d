// Goal: what an agent says is shown to the approver as what it is, and cannot pass for a part of
// the approval. Method: texts written out by hand, and hostile text of every kind.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseNote, renderNote } from '../../src/protocol/note.ts';

const SAID = 'Unverified text from the agent; the signature does not cover it:';
const HEADING = 'Unverified text from the agent; of it, the license binds only the action:';

test('who asks, the reason and the SQL are shown line by line behind a bar', () => {
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
      '  | asked by: pricing-agent',
      '  | reason: March',
      '  |   See 4711',
      '  | sql: update "Track"',
      '  |     set "UnitPrice" = $1',
      '  | values: ["9.99", 1, null]',
      '  | sql: delete from x',
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
  assert.equal(renderNote({ warnings: ['open'] }), 'Warning: open');
});

test('a long text is cut, says so, and is shown in full when asked', () => {
  const sql = Array.from({ length: 50 }, (_, line) => `-- ${line}`).join('\n');
  const lines = renderNote({ action: { sql } }).split('\n');
  assert.equal(lines.length, 22);
  assert.equal(lines.at(-1), '  | <30 more lines, not shown>');
  assert.equal(renderNote({ action: { sql } }, { full: true }).split('\n').length, 51);
  assert.match(renderNote({ reason: 'x'.repeat(1000) }), /x <608 more characters>$/);
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
