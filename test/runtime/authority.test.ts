// Goal: a license that does not cover this execution is refused for its own reason, and nothing
// else happens. Method: one case per refusal of runtime/authority.ts and of the
// claim, each against an otherwise valid license.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { z } from 'zod';
import type { AdapterFactory, RemoteAdapter } from '../../src/contract/adapter.ts';
import { approver, generateApprover } from '../../src/crypto/approver.ts';
import { parsePrivateKey } from '../../src/crypto/approver-key.ts';
import { digestRecord, renderingDigest } from '../../src/crypto/digest.ts';
import { signLicense } from '../../src/crypto/signature.ts';
import { EffectMatchError } from '../../src/errors.ts';
import { canonical } from '../../src/protocol/canon.ts';
import { insert, read, row } from '../../src/protocol/draft.ts';
import type { License, SignedLicense } from '../../src/protocol/license.ts';
import { approvedRecord } from '../../src/protocol/manifest.ts';
import { renderLicense } from '../../src/protocol/render-license.ts';
import { isRegistered } from '../../src/runtime/authority.ts';
import type { ExecuteOptions } from '../../src/runtime/execute.ts';
import { defineOperation } from '../../src/runtime/operation.ts';
import type { IssuerConfig } from '../../src/runtime/policy.ts';
import {
  memoryAdapter,
  overlay,
  overlayAdapter,
  remoteAdapter,
  type World,
} from '../world/world.ts';
import {
  assertRejected,
  type Deployed,
  deploy,
  invoiceWorld,
  ofKind,
  PAY,
  PAYMENT,
} from './deploy.ts';
import { multiply } from './multiply.ts';

/**
 * A second approver whose private key the test holds, so that it can sign what no honest approver
 * would.
 */
const OWN = generateApprover('own');
const withOwn = (world: World, more: Partial<IssuerConfig> = {}) => {
  const { issuers } = world.start().config;
  return { issuers: { ...issuers, own: { key: OWN.publicKey, may: ['books', 'bank'], ...more } } };
};

/** Two more people who may sign second, and a person whose limits forbid it. */
const CAROL = generateApprover('carol');
const DAVE = generateApprover('dave');
const PAIR = { key: CAROL.publicKey, may: ['books', 'bank'] };
const TIGHT = { key: DAVE.publicKey, may: ['books'], limits: { maxEffects: 0 } };

/** A deployment in which every license of the approver needs Carol's or Dave's signature too. */
async function deployPair(world: World, more: Partial<Record<'carol' | 'dave', object>> = {}) {
  const { issuers } = world.start().config;
  const [[name, first] = ['', undefined]] = Object.entries(issuers);
  const pair = { carol: { ...PAIR, ...more.carol }, dave: { ...TIGHT, ...more.dave } };
  const own = { key: OWN.publicKey, may: ['books'] };
  const needs = { ...(first as IssuerConfig), second: ['carol', 'dave'] };
  const deployed = await deploy(world, { issuers: { ...pair, own, [name]: needs } });
  const signed = await deployed.approve();
  const by = (key: typeof OWN) => approver({ ...key, clock: world.clock }).countersign(signed);
  return { deployed, signed, by };
}

/** Signs whatever is in the license, without the checks of an approver. */
async function forge(
  deployed: Deployed,
  change: Partial<License>,
  approved?: SignedLicense['approved'],
) {
  const signed = await deployed.approve();
  const key = parsePrivateKey(OWN.privateKey);
  const license = { ...signed.license, issuer: 'own', key: key.publicKey.id, ...change };
  return {
    license,
    approved: approved ?? signed.approved,
    signature: signLicense(key.key, license),
  };
}

/** A license that says in every place what the outcome with these settings is. */
async function forgeSettings(
  deployed: Deployed,
  outcome: SignedLicense['approved'],
): Promise<Case> {
  const { license } = await deployed.approve();
  const approved = approvedRecord.parse(outcome);
  const change = {
    approved: digestRecord(approvedRecord, approved),
    rendering: renderingDigest(approved.salt, renderLicense(license, approved)),
  };
  return { deployed, license: await forge(deployed, change, approved) };
}

