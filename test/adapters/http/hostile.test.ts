// Goal: a service or an approval that is odd in one way is never taken for more than it says.
// Method: the payment service behind a front that rewrites single answers, and approvals that name
// the wrong thing, all through the public runtime; what was really done is read at the service.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { draftPaymentOptions, paymentOptions } from '../../../examples/payment-service/adapter.ts';
import { draftHttp, mediatedHttp } from '../../../src/adapters/http/index.ts';
import type { Step } from '../../../src/contract/steps.ts';
import { generated, insert, update } from '../../../src/protocol/draft.ts';
import type { ChangeRecord } from '../../../src/protocol/effect.ts';
import { renderTerminal } from '../../../src/protocol/render-terminal.ts';
import type { Value } from '../../../src/protocol/value.ts';
import { startLoopback } from '../../http/loopback.ts';
import { openRig, PAYMENT, type Rig } from './rig.ts';

/** Passes everything on and rewrites what comes back. */
const startFront = (upstream: string, rewrite: (path: string, body: string) => string) =>
  startLoopback(async (request, response, bytes) => {
    const { method = 'GET', url = '/', headers } = request;
    const kept = ['authorization', 'content-type', 'idempotency-key', 'if-match'].flatMap((name) =>
      typeof headers[name] === 'string' ? [[name, headers[name]] as [string, string]] : [],
    );
    const body = method === 'GET' ? null : bytes;
    const answer = await fetch(`${upstream}${url}`, { method, headers: kept, body });
    response
      .writeHead(answer.status, { 'content-type': 'application/json' })
      .end(rewrite(url, await answer.text()));
  });

async function payThrough(rewrite: (path: string, body: string, rig: Rig) => string) {
  await using rig = await openRig();
  await using front = await startFront(rig.service.origin, (path, body) =>
    rewrite(path, body, rig),
  );
  const runtime = await rig.start({
    adapters: { bank: mediatedHttp(paymentOptions({ ...rig.place, origin: front.origin })) },
  });
  const terminal = await runtime.execute(await rig.approve(runtime), {});
  assert.equal(rig.payments.length, 1);
  const stored = ['ledger.db', 'ledger.db-wal'].map((name) =>
    readFileSync(`${rig.folder}/${name}`, 'latin1'),
  );
  return { terminal, stored: stored.join(''), secret: rig.service.token.replace('Bearer ', '') };
}

const inLookUp = (path: string, body: string, from: string, into: string) =>
  path.startsWith('/requests/') ? body.replace(from, into) : body;

test('a read-back that says two amounts establishes neither', async () => {
  const { terminal } = await payThrough((path, body) =>
    inLookUp(path, body, '"amount":35', '"amount":3500,"amount":35'),
  );
  assert.equal(terminal.kind, 'indeterminate', renderTerminal(terminal));
});

test('a service that says it refused what it did, or counts below zero, establishes nothing', async () => {
  const refused = await payThrough((path, body) =>
    inLookUp(path, body, '"state":"done"', '"state":"refused"'),
  );
  assert.equal(refused.terminal.kind, 'indeterminate', renderTerminal(refused.terminal));
  const count = (n: number) => `{"op":"insert","target":"payment","count":${n}}`;
  const counted = await payThrough((path, body) =>
    path.startsWith('/ledger') ? `{"counts":[${count(2)},${count(-1)}]}` : body,
  );
  assert.equal(counted.terminal.kind, 'indeterminate', renderTerminal(counted.terminal));
});

test('a credential that comes back with escaped characters is stored nowhere', async () => {
  const { terminal, stored, secret } = await payThrough((path, body, rig) => {
    const escaped = `${rig.service.token}.main`.replace('Bearer ', '').replace('-', '\\u002d');
    return inLookUp(path, body, '"memo":null', `"memo":"${escaped}"`);
  });
  assert.equal(terminal.kind, 'indeterminate', renderTerminal(terminal));
  assert.ok(!stored.includes(secret), 'the journal contains the credential');
});

test('what has no plain JSON form is not approved, because a service would be sent something else', async () => {
  await using rig = await openRig();
  const runtime = await rig.start();
  const amount = 9_007_199_254_740_993n;
  const row = { id: generated('payment'), payee: 'acme', amount, memo: null };
  await assert.rejects(runtime.prepare({ ...PAYMENT, effects: [insert('payment', row)] }), {
    code: 'ERR_EM_MANIFEST_INVALID',
    message: /cannot be requested exactly: a body cannot carry \$int 9007199254740993/,
  });
});

test('a conditional change needs the version of the entry that it changes, not of another one', async () => {
  await using rig = await openRig();
  const runtime = await rig.start();
  const version = (id: string) => ({ target: 'payee', key: { id }, row: { etag: '"v1"' } });
  const change = {
    ...PAYMENT,
    effects: [update('payee', { id: 'acme' }, { iban: ['NL01', 'NL99'] })],
  };
  await assert.rejects(runtime.prepare({ ...change, requires: [version('globex')] }), {
    code: 'ERR_EM_MANIFEST_INVALID',
  });
  rig.account.changePayee('globex', 'NL03', undefined);
  const other = { target: 'payee', key: { id: 'globex' }, row: { etag: '"v2"' } };
  const license = await rig.approve(runtime, { ...change, requires: [other, version('acme')] });
  const terminal = await runtime.execute(license, {});
  assert.equal(terminal.kind, 'committed', renderTerminal(terminal));
});

