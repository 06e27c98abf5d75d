import { join } from 'node:path';
import { sqlite } from '../../adapters/sqlite/index.ts';
import { saveApproverKey } from '../../crypto/approver.ts';
import { parseIssuerKey } from '../../crypto/issuer-key.ts';
import {
  approver,
  createRuntime,
  defineOperation,
  generateApprover,
  generated,
  insert,
  type RuntimeConfig,
  type StandardSchema,
  update,
} from '../../index.ts';
import { openRequests, type Requests } from '../../requests/requests.ts';
import { DatabaseSync } from '../../sqlite/engine.ts';

const SCHEMA = `
  create table vendor (id integer primary key, name text not null, blocked integer not null);
  create table invoice (id integer primary key, vendor integer not null references vendor,
    amount integer not null, status text not null, paid_on text);
  create table payment (id integer primary key autoincrement, invoice integer not null,
    amount integer not null);
  create table notification (id integer primary key, invoice integer not null, text text not null);
  insert into vendor values (7, 'Globex', 0), (8, 'Initech', 0), (9, 'Umbrella', 1);
  insert into invoice values (4711, 7, 350, 'pending', null), (4712, 8, 1280, 'pending', null),
    (4713, 9, 99, 'disputed', null), (4714, 7, 75, 'pending', null),
    (4715, 8, 210, 'pending', null), (4716, 8, 189, 'pending', null),
    (4717, 7, 9400, 'pending', null), (4718, 8, 240, 'pending', null);`;
/** Added after an approval, so that the execution does more than was approved. */
const TRIGGER = `create trigger notify after update of status on invoice when new.id = 4714
  begin insert into notification (invoice, text) values (new.id, 'paid'); end`;
const RELATIONS = ['invoice', 'notification', 'payment', 'vendor'];

/** The operation's input: an invoice and its amount. */
interface Bill {
  readonly invoice: number;
  readonly amount: number;
}

const bill: StandardSchema<Bill> = {
  '~standard': {
    version: 1,
    vendor: 'effectmatch',
    validate: (input) => {
      const { invoice, amount } = Object(input) as Record<string, unknown>;
      if (Number.isSafeInteger(invoice) && Number.isSafeInteger(amount))
        return { value: { invoice: Number(invoice), amount: Number(amount) } };
      return { issues: [{ message: 'give the number of an invoice and its amount' }] };
    },
  },
};

const payInvoice = defineOperation({
  name: 'pay-invoice',
  adapter: 'books',
  input: bill,
  approve: ({ invoice, amount }) => ({
    effects: [
      update('invoice', { id: invoice }, { status: ['pending', 'paid'] }),
      insert('payment', { id: generated('payment'), invoice, amount }),
    ],
  }),
  action: ({ invoice, amount }) => ({
    statements: [
      { sql: "update invoice set status = 'paid' where id = ?", values: [invoice] },
      { sql: 'insert into payment (invoice, amount) values (?, ?)', values: [invoice, amount] },
    ],
  }),
});

/** Bills that the billing agent asks to pay with the operation. */
const BILLS: readonly Bill[] = [
  { invoice: 4712, amount: 1280 },
  { invoice: 4715, amount: 210 },
  { invoice: 4716, amount: 189 },
  { invoice: 4717, amount: 9400 },
  { invoice: 4718, amount: 240 },
];

/** Changes that the demo's agents ask for in SQL. */
const QUESTIONS = [
  {
    by: 'billing-agent',
    reason: 'Invoice 4711 is due today and its amount agrees with the order.',
    sql: [
      "update invoice set status = 'paid', paid_on = '2026-11-16' where id = 4711",
      'insert into payment (invoice, amount) values (4711, 350)',
    ],
  },
  {
    by: 'support-agent',
    reason: 'The customer asked us to forget this vendor (ticket 812).',
    sql: ['delete from invoice where vendor = 9', 'delete from vendor where id = 9'],
  },
  {
    by: 'billing-agent',
    reason: 'Reminders for everything that is still open.',
    sql: [
      "insert into notification (invoice, text) select id, 'please pay ' || amount from invoice where status = 'pending'",
    ],
  },
] as const;

