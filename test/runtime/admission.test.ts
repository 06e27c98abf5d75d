// Goal: an adapter that lies about what it controls is refused by the probe that finds the lie, and
// named by it. Method: one lying adapter for every probe, made from honest ones in memory, admitted
// by the real code.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type {
  Adapter,
  AdapterFactory,
  Approval,
  PromotableAdapter,
  RemoteAdapter,
  Stage,
} from '../../src/contract/adapter.ts';
import { systemClock } from '../../src/contract/clock.ts';
import { unobserved } from '../../src/contract/steps.ts';
import { randomIds } from '../../src/crypto/approver.ts';
import { createSealer } from '../../src/crypto/seal.ts';
import { EffectMatchError } from '../../src/errors.ts';
import { canonical } from '../../src/protocol/canon.ts';
import { admit, PROBES, type Probe, tryService } from '../../src/runtime/admit.ts';
import { isTriedLater } from '../../src/runtime/deployment.ts';
import {
  alterEvidence,
  MEMORY_CHANNELS,
  memoryAdapter,
  overlay,
  overlayAdapter,
  overlayStages,
  PROBE_TARGET,
  remoteAdapter,
  silence,
  type World,
  withoutChannel,
} from '../world/world.ts';
import { deploy, invoiceWorld } from './deploy.ts';

/**
 * Opens an adapter of a fresh world and admits it as a runtime would, up to its first execution.
 */
async function admitLiar(make: (world: World) => AdapterFactory): Promise<World> {
  const world = invoiceWorld();
  const adapter = await make(world).open({ name: 'liar', clock: systemClock, reached: unobserved });
  const sealer = createSealer(world.start().config.keyring);
  const context = { name: 'liar', sealer, ids: randomIds, clock: systemClock };
  await admit(context, adapter);
  if (isTriedLater(adapter)) await tryService(context, adapter);
  return world;
}

function lyingStages(
  change: (stage: Stage, world: World) => Partial<Stage>,
): (world: World) => AdapterFactory {
  return (world) =>
    overlayAdapter(memoryAdapter(world.books), (adapter) =>
      overlayStages(adapter as PromotableAdapter, (stage) => change(stage, world)),
    );
}

const lyingProbe = (world: World, change: Partial<RemoteAdapter['probe']>): AdapterFactory =>
  overlayAdapter(remoteAdapter(world.bank), (adapter) => ({
    probe: overlay((adapter as RemoteAdapter).probe, change),
  }));

/** Makes durable what is held, and says nothing about it. */
function leak(world: World): void {
  for (const { target, after } of world.books.writer?.log ?? []) {
    if (target === PROBE_TARGET.name && after)
      world.books.write({ op: 'insert', target, row: after });
  }
}

const LIARS: Readonly<Record<Probe, readonly ((world: World) => AdapterFactory)[]>> = {
  'profile-supported': [
    (world) => overlayAdapter(memoryAdapter(world.books), () => ({ profiles: ['net-state'] })),
    (world) => overlayAdapter(remoteAdapter(world.bank), () => ({ profiles: [] })),
  ],
  'held-candidate-invisible': [
    (world) =>
      overlayAdapter(memoryAdapter(world.books), (adapter) => ({
        async stage(...parameters: Parameters<PromotableAdapter['stage']>) {
          const staged = await (adapter as PromotableAdapter).stage(...parameters);
          leak(world);
          return staged;
        },
      })),
  ],
  'observes-own-write': [
    (world) =>
      alterEvidence(memoryAdapter(world.books), (evidence) => ({ ...evidence, records: [] })),
    (world) =>
      alterEvidence(memoryAdapter(world.books), (evidence) => ({
        ...evidence,
        records: [...evidence.records].map((record) => ({ ...record, target: 'invoice' })),
      })),
  ],
  'channels-answer': MEMORY_CHANNELS.flatMap((channel) => [
    (world) => alterEvidence(memoryAdapter(world.books), (evidence) => silence(evidence, channel)),
    (world) =>
      alterEvidence(memoryAdapter(world.books), (evidence) => withoutChannel(evidence, channel)),
  ]),
  'discard-leaves-nothing': [
    lyingStages((stage, world) => ({
      async discard() {
        leak(world);
        await stage.discard();
      },
    })),
  ],
  'void-marker-fences': [
    // Overwrites the marker.
    lyingStages((stage, world) => ({
      promote(permit) {
        world.books.markers.clear();
        return stage.promote(permit);
      },
    })),
    // Says that it refused, and did not.
    lyingStages((_stage, world) => ({
      async promote() {
        leak(world);
        return { kind: 'refused', reason: 'marker-exists', detail: 'it does' };
      },
    })),
    // Says that it committed, and did not.
    lyingStages(() => ({ promote: async () => ({ kind: 'confirmed' }) })),
    // Breaks off after the deed.
    lyingStages((_stage, world) => ({
      async promote() {
        leak(world);
        throw new Error('the connection was lost');
      },
    })),
  ],
  'capability-rendered': [
    (world) =>
      overlayAdapter(remoteAdapter(world.bank, { capability: 'OPAQUE' }), ({ registration }) => ({
        registration: { ...registration, capability: 'MEDIATED' },
      })),
    (world) =>
      overlayAdapter(
        remoteAdapter(world.bank),
        ({ registration: { profile, values, targets } }) => ({
          registration: { profile, values, targets },
        }),
      ),
  ],
  'deterministic-request': [
    (world) => lyingProbe(world, { samples: () => [] }),
    // Depends on the order of things whose order means nothing.
    (world) =>
      overlayAdapter(remoteAdapter(world.bank), () => ({
        buildRequest: ({ effects }: Approval) => ({ content: effects.map(({ target }) => target) }),
      })),
    (world) =>
      overlayAdapter(remoteAdapter(world.bank), () => ({
        buildRequest: ({ effects }: Approval) => ({
          content: effects.map((effect) => JSON.stringify(effect)).toSorted(),
        }),
      })),
    // Takes something from outside.
    (world) => {
      let calls = 0;
      return overlayAdapter(remoteAdapter(world.bank), () => ({
        buildRequest() {
          calls += 1;
          return { content: { calls } };
        },
      }));
    },
  ],
  'exclusive-credential': [
    (world) => lyingProbe(world, { exclusiveCredential: async () => false }),
  ],
  'idempotent-service': [(world) => lyingProbe(world, { idempotent: async () => false })],
};

