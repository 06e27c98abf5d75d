// Goal: a plan is what two discarded rehearsals agree on, and only the evidence of the backend
// explains a difference. Method: a world in memory whose server logic assigns other identifiers,
// times or chance in every rehearsal.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AdapterFactory, Evidence } from '../../src/contract/adapter.ts';
import { read, row } from '../../src/protocol/draft.ts';
import type { Residue } from '../../src/protocol/residue.ts';
import type { PlanRequest } from '../../src/runtime/rehearse.ts';
import {
  alterEvidence,
  type Logic,
  memoryAdapter,
  overlayAdapter,
  overlayStages,
  silence,
  type World,
} from '../world/world.ts';
import {
  assertRejected,
  type Deployed,
  deploy,
  invoiceWorld,
  ofKind,
  once,
  PAY,
} from './deploy.ts';

const PLAN: PlanRequest = {
  adapter: 'books',
  task: 'invoice 1',
  planRevision: 1,
  action: PAY,
  requires: [row('vendor', { id: 1 }, { blocked: false })],
  continuations: ['reconcile'],
};
const CREATE = {
  writes: [{ op: 'insert', target: 'invoice', row: { id: 'new', status: 'pending', amount: 12 } }],
};

/** A deployment whose approver may sign rehearsals, with the observer altered. */
async function office(
  world: World,
  alter: (evidence: Evidence) => Evidence = (evidence) => evidence,
) {
  const { issuers, adapters } = world.start().config;
  const team = issuers['ap-team'] ?? assert.fail();
  const books = alterEvidence(memoryAdapter(world.books) as AdapterFactory, alter);
  return deploy(world, {
    issuers: { 'ap-team': { ...team, sources: ['rehearsed'] } },
    adapters: { ...adapters, books },
  });
}

/**
 * A server that gives every new invoice the next number, also after a rollback, and logs it under
 * that number.
 */
function numbering(): { readonly logic: Logic; readonly alter: (evidence: Evidence) => Evidence } {
  let last = 100;
  return {
    logic(write) {
      if (write.op !== 'insert' || write.target !== 'invoice') return [write];
      last += 1;
      return [
        { ...write, row: { ...write.row, id: last } },
        { op: 'insert', target: 'audit', row: { id: `log ${write.row.amount}`, text: last } },
      ];
    },
    alter(evidence) {
      const ids = [...evidence.records]
        .filter((record) => record.target === 'invoice')
        .map(({ key }) => Number(key?.id));
      const above = String(Math.min(last, ...ids) - 1);
      return {
        ...evidence,
        assigned: [{ target: 'invoice', column: 'id', above, upTo: String(last) }],
      };
    },
  };
}

async function refusal(
  deployed: Deployed,
  request: Partial<PlanRequest>,
  message: RegExp,
): Promise<void> {
  const { world, runtime } = deployed;
  await assert.rejects(runtime.plan({ ...PLAN, ...request }), (error: Error) => {
    assert.equal((error as { code?: string }).code, 'ERR_EM_REHEARSAL_REFUSED', error.message);
    assert.match(error.message, message);
    return true;
  });
  assert.equal(world.books.writer, undefined, 'no candidate is left behind');
  assert.equal(world.books.markers.size, 0);
  assert.deepEqual(await runtime.ledgers.journal(), []);
}

test('a plan shows what the action does, leaves nothing, and its approval reproduces it', async () => {
  const world = invoiceWorld();
  await using deployed = await office(world);
  const before = world.books.rows();
  const proposal = await deployed.runtime.plan(PLAN);
  assert.deepEqual(world.books.rows(), before);
  assert.equal(world.books.writer, undefined);
  assert.equal(world.books.markers.size, 0);
  assert.deepEqual(await deployed.runtime.ledgers.journal(), []);
  assert.equal(proposal.draft.source, 'rehearsed');
  assert.match(proposal.rendering, /~ invoice id=1 {2}status: "pending" -> "paid"/);
  const license = world.approver.sign(proposal, { expiresIn: '10m' });
  const committed = ofKind('committed', await deployed.runtime.execute(license, PAY));
  assert.equal(world.books.find('invoice', { id: 1 })?.status, 'paid');
  const released = await deployed.runtime.continuation(committed, 'reconcile').release(() => 1);
  assert.equal(released.kind, 'released');
});

test('an issuer who may not approve rehearsals is refused', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world);
  const license = world.approver.sign(await deployed.runtime.plan(PLAN), { expiresIn: '10m' });
  assertRejected(await deployed.runtime.execute(license, PAY), 'authority', 'source-not-allowed');
});