/** The name of the demo's approver, and of the key file in its folder. */
const DEMO_APPROVER = 'ap-team';

/** Requests that are already answered: one committed, the other did more than was approved. */
const ANSWERED = [
  {
    by: 'support-agent',
    reason: 'Globex has a new name.',
    sql: ["update vendor set name = 'Globex Corporation' where id = 7"],
  },
  {
    by: 'billing-agent',
    reason: 'Invoice 4714 is due.',
    sql: ["update invoice set status = 'paid' where id = 4714"],
  },
] as const;

/** Creates a small shop with pending requests from its agents, and some that were answered. */
export async function createDemoInbox(folder: string): Promise<RuntimeConfig> {
  const key = generateApprover(DEMO_APPROVER);
  saveApproverKey(join(folder, `${DEMO_APPROVER}.key.json`), key);
  const file = join(folder, 'books.db');
  change(file, SCHEMA);
  const config: RuntimeConfig = {
    store: join(folder, 'effectmatch.db'),
    keyring: join(folder, 'effectmatch.keys.json'),
    issuers: {
      [DEMO_APPROVER]: {
        key: key.publicKey,
        may: ['books'],
        sources: ['rehearsed', 'contract'],
        limits: { amounts: [{ target: 'payment', column: 'amount', max: '10000' }] },
      },
    },
    operations: { [payInvoice.name]: payInvoice },
    agents: { 'billing-agent': { operations: [payInvoice.name] }, 'support-agent': {} },
    adapters: { books: sqlite({ file, relations: RELATIONS }) },
    requests: { store: join(folder, 'effectmatch.requests.db') },
  };
  await using runtime = await createRuntime(config);
  const store = config.requests?.store ?? '';
  const { operations = {} } = config;
  await using requests = await openRequests({ runtime, store, operations });
  for (const { by, reason, sql } of QUESTIONS) await ask(requests, { by, reason, sql });
  for (const input of BILLS) await askToPay(requests, input);
  const asked = await Promise.all(ANSWERED.map((question) => ask(requests, question)));
  change(file, TRIGGER);
  for (const { id, proposal } of asked) {
    await requests.answer(id, approver(key).sign(proposal, { expiresIn: '10m' }));
    await requests.execute(id);
  }
  return config;
}

/** The configuration with one more key for the demo's approver, created in a browser. */
export function withDemoKey(config: RuntimeConfig, publicKey: string): RuntimeConfig {
  const { [DEMO_APPROVER]: issuer } = config.issuers;
  if (issuer === undefined) return config;
  const key = [issuer.key, parseIssuerKey(publicKey).text].flat();
  return { ...config, issuers: { [DEMO_APPROVER]: { ...issuer, key } } };
}

/** Proposes the pending requests again, because the list of approvers is part of what is signed. */
export async function renewDemoInbox(requests: Requests): Promise<void> {
  for (const { id } of await requests.list({ state: 'pending' })) await requests.renew(id);
}

async function askToPay(requests: Requests, input: Bill): Promise<void> {
  const reason = `Invoice ${input.invoice} is due.`;
  const asked = { by: 'billing-agent', run: 'demo', reason };
  await requests.ask({ ...asked, operation: payInvoice.name, input });
}

function change(file: string, sql: string): void {
  const db = new DatabaseSync(file);
  db.exec(sql);
  db.close();
}

function ask(
  requests: Requests,
  { by, reason, sql }: { by: string; reason: string; sql: readonly string[] },
) {
  const statements = sql.map((text) => ({ sql: text }));
  return requests.ask({ by, run: 'demo', reason, adapter: 'books', action: { statements } });
}
