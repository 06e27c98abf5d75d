import { createRuntime, type Terminal } from '../../index.ts';
import { NOTIFYING_TRIGGER } from './desk.ts';
import { PAYING, PAYMENT, PAYMENT_WITH_NOTE } from './payment.ts';
import type { Act } from './play.ts';
import { answerOf, countRuns, summaryOf } from './words.ts';

const VALID = { expiresIn: '10m' };
const UNPAID = { status: 'pending', notifications: 0 };
const PAID = { status: 'paid', notifications: 0 };

const cleanPayment: Act = {
  title: 'A clean payment',
  async play({ desk, tell, judge, look, expect }) {
    const approver = desk.open();
    await using runtime = await createRuntime(desk.config);
    const proposal = await runtime.prepare(PAYMENT);
    tell('approved', proposal.rendering);
    tell('agent', `${PAYING.sql}   [${PAYING.values.join(', ')}]`);
    const terminal = await runtime.execute(approver.sign(proposal, VALID), PAYING);
    expect('the verdict', summaryOf(terminal), { kind: 'committed' });
    judge(terminal);
    expect('the database', look('exactly as approved'), PAID);
    const release = await runtime.continuation(terminal, 'reconcile').release(() => desk.reconcile());
    expect('the release', release.kind, 'released');
    expect('the number of reconciliations', desk.reconciliations, 1);
    tell('reconcile', `the work that waits for the payment: ${answerOf(release)}, ${countRuns(desk)}`);
  },
};

const hiddenTrigger: Act = {
  title: 'The same approval and the same SQL, but a trigger writes one row more',
  async play({ desk, tell, judge, look, expect, ask }) {
    const approver = desk.open(NOTIFYING_TRIGGER);
    {
      await using runtime = await createRuntime(desk.config);
      const terminal = await runtime.execute(approver.sign(await runtime.prepare(PAYMENT), VALID), PAYING);
      expect('the verdict', summaryOf(terminal), { kind: 'rejected', reason: 'diverged' });
      judge(terminal);
    }
    expect('the database', look('everything was rolled back'), UNPAID);
    const { answer, pid } = await ask('reconcile');
    expect('the release', answer, { kind: 'halted', why: 'rejected' });
    expect('the number of reconciliations', desk.reconciliations, 0);
    tell('reconcile', `a fresh process (${pid}) asks: ${answerOf(answer)}, ${countRuns(desk)}`);
  },
};

const staleApproval: Act = {
  title: 'The vendor is blocked after the approval',
  async play({ desk, tell, judge, look, expect }) {
    const approver = desk.open();
    await using runtime = await createRuntime(desk.config);
    const license = approver.sign(await runtime.prepare(PAYMENT), VALID);
    const blocking = 'update vendor set blocked = 1 where id = 7';
    desk.change(blocking);
    tell('meanwhile', blocking);
    const terminal = await runtime.execute(license, PAYING);
    expect('the verdict', summaryOf(terminal), { kind: 'rejected', reason: 'precondition-broken' });
    judge(terminal);
    expect('the database', look('the SQL never ran'), UNPAID);
  },
};

const approvalUsedTwice: Act = {
  title: 'One approval, presented by two workers at the same time',
  async play({ desk, tell, judge, look, expect }) {
    const approver = desk.open(NOTIFYING_TRIGGER);
    await using runtime = await createRuntime(desk.config);
    const proposal = await runtime.prepare(PAYMENT_WITH_NOTE);
    tell('approved', proposal.rendering);
    const license = approver.sign(proposal, VALID);
    const terminals = await Promise.all([runtime.execute(license, PAYING), runtime.execute(license, PAYING)]);
    terminals.sort((a: Terminal, b: Terminal) => (a.kind < b.kind ? -1 : 1));
    expect('the verdicts', terminals.map(summaryOf), [{ kind: 'committed' }, { kind: 'rejected', reason: 'spent' }]);
    terminals.forEach(judge);
    expect('the database', look('one payment'), { status: 'paid', notifications: 1 });
  },
};

const killedProcess: Act = {
  title: 'The process is killed after the commit, before it could write its verdict down',
  async play({ desk, tell, judge, look, expect, ask }) {
    const approver = desk.open();
    {
      await using runtime = await createRuntime(desk.config);
      desk.leave(approver.sign(await runtime.prepare(PAYMENT), VALID));
    }
    const killed = await ask('pay-and-die');
    expect('what the killed process said', killed.answer, undefined);
    expect('the signal', killed.signal, 'SIGKILL');
    tell('killed', `process ${killed.pid}, by ${killed.signal}`);
    expect('the database', look('the commit itself was real'), PAID);
    const { answer, pid } = await ask('recover');
    expect('the release before recovery', answer?.before, { kind: 'halted', why: 'no-terminal' });
    tell('reconcile', `a fresh process (${pid}) asks: ${answerOf(answer?.before)}`);
    const settled = (answer?.recovered ?? []).flatMap((result) => (result.kind === 'settled' ? [result.terminal] : []));
    expect('the recovered verdicts', settled.map(summaryOf), [{ kind: 'committed', reconciled: true }]);
    tell('recovery', 'it finds the marker that was committed together with the payment');
    settled.forEach(judge);
    expect('the release after recovery', answer?.after.kind, 'released');
    const again = await ask('reconcile');
    expect('the second release', again.answer, { kind: 'halted', why: 'already-released' });
    expect('the number of reconciliations', desk.reconciliations, 1);
    tell(
      'reconcile',
      `${answerOf(answer?.after)}; one more process (${again.pid}) asks: ${answerOf(again.answer)}; ${countRuns(desk)}`,
    );
  },
};

/** The story of invoice 4711, in the order in which a newcomer would ask. */
export const ACTS: readonly Act[] = [cleanPayment, hiddenTrigger, staleApproval, approvalUsedTwice, killedProcess];