function booksWith(world: World, change: Parameters<typeof overlayAdapter>[1]) {
  const { adapters } = world.start().config;
  return {
    adapters: {
      ...adapters,
      books: overlayAdapter(memoryAdapter(world.books) as AdapterFactory, change),
    },
  };
}

/** A license for a service that is not what its adapter declares. */
async function unprovenBank(world: World, lie: Partial<RemoteAdapter['probe']>): Promise<Case> {
  const bank = overlayAdapter(remoteAdapter(world.bank) as AdapterFactory, (adapter) => ({
    probe: overlay((adapter as RemoteAdapter).probe, lie),
  }));
  const deployed = await deploy(world, { adapters: { ...world.start().config.adapters, bank } });
  const proposal = await deployed.runtime.prepare({ ...PAYMENT, adapter: 'bank' });
  return { deployed, license: world.approver.sign(proposal, { expiresIn: '10m' }) };
}

const PAY_OPERATION = {
  input: z.strictObject({}),
  approve: () => ({ effects: [] }),
  action: () => PAY,
};

interface Case {
  readonly deployed: Deployed;
  readonly license: SignedLicense;
  readonly action?: unknown;
  readonly options?: ExecuteOptions;
}

const CASES: Readonly<Record<string, Readonly<Record<string, (world: World) => Promise<Case>>>>> = {
  'second-missing': {
    'the issuer needs a second person': async (world) => {
      const { deployed, signed } = await deployPair(world);
      return { deployed, license: signed };
    },
  },
  'second-invalid': {
    'another key signed in the name of the second person': async (world) => {
      const { deployed, by } = await deployPair(world);
      return { deployed, license: by(generateApprover('carol')) };
    },
    'the second signature is of another license': async (world) => {
      const { deployed, by } = await deployPair(world);
      const { second } = by(CAROL);
      assert.ok(second);
      const other = await deployed.approve();
      return { deployed, license: { ...other, second: { ...second, issuer: 'carol' } } };
    },
    'the first signature is used twice': async (world) => {
      const { deployed, signed, by } = await deployPair(world);
      const { second } = by(CAROL);
      assert.ok(second);
      return {
        deployed,
        license: { ...signed, second: { ...second, signature: signed.signature } },
      };
    },
    'the key is registered for somebody else': async (world) => {
      const { deployed, by } = await deployPair(world);
      const { second, ...signed } = by(DAVE);
      assert.ok(second);
      return { deployed, license: { ...signed, second: { ...second, issuer: 'carol' } } };
    },
  },
  'second-not-designated': {
    'an issuer who was not named signed second': async (world) => {
      const { deployed, by } = await deployPair(world);
      return { deployed, license: by(OWN) };
    },
    'the first person signed twice': async (world) => {
      const { deployed, signed } = await deployPair(world);
      const { issuer, key } = signed.license;
      const second = { issuer, key, signature: signed.signature };
      return { deployed, license: { ...signed, second } };
    },
    'the second person has the first one’s key': async (world) => {
      const { deployed, signed } = await deployPair(world);
      const { key } = signed.license;
      const second = { issuer: 'carol', key, signature: signed.signature };
      return { deployed, license: { ...signed, second } };
    },
    'the second person may not approve for this adapter': async (world) => {
      const { deployed, by } = await deployPair(world, { carol: { may: ['bank'] } });
      return { deployed, license: by(CAROL) };
    },
  },
  'issuer-unknown': {
    'nobody knows the issuer': async (world) => {
      const deployed = await deploy(world);
      const stranger = approver({ ...generateApprover('stranger'), clock: world.clock });
      const proposal = await deployed.runtime.prepare(PAYMENT);
      return { deployed, license: stranger.sign(proposal, { expiresIn: '10m' }) };
    },
    'the issuer is named like a property of every object': async (world) => {
      const deployed = await deploy(world, withOwn(world));
      return { deployed, license: await forge(deployed, { issuer: 'constructor' }) };
    },
  },
  'signature-invalid': {
    'another key signed in the name of the issuer': async (world) => {
      const deployed = await deploy(world);
      return { deployed, license: await forge(deployed, { issuer: 'ap-team' }) };
    },
    'another key signed and named the key of the issuer': async (world) => {
      const deployed = await deploy(world);
      const { license } = await deployed.approve();
      return { deployed, license: await forge(deployed, { issuer: 'ap-team', key: license.key }) };
    },
    'a field was changed after signing': async (world) => {
      const deployed = await deploy(world);
      const signed = await deployed.approve();
      return { deployed, license: { ...signed, license: { ...signed.license, occurrences: 2 } } };
    },
    'what was handed over with it has patterns that cannot be compiled': async (world) => {
      const deployed = await deploy(world);
      const signed = await deployed.approve();
      const effects = signed.approved.effects.map((effect) => ({
        ...effect,
        after: { status: { matches: '(((' } },
      }));
      const license = { ...signed.license, occurrences: 2 };
      return {
        deployed,
        license: { ...signed, license, approved: { ...signed.approved, effects } },
      };
    },
    'one bit of the signature was flipped': async (world) => {
      const deployed = await deploy(world);
      const signed = await deployed.approve();
      const bytes = Buffer.from(signed.signature, 'base64url');
      bytes[5] = (bytes[5] ?? 0) ^ 1;
      return { deployed, license: { ...signed, signature: bytes.toString('base64url') } };
    },
  },
  'issuer-not-designated': {
    'the issuer may approve for another adapter': async (world) => {
      const { issuers } = world.start().config;
      const team = issuers['ap-team'] ?? assert.fail();
      const deployed = await deploy(world, { issuers: { 'ap-team': { ...team, may: ['bank'] } } });
      return { deployed, license: await deployed.approve() };
    },
  },
  'source-not-allowed': {
    'a rehearsed approval by an issuer who may only state manifests': async (world) => {
      const deployed = await deploy(world);
      const { approved, draft } = await deployed.runtime.prepare(PAYMENT);
      const terms = { ...draft, source: 'rehearsed' as const };
      const rendering = renderLicense(terms, approved);
      const rehearsed = { ...terms, rendering: renderingDigest(approved.salt, rendering) };
      return {
        deployed,
        license: world.approver.sign(
          { approved, draft: rehearsed, rendering },
          { expiresIn: '10m' },
        ),
      };
    },
  },
  'operation-mismatch': {
    'a contract that names no operation': async (world) => {
      const deployed = await deploy(world, withOwn(world));
      return { deployed, license: await forge(deployed, { source: 'contract' }) };
    },
    'a manifest that names one': async (world) => {
      const deployed = await deploy(world, withOwn(world));
      return { deployed, license: await forge(deployed, { operation: 'payInvoice' }) };
    },
  },
  'operation-unknown': {
    'nobody configured the operation': async (world) => {
      const deployed = await deploy(world, withOwn(world));
      return {
        deployed,
        license: await forge(deployed, { source: 'contract', operation: 'payInvoice' }),
      };
    },
    'the operation is named like a property of every object': async (world) => {
      const deployed = await deploy(world, withOwn(world));
      return {
        deployed,
        license: await forge(deployed, { source: 'contract', operation: 'constructor' }),
      };
    },
    'the operation is one of another adapter': async (world) => {
      const operations = {
        pay: defineOperation({ ...PAY_OPERATION, name: 'pay', adapter: 'bank' }),
      };
      const deployed = await deploy(world, { ...withOwn(world), operations });
      return { deployed, license: await forge(deployed, { source: 'contract', operation: 'pay' }) };
    },
  },
  'action-unbound': {
    'a rehearsed approval for whatever action': async (world) => {
      const deployed = await deploy(world, withOwn(world, { sources: ['rehearsed'] }));
      return { deployed, license: await forge(deployed, { source: 'rehearsed' }) };
    },
  },
  'approved-mismatch': {
    'the outcome handed over was changed': async (world) => {
      const deployed = await deploy(world);
      const signed = await deployed.approve();
      const effects = signed.approved.effects.map((effect) => ({ ...effect, count: 2 }));
      return { deployed, license: { ...signed, approved: { ...signed.approved, effects } } };
    },
    'one bit of its salt was flipped': async (world) => {
      const deployed = await deploy(world);
      const signed = await deployed.approve();
      const first = Number.parseInt(signed.approved.salt[0] ?? '', 16) ^ 1;
      const salt = `${first.toString(16)}${signed.approved.salt.slice(1)}`;
      return { deployed, license: { ...signed, approved: { ...signed.approved, salt } } };
    },
    'the outcome is for another adapter than the license': async (world) => {
      const deployed = await deploy(world, withOwn(world));
      const { approved } = await deployed.approve();
      const elsewhere = { ...approved, adapter: 'bank' };
      return {
        deployed,
        license: await forge(
          deployed,
          { approved: digestRecord(approvedRecord, elsewhere) },
          elsewhere,
        ),
      };
    },
  },
  'constraint-invalid': {
    'a pattern that is none': async (world) => {
      const deployed = await deploy(world, withOwn(world));
      const { approved } = await deployed.approve();
      const effects = approved.effects.map((effect) => ({
        ...effect,
        after: { status: { matches: '(((' } },
      }));
      const outcome = approvedRecord.parse({ ...approved, effects });
      return {
        deployed,
        license: await forge(
          deployed,
          { approved: digestRecord(approvedRecord, outcome) },
          outcome,
        ),
      };
    },
    'a range from high to low': async (world) => {
      const deployed = await deploy(world, withOwn(world));
      const { approved } = await deployed.approve();
      const effects = approved.effects.map((effect) => ({
        ...effect,
        after: { amount: { between: [2, 1] } },
      }));
      const outcome = approvedRecord.parse({ ...approved, effects });
      return {
        deployed,
        license: await forge(
          deployed,
          { approved: digestRecord(approvedRecord, outcome) },
          outcome,
        ),
      };
    },
  },
  'rendering-mismatch': {
    'the approver signed another text': async (world) => {
      const deployed = await deploy(world, withOwn(world));
      const { license } = await deployed.approve();
      return { deployed, license: await forge(deployed, { rendering: license.approved }) };
    },
    'a signed license says more executions than its text': async (world) => {
      const deployed = await deploy(world, withOwn(world));
      return { deployed, license: await forge(deployed, { occurrences: 2 }) };
    },
  },
  'registration-mismatch': {
    'the outcome was approved for a deployment that stores values otherwise': async (world) => {
      await using other = await deploy(invoiceWorld({ values: 'digest' }));
      return { deployed: await deploy(world), license: await other.approve() };
    },
    'the outcome was approved for fewer columns': async (world) => {
      const [invoice, ...rest] = (await deploy(world).then(({ approve }) => approve())).approved
        .registration.targets;
      const targets = [{ ...(invoice ?? assert.fail()), columns: ['id', 'status'] }, ...rest];
      await using other = await deploy(
        world,
        booksWith(world, ({ registration }) => ({ registration: { ...registration, targets } })),
      );
      return { deployed: await deploy(world), license: await other.approve() };
    },
  },
  'setting-refused': {
    'the outcome has session settings and the adapter has none': async (world) => {
      const deployed = await deploy(world, withOwn(world));
      const { approved } = await deployed.approve();
      return forgeSettings(deployed, { ...approved, settings: { 'app.actor': 'alice' } });
    },
    'the adapter does not take a setting of this name': async (world) => {
      const takesOne = booksWith(world, () => ({
        settingRefusal: (name: string) => (name === 'app.actor' ? undefined : 'is not for agents'),
      }));
      const deployed = await deploy(world, { ...withOwn(world), ...takesOne });
      const { approved } = await deployed.approve();
      const settings = { 'app.actor': 'alice', 'em.stage': 'x' };
      return forgeSettings(deployed, { ...approved, settings });
    },
  },
  'too-many-effects': {
    'one request is to make millions of changes': async (world) => {
      const deployed = await deploy(world);
      const proposal = await deployed.runtime.prepare({ ...PAYMENT, adapter: 'bank' });
      return {
        deployed,
        license: world.approver.sign(multiply(proposal, 10_000_000), { expiresIn: '10m' }),
      };
    },
    'one request is to make one change more than it may': async (world) => {
      const deployed = await deploy(world);
      const proposal = await deployed.runtime.prepare({ ...PAYMENT, adapter: 'bank' });
      return {
        deployed,
        license: world.approver.sign(multiply(proposal, 10_001), { expiresIn: '10m' }),
      };
    },
  },
  'service-unproven': {
    'the service needs no credential': async (world) =>
      unprovenBank(world, { exclusiveCredential: async () => false }),
    'the service does everything twice': async (world) =>
      unprovenBank(world, { idempotent: async () => false }),
    'the service does not answer': async (world) =>
      unprovenBank(world, {
        idempotent: async () => {
          throw new EffectMatchError('ERR_EM_ADAPTER_UNAVAILABLE', 'it does not answer');
        },
      }),
  },
  'adapter-changed': {
    'the code of the adapter changed': async (world) => {
      await using before = await deploy(world);
      const license = await before.approve();
      const changed = booksWith(world, ({ identity }) => ({
        identity: { ...identity, code: 'another release' },
      }));
      return { deployed: await deploy(world, changed), license };
    },
    'the license is for another database': async (world) => {
      await using before = await deploy(world);
      const license = await before.approve();
      const changed = booksWith(world, ({ identity }) => ({
        identity: { ...identity, backend: 'books-2' },
      }));
      return { deployed: await deploy(world, changed), license };
    },
    'the adapter changed its identity while it was open': async (world) => {
      let code = '';
      const changing = booksWith(world, ({ identity }) => ({
        get identity() {
          return { ...identity, code: `${identity.code}${code}` };
        },
      }));
      const deployed = await deploy(world, changing);
      const license = await deployed.approve();
      code = 'patched';
      return { deployed, license };
    },
    'the adapter was admitted as another than it says it is now': async (world) => {
      await using before = await deploy(world);
      const license = await before.approve();
      let code = 'admitted';
      const changing = booksWith(world, ({ identity }) => ({
        get identity() {
          return { ...identity, code: `${identity.code}${code}` };
        },
      }));
      const deployed = await deploy(world, changing);
      code = '';
      return { deployed, license };
    },
  },
  'policy-changed': {
    'another issuer was designated since': async (world) => {
      await using before = await deploy(world);
      const license = await before.approve();
      return { deployed: await deploy(world, withOwn(world)), license };
    },
  },
  'frame-changed': {
    'an evidence channel is no longer required': async (world) => {
      await using before = await deploy(world);
      const license = await before.approve();
      const changed = booksWith(world, ({ channels }) => ({ channels: channels.slice(1) }));
      return { deployed: await deploy(world, changed), license };
    },
  },
  'other-action': {
    'the license is bound to one action': async (world) => {
      const deployed = await deploy(world);
      const license = await deployed.approve({ action: PAY });
      return { deployed, license, action: { writes: [...PAY.writes, ...PAY.writes] } };
    },
  },
  'not-yet-valid': {
    'a millisecond too early': async (world) => {
      const deployed = await deploy(world);
      return {
        deployed,
        license: await deployed.approve({}, { notBefore: world.clock.now() + 1 }),
      };
    },
  },
  expired: {
    'at the very moment': async (world) => {
      const deployed = await deploy(world);
      const license = await deployed.approve({}, { expiresIn: 1000 });
      world.advance(1000);
      return { deployed, license };
    },
  },
  'precondition-broken': {
    'the vendor was blocked since': async (world) => {
      const deployed = await deploy(world);
      const license = await deployed.approve();
      world.disturb('state');
      return { deployed, license };
    },
    'the row that had to exist is gone': async (world) => {
      const deployed = await deploy(world);
      const license = await deployed.approve({ requires: [row('invoice', { id: 2 }, {})] });
      world.books.write({ op: 'delete', target: 'invoice', key: { id: 2 } });
      return { deployed, license };
    },
  },
  'stale-state': {
    'a watched row changed': async (world) => {
      const deployed = await deploy(world);
      const license = await deployed.approve({ watch: [read('invoice', { id: 2 }, ['amount'])] });
      world.books.write({ op: 'update', target: 'invoice', key: { id: 2 }, set: { amount: 71 } });
      return { deployed, license };
    },
    'a watched row appeared': async (world) => {
      const deployed = await deploy(world);
      const license = await deployed.approve({ watch: [read('invoice', { id: 3 })] });
      world.books.write({ op: 'insert', target: 'invoice', row: { id: 3 } });
      return { deployed, license };
    },
    'the application presents another revision': async (world) => {
      const deployed = await deploy(world);
      const license = await deployed.approve({ revision: 'r1' });
      return { deployed, license, options: { revision: 'r2' } };
    },
    'the application presents no revision': async (world) => {
      const deployed = await deploy(world);
      return { deployed, license: await deployed.approve({ revision: 'r1' }) };
    },
  },
  'plan-superseded': {
    'a later plan was prepared for the task': async (world) => {
      const deployed = await deploy(world);
      const license = await deployed.approve({ planRevision: 1 });
      await deployed.approve({ planRevision: 2 });
      return { deployed, license };
    },
  },
};

