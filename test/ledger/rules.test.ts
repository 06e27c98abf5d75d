// Goal: every rule by which a store accepts a record refuses by itself, whatever the other rules
// would say. Method: records that fit together, then one thing wrong at a time; each must break the
// rule that is named for it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClaimRequest } from '../../src/contract/ledgers.ts';
import type { Sealed } from '../../src/contract/seal.ts';
import {
  assertPermitFits,
  assertReleasable,
  assertVoidable,
  checkRequest,
  decideRecording,
  decideResolution,
  findMisfit,
  type Known,
  makeClaim,
} from '../../src/ledger/rules.ts';
import { type ClaimRecord, claimRecord } from '../../src/protocol/binding.ts';
import { type PermitRecord, permitRecord } from '../../src/protocol/permit.ts';
import type { Terminal } from '../../src/protocol/terminal.ts';
import {
  fixtureAcknowledgement,
  fixtureContext,
  fixtureDigest,
  fixtureExecution,
  fixtureLicense,
  fixturePermit,
  fixtureRequest,
  fixtureTerminal,
} from '../../src/testing/ledger/fixtures.ts';
import { fixtureResolution } from '../../src/testing/ledger/resolutions.ts';

const context = fixtureContext();
const license = fixtureLicense('one', { occurrences: 2 });
const execution = fixtureExecution('one');
const other = fixtureExecution('other');
const request = fixtureRequest(context, license, execution);
const [occurrence, next] = request.binding.occurrences;
assert.ok(occurrence !== undefined && next !== undefined);
const claim = request.claim(occurrence);
const permit = { kind: 'consumed' as const, permit: fixturePermit(context, claim.record) };
const known: Known = { claim, permit: undefined, first: undefined, settlement: undefined };

const terminalOf = (...[kind, change]: TerminalParameters) =>
  fixtureTerminal(context, claim.record, kind, change).record;
type TerminalParameters = [kind: Terminal['kind'], change?: object];
const refuses = (rule: RegExp, work: () => unknown) =>
  assert.throws(work, { code: 'ERR_EM_INVARIANT', message: rule }, String(rule));

test('a request is accepted only with a binding of exactly its license', () => {
  assert.equal(checkRequest(context, request).licenseText.includes(license.nonce), true);
  const rebound = (change: Partial<ClaimRequest['binding']>): ClaimRequest => ({
    ...request,
    binding: { ...request.binding, ...change },
  });
  refuses(/names its license/, () => checkRequest(context, rebound({ issuer: 'nobody' })));
  refuses(/names its license/, () => checkRequest(context, rebound({ nonce: '0'.repeat(32) })));
  refuses(/binds its license/, () =>
    checkRequest(context, rebound({ license: fixtureDigest('another') })),
  );
  refuses(/a license buys/, () => checkRequest(context, rebound({ occurrences: [occurrence] })));
  refuses(/of a binding differ/, () =>
    checkRequest(context, rebound({ occurrences: [occurrence, occurrence] })),
  );
});

test('a claim is accepted only for the occurrence, license, binding and outcome it was asked for', () => {
  const checked = checkRequest(context, request);
  const made = (change: Partial<ClaimRecord>) => () =>
    makeClaim(
      context,
      checked,
      (chosen) => context.sealer.seal(claimRecord, { ...request.claim(chosen).record, ...change }),
      occurrence,
    );
  assert.equal(made({})().record.occurrence, occurrence);
  refuses(/occurrence it spends/, made({ occurrence: next }));
  refuses(/license it was made under/, made({ license: fixtureDigest('another') }));
  refuses(/binding it was made under/, made({ binding: fixtureDigest('another') }));
  refuses(/outcome that was approved/, made({ approved: fixtureDigest('another') }));
});

