// Goal: recomputed figures follow from verdicts, digests and counts, whatever a study concluded from
// them. Method: records as studies write them, then with one fact changed and the conclusion kept.
import assert from 'node:assert/strict';
import { generateKeyPairSync, sign } from 'node:crypto';
import { test } from 'node:test';
import { recompute } from '../../bench/recompute.ts';

const STATES = { initial: 'i', approved: 'a', durable: 'a' };
const COMMITTED = { verdict: { kind: 'committed' } };
const rejected = (reason: string) => ({ verdict: { kind: 'rejected', reason } });

function figureOf(study: string, name: string, record: object): number | undefined {
  return recompute(study, [{ run: '', ...record }]).get(name);
}

test('an ablation counts as its verdict and its states say', () => {
  const pair = 'approval source, source swap';
  const admitted = (kept: readonly object[]) =>
    figureOf('ablations', `${pair}: removed, admitted`, {
      ...{ run: `${pair}|removed|invoice|1`, ending: 'admitted', kept },
    });
  assert.equal(admitted([COMMITTED, { states: STATES }]), 1);
  assert.equal(admitted([COMMITTED, { states: { ...STATES, durable: 'i' } }]), 0);
  assert.equal(admitted([rejected('signature-invalid'), { states: STATES }]), 0);
  const stopped = (kept: readonly object[]) =>
    figureOf('ablations', `${pair}: full, stopped`, {
      ...{ run: `${pair}|full|invoice|1`, ending: 'stopped', kept },
    });
  const nothing = { states: { ...STATES, durable: 'i' } };
  assert.equal(stopped([rejected('signature-invalid'), nothing]), 1);
  assert.equal(stopped([rejected('spent'), nothing]), 0, 'stopped by something else');
  assert.equal(stopped([rejected('signature-invalid'), { states: STATES }]), 0);
});

test('a replay counts only if nothing but the first commits', () => {
  const pair = 'candidate binding, replacement';
  const refused = (...kept: readonly object[]) =>
    figureOf('ablations', `${pair}: permit replays after the ablation, no second commit`, {
      ...{ run: `${pair}|removed|replay permit|1`, isRefused: true, kept },
    });
  assert.equal(refused(COMMITTED, rejected('spent'), { states: STATES }), 1);
  assert.equal(refused(COMMITTED, COMMITTED, { states: STATES }), 0);
  assert.equal(refused(COMMITTED, { states: STATES }), 0, 'nothing was presented again');
});

test('recovery counts what readers answered and what was read back', () => {
  const of = (words: string, kept: readonly object[]) =>
    figureOf('recovery', `normal: ${words}`, {
      ...{ run: 'normal|task|1', isCorrect: true, hasTerminal: true, kept },
    });
  const reader = { reader: { terminal: 'committed' } };
  assert.equal(of('terminal', [reader, reader]), 1);
  assert.equal(of('terminal', [reader, { reader: { terminal: null } }]), 0);
  assert.equal(of('correct state', [{ states: STATES }]), 1);
  assert.equal(of('correct state', [{ states: { ...STATES, durable: 'i' } }]), 0);
});

test('an attempt counts as its verdict says, and as demanded only with its reason and no change', () => {
  const at = (place: string, reason: string) => ({ kind: 'rejected', at: place, reason });
  const attempt = {
    ...{ name: 'trigger: one', expected: 'refused certificate because "TEMP"', violation: null },
    ...{ found: 'refused certificate', detail: 'TEMP is granted', ok: true },
    verdict: at('certificate', 'boundary-open'),
  };
  const told = (change: object, name = 'server boundary, ended as they must') =>
    figureOf('escapes', name, { run: 'server|0', ended: [{ ...attempt, ...change }] });
  assert.equal(told({}), 1);
  assert.equal(told({}, 'others: refused'), 1);
  assert.equal(told({ detail: 'something else' }), 0);
  assert.equal(told({ found: 'refused final-gate' }), 0);
  assert.equal(told({ violation: 'a row is durable' }), 0);
  assert.equal(told({ verdict: { kind: 'committed' } }), 0, 'whatever the study found');
  assert.equal(told({ verdict: { kind: 'committed' } }, 'others: committed'), 1);
  assert.equal(told({ verdict: at('comparison', 'diverged') }, 'others: observed'), 1);
  assert.equal(told({ verdict: at('stage', 'failed') }, 'others: denied'), 1);
  const any = { expected: 'refused, denied or observed', found: 'committed', violation: null };
  assert.equal(told({ ...any, verdict: { kind: 'committed' } }), 0);
});