for (const probe of PROBES) {
  test(`an adapter that fails ${probe} is refused by that name`, async () => {
    assert.ok(LIARS[probe].length > 0);
    for (const liar of LIARS[probe]) {
      await assert.rejects(admitLiar(liar), (error) => {
        assert.ok(error instanceof EffectMatchError, String(error));
        assert.equal(error.code, 'ERR_EM_ADAPTER_REFUSED');
        assert.ok(
          error.message.includes(`adapter "liar" failed the admission probe ${probe}:`),
          error.message,
        );
        return true;
      });
    }
  });
}

test('honest adapters are admitted and admission leaves nothing behind', async () => {
  const before = invoiceWorld().books.rows();
  const held = await admitLiar((world) => memoryAdapter(world.books));
  assert.deepEqual(held.books.rows(), before);
  assert.equal(held.books.markers.size, 0);
  assert.equal(held.books.writer, undefined);
  const mediated = await admitLiar((world) => remoteAdapter(world.bank));
  assert.deepEqual(mediated.bank.backend.rows(), before);
});

test('every candidate that admission holds is discarded, also the one that a void marker fenced', async () => {
  let [held, discarded] = [0, 0];
  await admitLiar(
    lyingStages((stage) => {
      held += 1;
      return {
        async discard() {
          discarded += 1;
          await stage.discard();
        },
      };
    }),
  );
  assert.deepEqual({ held, discarded }, { held: 2, discarded: 2 });
});

test('only what means nothing is turned round: lists, texts and nulls of an approval stay as they are', async () => {
  const after = { id: { oneOf: [1, 2] }, amount: { is: null } };
  await admitLiar((world) =>
    overlayAdapter(remoteAdapter(world.bank), (opened) => {
      const { probe } = opened as RemoteAdapter;
      const effects = [{ op: 'insert' as const, target: 'invoice', after, count: 1 }];
      return {
        probe: overlay(probe, {
          samples: () => probe.samples().map((sample) => ({ ...sample, effects })),
        }),
        buildRequest: (approval: Approval) => ({ content: canonical(approval.effects) }),
      };
    }),
  );
});

test('an adapter that does not even stage what is void already is admitted', async () => {
  await admitLiar((world) =>
    overlayAdapter(memoryAdapter(world.books), (opened) => {
      const adapter = opened as PromotableAdapter;
      let stages = 0;
      return {
        async stage(...parameters: Parameters<PromotableAdapter['stage']>) {
          stages += 1;
          return stages === 1
            ? await adapter.stage(...parameters)
            : { kind: 'failed', reason: 'void', detail: 'the occurrence is void' };
        },
      };
    }),
  );
});

test('an OPAQUE adapter need not own its credential or its idempotency key', async () => {
  await admitLiar((world) =>
    overlayAdapter(remoteAdapter(world.bank, { capability: 'OPAQUE' }), () => ({
      probe: {
        samples: () => [],
        exclusiveCredential: async () => false,
        idempotent: async () => false,
        fingerprint: () => '',
      },
    })),
  );
});

test('a backend that cannot hold the probe now is unavailable, which is not a lie', async () => {
  await assert.rejects(
    admitLiar((world) => {
      world.books.open();
      return memoryAdapter(world.books);
    }),
    { code: 'ERR_EM_ADAPTER_UNAVAILABLE' },
  );
});

