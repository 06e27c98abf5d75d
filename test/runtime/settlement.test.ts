// Goal: a commit whose reply was lost is decided by the marker, and where even that is out of
// reach, never guessed. Method: promotions that answer `unknown` or throw, having committed or not,
// with the void marker possible or not.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type {
  AdapterFactory,
  PromotableAdapter,
  Promotion,
  Stage,
  VoidResult,
} from '../../src/contract/adapter.ts';
import type { LedgersFactory } from '../../src/contract/ledgers.ts';
import type { ConsumedPermit } from '../../src/contract/proof.ts';
import { verifyReceipt } from '../../src/crypto/receipt.ts';
import { EffectMatchError } from '../../src/errors.ts';
import type { Deployment } from '../../src/runtime/deployment.ts';
import { openMarker } from '../../src/runtime/settle.ts';
import { temporaryLedgers } from '../ledger/temporary.ts';
import {
  memoryAdapter,
  overlay,
  overlayAdapter,
  overlayStages,
  type World,
} from '../world/world.ts';
import { assertRejected, deploy, invoiceWorld, ofKind, onlyOne, PAY, reseal } from './deploy.ts';

type Promote = (stage: Stage, permit: ConsumedPermit) => Promise<Promotion>;

const UNKNOWN: Readonly<
  Record<string, { readonly committed: boolean; readonly promote: Promote }>
> = {
  'the reply to a commit was lost': {
    committed: true,
    async promote(stage, permit) {
      await stage.promote(permit);
      return { kind: 'unknown', cause: new Error('connection reset') };
    },
  },
  'an exception came after the commit': {
    committed: true,
    async promote(stage, permit) {
      await stage.promote(permit);
      throw new Error('connection reset');
    },
  },
  'the commit was never issued': {
    committed: false,
    promote: async () => ({ kind: 'unknown', cause: new Error('connection reset') }),
  },
  'an exception came before the commit': {
    committed: false,
    promote: async () => {
      throw new Error('connection reset');
    },
  },
};

/** An adapter with this promotion and, if given, this answer to a void marker. */
function booksWith(world: World, promote: Promote, answer?: () => Promise<VoidResult>) {
  const adapters = { ...world.start().config.adapters };
  return {
    adapters: {
      ...adapters,
      books: overlayAdapter(memoryAdapter(world.books) as AdapterFactory, (opened) => {
        const adapter = opened as PromotableAdapter;
        // Admission promotes over a void marker, which must be refused as ever.
        const staging = overlayStages(adapter, (stage) => ({
          promote: (permit) =>
            /"0{64}"/.test(permit.marker.text) ? stage.promote(permit) : promote(stage, permit),
        }));
        let admitted = 0;
        const markers = overlay(adapter.markers, {
          void(marker) {
            admitted += 1;
            return admitted > 1 && answer ? answer() : adapter.markers.void(marker);
          },
        });
        return { ...staging, markers };
      }),
    },
  };
}

for (const [what, { committed, promote }] of Object.entries(UNKNOWN)) {
  test(`${what}: the void marker finds out at once`, async () => {
    const world = invoiceWorld();
    await using deployed = await deploy(world, booksWith(world, promote));
    const terminal = await deployed.runtime.execute(await deployed.approve(), PAY);
    const marker = world.books.markers.get(terminal.occurrence);
    if (committed) {
      assert.equal(ofKind('committed', terminal).reconciled, true);
      assert.equal(marker?.disposition, 'committed');
    } else {
      const { outcome } = assertRejected(terminal, 'promotion', 'commit-failed');
      assert.equal(outcome?.kind, 'EXACT');
      assert.equal(marker?.disposition, 'void', 'and the attempt can never commit any more');
    }
    assert.equal(world.books.rows().invoice?.[0]?.status, committed ? 'paid' : 'pending');
    assert.deepEqual(await deployed.runtime.recover({ now: true }), []);
  });

  const unreachable: Readonly<Record<string, () => Promise<VoidResult>>> = {
    'the backend is out of reach': () => Promise.reject(new Error('connection refused')),
    'something holds the backend': async () => ({ kind: 'busy', why: 'a lock' }),
  };
  for (const [why, answer] of Object.entries(unreachable)) {
    test(`${what}, and ${why}: indeterminate, until recovery settles it`, async () => {
      const world = invoiceWorld();
      await using deployed = await deploy(world, booksWith(world, promote, answer));
      const terminal = ofKind(
        'indeterminate',
        await deployed.runtime.execute(await deployed.approve(), PAY),
      );
      assert.match(terminal.gap, /connection reset/);
      const halted = await deployed.runtime
        .continuation(terminal, 'reconcile')
        .release(() => assert.fail());
      assert.deepEqual(halted, { kind: 'halted', why: 'indeterminate' });

      const receipted = async () => {
        const { runtime } = deployed;
        const verified = verifyReceipt(
          runtime.receiptKeys,
          await runtime.receipt(terminal.occurrence),
        );
        return verified.kind === 'receipt'
          ? verified.receipt.terminal
          : assert.fail('not a receipt');
      };
      assert.deepEqual(await receipted(), terminal);

      await using fresh = await deploy(world);
      const settled = onlyOne(await fresh.runtime.recover({ now: true }));
      assert.ok(settled.kind === 'settled');
      assert.deepEqual(await receipted(), settled.terminal, 'the settlement is what counts');
      if (committed) {
        const { permit, consumedAt, reconciled } = ofKind('committed', settled.terminal);
        assert.deepEqual(
          { permit, consumedAt, reconciled },
          { ...pick(terminal), reconciled: true },
        );
      } else {
        assertRejected(settled.terminal, 'recovery', 'interrupted');
      }
      assert.equal(world.books.rows().invoice?.[0]?.status, committed ? 'paid' : 'pending');
      assert.deepEqual(await fresh.runtime.terminal(terminal.occurrence), settled.terminal);
      assert.deepEqual(await fresh.runtime.ledgers.attempts(terminal.occurrence), [
        terminal,
        settled.terminal,
      ]);
      const released = await fresh.runtime
        .continuation(terminal, 'reconcile')
        .release(() => 'done');
      assert.equal(released.kind, committed ? 'released' : 'halted');
      assert.deepEqual(await fresh.runtime.recover({ now: true }), [], 'and once is enough');
    });
  }
}