test('both stages are discarded and none is ever promoted, under claims that the ledger does not know', async () => {
  const world = invoiceWorld();
  const ended: string[] = [];
  const claims: { readonly occurrence: string; readonly key: string }[] = [];
  const { adapters } = world.start().config;
  const watched = overlayAdapter(memoryAdapter(world.books) as AdapterFactory, (adapter) => {
    if (adapter.capability !== 'PROMOTABLE') return assert.fail();
    const { stage } = overlayStages(adapter, (held) => ({
      promote: async () => assert.fail('a rehearsal was promoted'),
      async discard() {
        ended.push(held.candidate);
        await held.discard();
      },
    }));
    return {
      async stage(claim, certificate, action, reads) {
        const { record, seal } = claim.sealed;
        if (seal !== undefined) claims.push({ occurrence: record.occurrence, key: seal.key });
        // Admission tries to promote over a void marker, which is not what is looked at here.
        const hold = seal === undefined ? adapter.stage.bind(adapter) : stage;
        return await hold(claim, certificate, action, reads);
      },
    };
  });
  await using deployed = await deploy(world, { adapters: { ...adapters, books: watched } });
  await deployed.runtime.plan(PLAN);
  assert.equal(ended.length, 2);
  assert.equal(new Set(ended).size, 2, 'two candidates');
  assert.deepEqual(
    claims.map(({ key }) => key),
    ['rehearsal', 'rehearsal'],
  );
  for (const { occurrence } of claims)
    assert.equal(await deployed.runtime.ledgers.holder(occurrence as never), undefined);
});

test('identifiers that differ in every run are generated, and what refers to them follows', async () => {
  const world = invoiceWorld();
  const { logic, alter } = numbering();
  world.books.logic = logic;
  await using deployed = await office(world, alter);
  const action = {
    writes: [...CREATE.writes, { ...CREATE.writes[0], row: { id: 'n2', status: 'x', amount: 13 } }],
  };
  const proposal = await deployed.runtime.plan({ ...PLAN, action });
  assert.match(proposal.rendering, /\+ invoice id=<generated "new invoice.id 1"> {2}amount=12/);
  assert.match(proposal.rendering, /\+ audit id="log 12" {2}text=<generated "new invoice.id 1">/);
  assert.match(proposal.rendering, /\+ audit id="log 13" {2}text=<generated "new invoice.id 2">/);
  const license = world.approver.sign(proposal, { expiresIn: '10m' });
  ofKind('committed', await deployed.runtime.execute(license, action));
  assert.equal(world.books.find('invoice', { id: 105 })?.amount, 12);
  assert.equal(world.books.find('audit', { id: 'log 13' })?.text, 106);
});

test('the same identifiers without evidence that the backend assigned them are a difference', async () => {
  const world = invoiceWorld();
  world.books.logic = numbering().logic;
  await using deployed = await office(world);
  await refusal(
    deployed,
    { action: CREATE },
    /insert "invoice", column "id": 101 in the first rehearsal, 102 in the/,
  );
});

test('a reference to another row than in the rehearsal does not reproduce', async () => {
  const world = invoiceWorld();
  const { logic, alter } = numbering();
  world.books.logic = logic;
  await using deployed = await office(world, alter);
  const license = world.approver.sign(await deployed.runtime.plan({ ...PLAN, action: CREATE }), {
    expiresIn: '10m',
  });
  const before = world.books.rows();
  world.books.logic = (write) =>
    logic(write).map((made) =>
      made.op === 'insert' && made.target === 'audit'
        ? { ...made, row: { ...made.row, text: 1 } }
        : made,
    );
  assertRejected(await deployed.runtime.execute(license, CREATE), 'comparison', 'diverged');
  assert.deepEqual(world.books.rows(), before);
});

test('times at which the action ran become now, and old times do not', async () => {
  const world = invoiceWorld();
  const times: (() => string | number)[] = [
    () => new Date(world.clock.now()).toISOString(),
    () => world.clock.now(),
    () => Math.floor(world.clock.now() / 1000),
  ];
  for (const time of times) {
    world.books.logic = (write) =>
      write.target === 'invoice' && write.op === 'update'
        ? [{ ...write, set: { status: time() } }]
        : [write];
    await using deployed = await office(world, (evidence) => {
      world.advance(1500);
      return evidence;
    });
    const proposal = await deployed.runtime.plan(PLAN);
    assert.match(proposal.rendering, /status: "pending" -> <now within 1s/);
    const license = world.approver.sign(proposal, { expiresIn: '10m' });
    world.books.logic = (write) =>
      write.target === 'invoice' && write.op === 'update'
        ? [{ ...write, set: { status: '2020-01-01T00:00:00Z' } }]
        : [write];
    assertRejected(await deployed.runtime.execute(license, PAY), 'comparison', 'diverged');
  }
});

