// Goal: a refusal by a remote backend is believed only with proof, a request that cannot be built
// is never sent, and a match of mere fields releases only who asked for as much. Method: the remote
// adapter in memory with altered evidence, requests and profile; the real runtime decides.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AdapterFactory, Evidence, RemoteAdapter } from '../../src/contract/adapter.ts';
import { EffectMatchError } from '../../src/errors.ts';
import { insert } from '../../src/protocol/draft.ts';
import { renderTerminal } from '../../src/protocol/render-terminal.ts';
import {
  alterEvidence,
  overlayAdapter,
  remoteAdapter,
  silence,
  type World,
} from '../world/world.ts';
import { assertRejected, deploy, invoiceWorld, LEASE_MS, ofKind, onlyOne, PAY } from './deploy.ts';

/** A deployment whose bank is this adapter. */
async function deployBank(world: World, bank: AdapterFactory) {
  const { adapters } = world.start().config;
  return await deploy(world, { adapters: { ...adapters, bank } });
}

const refuses = (world: World, alter: (evidence: Evidence) => Evidence) =>
  alterEvidence(remoteAdapter(world.bank) as AdapterFactory, (evidence) =>
    alter({ ...evidence, refused: 'the account is closed' }),
  );

/** What a service reports that did nothing: every channel answers, and there is nothing to tell. */
const nothing = (evidence: Evidence): Evidence => ({
  ...evidence,
  records: [],
  channels: [
    { channel: 'receipt', kind: 'records', count: 0 },
    { channel: 'audit', kind: 'counts', counts: [] },
  ],
});

test('a refusal for good, with complete evidence of nothing, is rejected', async () => {
  const world = invoiceWorld();
  await using bank = await deployBank(world, refuses(world, nothing));
  const license = await bank.approve({ adapter: 'bank' });
  const rejected = assertRejected(
    await bank.runtime.execute(license, PAY),
    'dispatch',
    'refused-by-backend',
  );
  assert.equal(rejected.detail, 'the account is closed');
});

test('nothing without a refusal is diverged, and a refusal of what was done as approved contradicts itself', async () => {
  const cases = [
    {
      alter: (evidence: Evidence) => ({ ...nothing(evidence), refused: undefined }),
      kind: 'diverged',
    },
    { alter: (evidence: Evidence) => evidence, kind: 'indeterminate' },
  ];
  for (const { alter, kind } of cases) {
    const world = invoiceWorld();
    await using bank = await deployBank(
      world,
      refuses(world, alter as (evidence: Evidence) => Evidence),
    );
    const terminal = await bank.runtime.execute(await bank.approve({ adapter: 'bank' }), PAY);
    assert.equal(terminal.kind, kind);
  }
});

test('a refusal of a service that did something all the same is diverged: something is durable', async () => {
  const world = invoiceWorld();
  const twice = (evidence: Evidence): Evidence => ({
    ...evidence,
    records: [...evidence.records, ...evidence.records],
    channels: evidence.channels.map((report) => {
      if (report.kind === 'records') return { ...report, count: 2 * report.count };
      if (report.kind !== 'counts') return report;
      return {
        ...report,
        counts: report.counts.map((counted) => ({ ...counted, count: 2 * counted.count })),
      };
    }),
  });
  await using bank = await deployBank(world, refuses(world, twice));
  ofKind('diverged', await bank.runtime.execute(await bank.approve({ adapter: 'bank' }), PAY));
});

test('a refusal whose evidence is not complete proves nothing', async () => {
  const world = invoiceWorld();
  await using bank = await deployBank(
    world,
    refuses(world, (evidence) => silence(nothing(evidence), 'audit')),
  );
  ofKind('indeterminate', await bank.runtime.execute(await bank.approve({ adapter: 'bank' }), PAY));
});

test('recovery believes a refusal on the same terms', async () => {
  const world = invoiceWorld();
  let reading = false;
  const adapter = alterEvidence(remoteAdapter(world.bank) as AdapterFactory, (evidence) => {
    if (!reading) throw new Error('not now');
    return { ...nothing(evidence), refused: 'the account is closed' };
  });
  await using bank = await deployBank(world, adapter);
  ofKind('indeterminate', await bank.runtime.execute(await bank.approve({ adapter: 'bank' }), PAY));
  reading = true;
  const recovered = onlyOne(await bank.runtime.recover({ now: true }));
  assertRejected(
    recovered.kind === 'settled' ? recovered.terminal : undefined,
    'dispatch',
    'refused-by-backend',
  );
});

