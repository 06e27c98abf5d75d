/**
 * Pays the invoices of a month and closes it. Start it with `npm run example -- month-end`, or with
 * `--dbos` on two workers, one of which is killed.
 *
 * @module
 */
import assert from 'node:assert/strict';
import { approver, createRuntime } from 'effectmatch';
import { drawRun, type HandoffReport, openWorkflows } from 'effectmatch/workflow';
import { chapter, expectDurable, openWorkplace, tell } from '../story.ts';
import { configOf, createBooks, lookAt, monthEnd, treasurer } from './office.ts';
import { runOnWorkers } from './workers.ts';

const isOnDbos = process.argv.includes('--dbos');
if (isOnDbos) process.argv.splice(process.argv.indexOf('--dbos'), 1);
using workplace = openWorkplace();
const { folder } = workplace;
createBooks(folder);
const config = configOf(folder, treasurer.publicKey);
await using runtime = await createRuntime(config);
const { operations } = config;
await using workflows = await openWorkflows({
  runtime,
  operations,
  plans: { 'month-end': monthEnd },
});

/** Everything that waits is shown to the treasurer, who signs it with one gesture. */
async function signAll(run: string): Promise<void> {
  const waiting = await workflows.unapproved(run);
  tell('to sign', waiting.map(({ instance }) => instance).join(', '));
  const signer = approver(treasurer);
  const licenses = waiting.map(({ proposal }) => signer.sign(proposal, { expiresIn: '1h' }));
  await workflows.approve(run, licenses);
}

function show({ status, durable, notDone, needsResolution }: HandoffReport): void {
  tell('status', status);
  tell('durable', durable.map(({ instance }) => instance).join(', ') || 'nothing');
  tell('not done', notDone.map(({ instance, state }) => `${instance} (${state})`).join(', '));
  tell('to resolve', needsResolution.map(({ instance }) => instance).join(', '));
}

const paid = () => lookAt(folder, "select id from invoice where status = 'paid' order by id");

chapter('1. A month without trouble: one signature for all of it');
await workflows.start('month-end', {
  id: '2026-01',
  input: { month: '2026-01', invoices: [1, 2, 3] },
});
await signAll('2026-01');
show(await workflows.wait('2026-01'));
for (const { text } of drawRun(await workflows.view('2026-01'))) tell('', text);
expectDurable('paid', paid(), ['1', '2', '3']);
expectDurable('closed', lookAt(folder, 'select * from closing'), ['2026-01 3']);

chapter('2. Something is in the way: nothing starts');
const blocked = workflows.start('month-end', {
  id: '2026-02',
  input: { month: '2026-02', invoices: [3, 4] },
});
await assert.rejects(blocked, (error: Error) => {
  tell('refused', error.message);
  return true;
});
expectDurable('paid', paid(), ['1', '2', '3']);

chapter('3. A trigger writes more than was approved: that payment and the closing stop');
lookAt(
  folder,
  `create trigger tell after update on invoice when new.id = 5
    begin insert into notification (text) values ('paid early'); end`,
);
await workflows.start('month-end', {
  id: '2026-03',
  input: { month: '2026-03', invoices: [4, 5, 6] },
});
await signAll('2026-03');
show(await workflows.wait('2026-03'));
expectDurable('paid', paid(), ['1', '2', '3', '4', '6']);
tell(
  'repair',
  'the administrator removes the trigger, and the run is revised: what is done stays done',
);
lookAt(folder, 'drop trigger tell');
await workflows.revise('2026-03');
await signAll('2026-03');
show(await workflows.wait('2026-03'));
expectDurable('paid', paid(), ['1', '2', '3', '4', '5', '6']);
expectDurable('closed', lookAt(folder, 'select month from closing'), ['2026-01', '2026-03']);

if (isOnDbos) {
  chapter('4. On DBOS with two workers, one of which is killed');
  await runOnWorkers({ folder, workflows, signAll });
  show(await workflows.report('2026-04'));
  expectDurable('paid', paid().length.toString(), '12');
  expectDurable('closed', lookAt(folder, "select invoices from closing where month = '2026-04'"), [
    '6',
  ]);
}
