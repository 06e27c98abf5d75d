// Goal: dependent work runs at most once, and only behind a commit whose authority and durable
// state it belongs to. Method: one test per reason to halt, and releases that compete or are
// interrupted.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { digestText } from '../../src/crypto/digest.ts';
import type { Halt } from '../../src/protocol/continuation.ts';
import type { Digest, OccurrenceId } from '../../src/protocol/record.ts';
import type { Lineage } from '../../src/runtime/continuation.ts';
import { lineagesOf } from '../../src/runtime/continuation.ts';
import { temporaryLedgers } from '../ledger/temporary.ts';
import { overlay } from '../world/world.ts';
import { type Deployed, deploy, interrupt, invoiceWorld, ofKind, PAY, reseal } from './deploy.ts';

async function commit(deployed: Deployed, adapter = 'books') {
  return ofKind(
    'committed',
    await deployed.runtime.execute(await deployed.approve({ adapter }), PAY),
  );
}

/** Asks, and asserts that no work runs and nothing is acknowledged. */
async function assertHalts(
  deployed: Deployed,
  why: Halt,
  from: Lineage,
  name = 'reconcile',
): Promise<void> {
  const before = await deployed.runtime.ledgers.acknowledgements(from.occurrence);
  const result = await deployed.runtime
    .continuation(from, name)
    .release(() => assert.fail('the work ran'));
  assert.deepEqual(result, { kind: 'halted', why });
  assert.deepEqual(await deployed.runtime.ledgers.acknowledgements(from.occurrence), before);
}

test('a committed occurrence releases its registered work once', async () => {
  for (const adapter of ['books', 'bank']) {
    await using deployed = await deploy(invoiceWorld());
    const terminal = await commit(deployed, adapter);
    const continuation = deployed.runtime.continuation(terminal, 'reconcile');
    assert.deepEqual(await continuation.release(async () => 'done'), {
      kind: 'released',
      value: 'done',
    });
    const states = (await deployed.runtime.ledgers.acknowledgements(terminal.occurrence)).map(
      ({ state }) => state,
    );
    assert.deepEqual(states, ['released', 'completed']);
    await assertHalts(deployed, 'already-released', terminal);
  }
});

test('work that was released and has not completed is listed with since when, and completed work is not', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world);
  const terminal = await commit(deployed);
  const continuation = deployed.runtime.continuation(terminal, 'reconcile');
  assert.deepEqual(await deployed.runtime.continuations(), []);
  const releasedAt = new Date(world.clock.now()).toISOString();
  const { occurrence, lineage } = terminal;
  const open = [{ occurrence, lineage, continuation: 'reconcile', task: 'invoice 1', releasedAt }];
  const failure = new Error('the printer is on fire');
  const work = async () => {
    assert.deepEqual(await deployed.runtime.continuations(), open, 'while it runs');
    throw failure;
  };
  await assert.rejects(continuation.release(work), failure);
  world.advance(60_000);
  assert.deepEqual(await deployed.runtime.continuations(), open, 'and after it was interrupted');

  await using other = await deploy(invoiceWorld());
  const done = await commit(other);
  await other.runtime.continuation(done, 'reconcile').release(() => {});
  assert.deepEqual(await other.runtime.continuations(), []);
});

test('a license names every occurrence that it buys, in the order in which they are claimed', async () => {
  await using deployed = await deploy(invoiceWorld());
  const license = await deployed.approve({ occurrences: 2 });
  const bought = lineagesOf(license);
  await assertHalts(deployed, 'no-terminal', bought[0]);
  const first = ofKind('committed', await deployed.runtime.execute(license, PAY));
  const second = ofKind('rejected', await deployed.runtime.execute(license, PAY)); // paid already: nothing changes
  assert.deepEqual(
    [first, second].map(({ occurrence, lineage }) => ({ occurrence, lineage })),
    bought,
  );
  assert.notEqual(first.occurrence, second.occurrence);
  assert.equal(
    (await deployed.runtime.continuation(bought[0], 'reconcile').release(() => {})).kind,
    'released',
  );
});