test('a permit that is as old as its lease is never used; one that is a millisecond younger still is', async () => {
  for (const [slept, kind] of [
    [LEASE_MS, 'rejected'],
    [LEASE_MS - 1, 'committed'],
  ] as const) {
    const world = invoiceWorld();
    const before = world.bank.backend.rows();
    await using bank = await deploy(world, {
      at: { 'path:permit-consumed': () => world.advance(slept) },
    });
    const terminal = await bank.runtime.execute(await bank.approve({ adapter: 'bank' }), PAY);
    if (kind === 'committed') {
      ofKind('committed', terminal);
      continue;
    }
    assertRejected(terminal, 'dispatch', 'not-sent');
    world.bank.deliver(); // nothing is on its way either
    assert.deepEqual(world.bank.backend.rows(), before);
  }
});

test('a request that cannot be built is refused when it is prepared, and never sent where that was not noticed', async () => {
  const world = invoiceWorld();
  let broken = false;
  const sent: unknown[] = [];
  const adapter = overlayAdapter(remoteAdapter(world.bank) as AdapterFactory, (opened) => {
    const remote = opened as RemoteAdapter;
    return {
      buildRequest(...parameters: Parameters<RemoteAdapter['buildRequest']>) {
        if (broken)
          throw new EffectMatchError('ERR_EM_MANIFEST_INVALID', 'no request follows from this');
        return remote.buildRequest(...parameters);
      },
      async dispatch(...parameters: Parameters<RemoteAdapter['dispatch']>) {
        sent.push(parameters);
        return await remote.dispatch(...parameters);
      },
    };
  });
  await using bank = await deployBank(world, adapter);
  const license = await bank.approve({ adapter: 'bank' });
  broken = true;
  await assert.rejects(bank.approve({ adapter: 'bank' }), { code: 'ERR_EM_MANIFEST_INVALID' });
  assertRejected(await bank.runtime.execute(license, PAY), 'dispatch', 'request-impossible');
  assert.deepEqual(sent, []);
});

test('an adapter that fails otherwise while it builds a request is a fault, and nothing was sent', async () => {
  const foreign = Object.assign(new Error('not ours'), { code: 'ERR_EM_MANIFEST_INVALID' });
  for (const fault of [foreign, new EffectMatchError('ERR_EM_INVARIANT', 'a bug')]) {
    const world = invoiceWorld();
    let broken = false;
    const adapter = overlayAdapter(remoteAdapter(world.bank) as AdapterFactory, (opened) => ({
      buildRequest(...parameters: Parameters<RemoteAdapter['buildRequest']>) {
        if (broken) throw fault;
        return (opened as RemoteAdapter).buildRequest(...parameters);
      },
    }));
    await using bank = await deployBank(world, adapter);
    const license = await bank.approve({ adapter: 'bank' });
    broken = true;
    const rejected = assertRejected(await bank.runtime.execute(license, PAY), 'dispatch', 'fault');
    assert.match(rejected.detail, new RegExp(fault.message));
  }
});

test('a match of registered fields says so, and releases only continuations that opted in', async () => {
  const world = invoiceWorld();
  const adapter = overlayAdapter(
    remoteAdapter(world.bank) as AdapterFactory,
    ({ registration }) => ({
      profiles: ['registered-fields'],
      registration: { ...registration, profile: 'registered-fields' },
    }),
  );
  await using bank = await deployBank(world, adapter);
  const request = {
    adapter: 'bank',
    effects: [insert('invoice', { id: 9, status: 'paid', amount: 1 })],
    continuations: ['reconcile', 'notify'],
  };
  await assert.rejects(bank.approve({ ...request, fieldMatch: ['other'] }), {
    code: 'ERR_EM_MANIFEST_INVALID',
  });
  const license = await bank.approve({ ...request, fieldMatch: ['notify'] });
  const terminal = ofKind('committed', await bank.runtime.execute(license, PAY));
  assert.equal(terminal.match, 'registered-fields');
  assert.match(renderTerminal(terminal), /who wrote them is not established/);
  const ask = (name: string) => bank.runtime.continuation(terminal, name).release(() => name);
  assert.deepEqual(await ask('reconcile'), { kind: 'halted', why: 'field-match' });
  assert.deepEqual(await ask('notify'), { kind: 'released', value: 'notify' });
});

test('a verdict about effects is not about fields', async () => {
  const world = invoiceWorld();
  await using bank = await deploy(world);
  const terminal = ofKind(
    'committed',
    await bank.runtime.execute(await bank.approve({ adapter: 'bank' }), PAY),
  );
  assert.equal('match' in terminal, false);
  assert.match(renderTerminal(terminal), /^committed: what became durable is what was approved/);
});
