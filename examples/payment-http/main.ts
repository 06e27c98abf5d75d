/**
 * A payment service loses answers. Start it with `npm run example -- payment-http`.
 *
 * @module
 */
import { join } from 'node:path';
import {
  approver,
  createRuntime,
  generateApprover,
  generated,
  insert,
  type PrepareRequest,
  signResolution,
  type Terminal,
} from 'effectmatch';
import { mediatedHttp } from 'effectmatch/adapters/http';
import { paymentOptions } from '../payment-service/adapter.ts';
import { startPaymentService } from '../payment-service/server.ts';
import { chapter, expectDurable, expectVerdict, openWorkplace, tell } from '../story.ts';

using workplace = openWorkplace();
const at = (name: string) => join(workplace.folder, name);

// A real HTTP server on this machine. It writes its own book, which this example and its test read.
await using service = await startPaymentService({ book: at('bank-book.jsonl') });
const faults = service.faults('main');
const bank = { origin: service.origin, token: service.token, account: 'main' };

/** What the bank says was paid, asked over HTTP without EffectMatch. */
async function lookAtBank(): Promise<readonly string[]> {
  const response = await fetch(`${bank.origin}/payments`, {
    headers: { authorization: `${bank.token}.main` },
  });
  const { payments } = (await response.json()) as {
    payments: { payee: string; amount: number; memo: string }[];
  };
  return payments
    .filter(({ memo }) => memo !== 'probe') // the harmless request that admission sends to test the service
    .map(({ payee, amount, memo }) => `${amount} to ${payee} (${memo})`);
}

chapter('1. Without EffectMatch: the answer is lost, and the client tries again');
faults.arm('drop-after');
for (const attempt of ['first try', 'second try']) {
  const paying = fetch(`${bank.origin}/payments`, {
    method: 'POST',
    headers: { authorization: `${bank.token}.main`, connection: 'close' },
    body: JSON.stringify({ payee: 'acme', amount: 350, memo: 'invoice 1' }),
  });
  const saw = await paying.then(
    ({ status }) => `answered ${status}`,
    () => 'the connection was cut',
  );
  tell(attempt, saw);
}
const TWICE = ['350 to acme (invoice 1)', '350 to acme (invoice 1)'];
expectDurable('bank', await lookAtBank(), TWICE);

const treasury = generateApprover('treasury');
const operator = generateApprover('night-shift');
const runtime = await createRuntime({
  store: at('effectmatch.db'),
  keyring: at('effectmatch.keys.json'),
  issuers: { treasury: { key: treasury.publicKey, may: ['bank'] } },
  operators: { 'night-shift': { key: operator.publicKey } },
  adapters: { bank: mediatedHttp(paymentOptions(bank)) },
});

// Try the service before anything is lost on purpose; the first execution would do the same.
await runtime.prove('bank');

/**
 * One payment, and nothing else. The request is built from this alone; the agent only asks for it.
 */
const payment = (memo: string, planRevision = 1): PrepareRequest => ({
  adapter: 'bank',
  task: memo,
  planRevision,
  effects: [insert('payment', { id: generated('payment'), payee: 'acme', amount: 350, memo })],
  continuations: ['book'],
});
const approve = async (request: PrepareRequest) =>
  approver(treasury).sign(await runtime.prepare(request), { expiresIn: '10m' });

/** The work that waits for a payment. */
async function book(terminal: Terminal): Promise<void> {
  const released = await runtime.continuation(terminal, 'book').release(() => 'booked');
  tell('booking', released.kind === 'released' ? released.value : `halted (${released.why})`);
}

chapter('2. With EffectMatch: the answer is lost again, and nothing is sent twice');
tell('approved', (await runtime.prepare(payment('invoice 2'))).rendering);
const second = await approve(payment('invoice 2'));
faults.arm('drop-after');
const found = await runtime.execute(second, {});
tell(
  'meanwhile',
  'the connection was cut, so the bank was asked what it did under the idempotency key',
);
expectVerdict(found, 'committed');
const PAID = [...TWICE, '350 to acme (invoice 2)'];
expectDurable('bank', await lookAtBank(), PAID);
await book(found);

chapter('3. The answer is lost, and the bank cannot be asked either');
const third = await approve(payment('invoice 3'));
faults.arm('drop-after');
faults.readsUnavailable = true;
const lost = await runtime.execute(third, {});
expectVerdict(lost, 'indeterminate');
await book(lost);
tell('agent', 'tries the same approval again');
expectVerdict(await runtime.execute(third, {}), 'rejected (spent)');
tell('later', 'the bank answers again, and recovery asks');
faults.readsUnavailable = false;
for (const result of await runtime.recover({ now: true })) {
  if (result.kind !== 'settled') throw new Error(`${result.kind}: ${result.why}`);
  expectVerdict(result.terminal, 'committed');
}
const BOTH = [...PAID, '350 to acme (invoice 3)'];
expectDurable('bank', await lookAtBank(), BOTH);
await book(lost);

chapter('4. The request is lost on its way, and no evidence will ever come: a person decides');
const fourth = await approve(payment('invoice 4'));
faults.arm('drop-before');
const gone = await runtime.execute(fourth, {});
expectVerdict(gone, 'indeterminate');
for (const result of await runtime.recover({ now: true })) {
  if (result.kind !== 'unresolved') throw new Error(`unexpected: ${result.kind}`);
  tell('recovery', `unresolved: ${result.why}`);
}
const evidence = 'The bank on the phone: no payment for invoice 4, and none under way.';
const { occurrence, execution, lineage } = gone;
const decision = { occurrence, execution, lineage, finding: 'did-not-happen', evidence } as const;
await runtime.resolve(
  signResolution({ operator: operator.issuer, privateKey: operator.privateKey }, decision),
  evidence,
);
tell('operator', `did-not-happen: ${evidence}`);
tell(
  'unsettled',
  `${(await runtime.recover({ now: true })).length} occurrences; the verdict has not changed:`,
);
expectVerdict((await runtime.terminal(occurrence)) ?? gone, 'indeterminate');
await book(gone);
tell('then', 'a new approval is signed');
const fresh = await runtime.execute(await approve(payment('invoice 4', 2)), {});
expectVerdict(fresh, 'committed');
await book(fresh);
const ALL = [...BOTH, '350 to acme (invoice 4)'];
expectDurable('bank', await lookAtBank(), ALL);

chapter('5. The bank also does something that was not approved');
const fifth = await approve(payment('invoice 5'));
faults.arm('hidden-effect');
const diverged = await runtime.execute(fifth, {});
expectVerdict(diverged, 'diverged');
expectDurable('bank', await lookAtBank(), [...ALL, '350 to acme (invoice 5)']);
await book(diverged);
await runtime.close();
