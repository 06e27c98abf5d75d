// Goal: a request that cannot be approved is refused in words that say what to change.
// Method: requests with one mistake each, to a deployment in memory.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { absent, row, update } from '../../src/protocol/draft.ts';
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