test('whoever does not hold the claim may be rejected without one, and nothing else', () => {
  const without = { claim: undefined, permit: undefined };
  const misfit = /only the attempt that holds/;
  for (const held of [without, { ...known }]) {
    const by = held === without ? execution : other;
    assert.equal(findMisfit(context, held, terminalOf('rejected', { execution: by })), undefined);
    const claims = terminalOf('rejected', { execution: by, claim: fixtureDigest('some claim') });
    assert.match(findMisfit(context, held, claims) ?? '', misfit);
    for (const kind of ['committed', 'diverged', 'indeterminate'] as const) {
      assert.match(findMisfit(context, held, terminalOf(kind, { execution: by })) ?? '', misfit);
    }
  }
});

test('what the holder says names its license, outcome, claim, permit and t_c', () => {
  const fits = (terminal: Terminal, change: Partial<Known> = {}) =>
    findMisfit(context, { ...known, permit, ...change }, terminal);
  for (const kind of ['committed', 'rejected', 'diverged', 'indeterminate'] as const) {
    assert.equal(fits(terminalOf(kind)), undefined);
    assert.equal(
      fits(terminalOf(kind), { permit: undefined }),
      undefined,
      'a held candidate has no permit row',
    );
    assert.match(
      fits(terminalOf(kind, { lineage: fixtureDigest('x') })) ?? '',
      /license and the outcome/,
    );
    assert.match(
      fits(terminalOf(kind, { approved: fixtureDigest('x') })) ?? '',
      /license and the outcome/,
    );
    assert.match(
      fits(terminalOf(kind, { claim: fixtureDigest('x') })) ?? '',
      /digest of its claim/,
    );
    const voided = fits(terminalOf(kind), { permit: { kind: 'void' } });
    if (kind === 'rejected') assert.equal(voided, undefined);
    else assert.match(voided ?? '', /voided permit/);
    if (kind !== 'rejected')
      assert.match(fits(terminalOf(kind, { permit: fixtureDigest('x') })) ?? '', /the permit/);
  }
  const earlier = { claimedAt: '2026-01-01T09:59:59.000Z' };
  assert.match(fits(terminalOf('committed', earlier)) ?? '', /repeats t_c/);
});

test('a first terminal is inserted, and settles the claim if it is conclusive and by the holder', () => {
  const decide = (terminal: Terminal) => decideRecording(context, known, terminal);
  const slot = `terminal:${execution}`;
  assert.deepEqual(decide(terminalOf('committed')), { kind: 'insert', slot, settles: true });
  assert.deepEqual(decide(terminalOf('rejected')), { kind: 'insert', slot, settles: true });
  assert.deepEqual(decide(terminalOf('indeterminate')), { kind: 'insert', slot, settles: false });
  const replay = terminalOf('rejected', { execution: other });
  assert.deepEqual(decide(replay), { kind: 'insert', slot: `terminal:${other}`, settles: false });
  assert.throws(() => decide(terminalOf('committed', { execution: other })), {
    code: 'ERR_EM_CLAIM_LOST',
    message: /has no claim of execution/,
  });
});

test('after the first terminal there is agreement, one settlement of an indeterminate one, or a conflict', () => {
  const committed = terminalOf('committed');
  const later = terminalOf('committed', { recordedAt: '2026-01-01T11:00:00.000Z' });
  const rejected = terminalOf('rejected');
  const open = terminalOf('indeterminate');
  const decide = (change: Partial<Known>, terminal: Terminal) =>
    decideRecording(context, { ...known, ...change }, terminal);
  const conflicts = (change: Partial<Known>, terminal: Terminal, stands: Terminal['kind']) =>
    assert.throws(() => decide(change, terminal), {
      code: 'ERR_EM_TERMINAL_CONFLICT',
      message: new RegExp(`${stands} is recorded and ${terminal.kind} does not agree`),
    });

  assert.deepEqual(decide({ first: committed }, later), { kind: 'stored', terminal: committed });
  conflicts({ first: committed }, rejected, 'committed');
  conflicts({ first: committed }, open, 'committed');
  assert.deepEqual(decide({ first: open }, open), { kind: 'stored', terminal: open });
  const slot = `settlement:${execution}`;
  assert.deepEqual(decide({ first: open }, committed), { kind: 'insert', slot, settles: true });

  const settled = { first: open, settlement: committed };
  assert.deepEqual(decide(settled, later), { kind: 'stored', terminal: committed });
  assert.deepEqual(
    decide(settled, open),
    { kind: 'stored', terminal: committed },
    'knowing less is no conflict',
  );
  conflicts(settled, rejected, 'committed');
});

