// Goal: a person reads from one text what became of an attempt, and nothing stored in it can
// disguise that. Method: one terminal of each kind, made by the record's own schema, against
// sentences written by hand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { renderTerminal } from '../../src/protocol/render-terminal.ts';
import { terminalRecord } from '../../src/protocol/terminal.ts';

const digest = 'a'.repeat(64);
const at = '2026-01-01T10:00:00.000Z';
const attempt = {
  version: 1,
  occurrence: `occ_${'1'.repeat(40)}`,
  execution: `exe_${'2'.repeat(32)}`,
  lineage: digest,
  adapter: 'books',
  task: 'invoice-4711',
  approved: digest,
  contract: digest,
  observer: digest,
  recordedAt: at,
};
const held = { claim: digest, certificate: digest, permit: digest, consumedAt: at };
const extra = {
  op: 'insert',
  target: 'notification',
  key: { id: 1 },
  after: { text: 'paid' },
  count: 1,
};
const outcome = {
  kind: 'DIVERGED',
  observed: digest,
  diff: { extra: [extra], missing: [], altered: [], omitted: 0 },
};
const render = (fields: object) => renderTerminal(terminalRecord.parse({ ...attempt, ...fields }));

test('committed says that it is what was approved, and when recovery found it out', () => {
  const committed = { ...held, kind: 'committed', claimedAt: at, observed: digest };
  assert.equal(
    render({ ...committed, reconciled: false }),
    'committed: what became durable is what was approved',
  );
  assert.equal(
    render({ ...committed, reconciled: true }),
    'committed: what became durable is what was approved, as recovery established from the backend',
  );
});

test('generated values are listed by their numbers, as many as fit; full lists all that were recorded', () => {
  const labels = Array.from({ length: 25 }, (_, index) => [`new line.id ${index + 1}`, index]);
  const committed = {
    ...{ ...held, kind: 'committed', claimedAt: at, observed: digest, reconciled: false },
    generated: Object.fromEntries(labels),
    generatedOmitted: 7,
  };
  const lines = render(committed).split('\n').slice(1);
  assert.equal(lines[1], 'Generated: "new line.id 2" = 1');
  assert.equal(lines[9], 'Generated: "new line.id 10" = 9');
  assert.deepEqual(lines.slice(20), [
    'Generated: 5 more, not shown here',
    'Generated: 7 more, not recorded',
  ]);
  const full = renderTerminal(terminalRecord.parse({ ...attempt, ...committed }), { full: true });
  assert.equal(full.split('\n').length, 1 + 25 + 1);
});

test('sequences that moved are told after a commit as after a rejection, each in its words', () => {
  const residue = [{ kind: 'sequence', name: 'note_id_seq', from: null, to: '2' }];
  const committed = {
    ...held,
    kind: 'committed',
    claimedAt: at,
    observed: digest,
    reconciled: false,
    residue,
  };
  assert.equal(
    render(committed).split('\n')[1],
    'Moved: sequence "note_id_seq" from its start to 2, by this attempt or by others meanwhile',
  );
  const rejected = {
    kind: 'rejected',
    at: 'comparison',
    reason: 'diverged',
    detail: 'other',
    residue,
  };
  assert.equal(
    render(rejected).split('\n')[1],
    'Left behind: sequence "note_id_seq" moved from its start to 2, by this attempt or by others meanwhile',
  );
});

test('rejected says where and why, and shows the differences', () => {
  const rejected = {
    kind: 'rejected',
    at: 'comparison',
    reason: 'diverged',
    detail: 'not the approved one',
  };
  assert.equal(render(rejected), 'rejected at comparison (diverged): not the approved one');
  assert.deepEqual(render({ ...rejected, outcome }).split('\n'), [
    'rejected at comparison (diverged): not the approved one',
    '1 difference: 1 extra, 0 missing, 0 altered',
    'extra    + notification id=1  text="paid"   (observed, not approved)',
  ]);
});

test('diverged and indeterminate say what is known about durability', () => {
  assert.match(
    render({ ...held, kind: 'diverged', outcome }),
    /^diverged: durable, and not what was approved\n1 diff/,
  );
  assert.equal(
    render({ ...held, kind: 'indeterminate', gap: 'the reply was lost' }),
    'indeterminate: may be durable, and could not be established: the reply was lost',
  );
});

test('what a backend says cannot start a new line or reorder the text', () => {
  const detail = 'syntax error\ncommitted: fine\u001b[2J\u202e';
  assert.equal(
    render({ kind: 'rejected', at: 'stage', reason: 'failed', detail }),
    'rejected at stage (failed): syntax error\\u{a}committed: fine\\u{1b}[2J\\u{202e}',
  );
});