test('no-terminal: an occurrence nobody knows, and one whose attempt was interrupted', async () => {
  const world = invoiceWorld();
  const { license } = await interrupt(world, {
    kind: 'step',
    step: 'path:promoted',
    ending: 'die',
  });
  await using deployed = await deploy(world);
  const unknown = {
    occurrence: `occ_${'0'.repeat(40)}` as OccurrenceId,
    lineage: digestText('x/v1', ''),
  };
  await assertHalts(deployed, 'no-terminal', unknown);
  const [claim] = await deployed.runtime.ledgers.unsettled({ includeLeased: true });
  const { occurrence, license: lineage } = claim?.claim.record ?? assert.fail();
  assert.equal(claim?.license.nonce, license.license.nonce);
  await assertHalts(deployed, 'no-terminal', { occurrence, lineage });
});

test('rejected, diverged and indeterminate halt as what they are', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world);
  const wrong = { writes: [{ op: 'delete', target: 'invoice', key: { id: 2 } }] };
  const rejected = ofKind(
    'rejected',
    await deployed.runtime.execute(await deployed.approve(), wrong),
  );
  await assertHalts(deployed, 'rejected', rejected);
  world.arm(deployed.process, { kind: 'network', how: 'lost-request' });
  const lost = ofKind(
    'indeterminate',
    await deployed.runtime.execute(await deployed.approve({ adapter: 'bank' }), PAY),
  );
  await assertHalts(deployed, 'indeterminate', lost);
  world.arm(deployed.process, { kind: 'logic', how: 'add' });
  const diverged = ofKind(
    'diverged',
    await deployed.runtime.execute(await deployed.approve({ adapter: 'bank' }), PAY),
  );
  await assertHalts(deployed, 'diverged', diverged);
});

test('unregistered: work that the license does not name', async () => {
  await using deployed = await deploy(invoiceWorld());
  await assertHalts(deployed, 'unregistered', await commit(deployed), 'ship');
});

test('lineage: work that was registered under another license', async () => {
  await using deployed = await deploy(invoiceWorld());
  const { occurrence, lineage } = await commit(deployed);
  const flipped = `${lineage.slice(0, -1)}${lineage.endsWith('0') ? '1' : '0'}` as Digest;
  await assertHalts(deployed, 'lineage', { occurrence, lineage: flipped });
});

test('state-missing: the backend was restored to before the commit', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world);
  const terminal = await commit(deployed);
  const marker = world.books.markers.get(terminal.occurrence) ?? assert.fail();
  world.books.markers.delete(terminal.occurrence);
  await assertHalts(deployed, 'state-missing', terminal);
  const damaged = [
    { ...marker, sealMac: '0'.repeat(64) },
    { ...marker, text: marker.text.replace('"consumedAt":"2026', '"consumedAt":"2027') },
  ];
  for (const stored of damaged) {
    world.books.markers.set(terminal.occurrence, stored);
    await assertHalts(deployed, 'state-missing', terminal);
  }
  world.books.markers.set(terminal.occurrence, marker);
  assert.equal(
    (await deployed.runtime.continuation(terminal, 'reconcile').release(() => 1)).kind,
    'released',
  );
});

test('state-missing: a marker counts only if it is the marker of this very commit', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world);
  const terminal = await commit(deployed);
  const { text } = world.books.markers.get(terminal.occurrence) ?? assert.fail();
  const others = {
    occurrence: `occ_${'0'.repeat(40)}`,
    execution: `exe_${'0'.repeat(32)}`,
    observed: '0'.repeat(64),
    permit: '0'.repeat(64),
  };
  for (const [field, value] of Object.entries(others)) {
    const marker = reseal(world, { ...JSON.parse(text), [field]: value });
    world.books.markers.set(terminal.occurrence, marker);
    await assertHalts(deployed, 'state-missing', terminal);
  }
  world.books.markers.set(terminal.occurrence, reseal(world, JSON.parse(text)));
  assert.equal(
    (await deployed.runtime.continuation(terminal, 'reconcile').release(() => 1)).kind,
    'released',
  );
});

test('state-missing: the adapter is not configured where the work asks', async () => {
  const world = invoiceWorld();
  await using first = await deploy(world);
  const terminal = await commit(first);
  const { adapters, issuers } = world.start().config;
  const team = issuers['ap-team'] ?? assert.fail();
  await using without = await deploy(world, {
    adapters: { bank: adapters.bank ?? assert.fail() },
    issuers: { 'ap-team': { ...team, may: ['bank'] } },
  });
  await assertHalts(without, 'state-missing', terminal);
});

