/**
 * An agent approves invoices on PostgreSQL. Start it with `npm run example -- invoice-postgres`.
 *
 * @module
 */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  approver,
  createRuntime,
  EffectMatchError,
  generateApprover,
  type Terminal,
} from 'effectmatch';
import { type PostgresOptions, planProvisioning, postgres } from 'effectmatch/adapters/postgres';
import { chapter, expectDurable, expectVerdict, openWorkplace, tell } from '../story.ts';
import { approveInvoice } from './approve-invoice.ts';
import { HIDDEN_TRIGGER, SCHEMA } from './schema.ts';
import { openDatabase } from './server.ts';

using workplace = openWorkplace();
const at = (name: string) => join(workplace.folder, name);

chapter('1. The database is prepared');
await using database = await openDatabase(workplace);
await database.run(SCHEMA);
const options: PostgresOptions = {
  owner: database.role('em_owner'), // owns the records; not a login
  control: database.url(database.role('em_control'), 'control-secret'), // trusted: surveys, markers, recovery
  execution: database.url(database.role('em_exec'), 'execution-secret'), // can only run agent SQL
  relations: ['invoice', 'payment', 'audit'],
  reads: ['vendor'],
};
let statements = 0;
const leftOut = await (await planProvisioning(database.url(), options)).apply(() => {
  statements += 1;
});
tell('provision', `${statements} statements by the administrator, ${leftOut.length} left out`);
if (leftOut.length > 0)
  throw new Error('DATABASE_URL must name a superuser: provisioning needs one, once');

const accounts = approver(generateApprover('accounts'));
await using runtime = await createRuntime({
  store: at('effectmatch.db'),
  keyring: at('effectmatch.keys.json'),
  adapters: { books: postgres(options) },
  operations: { [approveInvoice.name]: approveInvoice },
  issuers: { accounts: { key: accounts.publicKey, may: ['books'], sources: ['contract'] } },
});

// What `effectmatch doctor` shows: every way in which an operation could leave something behind.
const { outlets } = await runtime.survey('books');
const open = outlets.filter(({ disposition }) => disposition === 'unclassified');
tell(
  'doctor',
  `${outlets.length - open.length} outlets are observed or denied; ${open.length} are open`,
);
if (open.length > 0) throw new Error('while an outlet is open, every operation is refused');

/**
 * The agent asks, the rule computes the outcome, accounts signs it, and the agent's statements run.
 */
async function approve(invoice: number, vendor: number, meanwhile = ''): Promise<Terminal> {
  const input = { invoice, vendor };
  const proposal = await runtime.propose(approveInvoice.name, input, {
    task: `invoice-${invoice}`,
    planRevision: 1,
  });
  tell('approved', proposal.rendering);
  const license = accounts.sign(proposal, { expiresIn: '10m' });
  await database.run(meanwhile);
  return await runtime.execute(license, approveInvoice.action(input));
}

/** The dependent work. It writes a line, so that its runs can be counted. */
async function tellVendor(terminal: Terminal): Promise<string> {
  const work = () => appendFileSync(at('letters.txt'), `${terminal.task} will be paid\n`);
  const release = await runtime.continuation(terminal, 'tell-vendor').release(work);
  return release.kind === 'released' ? 'written' : `not written (${release.why})`;
}

const invoices = () => database.run('select id, status from invoice order by id');
const payments = () => database.run('select invoice, amount from payment order by id');
const audits = () => database.run('select invoice, status from audit order by id');

chapter('2. An invoice is approved; a trigger writes the audit row that the rule expects');
const paid = await approve(4711, 7);
expectVerdict(paid, 'committed');
expectDurable('invoices', await invoices(), [
  '4711 approved',
  '4712 pending',
  '4713 pending',
  '4714 pending',
]);
expectDurable('payments', await payments(), ['4711 129900']);
expectDurable('audit', await audits(), ['4711 approved']);
expectDurable('letter', await tellVendor(paid), 'written');
expectDurable('again', await tellVendor(paid), 'not written (already-released)');

chapter('3. What the rules do not allow is not even proposed');
for (const [invoice, vendor] of [
  [4713, 7],
  [4714, 8],
] as const) {
  try {
    await approve(invoice, vendor);
    throw new Error(`invoice ${invoice} was proposed`);
  } catch (error) {
    if (!(error instanceof EffectMatchError)) throw error;
    tell('refused', error.message);
  }
}

chapter('4. A new trigger pays everything twice');
const doubled = await approve(4712, 7, HIDDEN_TRIGGER);
expectVerdict(doubled, 'rejected (diverged)');
expectDurable('invoices', await invoices(), [
  '4711 approved',
  '4712 pending',
  '4713 pending',
  '4714 pending',
]);
expectDurable('payments', await payments(), ['4711 129900']);
expectDurable('audit', await audits(), ['4711 approved']);
expectDurable('letter', await tellVendor(doubled), 'not written (rejected)');
if (workplace.kept) tell('database', database.name);
