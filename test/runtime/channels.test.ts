// Goal: an observation counts as complete only with every declared evidence channel; without one
// nothing is committed. Method: for every channel of every adapter, silence or remove it (after
// admission) and execute a license that would otherwise be committed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CHANNELS as FILES_CHANNELS } from '../../src/adapters/files/evidence.ts';
import { CHANNELS as SNAPSHOT_CHANNELS } from '../../src/adapters/snapshot/candidate.ts';
import { CHANNELS as SQLITE_CHANNELS } from '../../src/adapters/sqlite/evidence.ts';
import type { AdapterFactory, Evidence } from '../../src/contract/adapter.ts';
import type { AdapterKit } from '../../src/testing/index.ts';
import { filesKit } from '../adapters/files-kit.ts';
import { snapshotKit } from '../adapters/snapshot-kit.ts';
import { sqliteKit } from '../adapters/sqlite-kit.ts';
import {
  alterEvidence,
  MEMORY_CHANNELS,
  memoryAdapter,
  REMOTE_CHANNELS,
  remoteAdapter,
  silence,
  withoutChannel,
} from '../world/world.ts';
import { assertRejected, deploy, invoiceWorld, ofKind, PAY } from './deploy.ts';

/** The adapters with a real backend, and the channels each of them declares. */
const KITS: Readonly<
  Record<string, { readonly kit: AdapterKit; readonly channels: readonly string[] }>
> = {
  sqlite: { kit: sqliteKit, channels: SQLITE_CHANNELS },
  files: { kit: filesKit, channels: FILES_CHANNELS },
  snapshot: { kit: snapshotKit, channels: SNAPSHOT_CHANNELS },
};

async function freshSpecimen(kit: AdapterKit) {
  const specimen = await kit.fresh();
  return { ...specimen, [Symbol.asyncDispose]: async () => await specimen.close() };
}

const LOSSES = { silenced: silence, removed: withoutChannel, repeated: repeatChannel };

function repeatChannel(evidence: Evidence, channel: string): Evidence {
  return {
    ...evidence,
    channels: evidence.channels.flatMap((report) =>
      report.channel === channel ? [report, report] : [report],
    ),
  };
}

/** An observer that is honest while it is admitted and loses a channel afterwards. */
function losing<A>(factory: AdapterFactory<A>, lose: (evidence: Evidence) => Evidence) {
  const state = { admitted: false };
  const losingFactory = alterEvidence(factory, (evidence) =>
    state.admitted ? lose(evidence) : evidence,
  );
  return { state, factory: losingFactory as AdapterFactory };
}

async function executeLosing(adapter: 'books' | 'bank', lose: (evidence: Evidence) => Evidence) {
  const world = invoiceWorld();
  const { state, factory } = losing(
    (adapter === 'books'
      ? memoryAdapter(world.books)
      : remoteAdapter(world.bank)) as AdapterFactory,
    lose,
  );
  await using deployed = await deploy(world, {
    adapters: { ...world.start().config.adapters, [adapter]: factory },
  });
  state.admitted = true;
  const terminal = await deployed.runtime.execute(await deployed.approve({ adapter }), PAY);
  return { world, terminal };
}

for (const [how, lose] of Object.entries(LOSSES)) {
  for (const channel of MEMORY_CHANNELS) {
    test(`memory: ${channel} ${how} leaves the outcome INDETERMINATE, and the candidate is discarded`, async () => {
      const { world, terminal } = await executeLosing('books', (evidence) =>
        lose(evidence, channel),
      );
      const { outcome } = assertRejected(terminal, 'comparison', 'incomplete');
      assert.ok(outcome?.kind === 'INDETERMINATE');
      assert.ok(
        outcome.gaps.some((gap) => gap.includes(`"${channel}"`)),
        outcome.gaps.join('; '),
      );
      assert.equal(world.books.rows().invoice?.[0]?.status, 'pending');
      assert.equal(world.books.writer, undefined);
    });
  }

  for (const channel of REMOTE_CHANNELS) {
    test(`remote: ${channel} ${how} leaves the terminal indeterminate, because the request was sent`, async () => {
      const { world, terminal } = await executeLosing('bank', (evidence) =>
        lose(evidence, channel),
      );
      const { gap } = ofKind('indeterminate', terminal);
      assert.ok(gap.includes(`"${channel}"`), gap);
      assert.equal(world.bank.backend.rows().invoice?.[0]?.status, 'paid');
    });
  }

  for (const [name, { kit, channels }] of Object.entries(KITS)) {
    for (const channel of channels) {
      test(`${name}: ${channel} ${how} leaves the outcome INDETERMINATE, and the backend as it was`, async () => {
        await using specimen = await freshSpecimen(kit);
        const before = await specimen.readDurable();
        const { state, factory } = losing(specimen.factory, (evidence) => lose(evidence, channel));
        const world = invoiceWorld();
        await using deployed = await deploy(world, {
          adapters: { ...world.start().config.adapters, books: factory },
        });
        state.admitted = true;
        const license = await deployed.approve({ effects: specimen.effect.leaves, requires: [] });
        const terminal = await deployed.runtime.execute(license, specimen.effect.action);
        const { outcome } = assertRejected(terminal, 'comparison', 'incomplete');
        assert.equal(outcome?.kind, 'INDETERMINATE');
        assert.deepEqual(await specimen.readDurable(), before);
      });
    }
  }
}