test('a promotion that proves that nothing became durable is rejected for its reason', async () => {
  const world = invoiceWorld();
  const refused = async (): Promise<Promotion> => ({
    kind: 'refused',
    reason: 'deferred-constraint',
    detail: 'no',
  });
  await using deployed = await deploy(world, booksWith(world, refused));
  const terminal = await deployed.runtime.execute(await deployed.approve(), PAY);
  assertRejected(terminal, 'promotion', 'deferred-constraint');
  assert.equal(world.books.writer, undefined, 'the candidate was discarded all the same');
  assert.equal(world.books.rows().invoice?.[0]?.status, 'pending');
});

test('a promotion without a confirmation is discarded before anything is recorded', async () => {
  const answers: Promise<Promotion>[] = [
    Promise.resolve({ kind: 'refused', reason: 'deferred-constraint', detail: 'no' }),
    Promise.resolve({ kind: 'unknown', cause: new Error('connection reset') }),
  ];
  for (const answer of answers) {
    const world = invoiceWorld();
    let openWhenRecorded: boolean | undefined;
    const store: LedgersFactory = {
      async open(context) {
        const ledgers = await temporaryLedgers(world.clock).open(context);
        return overlay(ledgers, {
          record(...parameters) {
            openWhenRecorded = world.books.writer !== undefined;
            return ledgers.record(...parameters);
          },
        });
      },
    };
    await using deployed = await deploy(world, { ...booksWith(world, () => answer), store });
    ofKind('rejected', await deployed.runtime.execute(await deployed.approve(), PAY));
    assert.equal(openWhenRecorded, false);
  }
});

test('a lost reply that meets the marker of another execution left nothing of its own', async () => {
  const world = invoiceWorld();
  const promote: Promote = async (_stage, permit) => {
    const execution = `exe_${'0'.repeat(32)}`;
    world.books.markers.set(
      permit.marker.occurrence,
      reseal(world, { ...JSON.parse(permit.marker.text), execution }),
    );
    throw new Error('connection reset');
  };
  await using deployed = await deploy(world, booksWith(world, promote));
  const terminal = await deployed.runtime.execute(await deployed.approve(), PAY);
  assertRejected(terminal, 'promotion', 'decided-elsewhere');
  assert.equal(world.books.rows().invoice?.[0]?.status, 'pending');
});

test('a lost reply that meets a marker which does not verify stays indeterminate', async () => {
  const world = invoiceWorld();
  const promote: Promote = async (stage, permit) => {
    await stage.promote(permit);
    world.books.markers.set(permit.marker.occurrence, {
      ...permit.marker,
      sealMac: '0'.repeat(64),
    });
    throw new Error('connection reset');
  };
  await using deployed = await deploy(world, booksWith(world, promote));
  const terminal = ofKind(
    'indeterminate',
    await deployed.runtime.execute(await deployed.approve(), PAY),
  );
  assert.match(terminal.gap, /seal/);
  const recovered = onlyOne(await deployed.runtime.recover({ now: true }));
  assert.equal(recovered.kind, 'unresolved');
});

test('a marker that does not verify is an answer, a bug while it is opened is not', () => {
  const stored = { text: '{}', sealKey: 'key', sealMac: 'mac' };
  const opening = (error: Error) => {
    const sealer = {
      open() {
        throw error;
      },
    };
    return () => openMarker({ sealer } as unknown as Deployment, stored);
  };
  assert.equal(
    opening(new EffectMatchError('ERR_EM_RECORD_INVALID', 'not a marker'))().kind,
    'invalid',
  );
  assert.throws(opening(new TypeError('a bug')), TypeError);
});

function pick({ permit, consumedAt }: { readonly permit?: string; readonly consumedAt?: string }) {
  return { permit, consumedAt };
}
