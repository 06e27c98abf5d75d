// Goal: what is recorded is assured first; only "not established" gives way, and only to the
// verdict on its own attempt. Method: terminals handed to a ledger that answers as each case needs;
// the real checks and the real sealer.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSealer } from '../../src/crypto/seal.ts';
import { EffectMatchError } from '../../src/errors.ts';
import type { Terminal } from '../../src/protocol/terminal.ts';
import type { AttemptFacts } from '../../src/runtime/attempt.ts';
import type { Deployment } from '../../src/runtime/deployment.ts';
import { recordTerminal, rejection, uncertainty } from '../../src/runtime/finish.ts';
import {
  fixtureContext,
  fixtureDigest,
  fixtureExecution,
  fixtureLicense,
  fixtureRequest,
  fixtureTerminal,
} from '../../src/testing/ledger/fixtures.ts';
import { invoiceWorld } from './deploy.ts';

const context = fixtureContext();
const license = fixtureLicense('one');
const request = fixtureRequest(context, license, fixtureExecution('one'));
const claim = request.claim(request.binding.occurrences[0] ?? assert.fail()).record;
const terminalOf = (kind: Terminal['kind'], change: object = {}) =>
  fixtureTerminal(context, claim, kind, change).record;

const world = invoiceWorld();
const deployment = (ledgers: object) =>
  ({
    ledgers,
    sealer: createSealer(world.start().config.keyring),
    clock: world.clock,
    contract: fixtureDigest('contract'),
  }) as unknown as Deployment;
const conflict = new EffectMatchError('ERR_EM_TERMINAL_CONFLICT', 'another verdict stands');

/** Records with a ledger that throws this and has stored that. */
const meet = (thrown: unknown, stored: Terminal | undefined, terminal: Terminal) =>
  recordTerminal(
    deployment({ record: () => Promise.reject(thrown), terminal: async () => stored }),
    terminal,
    'flushed',
  );

test('a terminal that is not assured is not handed to the ledger', async () => {
  const untimely = terminalOf('committed', { consumedAt: '2026-01-01T09:00:00.000Z' });
  const record = () => assert.fail('it was handed over');
  await assert.rejects(recordTerminal(deployment({ record }), untimely, 'flushed'), {
    code: 'ERR_EM_INVARIANT',
  });
});

test('"not established" takes the verdict on its own attempt that stands already', async () => {
  const committed = terminalOf('committed');
  assert.deepEqual(await meet(conflict, committed, terminalOf('indeterminate')), committed);
});

test('any other conflict, and a conflict over another attempt, is a fault', async () => {
  const committed = terminalOf('committed');
  const open = terminalOf('indeterminate');
  await assert.rejects(meet(conflict, committed, terminalOf('rejected')), conflict);
  await assert.rejects(meet(conflict, terminalOf('rejected'), committed), conflict);
  await assert.rejects(meet(conflict, undefined, open), conflict);
  const other = terminalOf('committed', { execution: fixtureExecution('other') });
  await assert.rejects(meet(conflict, other, open), conflict);
});

test('a fault of the store is no verdict, whatever stands', async () => {
  const committed = terminalOf('committed');
  const open = terminalOf('indeterminate');
  const lost = new EffectMatchError('ERR_EM_STORE_UNAVAILABLE', 'the disk is gone');
  await assert.rejects(meet(lost, committed, open), lost);
  const foreign = Object.assign(new Error('not ours'), { code: 'ERR_EM_TERMINAL_CONFLICT' });
  await assert.rejects(meet(foreign, committed, open), foreign);
});

const attempt = {
  occurrence: claim.occurrence,
  execution: claim.execution,
  lineage: claim.license,
  license,
  admitted: { identityDigest: fixtureDigest('identity'), registration: { values: 'plain' } },
} as unknown as AttemptFacts;

test('a rejection says what is known and nothing about what is not', () => {
  const refusal = { reason: 'expired', detail: 'sign a new one' };
  const bare = rejection(deployment({}), attempt, 'authority', refusal);
  for (const part of ['claim', 'certificate', 'outcome']) assert.ok(!(part in bare), part);
  assert.deepEqual([bare.at, bare.reason, bare.detail], ['authority', 'expired', 'sign a new one']);
  const known = {
    claim: fixtureDigest('claim'),
    certificate: fixtureDigest('certificate'),
    outcome: { kind: 'INDETERMINATE' as const, gaps: ['a channel was silent'] },
  };
  const full = rejection(deployment({}), attempt, 'comparison', refusal, known);
  assert.deepEqual(
    { claim: full.claim, certificate: full.certificate, outcome: full.outcome },
    known,
  );
});

test('a reason that is no name is not recorded as one', () => {
  const refusal = { reason: 'Not A Name\n', detail: '' };
  assert.equal(rejection(deployment({}), attempt, 'stage', refusal).reason, 'unnamed');
});

test('an uncertainty keeps its reason, and says so where none was given', () => {
  const consumed = {
    claim: fixtureDigest('claim'),
    certificate: fixtureDigest('certificate'),
    permit: fixtureDigest('permit'),
    consumedAt: '2026-01-01T10:00:01.000Z',
  };
  assert.equal(
    uncertainty(deployment({}), attempt, consumed, 'the reply was lost').gap,
    'the reply was lost',
  );
  assert.equal(uncertainty(deployment({}), attempt, consumed, '').gap, 'no reason was given');
});

test('a commit takes the same commit that stands already, and no other verdict', async () => {
  const committed = terminalOf('committed');
  const same = terminalOf('committed', { observed: fixtureDigest('volatile columns differ') });
  assert.deepEqual(await meet(conflict, same, committed), same);
  for (const change of [{ claim: fixtureDigest('other') }, { permit: fixtureDigest('other') }]) {
    await assert.rejects(meet(conflict, terminalOf('committed', change), committed), conflict);
  }
  const { claim: claimed, permit } = committed as Terminal & { readonly kind: 'committed' };
  await assert.rejects(
    meet(conflict, terminalOf('diverged', { claim: claimed, permit }), committed),
    conflict,
  );
});

test('an uncertainty states a permit with the time of its consumption, or neither', () => {
  const known = { claim: fixtureDigest('claim') };
  const permit = fixtureDigest('permit');
  const consumedAt = '2026-01-01T10:00:01.000Z';
  const partsOf = (more: object) => {
    const { permit: stated, consumedAt: at } = uncertainty(
      deployment({}),
      attempt,
      { ...known, ...more },
      'lost',
    );
    return [stated, at];
  };
  assert.deepEqual(partsOf({ permit, consumedAt }), [permit, consumedAt]);
  const certificate = fixtureDigest('certificate');
  const certified = uncertainty(deployment({}), attempt, { ...known, certificate }, 'lost');
  assert.equal(certified.certificate, certificate);
  assert.ok(!('certificate' in uncertainty(deployment({}), attempt, known, 'lost')));
  for (const half of [{}, { permit }, { consumedAt }])
    assert.deepEqual(partsOf(half), [undefined, undefined]);
});