test('a permit is consumed by the holder, under the claim in force', () => {
  const consume = (held: Sealed<ClaimRecord> | undefined, change: Partial<PermitRecord> = {}) => {
    const { record } = context.sealer.seal(permitRecord, { ...permit.permit.record, ...change });
    return () => assertPermitFits(context, held, record);
  };
  consume(claim)();
  refuses(/holder of the claim/, consume(undefined));
  refuses(/holder of the claim/, consume(claim, { execution: other }));
  refuses(/digest of its claim/, consume(claim, { claim: fixtureDigest('x') }));
});

test('a permit is voided for the holder, and not once something may have become durable without one', () => {
  const rejected = terminalOf('rejected');
  const committed = terminalOf('committed');
  assertVoidable(known, execution);
  assertVoidable({ ...known, first: rejected }, execution);
  for (const first of [committed, terminalOf('diverged'), terminalOf('indeterminate')]) {
    refuses(/otherwise than rejected/, () => assertVoidable({ ...known, first }, execution));
    assertVoidable({ ...known, first, permit }, execution);
  }
  refuses(/otherwise than rejected/, () =>
    assertVoidable({ ...known, first: rejected, settlement: committed }, execution),
  );
  refuses(/claim in force/, () => assertVoidable(known, other));
  refuses(/claim in force/, () => assertVoidable({ ...known, claim: undefined }, execution));
});

test('an acknowledgement needs a claim, a committed terminal of its lineage, its name, and order', () => {
  const release = (
    change: Parameters<typeof fixtureAcknowledgement>[2],
    released = false,
    held: object = {},
  ) => {
    const { record } = fixtureAcknowledgement(context, claim.record, change);
    return () =>
      assertReleasable({ claim, terminal: terminalOf('committed'), ...held }, released, record);
  };
  release({})();
  release({ state: 'completed' }, true)();
  refuses(/only a committed terminal/, release({}, false, { claim: undefined }));
  refuses(/only a committed terminal/, release({}, false, { terminal: undefined }));
  for (const kind of ['rejected', 'diverged', 'indeterminate'] as const) {
    refuses(/only a committed terminal/, release({}, false, { terminal: terminalOf(kind) }));
  }
  refuses(/lineage of its terminal/, release({ lineage: fixtureDigest('x') }));
  refuses(/is registered/, release({ continuation: 'launder' }));
  refuses(/completes or is reopened after its release/, release({ state: 'completed' }));
});

test('an operator decides only where the holder may have made something durable and nothing says whether it did', () => {
  const sealed = fixtureResolution(context, claim.record);
  const decide = (change: Partial<Known>) =>
    decideResolution({ ...known, ...change }, undefined, sealed);
  const indeterminate = terminalOf('indeterminate');
  assert.equal(decide({ permit }), undefined, 'sent, and nothing heard');
  assert.equal(decide({ first: indeterminate, permit }), undefined);
  assert.equal(
    decide({ first: indeterminate }),
    undefined,
    'a commit whose reply was lost consumed no permit row',
  );
  const refused = (why: RegExp, change: Partial<Known>) =>
    assert.throws(() => decide(change), { code: 'ERR_EM_RESOLUTION_REFUSED', message: why });
  refused(/nothing was sent yet/, {});
  refused(/nothing was sent yet/, { permit: { kind: 'void' } });
  for (const kind of ['committed', 'rejected', 'diverged'] as const) {
    refused(new RegExp(`it is ${kind}`), { first: terminalOf(kind), permit });
    refused(new RegExp(`it is ${kind}`), {
      first: indeterminate,
      settlement: terminalOf(kind),
      permit,
    });
  }
  refused(/does not hold the claim/, { claim: undefined, permit });
});