test('with every channel the same executions are committed', async () => {
  for (const adapter of ['books', 'bank'] as const) {
    const { terminal } = await executeLosing(adapter, (evidence) => evidence);
    ofKind('committed', terminal);
  }
  for (const { kit } of Object.values(KITS)) {
    await using specimen = await freshSpecimen(kit);
    const world = invoiceWorld();
    const adapters = { ...world.start().config.adapters, books: specimen.factory };
    await using deployed = await deploy(world, { adapters });
    const license = await deployed.approve({ effects: specimen.effect.leaves, requires: [] });
    ofKind('committed', await deployed.runtime.execute(license, specimen.effect.action));
  }
});

test('an adapter that no longer declares a channel after it was admitted still owes it', async () => {
  const [channel] = MEMORY_CHANNELS;
  const world = invoiceWorld();
  const honest = memoryAdapter(world.books);
  const { state, factory } = losing(honest as AdapterFactory, (evidence) =>
    withoutChannel(evidence, channel),
  );
  const forgetful: AdapterFactory = {
    async open(context) {
      const adapter = await factory.open(context);
      const declared = adapter.channels;
      const channels = () =>
        state.admitted ? declared.filter((name) => name !== channel) : declared;
      return Object.defineProperty(adapter, 'channels', { get: channels });
    },
  };
  await using deployed = await deploy(world, {
    adapters: { ...world.start().config.adapters, books: forgetful },
  });
  state.admitted = true;
  assertRejected(
    await deployed.runtime.execute(await deployed.approve(), PAY),
    'comparison',
    'incomplete',
  );
});

const CONTRADICTIONS: Readonly<Record<string, (evidence: Evidence) => Evidence>> = {
  'the observer drops a record': (evidence) => ({
    ...evidence,
    records: [...evidence.records].slice(1),
  }),
  'the observer reports a record twice': (evidence) => ({
    ...evidence,
    records: [...evidence.records].flatMap((record) => [record, record]),
  }),
  'a record cannot be attributed': (evidence) => ({ ...evidence, unattributed: 1 }),
  'the second witness counts more': (evidence) => ({
    ...evidence,
    channels: evidence.channels.map((report) =>
      report.kind === 'counts'
        ? { ...report, counts: [...report.counts, { target: 'audit', op: 'insert', count: 1 }] }
        : report,
    ),
  }),
};

for (const [what, lose] of Object.entries(CONTRADICTIONS)) {
  test(`witnesses disagree when ${what}, so nothing is established`, async () => {
    const held = await executeLosing('books', lose);
    assertRejected(held.terminal, 'comparison', 'incomplete');
    assert.equal(held.world.books.rows().invoice?.[0]?.status, 'pending');
    ofKind('indeterminate', (await executeLosing('bank', lose)).terminal);
  });
}

test('a schema that changes, or a target that is touched without a record, leaves the outcome INDETERMINATE', async () => {
  const touched = await executeLosing('books', (evidence) => ({
    ...evidence,
    channels: evidence.channels.map((report) =>
      report.kind === 'touched'
        ? { ...report, targets: [...report.targets, 'unregistered'] }
        : report,
    ),
  }));
  assertRejected(touched.terminal, 'comparison', 'incomplete');
  const world = invoiceWorld();
  await using deployed = await deploy(world, {
    at: { 'path:staged': () => world.disturb('schema') },
  });
  const terminal = await deployed.runtime.execute(await deployed.approve(), PAY);
  assertRejected(terminal, 'comparison', 'incomplete');
});
