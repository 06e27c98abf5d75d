// Goal: whatever the order of messages, a request has at most one effect, none after a no, and its
// state is what the journal says. Method: random sequences of what agents, approvers, the clock and
// crashes can do, on a real host; the database is looked at after every step.
import assert from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import fc from 'fast-check';
import { agentTools } from '../../src/agents/index.ts';
import { EffectMatchError, insert, type SignedLicense } from '../../src/index.ts';
import { type ApprovalRequest, type Ask, isFinal } from '../../src/requests/index.ts';
import { retryWhileBusy } from '../../src/sqlite/connection.ts';
import { openOffice, pay } from './office.ts';

const CALL = pay('globex');
/** What is asked for: something that depends on no state, or on a row that may change meanwhile. */
const WANTED = {
  free: CALL,
  watching: {
    manifest: {
      adapter: 'books',
      effects: [insert('payment', { id: 7, payee: 'globex', amount: 10 })],
      watch: [{ target: 'budget', key: { id: 1 } }],
    },
    action: { sql: "insert into payment values (7, 'globex', 10)" },
  },
} as const;
const STEPS = [
  ...['ask', 'sign', 'present', 'present old', 'decline', 'withdraw', 'renew', 'execute'],
  ...['run directly', 'hours pass', 'restart', 'work', 'change state', 'abandon', 'call tool'],
] as const;
type StepName = (typeof STEPS)[number];

interface Order {
  readonly steps: readonly StepName[];
  readonly mode: 'on-approval' | 'on-call';
  readonly wanted: keyof typeof WANTED;
}

/** One sequence on one office. Returns what was asked for and paid. */
async function play({ steps, mode, wanted }: Order): Promise<void> {
  using office = openOffice();
  const ask = { by: 'agent', run: 'run', ...WANTED[wanted] } as Ask & { readonly action: unknown };
  const abandoned: AsyncDisposable[] = [];
  const start = () => office.start({ run: mode, expiresIn: '3h' });
  let host = await start();
  const licenses: SignedLicense[] = [];
  let accepted: SignedLicense | undefined;
  let id: string | undefined;
  let said: ApprovalRequest['state'] | undefined;
  try {
    for (const step of steps) {
      if (step === 'restart') {
        await host[Symbol.asyncDispose]();
        host = await start();
      } else if (step === 'abandon') {
        // Like a process that is killed, except that what it has begun goes on.
        if (id !== undefined) void host.requests.execute(id).catch(() => {});
        abandoned.push(host);
        host = await start();
      } else if (step === 'hours pass') office.clock.advance(2 * 3_600_000);
      else if (step === 'change state') await changeState(office.db);
      else await take(step).catch(demandRefusal);
      if (id !== undefined) said = await check(id, said);
    }
  } finally {
    for (const one of [host, ...abandoned]) await one[Symbol.asyncDispose]();
  }

  async function take(step: StepName): Promise<void> {
    const { requests, runtime } = host;
    if (step === 'ask') id = (await requests.ask(ask)).id;
    if (id === undefined) return;
    if (step === 'sign') {
      const { proposal } = await requests.get(id);
      licenses.push(office.alice.sign(proposal, { expiresIn: '1h' }));
    }
    const license = step === 'present old' ? licenses[0] : licenses.at(-1);
    if (step.startsWith('present') && license) {
      await requests.answer(id, license);
      accepted = license;
    }
    // The license that the request took, used past the request.
    if (step === 'run directly' && accepted) await runtime.ensure(accepted, ask.action);
    if (step === 'decline') await requests.decline(id, { by: 'alice', reason: 'no' });
    if (step === 'withdraw') await requests.withdraw(id);
    if (step === 'renew') await requests.renew(id);
    if (step === 'execute') await requests.execute(id);
    if (step === 'call tool' && wanted === 'free') {
      const adapters = { books: { sql: true } };
      const [tool] = agentTools({ requests, agent: 'agent', run: 'run', adapters });
      const answer = await tool?.call(CALL.action);
      assert.equal(answer?.request, id);
      const { state } = await requests.get(id);
      const isOpen = ['approval-required', 'approved', 'running'].includes(answer?.status ?? '');
      if (!isOpen) assert.equal(answer?.status, state);
    }
    if (step === 'work') {
      requests.start();
      await requests.wait(id, { waitMs: 30 });
    }
  }

  async function check(of: string, before: ApprovalRequest['state'] | undefined) {
    // A host may execute it meanwhile, so what is asked first may only be older.
    const { occurrence } = await host.requests.get(of);
    const recorded = occurrence && (await host.runtime.terminal(occurrence));
    const paidBefore = office.payments().length;
    const { state } = await host.requests.get(of);
    const paid = office.payments().length;
    assert.ok(paid <= 1, 'it paid twice');
    if (recorded?.claim !== undefined) assert.equal(state, recorded.kind);
    if (paidBefore === 1) assert.ok(state === 'running' || state === 'committed', state);
    if (state === 'committed') assert.equal(paid, 1);
    const isNo = before === 'declined' || before === 'withdrawn' || before === 'committed';
    if (isNo) assert.equal(state, before, 'what is final stays');
    assert.equal(isFinal(state) || ['pending', 'approved', 'running'].includes(state), true);
    return state;
  }
}

/** A host may hold the file meanwhile. */
async function changeState(db: DatabaseSync): Promise<void> {
  const change = () => db.exec('update budget set left = left - 1');
  await retryWhileBusy(change, { deadlineMs: 30_000 });
}

function demandRefusal(error: unknown): void {
  if (error instanceof EffectMatchError && error.code !== 'ERR_EM_INVARIANT') return;
  throw error;
}

test('at most one effect, none after a no, and the state is what the journal says', async () => {
  const sequence = fc.array(fc.constantFrom(...STEPS), { minLength: 4, maxLength: 14 });
  const orders = fc.record<Order>({
    steps: sequence.map((steps) => ['ask', 'sign', ...steps]),
    mode: fc.constantFrom('on-approval', 'on-call'),
    wanted: fc.constantFrom('free', 'watching'),
  });
  const numRuns = Number(process.env.EFFECTMATCH_ORDERS ?? 60);
  await fc.assert(fc.asyncProperty(orders, play), { numRuns });
});
