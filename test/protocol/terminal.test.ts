// Goal: agreement is the same verdict about the same attempt; a committed terminal is assured; only
// it releases. Method: two equal terminals, then one field different at a time; terminals that a
// schema accepts and the rule does not.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { continuationOf } from '../../src/protocol/continuation.ts';
import {
  agrees,
  assertAssured,
  type Terminal,
  terminalRecord,
} from '../../src/protocol/terminal.ts';

const digest = (letter: string) => letter.repeat(64);
const base = {
  version: 1,
  occurrence: `occ_${'0'.repeat(40)}`,
  execution: `exe_${'0'.repeat(32)}`,
  lineage: digest('1'),
  adapter: 'books',
  task: 'invoice 1',
  approved: digest('2'),
  contract: digest('3'),
  observer: digest('4'),
  recordedAt: '2026-01-01T10:00:03.000Z',
};
const consumed = {
  claim: digest('5'),
  certificate: digest('6'),
  permit: digest('7'),
  consumedAt: '2026-01-01T10:00:02.000Z',
};
const bodies = {
  committed: {
    ...consumed,
    claimedAt: '2026-01-01T10:00:01.000Z',
    observed: digest('8'),
    reconciled: false,
  },
  rejected: { at: 'comparison', reason: 'diverged', detail: 'the effects differ' },
  diverged: {
    ...consumed,
    outcome: {
      kind: 'DIVERGED',
      observed: digest('8'),
      diff: { extra: [], missing: [], altered: [], omitted: 0 },
    },
  },
  indeterminate: { ...consumed, gap: 'the reply was lost' },
};
const KINDS = Object.keys(bodies) as Terminal['kind'][];
const terminalOf = (kind: Terminal['kind'], change: object = {}): Terminal =>
  terminalRecord.parse({ ...base, kind, ...bodies[kind], ...change });

test('the same verdict agrees, whenever and however it was found out', () => {
  for (const kind of KINDS) {
    assert.ok(
      agrees(terminalOf(kind), terminalOf(kind, { recordedAt: '2026-01-01T11:00:00.000Z' })),
      kind,
    );
  }
  assert.ok(agrees(terminalOf('committed'), terminalOf('committed', { reconciled: true })));
});

test('two rejections of one attempt agree, at whichever gate and with whatever each side knew', () => {
  const known = {
    at: 'final-gate',
    reason: 'expired',
    claim: digest('5'),
    certificate: digest('6'),
  };
  assert.ok(agrees(terminalOf('rejected'), terminalOf('rejected', known)));
});

test('another attempt, authority or outcome never agrees', () => {
  const others = {
    occurrence: `occ_${'1'.repeat(40)}`,
    execution: `exe_${'1'.repeat(32)}`,
    lineage: digest('a'),
    approved: digest('a'),
  };
  for (const kind of KINDS) {
    for (const [field, value] of Object.entries(others)) {
      assert.ok(
        !agrees(terminalOf(kind), terminalOf(kind, { [field]: value })),
        `${kind} with another ${field}`,
      );
    }
  }
});

test('verdicts of different kinds never agree', () => {
  for (const one of KINDS) {
    for (const two of KINDS)
      assert.equal(agrees(terminalOf(one), terminalOf(two)), one === two, `${one} and ${two}`);
  }
});

test('two commits agree only about the same claim, certificate, permit, outcome and t_g', () => {
  for (const field of ['claim', 'certificate', 'permit', 'observed']) {
    assert.ok(
      !agrees(terminalOf('committed'), terminalOf('committed', { [field]: digest('a') })),
      field,
    );
  }
  const later = { consumedAt: '2026-01-01T10:00:02.001Z' };
  assert.ok(!agrees(terminalOf('committed'), terminalOf('committed', later)));
});

test('a permit that was consumed before its claim is a broken invariant, one at the same instant is not', () => {
  const claimedAt = bodies.committed.claimedAt;
  assertAssured(terminalOf('committed'));
  assertAssured(terminalOf('committed', { consumedAt: claimedAt }));
  const before = terminalOf('committed', { consumedAt: '2026-01-01T10:00:00.999Z' });
  assert.throws(() => assertAssured(before), {
    code: 'ERR_EM_INVARIANT',
    message: /after the claim/,
  });
});

test('a diverged terminal with another outcome than DIVERGED is a broken invariant', () => {
  assertAssured(terminalOf('diverged'));
  for (const outcome of [
    { kind: 'EXACT', observed: digest('8') },
    { kind: 'INDETERMINATE', gaps: ['a channel was silent'] },
  ]) {
    const terminal = terminalOf('diverged', { outcome });
    assert.throws(() => assertAssured(terminal), {
      code: 'ERR_EM_INVARIANT',
      message: /DIVERGED outcome/,
    });
  }
});

test('a rejected attempt may carry any outcome, and an indeterminate one carries none', () => {
  assertAssured(terminalOf('rejected', { outcome: { kind: 'EXACT', observed: digest('8') } }));
  assertAssured(terminalOf('indeterminate'));
});

test('only a committed terminal of the lineage presented releases, and only registered work', () => {
  const asked = {
    continuation: 'reconcile',
    lineage: base.lineage,
    registered: ['notify', 'reconcile'],
  };
  const committed = terminalOf('committed');
  assert.deepEqual(continuationOf(committed, asked), { kind: 'release', terminal: committed });
  const halts = (why: string, terminal: Terminal | undefined, change: object = {}) =>
    assert.deepEqual(continuationOf(terminal, { ...asked, ...change }), { kind: 'halt', why });
  halts('no-terminal', undefined);
  for (const kind of ['rejected', 'diverged', 'indeterminate'] as const)
    halts(kind, terminalOf(kind));
  halts('lineage', terminalOf('committed'), { lineage: digest('a') });
  halts('unregistered', terminalOf('committed'), { continuation: 'launder' });
  halts('unregistered', terminalOf('committed'), { registered: [] });
  const newer = { ...terminalOf('committed'), kind: 'settled-otherwise' } as unknown as Terminal;
  assert.throws(() => continuationOf(newer, asked), { code: 'ERR_EM_INVARIANT' });
});

test('a match of registered fields releases only work that is content with it; a match of effects needs no such consent', () => {
  const asked = {
    continuation: 'notify',
    lineage: base.lineage,
    registered: ['notify', 'reconcile'],
  };
  const fields = terminalOf('committed', { match: 'registered-fields' });
  const ask = (terminal: Terminal, fieldMatch?: readonly string[]) =>
    continuationOf(terminal, { ...asked, fieldMatch });
  assert.deepEqual(ask(fields), { kind: 'halt', why: 'field-match' });
  assert.deepEqual(ask(fields, []), { kind: 'halt', why: 'field-match' });
  assert.deepEqual(ask(fields, ['reconcile']), { kind: 'halt', why: 'field-match' });
  assert.deepEqual(ask(fields, ['notify']), { kind: 'release', terminal: fields });
  assert.equal(ask(terminalOf('committed'), ['reconcile']).kind, 'release');
});

test('an indeterminate terminal states a permit with the time of its consumption, or neither', () => {
  const { claim, permit, consumedAt } = consumed;
  const stated = (facts: object) =>
    terminalRecord.parse({ ...base, kind: 'indeterminate', gap: 'lost', claim, ...facts });
  assertAssured(stated({ permit, consumedAt }));
  assertAssured(stated({}));
  for (const half of [{ permit }, { consumedAt }]) {
    const broken = { code: 'ERR_EM_INVARIANT', message: /stated together/ };
    assert.throws(() => assertAssured(stated(half)), broken, Object.keys(half)[0]);
  }
});