test('a literal time from before the rehearsal stays what it is', async () => {
  const world = invoiceWorld();
  const literal = new Date(world.clock.now() - 1).toISOString();
  const action = {
    writes: [{ op: 'update', target: 'invoice', key: { id: 1 }, set: { status: literal } }],
  };
  await using deployed = await office(world);
  const proposal = await deployed.runtime.plan({ ...PLAN, action });
  assert.ok(proposal.rendering.includes(`-> "${literal}"`), proposal.rendering);
});

test('what differs without explanation is refused with the cells, in kind and in number', async () => {
  let runs = 0;
  const world = invoiceWorld();
  world.books.logic = (write) => {
    if (write.target !== 'invoice' || write.op !== 'update') return [write];
    runs += 1;
    return [{ ...write, set: { status: `run ${runs}` } }];
  };
  await using deployed = await office(world);
  await refusal(
    deployed,
    {},
    /update "invoice", column "status": "run 1" in the first rehearsal, "run 2" in the second/,
  );
  world.books.logic = (write) => {
    runs += 1;
    const extra = { op: 'insert', target: 'audit', row: { id: 'a', text: 'x' } } as const;
    return runs % 2 === 0 ? [write] : [write, extra];
  };
  await refusal(deployed, {}, /insert "audit": \d in the first rehearsal, \d in the second/);
});

test('values stay out of the message where they may not be stored', async () => {
  let runs = 0;
  const world = invoiceWorld({ values: 'digest' });
  world.books.logic = (write) => {
    if (write.target !== 'invoice' || write.op !== 'update') return [write];
    runs += 1;
    return [{ ...write, set: { status: `secret ${runs}` } }];
  };
  await using deployed = await deploy(world);
  await assert.rejects(deployed.runtime.plan(PLAN), (error: Error) => {
    assert.match(error.message, /column "status"/);
    assert.doesNotMatch(error.message, /secret/);
    return true;
  });
});

test('an incomplete observation, an open boundary, a failing action and a remote adapter are refused', async () => {
  const world = invoiceWorld();
  let silent = false; // admission asks that every channel answers
  await using deployed = await office(world, (evidence) =>
    silent ? silence(evidence, 'tally') : evidence,
  );
  silent = true;
  await refusal(deployed, {}, /could not be established.*"tally"/);
  silent = false;
  world.books.unclassified = 'a foreign server';
  await refusal(deployed, {}, /boundary cannot be certified.*a foreign server/);
  world.books.unclassified = undefined;
  const gone = { writes: [{ op: 'delete', target: 'invoice', key: { id: 99 } }] };
  await refusal(deployed, { action: gone }, /action failed.*does not exist/);
  await refusal(deployed, { adapter: 'bank' }, /cannot hold a change back/);
  await assert.rejects(deployed.runtime.plan({ ...PLAN, action: 'x' }), {
    code: 'ERR_EM_ACTION_INVALID',
  });
  await assert.rejects(
    deployed.runtime.plan({ ...PLAN, requires: [row('vendor', { id: 1 }, { blocked: true })] }),
    {
      code: 'ERR_EM_MANIFEST_INVALID',
    },
  );
  const stray = { ...PLAN, effects: [] } as PlanRequest;
  assert.equal(
    (await deployed.runtime.plan(stray)).approved.effects.length,
    1,
    'effects come from the rehearsal alone',
  );
});

test('state that changes between the rehearsals, or after them, makes the plan void', async () => {
  const watch = [read('invoice', { id: 2 })];
  let stages = 0;
  const pause = once('second stage', async () => {
    world.books.write({ op: 'update', target: 'invoice', key: { id: 2 }, set: { amount: 71 } });
  });
  const world: World = invoiceWorld({
    async pause(call) {
      if (call === 'adapter.stage') stages += 1;
      // Two stages belong to admission.
      if (call === 'adapter.stage' && stages === 4) await pause('second stage');
    },
  });
  await using deployed = await deploy(world);
  await refusal(deployed, { watch }, /declared state changed between the two rehearsals/);

  await using later = await office(world);
  const license = world.approver.sign(await later.runtime.plan({ ...PLAN, watch }), {
    expiresIn: '10m',
  });
  world.books.write({ op: 'update', target: 'invoice', key: { id: 2 }, set: { amount: 72 } });
  assertRejected(await later.runtime.execute(license, PAY), 'authority', 'stale-state');
});

test('state that changes before the proposal is made is not taken for what the rehearsals saw', async () => {
  const watch = [read('invoice', { id: 2 })];
  let stages = 0;
  const change = once('read', async () => {
    world.books.write({ op: 'update', target: 'invoice', key: { id: 2 }, set: { amount: 71 } });
  });
  const world: World = invoiceWorld({
    async pause(call) {
      if (call === 'adapter.stage') stages += 1;
      if (call === 'adapter.read' && stages === 4) await change('read');
    },
  });
  const team = world.start().config.issuers['ap-team'] ?? assert.fail();
  await using deployed = await deploy(world, {
    issuers: { 'ap-team': { ...team, sources: ['rehearsed'] } },
  });
  const proposal = await deployed.runtime.plan({ ...PLAN, watch });
  assert.equal(world.books.find('invoice', { id: 2 })?.amount, 71, 'the change came in between');
  const license = world.approver.sign(proposal, { expiresIn: '10m' });
  assertRejected(await deployed.runtime.execute(license, PAY), 'authority', 'stale-state');
});

