// Goal: recovery decides what can be decided, leaves what is alive, and never says more than the
// marker or permit does. Method: one process is interrupted at a step; a second one recovers under
// each circumstance there is.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AdapterFactory } from '../../src/contract/adapter.ts';
import type { JournalEntry } from '../../src/contract/ledgers.ts';
import type { MarkerText } from '../../src/contract/proof.ts';
import type { Step } from '../../src/contract/steps.ts';
import { digestRecord } from '../../src/crypto/digest.ts';
import { licenseRecord } from '../../src/protocol/license.ts';
import type { OccurrenceId } from '../../src/protocol/record.ts';
import type { Recovered } from '../../src/runtime/recover.ts';
import { temporaryLedgers } from '../ledger/temporary.ts';
import {
  alterEvidence,
  memoryAdapter,
  overlay,
  overlayAdapter,
  remoteAdapter,
  type World,
} from '../world/world.ts';
import {
  assertRejected,
  claimedOccurrence,
  type Deployed,
  type DeployOptions,
  deploy,
  interrupt,
  invoiceWorld,
  LEASE_MS,
  ofKind,
  once,
  onlyOne,
  PAY,
  reseal,
} from './deploy.ts';

const diesAt = (step: Step) => ({ kind: 'step', step, ending: 'die' }) as const;

/** A fresh process, after the lease of the interrupted one has run out. */
async function succeed(world: World, options: DeployOptions = {}): Promise<Deployed> {
  world.advance(LEASE_MS);
  return deploy(world, options);
}

const BEFORE_COMMIT: readonly Step[] = [
  'path:claimed',
  'path:certified',
  'adapter:stage-opened',
  'adapter:action-done',
  'path:staged',
  'path:observed',
  'path:permit-bound',
  'path:gate-passed',
  'adapter:marker-written',
];

for (const step of BEFORE_COMMIT) {
  test(`a process that dies at ${step} left nothing: the void marker is inserted and says so`, async () => {
    const world = invoiceWorld();
    const before = world.books.rows();
    await interrupt(world, diesAt(step));
    await using fresh = await succeed(world);
    const recovered = onlyOne(await fresh.runtime.recover());
    assert.ok(recovered.kind === 'settled');
    const terminal = assertRejected(recovered.terminal, 'recovery', 'interrupted');
    assert.equal(world.books.markers.get(terminal.occurrence)?.disposition, 'void');
    assert.deepEqual(world.books.rows(), before);
    assert.deepEqual(await fresh.runtime.recover(), []);
  });
}

for (const step of ['adapter:commit-returned', 'path:promoted'] as const) {
  test(`a process that dies at ${step} had committed: the verdict is rebuilt from the marker`, async () => {
    const world = invoiceWorld();
    const { license } = await interrupt(world, diesAt(step));
    await using fresh = await succeed(world);
    const recovered = onlyOne(await fresh.runtime.recover());
    assert.ok(recovered.kind === 'settled');
    const terminal = ofKind('committed', recovered.terminal);
    assert.equal(terminal.reconciled, true);
    assert.equal(terminal.approved, license.license.approved);
    assert.equal(world.books.rows().invoice?.[0]?.status, 'paid');
    const released = await fresh.runtime.continuation(terminal, 'reconcile').release(() => 1);
    assert.deepEqual(released, { kind: 'released', value: 1 });
  });
}

test('recovery that died after its void marker is finished by the next one', async () => {
  for (const step of [
    'adapter:void-written',
    'adapter:void-committed',
    'recovery:settled',
  ] as const) {
    const world = invoiceWorld();
    await interrupt(world, diesAt('path:staged'));
    const second = await succeed(world);
    world.arm(second.process, diesAt(step));
    await second.runtime.recover().catch(() => {});
    assert.ok(second.process.struck);
    await using third = await deploy(world);
    const recovered = onlyOne(await third.runtime.recover());
    assert.ok(recovered.kind === 'settled');
    assertRejected(recovered.terminal, 'recovery', 'interrupted');
    assert.equal((await third.runtime.ledgers.attempts(recovered.occurrence)).length, 1);
  }
});

