// Goal: whatever changes while a candidate is held or a request is ready stops it at the final
// gate, by its reason. Method: one case per refusal of the final gate, caused after the step that
// had established the contrary.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { AdapterFactory, PromotableAdapter } from '../../src/contract/adapter.ts';
import type { Ledgers, LedgersFactory } from '../../src/contract/ledgers.ts';
import { read } from '../../src/protocol/draft.ts';
import type { PrepareRequest } from '../../src/runtime/prepare.ts';
import { temporaryLedgers } from '../ledger/temporary.ts';
import {
  memoryAdapter,
  overlay,
  overlayAdapter,
  overlayStages,
  type World,
} from '../world/world.ts';
import {
  assertRejected,
  type DeployOptions,
  deploy,
  invoiceWorld,
  ofKind,
  once,
  onlyOne,
  PAY,
} from './deploy.ts';

interface Case {
  readonly deploy?: (world: World) => DeployOptions;
  readonly request?: Partial<PrepareRequest>;
}

const ledgersWith = (change: (ledgers: Ledgers) => Partial<Ledgers>) => (world: World) => ({
  store: {
    async open(context) {
      const ledgers = await temporaryLedgers(world.clock).open(context);
      return overlay(ledgers, change(ledgers));
    },
  } satisfies LedgersFactory,
});

/** Every one of these holds for a held candidate and for a request. */
const BOTH: Readonly<Record<string, Case>> = {
  'boundary-changed': {
    deploy: (world) => ({ at: { 'path:certified': () => world.disturb('schema') } }),
  },
  expired: { deploy: (world) => ({ at: { 'path:certified': () => world.advance(600_000) } }) },
  'not-yet-valid': {
    deploy: (world) => ({ at: { 'path:certified': () => world.advance(-600_000) } }),
  },
  'precondition-broken': {
    deploy: (world) => ({ at: { 'path:certified': () => world.disturb('state') } }),
  },
  'stale-state': {
    deploy: (world) => ({ at: { 'path:certified': () => world.disturb('state') } }),
    request: { requires: [], watch: [read('vendor', { id: 1 })] },
  },
  'plan-superseded': {
    deploy: ledgersWith((ledgers) => ({
      // Announced between the claim and the gate.
      standing: async (task, attempt) => {
        const { announced = 0, holds } = await ledgers.standing(task, attempt);
        return { announced: announced + 1, holds };
      },
    })),
  },
  'claim-lost': {
    deploy: ledgersWith((ledgers) => ({
      standing: async (task, attempt) => ({
        ...(await ledgers.standing(task, attempt)),
        holds: false,
      }),
    })),
  },
};

const booksWith = (
  world: World,
  change: (adapter: PromotableAdapter) => Partial<PromotableAdapter>,
) => ({
  adapters: {
    ...world.start().config.adapters,
    books: overlayAdapter(memoryAdapter(world.books) as AdapterFactory, (adapter) =>
      change(adapter as PromotableAdapter),
    ),
  },
});

const STAGE: Readonly<Record<string, Case>> = {
  ...BOTH,
  'adapter-changed': {
    deploy(world) {
      let code = '';
      const changing = booksWith(world, ({ identity }) => ({
        get identity() {
          return { ...identity, code: `${identity.code}${code}` };
        },
      }));
      return {
        ...changing,
        at: {
          'path:observed': () => {
            code = 'patched';
          },
        },
      };
    },
  },
  'candidate-replaced': {
    deploy: (world) =>
      booksWith(world, (adapter) =>
        overlayStages(adapter, (stage) => ({
          recheck: async () => ({ ...(await stage.recheck()), candidate: 'another' }),
        })),
      ),
  },
  'evidence-changed': {
    deploy: (world) => ({
      at: {
        'path:observed': () =>
          world.books.writer?.write({
            op: 'insert',
            target: 'audit',
            row: { id: 'late', text: 'write' },
          }),
      },
    }),
  },
};

const REQUEST: Readonly<Record<string, Case>> = {
  ...BOTH,
  'permit-void': {
    deploy: ledgersWith((ledgers) => ({
      async consumePermit(permit: Parameters<typeof ledgers.consumePermit>[0]) {
        await ledgers.voidPermit(permit.record.occurrence, permit.record.execution);
        return ledgers.consumePermit(permit);
      },
    })),
  },
  'permit-spent': {
    deploy: ledgersWith((ledgers) => ({
      async consumePermit(permit: Parameters<typeof ledgers.consumePermit>[0]) {
        await ledgers.consumePermit(permit);
        return ledgers.consumePermit(permit);
      },
    })),
  },
};