test('continuations are a list of names, and a text is not taken apart into some', async () => {
  await using deployed = await office(invoiceWorld());
  const continuations = 'reconcile' as unknown as readonly string[];
  await assert.rejects(deployed.runtime.plan({ ...PLAN, continuations }), {
    code: 'ERR_EM_MANIFEST_INVALID',
  });
  const { action: _, ...request } = PLAN;
  await assert.rejects(deployed.runtime.prepare({ ...request, effects: [], continuations }), {
    code: 'ERR_EM_MANIFEST_INVALID',
  });
  const fieldMatch = 'reconcile' as unknown as readonly string[];
  await assert.rejects(
    deployed.runtime.prepare({ ...request, effects: [], continuations: ['reconcile'], fieldMatch }),
    {
      code: 'ERR_EM_MANIFEST_INVALID',
    },
  );
  const misnamed = { ...request, effects: [], continuations: ['reconcile', 'write a letter'] };
  await assert.rejects(deployed.runtime.prepare(misnamed), {
    code: 'ERR_EM_MANIFEST_INVALID',
    message:
      /^"write a letter" cannot name a continuation: a name has 1 to 128 letters, digits and /,
  });
});

test('a plan is bound to the revision that the application names', async () => {
  const world = invoiceWorld();
  await using deployed = await office(world);
  const proposal = await deployed.runtime.plan({ ...PLAN, revision: 'r7' });
  const license = world.approver.sign(proposal, { expiresIn: '10m' });
  assertRejected(await deployed.runtime.execute(license, PAY), 'authority', 'stale-state');
  ofKind('committed', await deployed.runtime.execute(license, PAY, { revision: 'r7' }));
});

test('an earlier plan revision cannot be planned past a later one', async () => {
  const world = invoiceWorld();
  await using deployed = await office(world);
  const license = world.approver.sign(await deployed.runtime.plan(PLAN), { expiresIn: '10m' });
  await deployed.runtime.plan({ ...PLAN, planRevision: 2 });
  assertRejected(await deployed.runtime.execute(license, PAY), 'authority', 'plan-superseded');
});

/** What a plan tells about sequences that each run of it moved, run by run. */
async function toldOf(
  runs: readonly (readonly Residue[] | undefined)[],
): Promise<readonly (readonly Residue[])[]> {
  const left = [...runs];
  const told: (readonly Residue[])[] = [];
  let planning = false; // admission observes as well
  await using books = await office(invoiceWorld(), (evidence) => {
    const residue = planning ? left.shift() : undefined;
    return residue === undefined ? evidence : { ...evidence, residue };
  });
  planning = true;
  await books.runtime.plan(PLAN, { onResidue: (residue) => told.push(residue) });
  return told;
}

const moved = (name: string, places: Omit<Residue, 'kind' | 'name'> = {}): Residue => ({
  kind: 'sequence',
  name,
  ...places,
});

test('a plan tells once how far both rehearsals moved each sequence', async () => {
  const first = [moved('a', { from: '7', to: '8' }), moved('fresh', { from: null, to: '1' })];
  const second = [
    moved('a', { from: '8', to: '9' }),
    moved('fresh', { from: '1', to: '2' }),
    moved('late', { from: '4', to: '5' }),
  ];
  assert.deepEqual(await toldOf([first, second]), [
    [
      moved('a', { from: '7', to: '9' }),
      moved('fresh', { from: null, to: '2' }),
      moved('late', { from: '4', to: '5' }),
    ],
  ]);
});

test('where positions are private a plan tells which sequences moved and no more', async () => {
  assert.deepEqual(await toldOf([[moved('a')], [moved('a')]]), [[moved('a')]]);
});

test('a plan that moved nothing tells nothing', async () => {
  assert.deepEqual(await toldOf([undefined, []]), []);
});

test('an action is not rehearsed on a service that fails its trial', async () => {
  const world = invoiceWorld();
  const { adapters } = world.start().config;
  let durable = false;
  const books = overlayAdapter(memoryAdapter(world.books) as AdapterFactory, (adapter) => {
    assert.ok(adapter.capability === 'PROMOTABLE');
    return {
      probe: { ...adapter.probe, fingerprint: () => 'one account', durable: async () => durable },
    };
  });
  await using deployed = await deploy(world, { adapters: { ...adapters, books } });
  durable = true;
  await refusal(deployed, {}, /boundary cannot be certified.*held-candidate-invisible/);
});