test('recovery runs when a runtime starts, unless told otherwise', async () => {
  const world = invoiceWorld();
  await interrupt(world, diesAt('path:promoted'));
  await using fresh = await succeed(world, { recoverAtStart: true });
  const occurrence = await claimedOccurrence(fresh.runtime);
  ofKind('committed', await fresh.runtime.terminal(occurrence));
});

test('an attempt with a live lease is left alone, and taken with `now`', async () => {
  const world = invoiceWorld();
  await interrupt(world, diesAt('path:staged'));
  await using fresh = await deploy(world);
  world.advance(LEASE_MS - 1);
  assert.equal(onlyOne(await fresh.runtime.recover()).kind, 'running');
  assert.equal(world.books.markers.size, 0);
  assert.equal(await fresh.runtime.terminal(await claimedOccurrence(fresh.runtime)), undefined);
  assert.equal(onlyOne(await fresh.runtime.recover({ now: true })).kind, 'settled');
});

test('a live attempt that recovery took with `now` loses, and both tell the same', async () => {
  let meanwhile = async (_call: string): Promise<void> => {};
  const world = invoiceWorld({ pause: (call) => meanwhile(call) });
  await using live = await deploy(world);
  await using other = await deploy(world);
  const license = await live.approve();
  meanwhile = once('adapter.stage', async () => {
    assert.equal(onlyOne(await other.runtime.recover({ now: true })).kind, 'settled');
  });
  const terminal = await live.runtime.execute(license, PAY);
  assertRejected(terminal, 'recovery', 'interrupted');
  assert.equal(world.books.rows().invoice?.[0]?.status, 'pending');
  assert.deepEqual(await live.runtime.ledgers.attempts(terminal.occurrence), [terminal]);
});

test('a backend that something holds is reported as running', async () => {
  const world = invoiceWorld();
  await interrupt(world, diesAt('path:staged'));
  await using fresh = await succeed(world);
  const other = world.books.open();
  assert.equal(onlyOne(await fresh.runtime.recover()).kind, 'running');
  if (other) world.books.drop(other);
  assert.equal(onlyOne(await fresh.runtime.recover()).kind, 'settled');
});

test('without the adapter, or with another backend under its name, nothing is decided', async () => {
  const world = invoiceWorld();
  await interrupt(world, diesAt('path:promoted'));
  const { adapters, issuers } = world.start().config;
  const team = issuers['ap-team'] ?? assert.fail();
  const without = {
    adapters: { bank: adapters.bank ?? assert.fail() },
    issuers: { 'ap-team': { ...team, may: ['bank'] } },
  };
  await using missing = await succeed(world, without);
  const first = onlyOne(await missing.runtime.recover());
  assert.ok(first.kind === 'unresolved');
  assert.match(first.why, /not configured/);

  const elsewhere = overlayAdapter(
    memoryAdapter(world.books) as AdapterFactory,
    ({ identity }) => ({
      identity: { ...identity, backend: 'books-2' },
    }),
  );
  await using replaced = await deploy(world, { adapters: { ...adapters, books: elsewhere } });
  const second = onlyOne(await replaced.runtime.recover());
  assert.ok(second.kind === 'unresolved');
  assert.match(second.why, /another backend/);
  await using right = await deploy(world);
  ofKind('committed', await settledTerminal(right));
});

test('with another service under its name, what was never sent is settled, and what may have been sent is not', async () => {
  for (const [step, kind] of [
    ['path:request-built', 'settled'],
    ['path:permit-consumed', 'unresolved'],
  ] as const) {
    const world = invoiceWorld();
    await interrupt(world, diesAt(step), { adapter: 'bank' });
    const { adapters } = world.start().config;
    const bank = overlayAdapter(remoteAdapter(world.bank) as AdapterFactory, ({ identity }) => ({
      identity: { ...identity, backend: 'bank-2' },
    }));
    await using replaced = await succeed(world, { adapters: { ...adapters, bank } });
    const found = onlyOne(await replaced.runtime.recover());
    assert.equal(found.kind, kind, JSON.stringify(found));
    if (found.kind === 'settled') assertRejected(found.terminal, 'recovery', 'interrupted');
    else assert.match(JSON.stringify(found), /another backend/);
  }
});

