// Goal: a stage accepts the permit for it and no other, and says what the other is for. Method: one
// permit that fits, changed in one thing at a time, against a stage in every state of observation.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PermitCheck, type StagedUnder } from '../../src/backend/index.ts';
import type { ConsumedPermit } from '../../src/contract/proof.ts';

const UNDER = {
  claim: { sealed: { record: { occurrence: 'occ', execution: 'exe' } }, digest: 'claim' },
  certificate: { digest: 'certificate' },
} as unknown as StagedUnder;
const RECORD = { occurrence: 'occ', execution: 'exe', claim: 'claim', certificate: 'certificate' };
const BOUND = { candidate: 'candidate', evidence: 'evidence', observed: 'observed' };
const MARKER = { occurrence: 'occ', disposition: 'committed' };

function permit(record: object = {}, bound: object = BOUND, marker: object = {}): ConsumedPermit {
  const changed = { record: { ...RECORD, ...record, bound }, marker: { ...MARKER, ...marker } };
  return changed as unknown as ConsumedPermit;
}

function observedStage(): PermitCheck {
  const check = new PermitCheck(UNDER, 'candidate');
  check.observed('evidence');
  return check;
}

const MISMATCHES: Readonly<Record<string, ConsumedPermit>> = {
  'another occurrence': permit({ occurrence: 'other' }),
  'another execution': permit({ execution: 'other' }),
  'another claim': permit({ claim: 'other' }),
  'another certificate': permit({ certificate: 'other' }),
  'a request': permit({}, { request: 'request' }),
  'another candidate': permit({}, { ...BOUND, candidate: 'other' }),
  'other evidence': permit({}, { ...BOUND, evidence: 'other' }),
  'another marker': permit({}, BOUND, { occurrence: 'other' }),
};

for (const [what, foreign] of Object.entries(MISMATCHES)) {
  test(`a permit for ${what} is refused as that`, () => {
    assert.deepEqual(observedStage().refusalOf(foreign), {
      kind: 'refused',
      reason: 'permit-mismatch',
      detail: `the permit is for ${what}; nothing was promoted`,
    });
  });
}

test('a void marker is no marker of a commit', () => {
  const refusal = observedStage().refusalOf(permit({}, BOUND, { disposition: 'void' }));
  assert.match(refusal?.detail ?? '', /another marker/);
});

test('the permit for an observed candidate is accepted, also after a recheck that found the same', () => {
  const check = observedStage();
  assert.equal(check.refusalOf(permit()), undefined);
  check.rechecked('evidence');
  assert.equal(check.refusalOf(permit()), undefined);
});

test('without an observation, or after a recheck that found something else, every permit is refused', () => {
  const unobserved = new PermitCheck(UNDER, 'candidate');
  unobserved.rechecked('evidence');
  const changed = observedStage();
  changed.rechecked('other');
  for (const check of [unobserved, changed]) {
    for (const evidence of ['evidence', 'other', undefined]) {
      assert.match(
        check.refusalOf(permit({}, { ...BOUND, evidence }))?.detail ?? '',
        /not observed, or that changed/,
      );
    }
  }
  changed.observed('other');
  assert.equal(changed.refusalOf(permit({}, { ...BOUND, evidence: 'other' })), undefined);
});