test('state-missing: a remote commit whose permit is gone, or is another one', async () => {
  const world = invoiceWorld();
  const store = temporaryLedgers(world.clock);
  await using deployed = await deploy(world, { store });
  const terminal = await commit(deployed, 'bank');
  const consumed = (await deployed.runtime.ledgers.permit(terminal.occurrence)) ?? assert.fail();
  assert.ok(consumed.kind === 'consumed');
  const record = { ...consumed.permit.record, consumedAt: '2020-01-01T00:00:00.000Z' };
  const another = { ...consumed, permit: { ...consumed.permit, record } };
  for (const permit of [undefined, { kind: 'void' as const }, another]) {
    const forgetful = {
      open: async (context: Parameters<typeof store.open>[0]) =>
        overlay(await store.open(context), { permit: async () => permit }),
    };
    await using other = await deploy(world, { store: forgetful });
    await assertHalts(other, 'state-missing', terminal);
  }
});

test('unregistered: an occurrence whose claim is not to be found has no registered work', async () => {
  const world = invoiceWorld();
  const store = temporaryLedgers(world.clock);
  await using deployed = await deploy(world, { store });
  const terminal = await commit(deployed);
  const forgetful = {
    open: async (context: Parameters<typeof store.open>[0]) =>
      overlay(await store.open(context), { holder: async () => undefined }),
  };
  await using other = await deploy(world, { store: forgetful });
  await assertHalts(other, 'unregistered', terminal);
});

test('of many workers that ask at once, one is released', async () => {
  const world = invoiceWorld();
  await using one = await deploy(world);
  await using two = await deploy(world);
  const terminal = await commit(one);
  let ran = 0;
  const results = await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      (index % 2 ? one : two).runtime.continuation(terminal, 'reconcile').release(() => {
        ran += 1;
      }),
    ),
  );
  assert.equal(ran, 1);
  assert.equal(results.filter(({ kind }) => kind === 'released').length, 1);
});

test('work that fails or dies is not run again: it was released', async () => {
  const world = invoiceWorld();
  await using first = await deploy(world);
  const terminal = await commit(first);
  const failing = first.runtime.continuation(terminal, 'reconcile').release(() => {
    throw new Error('the printer is on fire');
  });
  await assert.rejects(failing, /printer/);
  await assertHalts(first, 'already-released', terminal);
  const states = (await first.runtime.ledgers.acknowledgements(terminal.occurrence)).map(
    ({ state }) => state,
  );
  assert.deepEqual(states, ['released'], 'and the journal shows that it did not complete');
});

test('a process that dies in front of the acknowledgement leaves the work to another', async () => {
  const world = invoiceWorld();
  const first = await deploy(world);
  const terminal = await commit(first);
  world.arm(first.process, { kind: 'step', step: 'continuation:checked', ending: 'die' });
  await assert.rejects(
    first.runtime.continuation(terminal, 'reconcile').release(() => assert.fail()),
  );
  await using second = await deploy(world);
  const released = await second.runtime.continuation(terminal, 'reconcile').release(() => 'done');
  assert.deepEqual(released, { kind: 'released', value: 'done' });
});

test('whoever asks without an occurrence, a lineage or a name is told so', async () => {
  await using deployed = await deploy(invoiceWorld());
  const { occurrence, lineage } = await commit(deployed);
  const questions: readonly (readonly [unknown, unknown])[] = [
    [undefined, 'reconcile'],
    [{ lineage }, 'reconcile'],
    [{ occurrence }, 'reconcile'],
    [{ occurrence, lineage }, undefined],
  ];
  for (const [from, name] of questions) {
    const asked = async () =>
      deployed.runtime
        .continuation(from as Lineage, name as string)
        .release(() => assert.fail('the work ran'));
    await assert.rejects(asked, { code: 'ERR_EM_USAGE' });
  }
});

test('whoever asks without work is told so, and the release is still there for whoever has some', async () => {
  await using deployed = await deploy(invoiceWorld());
  const continuation = deployed.runtime.continuation(await commit(deployed), 'reconcile');
  await assert.rejects(continuation.release(undefined as unknown as () => string), {
    code: 'ERR_EM_USAGE',
  });
  assert.deepEqual(await continuation.release(() => 'done'), { kind: 'released', value: 'done' });
});
