// Goal: an execution whose claim a crash of the ledger's server took says what is so, and what must
// outlive a crash is flushed. Method: a ledger that notes how verdicts are recorded, and has lost
// the claim if told so; promotions that were never answered.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type {
  AdapterFactory,
  CommitLog,
  PromotableAdapter,
  VoidResult,
} from '../../src/contract/adapter.ts';
import type { Ledgers, LedgersFactory } from '../../src/contract/ledgers.ts';
import { EffectMatchError } from '../../src/errors.ts';
import type { Terminal } from '../../src/protocol/terminal.ts';
import { temporaryLedgers } from '../ledger/temporary.ts';
import {
  memoryAdapter,
  overlay,
  overlayAdapter,
  overlayStages,
  type World,
} from '../world/world.ts';
import { assertRejected, deploy, invoiceWorld, ofKind, onlyOne, PAY } from './deploy.ts';

interface Recorded {
  readonly kind: Terminal['kind'];
  readonly hasClaim: boolean;
  readonly durability: string;
  readonly log: CommitLog | undefined;
}

/** A ledger that notes what is recorded; `isLost` makes it answer as one without the claim. */
function notingLedgers(world: World, isLost: () => boolean = () => false) {
  const recorded: Recorded[] = [];
  const logs: (CommitLog | undefined)[] = [];
  const factory = temporaryLedgers(world.clock);
  const change = (ledgers: Ledgers): Ledgers =>
    overlay(ledgers, {
      claim(request) {
        logs.push(request.log);
        return ledgers.claim(request);
      },
      async record(terminal, durability, log) {
        const { kind, claim } = terminal.record;
        if (claim !== undefined && isLost())
          throw new EffectMatchError('ERR_EM_CLAIM_LOST', 'lost');
        recorded.push({ kind, hasClaim: claim !== undefined, durability, log });
        return await ledgers.record(terminal, durability, log);
      },
    });
  const store: LedgersFactory = { open: async (context) => change(await factory.open(context)) };
  return { store, recorded, logs };
}

/** An adapter with a log, whose promotions and void markers go as told. */
function books(
  world: World,
  log: CommitLog,
  changes: { readonly promotes?: boolean; readonly voids?: () => boolean } = {},
) {
  const { promotes = true, voids = () => true } = changes;
  const factory = overlayAdapter(memoryAdapter(world.books) as AdapterFactory, (opened) => {
    const adapter = opened as PromotableAdapter;
    const isProbe = (text: string) => /"0{64}"/.test(text);
    const staging = overlayStages(adapter, (stage) => ({
      promote: async (permit) =>
        promotes || isProbe(permit.marker.text)
          ? await stage.promote(permit)
          : { kind: 'unknown', cause: new Error('connection reset') },
    }));
    const markers = overlay(adapter.markers, {
      async void(marker): Promise<VoidResult> {
        if (voids()) return await adapter.markers.void(marker);
        throw new Error('connection refused');
      },
    });
    return { ...staging, markers, commitLog: () => log };
  });
  return { ...world.start().config.adapters, books: factory };
}

const LOG: CommitLog = { name: 'log', note: () => {} };
const SURPRISE = {
  writes: [{ op: 'update', target: 'invoice', key: { id: 2 }, set: { status: 'paid' } }],
};

test('a commit need not be flushed; refusals, divergences and what recovery finds are', async () => {
  const world = invoiceWorld();
  const { store, recorded, logs } = notingLedgers(world);
  const adapters = books(world, LOG);
  await using deployed = await deploy(world, { store, adapters });
  const { runtime, approve } = deployed;
  const refused = await approve();
  ofKind('rejected', await runtime.execute(await approve(), SURPRISE));
  const license = await approve();
  ofKind('committed', await runtime.execute(license, PAY));
  ofKind('rejected', await runtime.execute(license, PAY));
  ofKind('rejected', await runtime.execute(refused, PAY));
  const [surprise, commit, ...refusals] = recorded;
  assert.deepEqual(surprise, {
    kind: 'rejected',
    hasClaim: true,
    durability: 'flushed',
    log: undefined,
  });
  assert.deepEqual(commit, { kind: 'committed', hasClaim: true, durability: 'relaxed', log: LOG });
  assert.deepEqual(
    refusals.map(({ durability }) => durability),
    ['flushed', 'flushed'],
  );
  assert.ok(logs.length >= 2 && logs.every((log) => log === LOG), 'a claim names the log');
});

test('what recovery finds is flushed', async () => {
  const world = invoiceWorld();
  const { store, recorded } = notingLedgers(world);
  let isDown = false;
  const adapters = books(world, LOG, { promotes: false, voids: () => !isDown });
  await using deployed = await deploy(world, { store, adapters });
  const license = await deployed.approve();
  isDown = true;
  ofKind('indeterminate', await deployed.runtime.execute(license, PAY));
  isDown = false;
  assert.equal(onlyOne(await deployed.runtime.recover({ now: true })).kind, 'settled');
  assert.deepEqual(
    recorded.map(({ kind, durability }) => `${kind} ${durability}`),
    ['indeterminate flushed', 'rejected flushed'],
  );
});

test('a rejection whose claim was lost is recorded without it, and says so', async () => {
  const world = invoiceWorld();
  const { store, recorded } = notingLedgers(world, () => true);
  const adapters = books(world, LOG, { promotes: false });
  await using deployed = await deploy(world, { store, adapters });
  const terminal = await deployed.runtime.execute(await deployed.approve(), PAY);
  const { claim, certificate, detail } = assertRejected(terminal, 'promotion', 'commit-failed');
  assert.deepEqual([claim, certificate], [undefined, undefined]);
  assert.match(detail, /^the ledger's server lost the claim in a crash: nothing became durable/);
  assert.equal(world.books.markers.get(terminal.occurrence)?.disposition, 'void');
  assert.deepEqual(
    recorded.map(({ hasClaim }) => hasClaim),
    [false],
  );
});

test('an unknown end whose claim was lost is settled once the backend is back, and otherwise thrown', async () => {
  for (const isBack of [true, false]) {
    const world = invoiceWorld();
    let isDown = false;
    // The ledger answers once its server is back.
    const { store } = notingLedgers(world, () => {
      isDown = !isBack;
      return true;
    });
    const adapters = books(world, LOG, { promotes: false, voids: () => !isDown });
    await using deployed = await deploy(world, { store, adapters });
    const license = await deployed.approve();
    isDown = true;
    const running = deployed.runtime.execute(license, PAY);
    if (isBack) {
      const { claim } = assertRejected(await running, 'promotion', 'claim-lost');
      assert.equal(claim, undefined);
    } else await assert.rejects(running, { code: 'ERR_EM_CLAIM_LOST' });
    assert.equal(world.books.rows().invoice?.[0]?.status, 'pending');
  }
});

test('a commit whose claim was lost is never recorded as anything else', async () => {
  const world = invoiceWorld();
  const { store, recorded } = notingLedgers(world, () => true);
  await using deployed = await deploy(world, { store, adapters: books(world, LOG) });
  const running = deployed.runtime.execute(await deployed.approve(), PAY);
  await assert.rejects(running, { code: 'ERR_EM_CLAIM_LOST' });
  assert.deepEqual(recorded, []);
});