test('a marker of another execution means that this attempt left nothing', async () => {
  const world = invoiceWorld();
  // Two machines with stores of their own, one backend and one license: the occurrence has one id.
  const here = await deploy(world, { store: temporaryLedgers(world.clock) });
  const there = temporaryLedgers(world.clock);
  await using other = await deploy(world, { store: there });
  const license = await other.approve();
  const dying = await deploy(world, { store: there });
  world.arm(dying.process, diesAt('path:claimed'));
  await assert.rejects(dying.runtime.execute(license, PAY));
  const committed = ofKind('committed', await here.runtime.execute(license, PAY));
  world.advance(LEASE_MS);
  const terminal = assertRejected(await settledTerminal(other), 'recovery', 'decided-elsewhere');
  assert.equal(terminal.occurrence, committed.occurrence);
  assert.notEqual(terminal.execution, committed.execution);
  const halted = await other.runtime
    .continuation(terminal, 'reconcile')
    .release(() => assert.fail());
  assert.deepEqual(halted, { kind: 'halted', why: 'rejected' });
});

test('two machines with stores of their own commit an occurrence once', async () => {
  const world = invoiceWorld();
  await using here = await deploy(world, { store: temporaryLedgers(world.clock) });
  await using there = await deploy(world, { store: temporaryLedgers(world.clock) });
  const license = await here.approve();
  ofKind('committed', await here.runtime.execute(license, PAY));
  // Somebody takes the payment back by hand, so that only the marker stands in the way of a second
  // one.
  world.books.write({
    op: 'update',
    target: 'invoice',
    key: { id: 1 },
    set: { status: 'pending' },
  });
  const second = await there.runtime.execute(license, PAY);
  assertRejected(second, 'promotion', 'marker-exists');
  assert.equal(world.books.markers.size, 1);
  assert.equal(world.books.rows().invoice?.[0]?.status, 'pending');
});