for (const [adapter, cases] of Object.entries({ books: STAGE, bank: REQUEST })) {
  for (const [reason, { deploy: options, request }] of Object.entries(cases)) {
    test(`${adapter}, ${reason}: refused at the final gate, with nothing durable`, async () => {
      const world = invoiceWorld();
      await using deployed = await deploy(world, options?.(world) ?? {});
      const license = await deployed.approve({ adapter, ...request });
      const before = [world.books.rows().invoice, world.bank.backend.rows().invoice];
      const terminal = await deployed.runtime.execute(license, PAY);
      const rejected = assertRejected(terminal, 'final-gate', reason);
      assert.deepEqual([world.books.rows().invoice, world.bank.backend.rows().invoice], before);
      assert.equal(world.books.markers.size, 0);
      assert.equal(world.books.writer, undefined, 'the candidate was discarded');
      assert.ok(rejected.claim !== undefined && rejected.certificate !== undefined);
      assert.equal(rejected.outcome?.kind, adapter === 'books' ? 'EXACT' : undefined);
      assert.deepEqual(await deployed.runtime.ledgers.attempts(terminal.occurrence), [terminal]);
      assert.ok(
        !deployed.process.trace.some((call) =>
          ['stage.promote', 'adapter.dispatch'].includes(call),
        ),
      );
      const released = await deployed.runtime
        .continuation(terminal, 'reconcile')
        .release(() => assert.fail());
      assert.equal(released.kind, 'halted');
      assertRejected(
        await deployed.runtime.execute(license, PAY),
        'authority',
        reasonOfReplay(reason),
      );
    });
  }
}

for (const adapter of ['books', 'bank']) {
  test(`${adapter}: a license that ends while the last question of the gate is being answered is refused`, async () => {
    const world = invoiceWorld();
    let atGate = false;
    const late = async <T>(answer: Promise<T>): Promise<T> => {
      if (atGate) world.advance(600_000);
      return answer;
    };
    const slow = (name: 'books' | 'bank') =>
      overlayAdapter(world.start().config.adapters[name] ?? assert.fail(), (opened) =>
        opened.capability === 'PROMOTABLE'
          ? overlayStages(opened, (stage) => ({ read: (reads) => late(stage.read(reads)) }))
          : { read: (reads) => late(opened.read(reads)) },
      );
    await using deployed = await deploy(world, {
      adapters: { books: slow('books'), bank: slow('bank') },
      at: {
        'path:certified': () => {
          atGate = true;
        },
      },
    });
    const terminal = await deployed.runtime.execute(await deployed.approve({ adapter }), PAY);
    assertRejected(terminal, 'final-gate', 'expired');
    assert.equal(world.books.markers.size, 0);
    assert.ok(!deployed.process.trace.includes('adapter.dispatch'));
  });
}

/**
 * Whatever was wrong at the gate, the occurrence is spent; some of it is found before the claim the
 * next time.
 */
function reasonOfReplay(reason: string): string {
  const before = [
    'expired',
    'not-yet-valid',
    'precondition-broken',
    'stale-state',
    'adapter-changed',
  ];
  return before.includes(reason) ? reason : 'spent';
}

for (const part of ['kind', 'backend', 'code'] as const) {
  test(`an adapter that says of another ${part} after the observation is not promoted`, async () => {
    const world = invoiceWorld();
    let added = '';
    const changing = booksWith(world, ({ identity }) => ({
      get identity() {
        return { ...identity, [part]: `${identity[part]}${added}` };
      },
    }));
    const change = () => {
      added = '2';
    };
    await using deployed = await deploy(world, { ...changing, at: { 'path:observed': change } });
    assertRejected(
      await deployed.runtime.execute(await deployed.approve(), PAY),
      'final-gate',
      'adapter-changed',
    );
    assert.equal(world.books.markers.size, 0);
  });
}

for (const [reason, change] of [
  ['plan-superseded', { announced: 1_000_000 }],
  ['claim-lost', { holds: false }],
] as const) {
  test(`${reason} after the comparison: the ledger is asked after it, not beside it`, async () => {
    const world = invoiceWorld();
    let isCompared = false;
    const changing = ledgersWith((ledgers) => ({
      async standing(task, attempt) {
        const later = isCompared ? change : {};
        return { ...(await ledgers.standing(task, attempt)), ...later };
      },
    }));
    const compared = () => {
      isCompared = true;
    };
    await using deployed = await deploy(world, {
      ...changing(world),
      at: { 'path:observed': compared },
    });
    const terminal = await deployed.runtime.execute(await deployed.approve(), PAY);
    assertRejected(terminal, 'final-gate', reason);
    assert.equal(world.books.markers.size, 0);
  });
}

test('every refusal of the final gate has a case above', () => {
  const source = readFileSync('src/runtime/gate.ts', 'utf8');
  const own = [...source.matchAll(/refuse\(\s*'([a-z-]+)'/g)].map(([, reason]) => reason ?? '');
  const fence = /refuse\(\s*`permit-\$\{fence\.kind\}`/.test(source)
    ? ['permit-void', 'permit-spent']
    : [];
  assert.ok(own.length >= 4 && fence.length === 2, 'the refusals were not found in the source');
  const covered = new Set([...Object.keys(STAGE), ...Object.keys(REQUEST)]);
  assert.deepEqual(
    [...own, ...fence].filter((reason) => !covered.has(reason)),
    [],
  );
});

test('a survey shows the outlets as they are now, and changes nothing', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world);
  const open = async () => {
    const { outlets } = await deployed.runtime.survey('books');
    return outlets
      .filter(({ disposition }) => disposition === 'unclassified')
      .map(({ outlet }) => outlet);
  };
  assert.deepEqual(await open(), []);
  world.books.unclassified = 'a foreign data wrapper';
  assert.deepEqual(await open(), ['a foreign data wrapper']);
  world.books.unclassified = undefined;
  assert.deepEqual(await open(), []);
  await assert.rejects(deployed.runtime.survey('bocks'), {
    code: 'ERR_EM_ADAPTER_UNAVAILABLE',
    message: /"bocks"/,
  });
  ofKind('committed', await deployed.runtime.execute(await deployed.approve(), PAY));
});

