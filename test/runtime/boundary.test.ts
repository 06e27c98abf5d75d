// Goal: a certificate names the outlets as they are now, and the list behind it is kept in every
// store that needs it. Method: the same survey under different stores; lists that change between
// two surveys, frozen and not.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Survey } from '../../src/contract/adapter.ts';
import type { Claim } from '../../src/contract/proof.ts';
import type { Outlet } from '../../src/protocol/boundary.ts';
import type { StateRead } from '../../src/protocol/effect.ts';
import type { Digest } from '../../src/protocol/record.ts';
import { certify, isConfirmed, refuseReached } from '../../src/runtime/boundary.ts';
import type { Admitted, Deployment } from '../../src/runtime/deployment.ts';
import { fixtureDigest } from '../../src/testing/ledger/fixtures.ts';

const claim = { sealed: { record: { occurrence: `occ_${'0'.repeat(40)}` } } } as unknown as Claim;
const table: Outlet = { outlet: 'invoice', disposition: 'observed', by: 'the recorder' };
const denied: Outlet = { outlet: 'files', disposition: 'denied', by: 'the connection' };

/** A store that only keeps documents, and counts how often it was asked to. */
function store() {
  const documents = new Map<Digest, string>();
  let asked = 0;
  const ledgers = {
    async keep(digest: Digest, text: string) {
      asked += 1;
      documents.set(digest, text);
    },
  };
  return { documents, asked: () => asked, deployment: { ledgers } as unknown as Deployment };
}

const OPERATION = { action: 'sql', reads: [] };

async function outletsOf(deployment: Deployment, outlets: readonly Outlet[]): Promise<Digest> {
  const survey: Survey = {
    backend: 'backend',
    executor: 'executor',
    outlets,
    configuration: 'configuration',
    credentials: 'credentials',
    enforcement: 'enforcement',
  };
  const admitted = {
    identityDigest: fixtureDigest('identity'),
    adapter: { survey: async () => survey },
  };
  const boundary = await certify(deployment, admitted as unknown as Admitted, claim, OPERATION);
  assert.ok(boundary.kind === 'certified');
  return boundary.certificate.record.outlets;
}

test('every store keeps the list behind its certificates, also one that another store has seen', async () => {
  const outlets = Object.freeze([table]);
  const [one, two] = [store(), store()];
  const digest = await outletsOf(one.deployment, outlets);
  assert.equal(await outletsOf(two.deployment, outlets), digest);
  for (const { documents } of [one, two])
    assert.deepEqual(JSON.parse(documents.get(digest) ?? ''), outlets);
});

test('a frozen list is kept once, however often it is surveyed', async () => {
  const { deployment, asked } = store();
  const outlets = Object.freeze([table, denied]);
  for (let survey = 0; survey < 3; survey += 1) await outletsOf(deployment, outlets);
  assert.equal(asked(), 1);
});

test('a list that changes between two surveys changes the certificate', async () => {
  const { deployment, documents } = store();
  const outlets = [table];
  const before = await outletsOf(deployment, outlets);
  outlets.push(denied);
  const after = await outletsOf(deployment, outlets);
  assert.notEqual(after, before);
  assert.equal(documents.size, 2);
});

test('one unclassified outlet among others refuses, and only it is named', async () => {
  const open: Outlet = {
    outlet: 'a webhook',
    disposition: 'unclassified',
    by: 'nothing observes it',
  };
  const survey = { outlets: [table, open, denied] };
  const admitted = { adapter: { survey: async () => survey } } as unknown as Admitted;
  const boundary = await certify(store().deployment, admitted, claim, OPERATION);
  const refusal = { reason: 'outlet-unclassified', detail: 'a webhook: nothing observes it' };
  assert.deepEqual(boundary, { kind: 'refused', ...refusal });
});

test('a later survey confirms a certificate only where everything that it binds is the same', async () => {
  const told: Record<string, unknown> = {
    backend: 'backend',
    executor: 'executor',
    outlets: [table],
    configuration: 'configuration',
    credentials: 'credentials',
    enforcement: 'enforcement',
  };
  const survey = told as unknown as Survey;
  const admitted = {
    identityDigest: fixtureDigest('identity'),
    adapter: { survey: async () => survey },
  };
  const boundary = await certify(
    store().deployment,
    admitted as unknown as Admitted,
    claim,
    OPERATION,
  );
  assert.ok(boundary.kind === 'certified');
  const confirmed = (now: Survey) =>
    isConfirmed(admitted as unknown as Admitted, boundary.certificate, OPERATION, {
      before: boundary.survey,
      now,
    });
  assert.ok(confirmed(survey));
  assert.ok(confirmed({ ...survey, outlets: [{ ...table }] }), 'the same list, read again');
  for (const part of ['backend', 'executor', 'configuration', 'credentials', 'enforcement']) {
    assert.ok(!confirmed({ ...survey, [part]: 'another' }), part);
  }
  assert.ok(!confirmed({ ...survey, outlets: [table, denied] }));
  assert.ok(!confirmed({ ...survey, outlets: Object.freeze([]) }));
  // An adapter that hands out one object and one list again, and has changed them.
  told.configuration = 'another';
  assert.ok(!confirmed(survey));
  told.configuration = 'configuration';
  (told.outlets as Outlet[]).push(denied);
  assert.ok(!confirmed(survey));
});

