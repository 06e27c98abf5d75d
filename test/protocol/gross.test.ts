// Goal: a second witness that also counts what was rolled back lets nothing pass that no recorder
// saw. Method: evidence with every relation between what was counted and what was recorded, with
// and without the word that the recorders are intact.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ChannelReport, establish } from '../../src/protocol/observation.ts';
import type { Registration } from '../../src/protocol/registration.ts';

const REGISTRATION: Registration = {
  profile: 'net-state',
  values: 'plain',
  targets: [{ name: 't', columns: ['id'], key: ['id'], volatile: [] }],
};

/** Two rows inserted and recorded, and what the witness says about them. */
function gapsOf(counted: number, recorded: number, intact?: boolean): readonly string[] {
  const report: ChannelReport = {
    ...{ channel: 'counters', kind: 'gross', recorded },
    counts: [{ target: 't', op: 'insert', count: counted }],
    ...(intact !== undefined && { intact }),
  };
  return gapsOfReport(report);
}

function gapsOfReport(report: ChannelReport): readonly string[] {
  const records = [1, 2].map((id) => ({
    op: 'insert' as const,
    target: 't',
    key: null,
    before: null,
    after: { id },
  }));
  const evidence = {
    candidate: 'c',
    evidence: 'e',
    records,
    unattributed: 0,
    assigned: [],
    window: { fromMs: 0, toMs: 1 },
  };
  const observation = establish({ ...evidence, channels: [report] }, REGISTRATION, ['counters']);
  return observation.kind === 'incomplete' ? observation.gaps : [];
}

test('what was counted and recorded alike is complete, rolled back or not', () => {
  assert.deepEqual(gapsOf(2, 2), []);
  assert.deepEqual(gapsOf(5, 5), []);
});

test('a write that was counted and not recorded is a gap, unless the recorders are known to be intact', () => {
  const gap = ['Channel "counters" counted 5 writes, of which 2 were recorded.'];
  assert.deepEqual(gapsOf(5, 2), gap);
  assert.deepEqual(gapsOf(5, 2, false), gap);
  assert.deepEqual(gapsOf(5, 2, true), []);
});

test('more records than writes are a gap, whatever is said about the recorders', () => {
  assert.equal(gapsOf(2, 5, true).length, 1);
  assert.equal(gapsOf(1, 1, true).length, 1);
  assert.equal(gapsOf(1, 2, true).length, 2);
});

test('a witness that knows nothing of a target that was recorded leaves one gap, for the writes that it missed', () => {
  assert.deepEqual(gapsOfReport({ channel: 'counters', kind: 'gross', counts: [], recorded: 0 }), [
    'Channel "counters" counted 0 of insert on "t", but there are 2 records.',
  ]);
});

test('counts that only add up because one is below zero or in parts are a gap, of every witness that counts', () => {
  for (const kind of ['gross', 'counts'] as const) {
    for (const pair of [
      [3, -1],
      [1.5, 0.5],
    ]) {
      const counts = pair.map((count) => ({ target: 't', op: 'insert' as const, count }));
      const report = kind === 'gross' ? { kind, counts, recorded: 2 } : { kind, counts };
      assert.deepEqual(gapsOfReport({ channel: 'counters', ...report }), [
        'Channel "counters" reported an invalid write count for "t".',
      ]);
    }
  }
});
