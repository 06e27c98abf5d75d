// Goal: a review behind the managed boundary covers what a person has read, and no more. Method: code
// of a customer that signals, read and declared; then other arguments, and other code behind the name.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { approver, createRuntime, generateApprover, type Terminal } from '../../../../src/index.ts';
import { quoteName } from '../../../../src/postgres/identifier.ts';
import { update } from '../../../../src/protocol/draft.ts';
import { testKeyring } from '../../../keyring.ts';
import { temporaryLedgers } from '../../../ledger/temporary.ts';
import { type ManagedDatabase, managedDatabase } from './office.ts';

const KEY = generateApprover('approver');
const INVOICE = `create table app.invoice (id int primary key, status text not null);
  insert into app.invoice values (1, 'pending');`;
const onUpdate = (body: string) => `
  create function app.fires() returns trigger language plpgsql as $$ begin ${body}; return new; end $$;
  create trigger fires before update on app.invoice for each row execute function app.fires();`;
const PAID = [update('app.invoice', { id: 1 }, { status: ['pending', 'paid'] })];
const PAY = { sql: "update app.invoice set status = 'paid' where id = 1" };

type Review = { readonly function: string; readonly digest: string; readonly by: string };

function deploy(site: ManagedDatabase, reviews: readonly Review[]) {
  return createRuntime({
    store: temporaryLedgers(),
    keyring: testKeyring(),
    issuers: { approver: { key: KEY.publicKey, may: ['db'] } },
    adapters: { db: site.factory({ reviews }) },
  });
}

/** What `doctor` says to declare for this function. */
async function review(site: ManagedDatabase, name: string): Promise<Review> {
  await using unread = await deploy(site, []);
  const { remedies = [] } = await unread.survey('db');
  const keep = remedies.find((remedy) => remedy.keep?.includes(`'${name}'`))?.keep ?? '';
  return { function: name, digest: /digest: '(\w+)'/.exec(keep)?.[1] ?? '', by: 'dba' };
}

/** Approves the payment, has the customer act, and executes. */
async function pay(
  site: ManagedDatabase,
  reviews: readonly Review[],
  action: unknown,
  meanwhile = '',
): Promise<{ readonly terminal: Terminal; readonly heard: readonly string[] }> {
  const heard: string[] = [];
  const listener = new pg.Client({ connectionString: site.db.url() });
  await listener.connect();
  listener.on('notification', ({ payload }) => heard.push(String(payload)));
  await listener.query('listen news');
  try {
    await using runtime = await deploy(site, reviews);
    const terms = { adapter: 'db', task: 't', planRevision: 1 };
    const proposal = await runtime.prepare({ ...terms, effects: PAID });
    const license = approver(KEY).sign(proposal, { expiresIn: '10m' });
    await site.db.run(`set role ${quoteName(site.customer)}; ${meanwhile}`);
    const terminal = await runtime.execute(license, action);
    await listener.query('select 1');
    return { terminal, heard };
  } finally {
    await listener.end();
  }
}

test('a function that was read for a trigger is not open to statements', async () => {
  const schema = `${INVOICE}
    create function app.tell(text) returns void language plpgsql as
      $$ begin perform pg_notify('news', $1); end $$;
    ${onUpdate("perform app.tell('changed')")}`;
  await using site = await managedDatabase(schema, { relations: ['app.invoice'] });
  const reviews = [await review(site, 'app.tell(text)')];
  const told = await pay(site, reviews, {
    statements: [PAY, { sql: "select app.tell('whatever the agent likes')" }],
  });
  assert.ok(told.terminal.kind === 'rejected', JSON.stringify(told.terminal));
  assert.match(told.terminal.detail, /app\.tell\(\) is not admitted: .* name it in entryPoints/);
  assert.deepEqual(told.heard, []);
  const { terminal, heard } = await pay(site, reviews, PAY);
  assert.equal(terminal.kind, 'committed', JSON.stringify(terminal));
  assert.deepEqual(heard, ['changed']);
});

test('an aggregate that was read is read again when it is made of something else', async () => {
  const aggregate = (setting: string) =>
    `create or replace aggregate app.put(text, boolean) (sfunc = set_config, stype = text, initcond = '${setting}')`;
  const schema = `${INVOICE} ${aggregate('app.mark')}; ${onUpdate("perform app.put('x', true)")}`;
  await using site = await managedDatabase(schema, { relations: ['app.invoice'] });
  const reviews = [await review(site, 'app.put(text, boolean)')];
  const { terminal } = await pay(site, reviews, PAY, aggregate('search_path'));
  assert.ok(terminal.kind === 'rejected', JSON.stringify(terminal));
  assert.match(terminal.detail, /app\.put\(text, boolean\): It is made of set_config/);
  await site.db.run(`set role ${quoteName(site.customer)}; ${aggregate('app.mark')}`);
  assert.equal((await pay(site, reviews, PAY)).terminal.kind, 'committed');
});