for (const [reason, cases] of Object.entries(CASES)) {
  for (const [what, arrange] of Object.entries(cases)) {
    test(`${reason}: ${what}`, async () => {
      const world = invoiceWorld();
      const { deployed, license, action = PAY, options } = await arrange(world);
      await using _ = deployed;
      const before = world.books.rows();
      const terminal = await deployed.runtime.execute(license, action, options);
      const { claim, outcome } = assertRejected(terminal, 'authority', reason);
      assert.deepEqual({ claim, outcome }, { claim: undefined, outcome: undefined });
      assert.deepEqual(world.books.rows(), before);
      assert.equal(world.books.markers.size, 0);
      const { ledgers } = deployed.runtime;
      assert.deepEqual(await ledgers.attempts(terminal.occurrence), [terminal]);
      assert.equal(await ledgers.holder(terminal.occurrence), undefined, 'nothing was claimed');
      assert.equal(
        await deployed.runtime.terminal(terminal.occurrence),
        undefined,
        'and so nothing was decided',
      );
      assert.ok(!deployed.process.trace.includes('adapter.stage'));
    });
  }
}

/** Refusals by the ledger, when the occurrence is claimed. */
const AT_CLAIM = ['plan-superseded', 'spent', 'nonce-reused'];

test('every refusal of authority has a case above', () => {
  const source = readFileSync('src/runtime/authority.ts', 'utf8');
  const reasons = [...source.matchAll(/(?:refuse\(\s*|reason: )'([a-z-]+)'/g)].map(
    ([, reason]) => reason,
  );
  assert.ok(reasons.length > 10, 'the refusals were not found in the source');
  const others = AT_CLAIM.filter((reason) => reason in CASES);
  assert.deepEqual(new Set(Object.keys(CASES)), new Set([...reasons, ...others]));
});

test('spent: a replay is refused as its own attempt and never shadows the first', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world);
  const license = await deployed.approve();
  const first = ofKind('committed', await deployed.runtime.execute(license, PAY));
  const after = world.books.rows();
  const replay = await deployed.runtime.execute(license, PAY);
  // The invoice is paid, but the approval did not depend on its row, so only the claim stands in
  // the way.
  assertRejected(replay, 'authority', 'spent');
  assert.equal(replay.occurrence, first.occurrence);
  assert.notEqual(replay.execution, first.execution);
  assert.deepEqual(world.books.rows(), after);
  assert.deepEqual(await deployed.runtime.terminal(first.occurrence), first);
  assert.deepEqual(await deployed.runtime.ledgers.attempts(first.occurrence), [first, replay]);
  const released = await deployed.runtime.continuation(first, 'reconcile').release(() => 'done');
  assert.deepEqual(released, { kind: 'released', value: 'done' });
});