type Spoil = (marker: MarkerText, world: World) => MarkerText;
const FOREIGN: Readonly<Record<string, readonly [why: RegExp, spoil: Spoil]>> = {
  'its seal is broken': [/does not verify/, (marker) => ({ ...marker, sealMac: '0'.repeat(64) })],
  'its key is unknown': [/does not verify/, (marker) => ({ ...marker, sealKey: 'nobody' })],
  'its text was changed': [
    /does not verify/,
    (marker) => ({
      ...marker,
      text: marker.text.replace(/"consumedAt":"2026/, '"consumedAt":"2027'),
    }),
  ],
  'its digests disagree with the claim': [
    /digests disagree/,
    (marker, world) => reseal(world, { ...JSON.parse(marker.text), claim: '0'.repeat(64) }),
  ],
  'it is for another outcome': [
    /digests disagree/,
    (marker, world) => reseal(world, { ...JSON.parse(marker.text), approved: '0'.repeat(64) }),
  ],
  'it names another occurrence': [
    /another occurrence/,
    (marker, world) =>
      reseal(world, { ...JSON.parse(marker.text), occurrence: `occ_${'0'.repeat(40)}` }),
  ],
};

for (const [what, [why, spoil]] of Object.entries(FOREIGN)) {
  test(`a marker is never believed when ${what}`, async () => {
    const world = invoiceWorld();
    await interrupt(world, diesAt('path:promoted'));
    await using fresh = await succeed(world);
    const occurrence = await claimedOccurrence(fresh.runtime);
    const marker = world.books.markers.get(occurrence) ?? assert.fail();
    world.books.markers.set(occurrence, spoil(marker, world));
    const recovered = onlyOne(await fresh.runtime.recover());
    assert.ok(recovered.kind === 'unresolved');
    assert.match(recovered.why, why);
    assert.match(ofKind('indeterminate', await fresh.runtime.terminal(occurrence)).gap, why);
    world.books.markers.set(occurrence, marker);
    ofKind('committed', await settledTerminal(fresh));
  });
}

for (const step of ['path:claimed', 'path:certified', 'path:request-built'] as const) {
  test(`remote: a process that dies at ${step} had sent nothing, and its permit is voided`, async () => {
    const world = invoiceWorld();
    const before = world.bank.backend.rows();
    await interrupt(world, diesAt(step), { adapter: 'bank' });
    await using fresh = await succeed(world);
    const terminal = assertRejected(await settledTerminal(fresh), 'recovery', 'interrupted');
    assert.deepEqual(await fresh.runtime.ledgers.permit(terminal.occurrence), { kind: 'void' });
    assert.deepEqual(world.bank.backend.rows(), before);
  });
}

for (const step of ['path:dispatched', 'path:read-back'] as const) {
  test(`remote: a process that dies at ${step} is settled by a read-back that finds the request`, async () => {
    const world = invoiceWorld();
    await interrupt(world, diesAt(step), { adapter: 'bank' });
    await using fresh = await succeed(world);
    const terminal = ofKind('committed', await settledTerminal(fresh));
    assert.equal(terminal.reconciled, true);
    assert.equal(world.bank.backend.rows().invoice?.[0]?.status, 'paid');
    const released = await fresh.runtime.continuation(terminal, 'reconcile').release(() => 1);
    assert.equal(released.kind, 'released');
  });
}

test('remote: a permit consumed by a process that died in front of the dispatch stays indeterminate', async () => {
  const world = invoiceWorld();
  await interrupt(world, diesAt('path:permit-consumed'), { adapter: 'bank' });
  await using fresh = await succeed(world);
  const first = onlyOne(await fresh.runtime.recover());
  assert.equal(first.kind, 'unresolved');
  ofKind('indeterminate', await fresh.runtime.terminal(first.occurrence));
  const second = onlyOne(await fresh.runtime.recover());
  assert.equal(second.kind, 'unresolved', 'not found proves nothing, however often one asks');
  assert.equal((await fresh.runtime.ledgers.attempts(first.occurrence)).length, 1);
});

test('remote: a request that arrives late is found by a later recovery, right or wrong', async () => {
  for (const [logic, kind] of [
    ['none', 'committed'],
    ['add', 'diverged'],
  ] as const) {
    const world = invoiceWorld();
    await interrupt(world, { kind: 'network', how: 'in-flight' }, { adapter: 'bank' });
    if (logic === 'add') {
      world.bank.backend.logic = (write) => [
        write,
        { op: 'insert', target: 'audit', row: { id: 'a', text: 'late' } },
      ];
    }
    await using fresh = await succeed(world);
    assert.equal(onlyOne(await fresh.runtime.recover()).kind, 'unresolved');
    world.bank.deliver();
    const terminal = ofKind(kind, await settledTerminal(fresh));
    assert.deepEqual(await fresh.runtime.terminal(terminal.occurrence), terminal);
    assert.equal((await fresh.runtime.ledgers.attempts(terminal.occurrence)).length, 2);
  }
});

test('remote: an outcome that was stored as digests cannot be compared again', async () => {
  const world = invoiceWorld({ values: 'digest' });
  await interrupt(world, diesAt('path:dispatched'), { adapter: 'bank' });
  await using fresh = await succeed(world);
  const recovered = onlyOne(await fresh.runtime.recover());
  assert.ok(recovered.kind === 'unresolved');
  assert.match(recovered.why, /digests only/);
});

test('remote: a permit for another outcome than the license is not compared with either', async () => {
  const world = invoiceWorld();
  await interrupt(world, diesAt('path:dispatched'), { adapter: 'bank' });
  const { store } = world.start().config;
  const another = {
    async open(context: Parameters<typeof store.open>[0]) {
      const ledgers = await store.open(context);
      return overlay(ledgers, {
        async unsettled(options) {
          const entries = await ledgers.unsettled(options);
          return entries.map((entry) => ({
            ...entry,
            license: { ...entry.license, approved: entry.license.policy },
          }));
        },
      });
    },
  };
  await using fresh = await succeed(world, { store: another });
  const recovered = onlyOne(await fresh.runtime.recover());
  assert.ok(recovered.kind === 'unresolved');
  assert.match(recovered.why, /resolve it with evidence/);
});

test('remote: what was approved for other registered targets is not compared by who does not see them', async () => {
  const world = invoiceWorld();
  // The service wrote more than was approved, in a target that whoever recovers has not registered.
  world.bank.backend.logic = (write) => [
    write,
    { op: 'insert', target: 'audit', row: { id: 'a', text: 'extra' } },
  ];
  await interrupt(world, diesAt('path:dispatched'), { adapter: 'bank' });
  const { adapters } = world.start().config;
  const blind = alterEvidence(
    overlayAdapter(remoteAdapter(world.bank) as AdapterFactory, ({ registration }) => ({
      registration: {
        ...registration,
        targets: registration.targets.filter(({ name }) => name !== 'audit'),
      },
    })),
    (evidence) => {
      const records = [...evidence.records].filter(({ target }) => target !== 'audit');
      const channels = evidence.channels.map((report) => {
        if (report.kind === 'records') return { ...report, count: records.length };
        if (report.kind !== 'counts') return report;
        return { ...report, counts: report.counts.filter(({ target }) => target !== 'audit') };
      });
      return { ...evidence, records, channels };
    },
  );
  await using narrow = await succeed(world, { adapters: { ...adapters, bank: blind } });
  const recovered = onlyOne(await narrow.runtime.recover());
  assert.ok(recovered.kind === 'unresolved', JSON.stringify(recovered));
  assert.match(recovered.why, /other registered targets/);
  assert.equal(await narrow.runtime.terminal(recovered.occurrence), undefined);
  await using right = await deploy(world);
  ofKind('diverged', await settledTerminal(right));
});

test('recovery of one license leaves every other attempt as it is', async () => {
  const world = invoiceWorld();
  await interrupt(world, diesAt('path:staged'));
  const { license } = await interrupt(world, diesAt('path:staged'), { task: 'another' });
  await using fresh = await succeed(world);
  const recovered = onlyOne(
    await fresh.runtime.recover({ license: digestRecord(licenseRecord, license.license) }),
  );
  assert.deepEqual([recovered.kind, recovered.task], ['settled', 'another']);
  assert.equal(world.books.markers.size, 1);
  const rest = onlyOne(await fresh.runtime.recover());
  assert.deepEqual([rest.kind, rest.task], ['settled', 'invoice 1']);
});

test('a fault in one recovery does not keep the others from being settled', async () => {
  const world = invoiceWorld();
  const first = await interrupt(world, diesAt('path:staged'));
  await interrupt(world, diesAt('path:staged'), { task: 'another' });
  await using fresh = await succeed(world);
  world.arm(fresh.process, {
    kind: 'call',
    call: 'markers.void',
    when: 'before',
    ending: 'throw',
    nth: 1,
  });
  const [one, two] = await fresh.runtime.recover();
  assert.equal(one?.task, first.license.license.task);
  assert.deepEqual([one?.kind, two?.kind], ['unresolved', 'settled']);
  assert.equal(onlyOne(await fresh.runtime.recover()).kind, 'settled');
});

test('remote: whoever could not establish the outcome takes the verdict of who could', async () => {
  const lost = {
    kind: 'call',
    call: 'adapter.readBack',
    when: 'before',
    ending: 'throw',
    nth: 1,
  } as const;
  for (const loser of ['the attempt', 'recovery']) {
    let meanwhile = async (_call: string): Promise<void> => {};
    const world = invoiceWorld({ pause: (call) => meanwhile(call) });
    await using live = await deploy(world);
    await using other = await deploy(world);
    const license = await live.approve({ adapter: 'bank' });
    if (loser === 'the attempt') {
      // Its read-back is lost; before it can say so, recovery has found the request.
      world.arm(live.process, lost);
      meanwhile = once('ledgers.record', async () => {
        assert.equal(onlyOne(await other.runtime.recover({ now: true })).kind, 'settled');
      });
      const terminal = ofKind('committed', await live.runtime.execute(license, PAY));
      assert.equal(terminal.reconciled, true);
    } else {
      // Recovery asks too early and says so too late: the request has left and been found
      // meanwhile.
      let execution: Promise<unknown> = Promise.resolve();
      let proceed = (): void => {};
      const held = new Promise<void>((resolve) => {
        proceed = resolve;
      });
      meanwhile = once('adapter.dispatch', () => held);
      execution = live.runtime.execute(license, PAY);
      while (!live.process.trace.includes('path:permit-consumed')) await new Promise(setImmediate);
      meanwhile = once('ledgers.record', async () => {
        proceed();
        await execution;
      });
      const recovered = onlyOne(await other.runtime.recover({ now: true }));
      assert.ok(recovered.kind === 'settled', JSON.stringify(recovered));
      assert.equal(ofKind('committed', recovered.terminal).reconciled, false);
    }
    const { occurrence } = onlyTerminal(await live.runtime.ledgers.journal());
    assert.equal((await live.runtime.ledgers.attempts(occurrence)).length, 1);
    assert.deepEqual(await other.runtime.recover({ now: true }), []);
  }
});

test('two verdicts that contradict each other are a fault: the first one stands', async () => {
  const lies = { kind: 'evidence', how: 'alter' } as const;
  for (const liar of ['the attempt', 'recovery']) {
    let meanwhile = async (_call: string): Promise<void> => {};
    const world = invoiceWorld({ pause: (call) => meanwhile(call) });
    await using live = await deploy(world);
    await using other = await deploy(world);
    const license = await live.approve({ adapter: 'bank' });
    if (liar === 'the attempt') {
      world.arm(live.process, lies);
      meanwhile = once('ledgers.record', async () => {
        assert.equal(onlyOne(await other.runtime.recover({ now: true })).kind, 'settled');
      });
      await assert.rejects(live.runtime.execute(license, PAY), {
        code: 'ERR_EM_TERMINAL_CONFLICT',
      });
    } else {
      world.arm(other.process, lies);
      // The attempt is about to record what it knows; recovery waits with what it believes until it
      // has.
      let late: Promise<readonly Recovered[]> = Promise.resolve([]);
      meanwhile = once('ledgers.record', async () => {
        late = other.runtime.recover({ now: true });
        meanwhile = once('ledgers.record', async () => {
          await execution;
        });
      });
      const execution = live.runtime.execute(license, PAY);
      await execution;
      const recovered = onlyOne(await late);
      assert.ok(recovered.kind === 'unresolved', JSON.stringify(recovered));
      assert.match(recovered.why, /does not agree/);
    }
    const { occurrence } = onlyTerminal(await live.runtime.ledgers.journal());
    ofKind('committed', await live.runtime.terminal(occurrence));
  }
});

function onlyTerminal(journal: readonly JournalEntry[]) {
  const terminals = journal.filter((entry) => entry.kind === 'terminal');
  assert.equal(terminals.length, 1);
  return (terminals[0] ?? assert.fail()).record;
}

async function settledTerminal(deployed: Deployed) {
  const recovered = onlyOne(await deployed.runtime.recover());
  assert.ok(recovered.kind === 'settled', JSON.stringify(recovered));
  const occurrence: OccurrenceId = recovered.occurrence;
  assert.deepEqual(await deployed.runtime.terminal(occurrence), recovered.terminal);
  return recovered.terminal;
}

test('a recovery that cannot know takes the verdict that another one has recorded meanwhile', async () => {
  let right: Deployed | undefined;
  const world = invoiceWorld({
    pause: once('ledgers.record', async () => void (await right?.runtime.recover())),
  });
  await interrupt(world, diesAt('path:promoted'));
  const { adapters } = world.start().config;
  const books = overlayAdapter(memoryAdapter(world.books) as AdapterFactory, ({ identity }) => ({
    identity: { ...identity, backend: 'books-2' },
  }));
  await using replaced = await succeed(world, { adapters: { ...adapters, books } });
  right = await deploy(world);
  ofKind('committed', await settledTerminal(replaced));
  await right.runtime.close();
});