test('a publication that lost its marker at the service is never called rejected', async () => {
  await using rig = await openRig();
  const options = draftPaymentOptions(rig.place);
  // Long enough for a void marker, and so for admission; too short for that of a publication.
  const publish = (draft: string, metadata: string) => ({
    draft,
    metadata: metadata.slice(0, 500),
  });
  const factory = draftHttp({ ...options, publication: { ...options.publication, publish } });
  const runtime = await rig.start({ adapters: { bank: factory } });
  const order = { id: 'p-1', payee: 'acme', amount: 35, memo: null };
  const license = await rig.approve(runtime, { ...PAYMENT, effects: [insert('payment', order)] });
  const terminal = await runtime.execute(license, { input: { orders: [order] } });
  assert.deepEqual([...rig.account.payments.keys()], ['p-1']);
  assert.equal(terminal.kind, 'indeterminate', renderTerminal(terminal));
  const [recovered] = await runtime.recover({ now: true });
  assert.equal(recovered?.kind, 'unresolved');
});

test('recovery with fewer registered targets than were approved establishes nothing', async () => {
  await using rig = await openRig();
  const before = await rig.start();
  rig.faults.arm('hidden-effect');
  rig.faults.readsUnavailable = true;
  const stopped = await before
    .prepare(PAYMENT)
    .then((proposal) => before.execute(rig.sign(proposal), {}));
  assert.equal(stopped.kind, 'indeterminate', renderTerminal(stopped));
  rig.faults.readsUnavailable = false;
  assert.equal(rig.account.notices.size, 1);

  const options = paymentOptions(rig.place);
  const { payment = { columns: [], key: [] } } = options.targets;
  const { pay } = options.operations;
  assert.ok(pay !== undefined);
  const found = (body: Value) => {
    const { effects } = body as unknown as { readonly effects: readonly ChangeRecord[] };
    return { records: effects.filter(({ target }) => target === 'payment') };
  };
  const readBack = { path: pay.readBack.path, found, covers: ['payment'] };
  const fewer = { ...options, targets: { payment }, operations: { pay: { ...pay, readBack } } };
  const after = await rig.start({ adapters: { bank: mediatedHttp(fewer) } });
  const [recovered] = await after.recover({ now: true });
  assert.equal(recovered?.kind, 'unresolved', JSON.stringify(recovered));
  const again = await rig.start();
  const [settled] = await again.recover({ now: true });
  assert.equal(settled?.kind === 'settled' && settled.terminal.kind, 'diverged');
});

test('who slept past the lease with a consumed permit does not send any more', async () => {
  await using rig = await openRig();
  let sleptMs = 0;
  const clock = { now: () => Date.now() + sleptMs, monotonic: () => performance.now() };
  const reached = (step: Step) => {
    if (step === 'path:permit-consumed') sleptMs = 3_600_000;
  };
  const runtime = await rig.start({}, { clock, reached });
  const license = await rig.approve(runtime);
  const arrived = rig.account.arrivals.size;
  const terminal = await runtime.execute(license, {});
  assert.equal(
    terminal.kind === 'rejected' && terminal.reason,
    'not-sent',
    renderTerminal(terminal),
  );
  assert.equal(rig.account.arrivals.size, arrived);
});

test('a credential that changes after the final gate is not used, and one that cannot be had is not quoted', async () => {
  await using rig = await openRig();
  let account = 'main';
  let fails = false;
  const { service, ...options } = paymentOptions(rig.place);
  const value = () => {
    if (fails) throw new Error(`the vault has ${rig.service.token}.main and cannot give it`);
    return `${rig.service.token}.${account}`;
  };
  const factory = mediatedHttp({
    ...options,
    service: { ...service, credential: { header: 'Authorization', value } },
  });
  let change = () => {
    account = 'other';
  };
  const reached = (step: Step) => void (step === 'path:permit-consumed' && change());
  const runtime = await rig.start({ adapters: { bank: factory } }, { reached });
  const terminal = await runtime.execute(await rig.approve(runtime), {});
  assert.equal(rig.service.account('other').payments.size, 0);
  assert.equal(
    terminal.kind === 'rejected' && terminal.reason,
    'not-sent',
    renderTerminal(terminal),
  );

  account = 'main';
  change = () => {
    fails = true;
  };
  const failed = await runtime.execute(
    await rig.approve(runtime, { ...PAYMENT, task: 'again' }),
    {},
  );
  assert.equal(failed.kind === 'rejected' && failed.reason, 'not-sent', renderTerminal(failed));
  assert.ok(!renderTerminal(failed).includes('vault'), renderTerminal(failed));
  assert.equal(rig.payments.length, 0);
});