test('nonce-reused: one nonce is good for one license', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world);
  const nonce = 'a'.repeat(16);
  const first = await deployed.approve({}, { nonce });
  const second = await deployed.approve({ task: 'another task' }, { nonce });
  ofKind('committed', await deployed.runtime.execute(first, PAY));
  const after = world.books.rows();
  const refused = assertRejected(
    await deployed.runtime.execute(second, PAY),
    'authority',
    'nonce-reused',
  );
  assert.deepEqual(world.books.rows(), after);
  assert.deepEqual(await deployed.runtime.ledgers.attempts(refused.occurrence), [refused]);
});

test('a license for two occurrences buys two executions and no third', async () => {
  const world = invoiceWorld();
  const again = { writes: [{ op: 'insert', target: 'audit', row: { id: 'a', text: 'x' } }] };
  await using deployed = await deploy(world);
  const license = await deployed.approve({
    occurrences: 2,
    effects: [insert('audit', { id: 'a', text: 'x' })],
  });
  const first = ofKind('committed', await deployed.runtime.execute(license, again));
  world.books.write({ op: 'delete', target: 'audit', key: { id: 'a' } });
  const second = ofKind('committed', await deployed.runtime.execute(license, again));
  assert.notEqual(first.occurrence, second.occurrence);
  assert.equal(first.lineage, second.lineage);
  assertRejected(await deployed.runtime.execute(license, again), 'authority', 'spent');
  assert.equal(world.books.markers.size, 2);
});

