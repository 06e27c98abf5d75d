/**
 * An agent that refunds, in six turns. Start it with `npm run example -- refund-agent`.
 *
 * @module
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  approver,
  createRuntime,
  generateApprover,
  loadApproverKey,
  type Runtime,
  saveApproverKey,
  type Terminal,
  verifyReceipt,
} from 'effectmatch';
import { sqlite } from 'effectmatch/adapters/sqlite';
import { chapter, expectDurable, expectVerdict, openWorkplace, tell } from '../story.ts';
import { TURNS, type Turn } from './agent.ts';
import { refund } from './refund.ts';
import { Shop } from './shop.ts';

using workplace = openWorkplace();
const at = (name: string) => join(workplace.folder, name);
const shop = new Shop(at('shop.db'));

// Two approvers. The desk is a program that signs every proposal, so only its limits restrict it.
// The lead is a person who signs what she has read, in production with a key on her own machine.
const desk = approver(generateApprover('desk'));
saveApproverKey(at('lead.key.json'), generateApprover('lead'));
const lead = approver(loadApproverKey(at('lead.key.json')));

const runtime = await createRuntime({
  store: at('effectmatch.db'),
  keyring: at('effectmatch.keys.json'),
  adapters: { shop: sqlite({ file: shop.file, relations: ['purchase', 'refund'] }) },
  operations: { refund },
  issuers: {
    desk: {
      key: desk.publicKey,
      may: ['shop'],
      sources: ['contract'],
      limits: {
        operations: ['refund'],
        maxRows: { refund: 1 },
        amounts: [{ target: 'refund', column: 'amount', max: 5000 }],
      },
    },
    lead: {
      key: lead.publicKey,
      may: ['shop'],
      sources: ['rehearsed'],
      limits: { maxEffects: 10 },
    },
  },
});

/** What the two tools of the agent do. */
async function answer({ call, meanwhile }: Turn, task: string, tools: Runtime): Promise<Terminal> {
  const { statements } = call;
  for (const { sql, values = [] } of statements) tell('agent', `${sql}   [${values.join(', ')}]`);
  const proposal =
    call.tool === 'refund'
      ? await tools.propose('refund', call.request, { task, planRevision: 1 })
      : await tools.plan({ adapter: 'shop', task, planRevision: 1, action: { statements } });
  tell('proposed', proposal.rendering);
  const license = (call.tool === 'refund' ? desk : lead).sign(proposal, { expiresIn: '10m' });
  if (meanwhile !== undefined) {
    tell('meanwhile', meanwhile);
    shop.change(meanwhile);
  }
  return await tools.execute(license, { statements });
}

/** What has to come of each turn: the verdict, and every refund that is really there afterwards. */
const ADA = '101: 2900 (borken)';
const PHONE = '103: 1500 (by phone)';
const EXPECTED: readonly { readonly verdict: string; readonly refunds: readonly string[] }[] = [
  { verdict: 'committed', refunds: [ADA] },
  { verdict: 'rejected (limit-amount)', refunds: [ADA] },
  { verdict: 'rejected (stale-state)', refunds: [ADA, PHONE] },
  { verdict: 'rejected (diverged)', refunds: [ADA, PHONE] },
  { verdict: 'rejected (limit-rows)', refunds: [ADA, PHONE] },
  { verdict: 'committed', refunds: ['101: 2900 (broken)', PHONE] },
];

console.log('The agent below is a script that stands in for a model; everything else is real.');
const terminals: Terminal[] = [];
for (const [index, turn] of TURNS.entries()) {
  chapter(`${index + 1}. ${turn.title}`);
  tell('message', turn.message);
  const terminal = await answer(turn, `ticket-${index + 1}`, runtime);
  terminals.push(terminal);
  const expected = EXPECTED[index];
  expectVerdict(terminal, String(expected?.verdict));
  expectDurable('database', shop.refunds, expected?.refunds);
  if (turn.call.tool !== 'refund') continue;
  const letter = await runtime.continuation(terminal, 'letter').release(() => 'Dear customer, …');
  tell('letter', letter.kind === 'released' ? letter.value : `not written (${letter.why})`);
}

chapter('7. Receipts: what an auditor can check with two files and nothing else');
const envelopes = await Promise.all(
  terminals.map(({ occurrence, execution }) => runtime.receipt(occurrence, { execution })),
);
writeFileSync(
  at('receipts.jsonl'),
  envelopes.map((envelope) => `${JSON.stringify(envelope)}\n`).join(''),
);
writeFileSync(at('receipts.pub'), `${runtime.receiptKeys.join('\n')}\n`);
await runtime.close();

const keys = readFileSync(at('receipts.pub'), 'utf8').trim().split('\n');
const receipts = readFileSync(at('receipts.jsonl'), 'utf8').trim().split('\n');
for (const text of receipts) {
  const verified = verifyReceipt(keys, JSON.parse(text));
  if (verified.kind === 'receipt')
    tell('verified', `${verified.receipt.terminal.task}: ${verified.receipt.terminal.kind}`);
}
const forged = JSON.parse(receipts[1] ?? '') as { payload: string };
forged.payload = Buffer.from(forged.payload, 'base64')
  .toString()
  .replace('"rejected"', '"committed"');
forged.payload = Buffer.from(forged.payload).toString('base64');
try {
  verifyReceipt(keys, forged);
  throw new Error('a forged receipt was verified');
} catch (error) {
  if ((error as { code?: string }).code === undefined) throw error;
  tell('forged', (error as Error).message);
}