test('a frozen list whose entries an adapter has changed is not confirmed once one of them is unclassified', async () => {
  const entry = { ...table };
  const outlets = Object.freeze([entry]);
  const survey = {
    backend: 'b',
    executor: 'e',
    outlets,
    configuration: 'c',
    credentials: 'd',
    enforcement: 'f',
  };
  const admitted = {
    identityDigest: fixtureDigest('identity'),
    adapter: { survey: async () => survey },
  };
  const boundary = await certify(
    store().deployment,
    admitted as unknown as Admitted,
    claim,
    OPERATION,
  );
  assert.ok(boundary.kind === 'certified');
  const confirmed = () =>
    isConfirmed(admitted as unknown as Admitted, boundary.certificate, OPERATION, {
      before: boundary.survey,
      now: survey,
    });
  assert.ok(confirmed());
  Object.assign(entry, { disposition: 'unclassified' });
  assert.ok(!confirmed());
});

test('an open outlet refuses the operations that reach what it is behind, and no other', async () => {
  const open: Outlet = {
    outlet: 'a trigger',
    disposition: 'unclassified',
    by: 'nothing observes it',
    behind: 'relation a',
  };
  const survey = {
    backend: 'b',
    executor: 'e',
    outlets: Object.freeze([table, open]),
    configuration: 'c',
    credentials: 'd',
    enforcement: 'f',
  };
  const reaches: Record<string, ReadonlySet<string> | undefined> = {
    a: new Set(['relation a']),
    b: new Set(['relation b']),
    hidden: undefined,
  };
  const adapter = {
    survey: async () => survey,
    reachOf: (_: Survey, action: string | undefined, reads: readonly StateRead[]) =>
      action === undefined
        ? new Set(reads.map(({ target }) => `relation ${target}`))
        : reaches[action],
  };
  const admitted = {
    identityDigest: fixtureDigest('identity'),
    adapter,
  } as unknown as Admitted;
  const { deployment, documents } = store();
  const certifyFor = (action: string | undefined, by = admitted) =>
    certify(deployment, by, claim, { action, reads: [] });
  for (const action of ['a', 'hidden'])
    assert.equal((await certifyFor(action)).kind, 'refused', action);
  const without = { adapter: { survey: adapter.survey } } as unknown as Admitted;
  assert.equal((await certifyFor('b', without)).kind, 'refused', 'an adapter that cannot tell');

  const boundary = await certifyFor('b');
  assert.ok(boundary.kind === 'certified');
  const kept = JSON.parse(documents.get(boundary.certificate.record.outlets) ?? '');
  const by = 'this operation does not reach relation a';
  assert.deepEqual(kept, [table, { outlet: 'a trigger', disposition: 'denied', by }]);
  const surveys = { before: boundary.survey, now: boundary.survey };
  const confirmed = (action: string) =>
    isConfirmed(admitted, boundary.certificate, { action, reads: [] }, surveys);
  assert.ok(confirmed('b'));
  assert.ok(!confirmed('a'));

  // The calls of a task are not known when it is certified: each of them is asked about.
  const task = await certifyFor(undefined);
  assert.ok(task.kind === 'certified');
  const read = { action: undefined, reads: [{ target: 'a', key: {} }] };
  const reading = await certify(deployment, admitted, claim, read);
  assert.equal(reading.kind, 'refused', 'a task whose approval depends on what is open');
  const refusal = (action: string) =>
    refuseReached(admitted, task.survey, { action, reads: [] })?.reason;
  assert.deepEqual(['a', 'b', 'hidden'].map(refusal), [
    'outlet-unclassified',
    undefined,
    'outlet-unclassified',
  ]);
  const everywhere = { ...open, behind: undefined };
  survey.outlets = Object.freeze([everywhere as unknown as Outlet]);
  for (const action of ['b', undefined])
    assert.equal((await certifyFor(action)).kind, 'refused', 'one that every operation reaches');
});