test('a refusal that time or state can cure leaves the license usable', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world);
  const license = await deployed.approve({}, { notBefore: world.clock.now() + 5 });
  assertRejected(await deployed.runtime.execute(license, PAY), 'authority', 'not-yet-valid');
  world.advance(5);
  const committed = ofKind('committed', await deployed.runtime.execute(license, PAY));
  assert.equal((await deployed.runtime.ledgers.attempts(committed.occurrence)).length, 2);
  assert.deepEqual(await deployed.runtime.terminal(committed.occurrence), committed);
});

test('with the signatures of two people it is executed once, and the limits of both hold', async () => {
  const world = invoiceWorld();
  const { deployed, signed, by } = await deployPair(world);
  await using open = deployed;
  const { runtime } = open;
  assertRejected(await runtime.execute(by(DAVE), PAY), 'authority', 'limit-effects');
  assertRejected(await runtime.execute(signed, PAY), 'authority', 'second-missing');
  const both = by(CAROL);
  assert.equal(await runtime.check({ license: both }, PAY), undefined);
  const { second } = by(generateApprover('carol'));
  assert.ok(second && both.second);
  const forged = { ...both, second: { ...both.second, signature: second.signature } };
  assertRejected(await runtime.execute(forged, PAY), 'authority', 'second-invalid');
  ofKind('committed', await runtime.execute(JSON.parse(JSON.stringify(both)), PAY));
  assertRejected(await runtime.execute(both, PAY), 'authority', 'spent');
  // What was checked with the second signature is not taken for granted without it.
  assertRejected(await runtime.execute(signed, PAY), 'authority', 'second-missing');
});