test('a boundary with an unclassified outlet is refused before anything is staged', async () => {
  for (const adapter of ['books', 'bank']) {
    const world = invoiceWorld();
    await using deployed = await deploy(world);
    const license = await deployed.approve({ adapter });
    world.books.unclassified = 'a foreign data wrapper';
    world.bank.backend.unclassified = 'a webhook';
    const terminal = assertRejected(
      await deployed.runtime.execute(license, PAY),
      'boundary',
      'outlet-unclassified',
    );
    assert.match(terminal.detail, adapter === 'books' ? /foreign data wrapper/ : /webhook/);
    assert.ok(
      !deployed.process.trace.some((call) => ['adapter.stage', 'adapter.dispatch'].includes(call)),
    );
  }
});

test('a candidate that the gate refuses is discarded before its rejection is recorded', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world, {
    at: { 'path:observed': () => world.disturb('schema') },
  });
  const license = await deployed.approve();
  assertRejected(await deployed.runtime.execute(license, PAY), 'final-gate', 'boundary-changed');
  const order = deployed.process.trace.filter((call) =>
    ['stage.discard', 'ledgers.record'].includes(call),
  );
  assert.deepEqual(order, ['stage.discard', 'ledgers.record']);
});

test('an outlet that opens while a candidate is held is a changed boundary', async () => {
  const world = invoiceWorld();
  const opens = () => {
    world.books.unclassified = 'a foreign data wrapper';
  };
  await using deployed = await deploy(world, { at: { 'path:observed': opens } });
  const terminal = await deployed.runtime.execute(await deployed.approve(), PAY);
  const { detail } = assertRejected(terminal, 'final-gate', 'boundary-changed');
  assert.match(detail, /a foreign data wrapper: not there → unclassified/);
  assert.match(detail, /Now open: a foreign data wrapper: nothing observes it; remove it/);
  assert.equal(world.books.writer, undefined);
});

test('a refusal says what the adapter found changed, and without its words which part of the certificate changed', async () => {
  const another = "the backend's configuration changed";
  const explanations: readonly (readonly [
    said: string,
    explainChange?: () => Promise<readonly string[]>,
  ])[] = [
    ['table invoice: owner "a" → "b"', async () => ['table invoice: owner "a" → "b"']],
    [another],
    [another, () => Promise.reject(new Error('the connection was lost'))],
  ];
  for (const [said, explainChange] of explanations) {
    const world = invoiceWorld();
    await using deployed = await deploy(world, {
      ...booksWith(world, () => (explainChange === undefined ? {} : { explainChange })),
      at: { 'path:observed': () => world.disturb('schema') },
    });
    const terminal = await deployed.runtime.execute(await deployed.approve(), PAY);
    const { detail } = assertRejected(terminal, 'final-gate', 'boundary-changed');
    assert.ok(detail.includes(`Changed: ${said}`), detail);
  }
});

test('a clock that steps back between claim and gate does not make the permit older than the claim', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world, {
    at: { 'path:certified': () => world.advance(-1000) },
  });
  const committed = ofKind(
    'committed',
    await deployed.runtime.execute(await deployed.approve(), PAY),
  );
  assert.equal(committed.consumedAt, committed.claimedAt);
});

test('a permit carries the time of its gate, not that of the claim', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world, {
    at: { 'path:certified': () => world.advance(1000) },
  });
  const committed = ofKind(
    'committed',
    await deployed.runtime.execute(await deployed.approve(), PAY),
  );
  assert.equal(Date.parse(committed.consumedAt) - Date.parse(committed.claimedAt), 1000);
});

test('recovery that voids a request in front of its gate wins, and the request is never sent', async () => {
  let meanwhile = async (_call: string): Promise<void> => {};
  const world = invoiceWorld({ pause: (call) => meanwhile(call) });
  await using deployed = await deploy(world);
  await using other = await deploy(world);
  const license = await deployed.approve({ adapter: 'bank' });
  meanwhile = once('ledgers.consumePermit', async () => {
    assert.equal(onlyOne(await other.runtime.recover({ now: true })).kind, 'settled');
  });
  const terminal = await deployed.runtime.execute(license, PAY);
  assertRejected(terminal, 'recovery', 'interrupted');
  assert.ok(!deployed.process.trace.includes('adapter.dispatch'));
  assert.deepEqual(await deployed.runtime.ledgers.attempts(terminal.occurrence), [terminal]);
});
