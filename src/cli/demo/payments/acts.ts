import { createRuntime } from '../../../index.ts';
import type { Act, ActStage } from '../play.ts';
import { answerOf, summaryOf } from '../words.ts';
import { Bank } from './bank.ts';
import { openCounter, PAYMENT } from './counter.ts';

const VALID = { expiresIn: '10m' };

const naiveRetry: Act = {
  title: 'Without EffectMatch: the answer is lost, so the client tries again',
  async play({ tell, expect }) {
    await using bank = await Bank.open();
    bank.mishap = 'answer-lost';
    const pay = () =>
      fetch(`${bank.url}/payments`, {
        method: 'POST',
        headers: { authorization: bank.token, connection: 'close' },
        body: JSON.stringify({ payee: 'Nordlicht GmbH', amount: 129_900 }),
      }).then(
        ({ status }) => `answered ${status}`,
        () => 'the connection was cut',
      );
    const tries = [await pay(), await pay()];
    expect('what the client saw', tries, ['the connection was cut', 'answered 201']);
    tell('client', `first try: ${tries[0]}; second try: ${tries[1]}`);
    expect('the payments', bank.made.length, 2);
    tell('bank', 'two payments of 1299.00 to Nordlicht GmbH', 'bad');
  },
};

const lostAnswer: Act = {
  title: 'With EffectMatch: it sends once, stops, and finds out by asking',
  async play(stage) {
    const { tell, judge, expect, folder } = stage;
    await using bank = await Bank.open();
    const { config, approver } = openCounter(bank, folder);
    await using runtime = await createRuntime(config);
    const proposal = await runtime.prepare(PAYMENT);
    tell('approved', proposal.rendering);
    const license = approver.sign(proposal, VALID);
    bank.mishap = 'answer-lost';
    bank.unreachable = true;
    const lost = await runtime.execute(license, {});
    expect('the verdict', summaryOf(lost), { kind: 'indeterminate' });
    judge(lost);
    const halted = await runtime.continuation(lost, 'reconcile').release(() => 'reconciled');
    expect('the release', halted, { kind: 'halted', why: 'indeterminate' });
    tell('reconcile', `the work that waits for the payment: ${answerOf(halted)}`);
    const replay = await runtime.execute(license, {});
    expect('the second try', summaryOf(replay), { kind: 'rejected', reason: 'spent' });
    tell('client', 'presents the same license again: rejected (spent), nothing is sent');

    bank.unreachable = false;
    const recovered = await runtime.recover({ now: true });
    const settled = recovered.flatMap((result) => (result.kind === 'settled' ? [result.terminal] : []));
    expect('the recovered verdicts', settled.map(summaryOf), [{ kind: 'committed', reconciled: true }]);
    tell('recovery', 'the bank answers again, and is asked for the payment by its idempotency key: it is there');
    settled.forEach(judge);
    tellPayments(stage, bank, 1);
    const released = await runtime.continuation(lost, 'reconcile').release(() => 'reconciled');
    expect('the release after recovery', released.kind, 'released');
    tell('reconcile', answerOf(released));
  },
};

const hiddenFee: Act = {
  title: 'The bank charges a fee that nobody approved',
  async play(stage) {
    const { tell, judge, expect, folder } = stage;
    await using bank = await Bank.open();
    const { config, approver } = openCounter(bank, folder);
    await using runtime = await createRuntime(config);
    const license = approver.sign(await runtime.prepare(PAYMENT), VALID);
    bank.mishap = 'hidden-fee';
    const terminal = await runtime.execute(license, {});
    expect('the verdict', summaryOf(terminal), { kind: 'diverged' });
    judge(terminal);
    tellPayments(stage, bank, 1);
    const halted = await runtime.continuation(terminal, 'reconcile').release(() => 'reconciled');
    expect('the release', halted, { kind: 'halted', why: 'diverged' });
    tell('reconcile', `${answerOf(halted)}: what happened cannot be undone, and nothing builds on it`);
  },
};

function tellPayments({ tell, expect }: ActStage, bank: Bank, expected: number): void {
  expect('the payments', bank.made.length, expected);
  tell('bank', `one payment of 1299.00 to ${bank.made[0]?.payee}`, 'good');
}

/** The story of a payment whose answer is lost. */
export const PAYMENT_ACTS: readonly Act[] = [naiveRetry, lostAnswer, hiddenFee];