test('the first person cannot countersign, and a changed license is not countersigned', async () => {
  const world = invoiceWorld();
  const { deployed, signed } = await deployPair(world);
  await using _open = deployed;
  assert.throws(() => world.approver.countersign(signed), { code: 'ERR_EM_USAGE' });
  const carol = approver({ ...CAROL, clock: world.clock });
  const [effect] = signed.approved.effects;
  assert.ok(effect);
  const approved = { ...signed.approved, effects: [{ ...effect, count: 9 }] };
  assert.throws(() => carol.countersign({ ...signed, approved }), {
    code: 'ERR_EM_MANIFEST_INVALID',
  });
  const license = { ...signed.license, continuations: ['x'] };
  assert.throws(() => carol.countersign({ ...signed, license }), {
    code: 'ERR_EM_MANIFEST_INVALID',
  });
});

test('a person with two keys is not two people', async () => {
  const world = invoiceWorld();
  const pair = [generateApprover('pair'), generateApprover('pair')] as const;
  const [one, two] = pair.map((key) => approver({ ...key, clock: world.clock }));
  const issuer = { key: pair.map(({ publicKey }) => publicKey), may: ['books'] };
  const operation = { ...PAY_OPERATION, name: 'pay', adapter: 'books', second: ['pair'] };
  const operations = { pay: defineOperation(operation) };
  await using deployed = await deploy(world, { issuers: { pair: issuer }, operations });
  const proposal = await deployed.runtime.propose('pay', {}, { task: 't', planRevision: 1 });
  const signed = one?.sign(proposal, { expiresIn: '10m' });
  assert.throws(() => two?.countersign(signed), { code: 'ERR_EM_USAGE' });
  assert.ok(signed);
  const { key, publicKey } = parsePrivateKey(pair[1].privateKey);
  const signature = signLicense(key, signed.license);
  const twice = { ...signed, second: { issuer: 'pair', key: publicKey.id, signature } };
  const reason = 'second-not-designated';
  assertRejected(await deployed.runtime.execute(twice, PAY), 'authority', reason);
});