test('a kill after which marker, releases or payments contradict the verdict is a finding', () => {
  const findings = (kept: object) =>
    figureOf('crashes', 'wrong or lost verdicts', {
      ...{ backend: 'files', planned: ['path:staged'], died: ['path:staged'] },
      ...{ violations: [], left: [], kept: [kept] },
    });
  const local = { claims: 1, verdicts: ['committed'], marker: 'committed', released: 1 };
  assert.equal(findings(local), 0);
  assert.equal(findings({ ...local, marker: 'void' }), 1);
  assert.equal(findings({ ...local, verdicts: ['rejected'], released: 0 }), 1);
  assert.equal(findings({ ...local, released: 2 }), 1);
  assert.equal(findings({ ...local, claims: 2 }), 1);
  const remote = { verdict: 'committed', arrivals: 1, payments: 1 };
  assert.equal(findings(remote), 0);
  assert.equal(findings({ ...remote, payments: 0 }), 1);
  assert.equal(findings({ ...remote, verdict: 'rejected' }), 1);
  const survivor = { planned: ['path:staged'], died: [], violations: [], left: [] };
  const sound = figureOf('crashes', 'path:staged | files', { backend: 'files', ...survivor });
  assert.equal(sound, 0, 'a process that was not killed shows nothing');
});

test('a race whose journal or rows contradict its verdicts is a finding', () => {
  const findings = (kept: object) =>
    figureOf('concurrency', 'durable state or journal not as the verdicts say', {
      ...{ run: 'sqlite-wal|2|0', races: [], violations: [], kept: [kept] },
    });
  const once = { claims: 1, verdicts: ['committed', 'rejected'], marker: 'committed', released: 1 };
  assert.equal(findings(once), 0);
  assert.equal(findings({ ...once, claims: 2 }), 1);
  assert.equal(findings({ ...once, verdicts: ['committed', 'committed'] }), 1);
  assert.equal(findings({ ...once, released: 2 }), 1);
});

test('a lost hazard counts as stopped only for the reason that its side has', () => {
  const stopped = (side: string, release: string) =>
    figureOf('ablations', `durable hazard, record lost: ${side}, stopped`, {
      run: `durable hazard, record lost|${side}|payment|1`,
      kept: [{ release, booked: 0, notices: 1 }],
    });
  assert.equal(stopped('full', 'diverged'), 1);
  assert.equal(stopped('full', 'no-terminal'), 0);
  assert.equal(stopped('removed', 'no-terminal'), 1);
  assert.equal(stopped('removed', 'diverged'), 0);
});

test('a boundary or a graph that is said to be right must show it', () => {
  const said = { group: 'g', construction: 'c', passes: true, wrong: null };
  const passes = (...kept: readonly object[]) =>
    figureOf('boundary', 'g: c: passes', { ...said, kept });
  assert.equal(passes(COMMITTED, { states: STATES }), 1);
  assert.equal(passes(rejected('x'), { states: STATES }), 0);
  const refused = (...kept: readonly object[]) =>
    figureOf('boundary', 'g: c: is refused', { ...said, passes: false, kept });
  const [once, halted] = [
    { answer: 'released', ran: 1 },
    { answer: 'already-released', ran: 0 },
  ];
  assert.equal(passes(once), 1);
  assert.equal(refused(once, halted), 1, 'a replay');
  assert.equal(refused(halted, once), 1, 'the rightful request comes afterwards');
  assert.equal(refused(once), 0, 'nothing was refused');
  assert.equal(refused(once, halted, once), 0, 'released twice');
  assert.equal(refused({ ...halted, ran: 1 }), 0, 'refused, and it ran');
  const report = (reported: readonly string[]) =>
    figureOf('topologies', 'handoff reports that equal durable state', {
      ...{ disruption: 'failure', isTrue: true, kept: [{ tags: ['a', 'b'] }, { reported }] },
    });
  assert.equal(report(['a', 'b']), 1);
  assert.equal(report(['a']), 0);
});

test('a signed receipt counts, whatever the record says beside it; a forged one is a finding', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const { x } = publicKey.export({ format: 'jwk' });
  const receiptOf = (kind: string, said = kind) => {
    const text = (verdict: string) =>
      JSON.stringify({ predicate: { terminal: { kind: verdict } } });
    const signed = text(kind);
    const sig = sign(null, Buffer.from(`DSSEv1 4 type ${signed.length} ${signed}`), privateKey);
    const payload = Buffer.from(text(said)).toString('base64');
    const signatures = [{ keyid: '', sig: sig.toString('base64') }];
    return { receipt: { payloadType: 'type', payload, signatures }, receiptKeys: [`ed25519:${x}`] };
  };
  const of = (words: string, kept: object) =>
    figureOf('public-outcomes', `(c) EffectMatch: ${words}`, {
      ...{ run: 'c|task|clean|EffectMatch|1', condition: 'EffectMatch', variant: 'clean' },
      ...{ committed: true, states: STATES, kept: [kept] },
    });
  assert.equal(of('clean, saved', receiptOf('committed')), 1);
  assert.equal(of('clean, saved', receiptOf('rejected')), 0);
  assert.equal(of('rejected, but durable', receiptOf('rejected')), 1);
  assert.equal(of('rejected, but durable', receiptOf('committed')), 0);
  assert.equal(of('rejected, but durable', receiptOf('rejected', 'committed')), 1);
});
