import { join } from 'node:path';
import { sqlite } from '../../adapters/sqlite/index.ts';
import { saveApproverKey } from '../../crypto/approver.ts';
import { approver, createRuntime, generateApprover, type RuntimeConfig } from '../../index.ts';
import { openRequests, type Requests } from '../../requests/requests.ts';
import { DatabaseSync } from '../../sqlite/engine.ts';

const SCHEMA = `
  create table vendor (id integer primary key, name text not null, blocked integer not null);
  create table invoice (id integer primary key, vendor integer not null references vendor,
    amount text not null, status text not null, paid_on text);
  create table payment (id integer primary key autoincrement, invoice integer not null,
    amount text not null);
  create table notification (id integer primary key, invoice integer not null, text text not null);
  insert into vendor values (7, 'Globex', 0), (8, 'Initech', 0), (9, 'Umbrella', 1);
  insert into invoice values (4711, 7, '350.00', 'pending', null), (4712, 8, '1280.50', 'pending', null),
    (4713, 9, '99.00', 'disputed', null), (4714, 7, '75.25', 'pending', null);`;
/** Added after an approval: the execution then leaves more than was approved. */
const TRIGGER = `create trigger notify after update of status on invoice when new.id = 4714
  begin insert into notification (invoice, text) values (new.id, 'paid'); end`;
const RELATIONS = ['invoice', 'notification', 'payment', 'vendor'];

/** What the agents of the demo ask for. */
const QUESTIONS = [
  {
    by: 'billing-agent',
    reason: 'Invoice 4711 is due today and its amount agrees with the order.',
    sql: [
      "update invoice set status = 'paid', paid_on = '2026-11-16' where id = 4711",
      "insert into payment (invoice, amount) values (4711, '350.00')",
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

/** The name of the approver of the demo, and of the key file in its folder. */
export const DEMO_APPROVER = 'ap-team';

/** Requests that are answered already: one was committed, one left more than was approved. */
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

/** Makes a small shop, agents that ask, and requests that were approved already. */
export async function createDemoInbox(folder: string): Promise<RuntimeConfig> {
  const key = generateApprover(DEMO_APPROVER);
  saveApproverKey(join(folder, `${DEMO_APPROVER}.key.json`), key);
  const file = join(folder, 'books.db');
  change(file, SCHEMA);
  const config: RuntimeConfig = {
    store: join(folder, 'effectmatch.db'),
    keyring: join(folder, 'effectmatch.keys.json'),
    issuers: { [DEMO_APPROVER]: { key: key.publicKey, may: ['books'], sources: ['rehearsed'] } },
    adapters: { books: sqlite({ file, relations: RELATIONS }) },
    requests: { store: join(folder, 'effectmatch.requests.db') },
  };
  await using runtime = await createRuntime(config);
  const store = config.requests?.store ?? '';
  await using requests = await openRequests({ runtime, store });
  for (const { by, reason, sql } of QUESTIONS) await ask(requests, { by, reason, sql });
  const asked = await Promise.all(ANSWERED.map((question) => ask(requests, question)));
  change(file, TRIGGER);
  for (const { id, proposal } of asked) {
    await requests.answer(id, approver(key).sign(proposal, { expiresIn: '10m' }));
    await requests.execute(id);
  }
  return config;
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