test('an operation may need a second person, and its name is part of what was approved', async () => {
  const world = invoiceWorld();
  const { issuers } = world.start().config;
  const operation = { ...PAY_OPERATION, name: 'pay', adapter: 'books', second: ['carol'] };
  const operations = { pay: defineOperation(operation) };
  await using deployed = await deploy(world, { issuers: { ...issuers, carol: PAIR }, operations });
  const { runtime } = deployed;
  const proposal = await runtime.propose('pay', {}, { task: 't', planRevision: 1 });
  const signed = world.approver.sign(proposal, { expiresIn: '10m' });
  assertRejected(await runtime.execute(signed, PAY), 'authority', 'second-missing');
  const both = approver({ ...CAROL, clock: world.clock }).countersign(signed);
  assert.equal(await runtime.check({ license: both }, PAY), undefined);
});

for (const [what, second] of [
  ['nobody', []],
  ['a stranger', ['zoe']],
  ['only the issuer itself', ['own']],
] as const) {
  test(`a second signature by ${what} is refused in the configuration`, async () => {
    const world = invoiceWorld();
    await assert.rejects(deploy(world, withOwn(world, { second })), {
      code: 'ERR_EM_CONFIG_INVALID',
    });
  });
}

test('what is no license is thrown back before anything is recorded', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world);
  const { runtime } = deployed;
  const license = await deployed.approve();
  await assert.rejects(runtime.execute('not a license', PAY), { code: 'ERR_EM_RECORD_INVALID' });
  await assert.rejects(runtime.execute({ ...license, more: 1 }, PAY), {
    code: 'ERR_EM_RECORD_INVALID',
  });
  const elsewhere = { ...license, license: { ...license.license, adapter: 'nowhere' } };
  await assert.rejects(runtime.execute(elsewhere, PAY), { code: 'ERR_EM_ADAPTER_UNAVAILABLE' });
  assert.deepEqual(await runtime.ledgers.journal(), []);
  ofKind('committed', await runtime.execute(JSON.stringify(license), PAY));
});

