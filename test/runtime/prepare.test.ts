// Goal: a request that cannot be approved is refused in words that say what to change.
// Method: requests with one mistake each, to a deployment in memory.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { absent, read, row, update } from '../../src/protocol/draft.ts';
import type { PrepareRequest } from '../../src/runtime/prepare.ts';
import { deploy, invoiceWorld, ofKind, PAY, PAYMENT } from './deploy.ts';

const request = {
  ...{ adapter: 'books', task: 'invoice-1', planRevision: 1 },
  effects: [update('invoice', { id: 1 }, { status: ['pending', 'paid'] })],
};

const WRONG: readonly (readonly [unknown, RegExp])[] = [
  [undefined, /must be an object/],
  [
    { ...request, continuation: ['reconcile'] },
    /unknown option "continuation" \(did you mean "continuations"\?\)/,
  ],
  [
    Object.assign(Object.create({ requires: [row('vendor', { id: 8 }, { blocked: 0 })] }), request),
    /must be a plain object/,
  ],
  [
    { ...request, requires: [row('vendor', { id: 8 }, { blocked: 0 })] },
    /"id":8\} must be \{"blocked":0\}, and there is none/,
  ],
  [
    { ...request, requires: [row('invoice', { id: 1 }, { status: 'paid' })] },
    /must be \{"status":"paid"\}, and it is \{"status":"pending"\}/,
  ],
  [
    { ...request, requires: [absent('invoice', { id: 1 })] },
    /"id":1\} must not exist, and it is \{.*\}/,
  ],
];

for (const [wrong, what] of WRONG) {
  test(`refused: ${what.source}`, async () => {
    await using deployed = await deploy(invoiceWorld());
    await assert.rejects(deployed.runtime.prepare(wrong as PrepareRequest), {
      code: 'ERR_EM_MANIFEST_INVALID',
      message: what,
    });
  });
}

test('without the mistake it is prepared', async () => {
  await using deployed = await deploy(invoiceWorld());
  assert.match(
    (await deployed.runtime.prepare(request)).rendering,
    /^Proposed changes in books: 1 /,
  );
});

test('an outcome that the rows rule out is refused, announces nothing, and can be prepared once it is true', async () => {
  await using deployed = await deploy(invoiceWorld());
  const paid = update('invoice', { id: 1 }, { status: ['paid', 'void'] });
  const wrong = { ...request, effects: [paid], planRevision: 9 };
  await assert.rejects(deployed.runtime.prepare(wrong), {
    code: 'ERR_EM_OUTCOME_IMPOSSIBLE',
    message:
      'no execution could have this outcome: ~ invoice id=1  status: "paid" -> "void": status is "pending" now',
  });
  await deployed.runtime.prepare(request);
  deployed.world.books.write({
    ...{ op: 'update', target: 'invoice', key: { id: 1 } },
    set: { status: 'paid' },
  });
  await deployed.runtime.prepare(wrong);
});

test('the rendering says to which state an approval is bound, or that it is bound to none', async () => {
  await using deployed = await deploy(invoiceWorld());
  const lineOf = async (more: Partial<PrepareRequest>) => {
    const { rendering } = await deployed.runtime.prepare({ ...request, ...more });
    return rendering.split('\n').find((line) => line.startsWith('Bound to state: '));
  };
  assert.equal(await lineOf({}), 'Bound to state: none; other rows may change before it runs');
  assert.equal(
    await lineOf({
      requires: [row('vendor', { id: 1 }, { blocked: false })],
      watch: [read('invoice', { id: 1 }), read('invoice', { id: 2 })],
      revision: 'r\n7',
    }),
    'Bound to state: 1 row required, as listed above; 2 rows watched, as listed above; revision "r\\n7" of the application',
  );
});

test('an open boundary is a warning on the proposal, with what is open, and not a refusal', async () => {
  const world = invoiceWorld();
  await using deployed = await deploy(world);
  assert.equal((await deployed.runtime.prepare(request)).note, undefined);
  world.books.unclassified = 'a webhook';
  const { note } = await deployed.runtime.prepare(request);
  assert.equal(note?.warnings?.length, 1);
  assert.match(
    note?.warnings?.[0] ?? '',
    /^the boundary of books is open, .* every execution is refused: a webhook: .*`effectmatch doctor`/,
  );
});

test('who asks, the reason and the bound action come with the proposal and change nothing that is signed', async () => {
  await using deployed = await deploy(invoiceWorld());
  const said = { requestedBy: 'agent 7', reason: 'the invoice is due' };
  const bare = await deployed.runtime.prepare({ ...request, action: PAY });
  const proposal = await deployed.runtime.prepare({ ...request, action: PAY, ...said });
  const described = { writes: PAY.writes };
  assert.deepEqual(bare.note, { action: described });
  assert.deepEqual(proposal.note, {
    ...{ by: said.requestedBy, reason: said.reason },
    action: described,
  });
  assert.equal(proposal.rendering.includes('agent 7'), false);
  const { world, runtime } = deployed;
  const forged = { ...proposal, note: { ...proposal.note, action: { writes: [] } } };
  assert.throws(() => world.approver.sign(forged, { expiresIn: '1m' }), {
    code: 'ERR_EM_MANIFEST_INVALID',
    message: /the action it shows is not the one it is bound to; do not sign it/,
  });
  const license = world.approver.sign(proposal, { expiresIn: '1m' });
  assert.equal(JSON.stringify(license).includes('agent 7'), false);
  ofKind('committed', await runtime.execute(license, PAY));
  for (const [field, wrong] of [
    ['requestedBy', ''],
    ['reason', 7],
    ['reason', 'x'.repeat(4001)],
  ] as const)
    await assert.rejects(
      runtime.prepare({ ...request, [field]: wrong } as PrepareRequest),
      new RegExp(`${field} must be text of 1 to`),
    );
});

test('a plan revision below the announced one is refused before anybody signs it, and announces nothing', async () => {
  await using deployed = await deploy(invoiceWorld());
  await deployed.runtime.prepare({ ...PAYMENT, planRevision: 3 });
  await assert.rejects(deployed.runtime.prepare({ ...PAYMENT, planRevision: 2 }), {
    code: 'ERR_EM_PLAN_SUPERSEDED',
    message: /plan revision 3 of task "invoice 1" was announced, and this is 2/,
  });
  const license = await deployed.approve({ planRevision: 3 });
  ofKind('committed', await deployed.runtime.execute(license, PAY));
});
