// Goal: whatever the order of messages, a request has at most one effect, none after a no, and its
// state is what the journal says. Method: random sequences of what agents, approvers, the clock and
// crashes can do, on a real host; the database is looked at after every step.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { EffectMatchError, type SignedLicense } from '../../src/index.ts';
import { type ApprovalRequest, isFinal } from '../../src/requests/index.ts';
import { openOffice, pay } from './office.ts';

const ASK = { by: 'agent', run: 'run', ...pay('globex') };
const STEPS = [
  ...['ask', 'sign', 'present', 'present old', 'decline', 'withdraw', 'renew', 'execute'],
  ...['run directly', 'hours pass', 'restart', 'work'],
] as const;
type StepName = (typeof STEPS)[number];

/** One sequence on one office. Returns what was asked for and paid. */
async function play(steps: readonly StepName[], mode: 'on-approval' | 'on-call'): Promise<void> {
  using office = openOffice();
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
      } else if (step === 'hours pass') office.clock.advance(2 * 3_600_000);
      else await take(step).catch(demandRefusal);
      if (id !== undefined) said = await check(id, said);
    }
  } finally {
    await host[Symbol.asyncDispose]();
  }

  async function take(step: StepName): Promise<void> {
    const { requests, runtime } = host;
    if (step === 'ask') id = (await requests.ask(ASK)).id;
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
    if (step === 'run directly' && accepted) await runtime.ensure(accepted, ASK.action);
    if (step === 'decline') await requests.decline(id, { by: 'alice', reason: 'no' });
    if (step === 'withdraw') await requests.withdraw(id);
    if (step === 'renew') await requests.renew(id);
    if (step === 'execute') await requests.execute(id);
    if (step === 'work') {
      requests.start();
      await requests.wait(id, { waitMs: 30 });
    }
  }

  async function check(of: string, before: ApprovalRequest['state'] | undefined) {
    const request = await host.requests.get(of);
    const { state, occurrence } = request;
    const paid = office.payments().length;
    assert.ok(paid <= 1, 'it paid twice');
    const recorded = occurrence && (await host.runtime.terminal(occurrence));
    if (recorded?.claim !== undefined) assert.equal(state, recorded.kind);
    if (state !== 'running') assert.equal(paid === 1, state === 'committed', state);
    const isNo = before === 'declined' || before === 'withdrawn' || before === 'committed';
    if (isNo) assert.equal(state, before, 'what is final stays');
    assert.equal(isFinal(state) || ['pending', 'approved', 'running'].includes(state), true);
    return state;
  }
}

function demandRefusal(error: unknown): void {
  if (error instanceof EffectMatchError && error.code !== 'ERR_EM_INVARIANT') return;
  throw error;
}

test('at most one effect, none after a no, and the state is what the journal says', async () => {
  const sequence = fc.array(fc.constantFrom(...STEPS), { minLength: 4, maxLength: 14 });
  const mode = fc.constantFrom('on-approval' as const, 'on-call' as const);
  await fc.assert(
    fc.asyncProperty(sequence, mode, (steps, how) => play(['ask', 'sign', ...steps], how)),
    { numRuns: 60 },
  );
});