test('a broken precondition says what was required and found, and only names columns where values are not stored', async () => {
  for (const values of ['plain', 'digest'] as const) {
    const world = invoiceWorld({ values });
    await using deployed = await deploy(world);
    const license = await deployed.approve();
    world.disturb('state');
    const { detail } = assertRejected(
      await deployed.runtime.execute(license, PAY),
      'authority',
      'precondition-broken',
    );
    if (values === 'plain')
      assert.match(
        detail,
        /vendor \{"id":1\} must be \{"blocked":false\}, and it is .*"blocked":true/,
      );
    else assert.match(detail, /^what was required of vendor \(blocked\) no longer holds/);
  }
});

test('a registration is the same in whatever order its parts are listed, and no other', () => {
  const target = { name: 'invoice', columns: ['id'], key: ['id'], volatile: [] };
  const registration = { profile: 'net-state', values: 'plain', targets: [target] } as const;
  const admitted = { registrationText: canonical(registration) };
  assert.ok(isRegistered(admitted, { registration }));
  const { profile, values, targets } = registration;
  for (const same of [
    { profile, targets, values },
    { values, targets, profile },
  ]) {
    assert.ok(isRegistered(admitted, { registration: same }));
  }
  assert.ok(!isRegistered(admitted, { registration: { ...registration, values: 'digest' } }));
  assert.ok(!isRegistered(admitted, { registration: { ...registration, targets: [] } }));
});

test('a license that was checked before is refused like a new one if anything else comes with it', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world);
  const { runtime } = deployed;
  const signed = await deployed.approve();
  assert.equal(await runtime.check({ license: signed }, PAY), undefined);
  const refuse = async (license: SignedLicense, reason: string) =>
    assertRejected(await runtime.execute(license, PAY), 'authority', reason);

  const bytes = Buffer.from(signed.signature, 'base64url');
  bytes[5] = (bytes[5] ?? 0) ^ 1;
  await refuse({ ...signed, signature: bytes.toString('base64url') }, 'signature-invalid');
  const approved = { ...signed.approved, effects: [] };
  await refuse({ ...signed, approved }, 'approved-mismatch');
  world.disturb('state');
  await refuse(signed, 'precondition-broken');
  world.advance(11 * 60_000);
  await refuse(signed, 'expired');
});