test('a probe marker that something keeps out for a while is tried again, and not for ever', async () => {
  const keptOut = (times: number) => (world: World) =>
    overlayAdapter(memoryAdapter(world.books), (opened) => {
      const adapter = opened as PromotableAdapter;
      let tries = 0;
      const markers = overlay(adapter.markers, {
        async void(marker) {
          tries += 1;
          return tries <= times
            ? { kind: 'busy', why: 'another process starts' }
            : adapter.markers.void(marker);
        },
      });
      return { markers };
    });
  await admitLiar(keptOut(3));
  await assert.rejects(admitLiar(keptOut(Number.POSITIVE_INFINITY)), {
    code: 'ERR_EM_ADAPTER_UNAVAILABLE',
  });
});

test('a refused adapter is closed, and so is everything opened before it', async () => {
  const world = invoiceWorld();
  const closed: string[] = [];
  const closing = (name: string) => (adapter: Adapter) => ({
    ...(name === 'bank' && { profiles: [] }),
    async close() {
      closed.push(name);
      await adapter.close();
    },
  });
  const adapters = {
    books: overlayAdapter(memoryAdapter(world.books) as AdapterFactory, closing('books')),
    bank: overlayAdapter(remoteAdapter(world.bank) as AdapterFactory, closing('bank')),
  };
  const { store } = world.start().config;
  const watched = {
    async open(context: Parameters<typeof store.open>[0]) {
      const ledgers = await store.open(context);
      return overlay(ledgers, {
        async close() {
          closed.push('store');
        },
      });
    },
  };
  await assert.rejects(deploy(world, { adapters, store: watched }), {
    code: 'ERR_EM_ADAPTER_REFUSED',
  });
  assert.deepEqual(closed, ['bank', 'books', 'store']);
});

/** An adapter of a world, and the context in which it is admitted. */
async function opened(make: (world: World) => AdapterFactory) {
  const world = invoiceWorld();
  const adapter = await make(world).open({ name: 'one', clock: systemClock, reached: unobserved });
  const sealer = createSealer(world.start().config.keyring);
  return { world, adapter, context: { name: 'one', sealer, ids: randomIds, clock: systemClock } };
}

/** The books as a service that is tried once per account; counts how often it was. */
function bookService(world: World, tried: () => void = () => {}): AdapterFactory {
  return overlayAdapter(memoryAdapter(world.books), (adapter) => {
    assert.ok(adapter.capability === 'PROMOTABLE');
    const durable = async (token: string) => {
      tried();
      return await adapter.probe.durable(token);
    };
    return { probe: { ...adapter.probe, durable, fingerprint: () => 'one account' } };
  });
}

test('what reaches a live service is tried later: mediated adapters, and held ones with a fingerprint', async () => {
  const isLater = async (make: (world: World) => AdapterFactory) =>
    isTriedLater((await opened(make)).adapter);
  assert.equal(await isLater((world) => remoteAdapter(world.bank)), true);
  assert.equal(await isLater((world) => bookService(world)), true);
  assert.equal(await isLater((world) => memoryAdapter(world.books)), false);
  const opaque = (world: World) =>
    overlayAdapter(remoteAdapter(world.bank), () => ({ capability: 'OPAQUE' as const }));
  assert.equal(await isLater(opaque), false);
});

test('opening an adapter does not try its service, and trying it does, for each capability', async () => {
  const tried: string[] = [];
  const held = await opened((world) => bookService(world, () => void tried.push('it')));
  await admit(held.context, held.adapter);
  assert.deepEqual(tried, []);
  await tryService(held.context, held.adapter);
  assert.ok(tried.length > 0);
  assert.equal(held.world.books.markers.size, 0);
  const forgetful = await opened((world) => lyingProbe(world, { idempotent: async () => false }));
  await admit(forgetful.context, forgetful.adapter);
  await assert.rejects(
    tryService(forgetful.context, forgetful.adapter),
    /failed the admission probe idempotent-service/,
  );
  const opaque = await opened((world) =>
    overlayAdapter(lyingProbe(world, { idempotent: async () => assert.fail() }), () => ({
      capability: 'OPAQUE',
    })),
  );
  await tryService(opaque.context, opaque.adapter);
});

test('a promotion over a void marker may be refused by an error, and the stage is discarded all the same', async () => {
  let discarded = 0;
  await admitLiar(
    lyingStages((stage) => ({
      promote: () => Promise.reject(new Error('the occurrence is void')),
      async discard() {
        discarded += 1;
        await stage.discard();
      },
    })),
  );
  assert.equal(discarded, 2);
});

test('a mediated adapter without a fingerprint is refused: a changed credential would not be noticed', async () => {
  const { adapter, context } = await opened((world) =>
    overlayAdapter(remoteAdapter(world.bank), (remote) => ({
      probe: { ...(remote as RemoteAdapter).probe, fingerprint: undefined as never },
    })),
  );
  await assert.rejects(
    admit(context, adapter),
    /failed the admission probe exclusive-credential: its probe has no finger/,
  );
});
