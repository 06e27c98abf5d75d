// Goal: an agent's tools ask, read and tell, and change nothing without a license. Method: the tools
// of a real host on SQLite files, called as a framework or a model would call them.
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { z } from 'zod';
import { type AgentTool, agentTools, type ToolAnswer } from '../../src/agents/index.ts';
import { defineOperation, EffectMatchError, insert } from '../../src/index.ts';
import type { Requests } from '../../src/requests/index.ts';
import { openOffice } from '../requests/office.ts';

const SIGN = { expiresIn: '10m' } as const;
const input = z
  .object({ id: z.number().int(), payee: z.string(), amount: z.number().int().max(500) })
  .describe('Pays a vendor.');
const payVendor = defineOperation({
  name: 'pay.vendor',
  adapter: 'books',
  input,
  approve: ({ id, payee, amount }) => ({ effects: [insert('payment', { id, payee, amount })] }),
  action: ({ id, payee, amount }) => ({
    sql: 'insert into payment values (?, ?, ?)',
    values: [id, payee, amount],
  }),
});
const operations = { 'pay.vendor': payVendor } as never;
const PAY = {
  sql: 'insert into payment (payee, amount) values (?, ?) returning id',
  values: ['globex', 35],
};

type Office = ReturnType<typeof openOffice>;
type Host = Awaited<ReturnType<Office['start']>>;

function toolsOf({ requests, runtime }: Host, agent = 'agent'): (name: string) => AgentTool {
  const adapters = { books: { sql: true, read: true } };
  const tools = agentTools({ requests, runtime, agent, run: 'run 1', operations, adapters });
  return (name) => tools.find((tool) => tool.name === name) as AgentTool;
}

async function sign(office: Office, requests: Requests, { request = '' }: ToolAnswer) {
  const { proposal } = await requests.get(request);
  await requests.answer(request, office.alice.sign(proposal, SIGN));
}

test('a call asks, repeats as the same request, and returns the verdict once it is signed', async () => {
  using office = openOffice();
  await using host = await office.start({ operations, link: 'https://desk/{id}' });
  const sql = toolsOf(host)('sql_books');
  const asked = await sql.call({ ...PAY, reason: 'invoice 7' });
  assert.equal(asked.status, 'approval-required');
  assert.equal(asked.link, `https://desk/${asked.request}`);
  assert.match(asked.rendering ?? '', /\+ payment/);
  assert.deepEqual(await sql.call(PAY), asked);
  assert.deepEqual(office.payments(), []);
  await sign(office, host.requests, asked);
  const shown = await sql.show?.(PAY);
  assert.equal(shown?.status, 'approved');
  assert.deepEqual(office.payments(), [], 'showing executes nothing');
  const done = await sql.call(PAY);
  assert.equal(done.status, 'committed');
  assert.deepEqual(done.rows, [{ id: 1 }]);
  assert.deepEqual(Object.values(done.generated ?? {}), [1]);
  for (let again = 0; again < 10; again += 1) assert.deepEqual(await sql.call(PAY), done);
  assert.equal(office.payments().length, 1);
});

test('a call can wait for the signature, and executes what it waited for', async () => {
  using office = openOffice();
  await using host = await office.start();
  const { requests } = host;
  const adapters = { books: { sql: true } };
  const options = { requests, agent: 'agent', run: 'run 1', adapters, waitMs: 60_000 };
  const [sql] = agentTools(options);
  const asked = await sql?.show?.(PAY);
  const calling = sql?.call(PAY);
  await sign(office, requests, asked as ToolAnswer);
  assert.equal((await calling)?.status, 'committed');
  const other = { ...PAY, key: 'other' };
  const stopped = new AbortController();
  const waiting = sql?.call(other, { signal: stopped.signal });
  stopped.abort();
  await assert.rejects(async () => await waiting, { name: 'AbortError' });
  assert.equal(office.payments().length, 1);
});

test('an operation is a typed tool, and its rules reach the agent', async () => {
  using office = openOffice();
  await using host = await office.start({ operations });
  const pay = toolsOf(host)('pay_vendor');
  assert.match(pay.description, /^Pays a vendor\./);
  const fields = pay.inputSchema.properties?.input as { properties: object } | undefined;
  assert.deepEqual(Object.keys(fields?.properties ?? {}), ['id', 'payee', 'amount']);
  assert.deepEqual(pay.annotations, {
    ...{ readOnlyHint: false, destructiveHint: true, idempotentHint: true },
    openWorldHint: true,
  });
  const refused = await pay.call({ input: { id: 7, payee: 'globex', amount: 501 } });
  assert.equal(refused.status, 'refused');
  assert.equal(refused.code, 'ERR_EM_INPUT_INVALID');
  const asked = await pay.call({ input: { id: 7, payee: 'globex', amount: 10 } });
  await host.requests.decline(asked.request ?? '', { by: 'alice', reason: 'next month' });
  const declined = await toolsOf(host)('request_status').call({ request: asked.request });
  assert.equal(declined.status, 'declined');
  assert.equal(declined.detail, 'next month');
});

test('a question of an approver reaches the agent, and its reply the approver', async () => {
  using office = openOffice();
  await using host = await office.start();
  const tools = toolsOf(host);
  const asked = await tools('sql_books').call(PAY);
  const request = asked.request ?? '';
  await host.requests.askBack(request, { by: 'alice', text: 'which invoice?' });
  const told = await tools('request_status').call({ request });
  assert.deepEqual([told.status, told.question], ['approval-required', 'which invoice?']);
  assert.match(told.next, /reply_request/);
  const replied = await tools('reply_request').call({ request, text: 'number 4711' });
  assert.equal(replied.question, undefined);
  assert.equal((await host.requests.get(request)).messages?.at(-1)?.text, 'number 4711');
  const foreign = await toolsOf(host, 'other')('reply_request').call({ request, text: 'x' });
  assert.equal(foreign.status, 'refused');
});

test('a rejected call says what differs, and that nothing was changed', async () => {
  using office = openOffice();
  await using host = await office.start({ operations });
  const pay = toolsOf(host)('pay_vendor');
  const asked = await pay.call({ input: { id: 7, payee: 'globex', amount: 10 } });
  await sign(office, host.requests, asked);
  office.db.exec(`create trigger more after insert on payment when new.id = 7
    begin insert into payment values (8, 'crook', 1); end`);
  const rejected = await pay.call({ input: { id: 7, payee: 'globex', amount: 10 } });
  assert.equal(rejected.status, 'rejected', JSON.stringify(rejected));
  assert.match(rejected.diff ?? '', /extra .*crook/);
  assert.deepEqual(office.payments(), []);
});

test('a fault during an execution is no refusal, and calling again finds the verdict', async () => {
  using office = openOffice();
  const faults: unknown[] = [];
  await using host = await office.start();
  const { requests } = host;
  const adapters = { books: { sql: true } };
  const onFault = (error: unknown) => faults.push(error);
  const [sql] = agentTools({ requests, agent: 'agent', run: 'run 1', adapters, onFault });
  const asked = await sql?.call(PAY);
  await sign(office, requests, asked as ToolAnswer);
  const execute = requests.execute.bind(requests);
  requests.execute = async (id) => {
    await execute(id);
    throw new EffectMatchError('ERR_EM_INPUT_INVALID', 'a late complaint with a secret');
  };
  const answer = await sql?.call(PAY);
  const { request } = asked ?? {};
  const expected = { status: 'unavailable', code: 'ERR_EM_INPUT_INVALID', request };
  assert.deepEqual({ ...answer, next: undefined }, { ...expected, next: undefined });
  assert.equal(faults.length, 1);
  requests.execute = execute;
  assert.equal((await sql?.call(PAY))?.status, 'committed');
  assert.equal(office.payments().length, 1);
});

test('an agent sees only its own requests', async () => {
  using office = openOffice();
  await using host = await office.start({ operations });
  const asked = await toolsOf(host)('sql_books').call(PAY);
  const foreign = await toolsOf(host, 'other')('request_status').call({ request: asked.request });
  assert.deepEqual([foreign.status, foreign.code], ['refused', 'ERR_EM_NOT_FOUND']);
  const own = await toolsOf(host, 'other')('sql_books').call(PAY);
  assert.notEqual(own.request, asked.request);
});

function nested(depth: number): unknown {
  return depth === 0 ? 1 : [nested(depth - 1)];
}

const BAD: Readonly<Record<string, [tool: string, input: unknown]>> = {
  'no object': ['sql_books', 'delete from payment'],
  nothing: ['sql_books', undefined],
  'no statement': ['sql_books', {}],
  'an unknown field': ['sql_books', { ...PAY, approved: true }],
  'its own identity': ['sql_books', { ...PAY, by: 'admin' }],
  'a license': ['sql_books', { ...PAY, license: { payload: 'x' } }],
  'a prototype': ['sql_books', JSON.parse('{"__proto__": {"sql": "select 1"}, "sql": "select 1"}')],
  'a wrong type': ['sql_books', { sql: 7 }],
  'a statement that is too long': ['sql_books', { sql: `select '${'x'.repeat(70_000)}'` }],
  'a deep value': ['sql_books', { sql: 'select ?', values: [nested(100)] }],
  'a lone surrogate': ['sql_books', { sql: 'select ?', values: ['\ud800'] }],
  'a lone surrogate as reason': ['sql_books', { ...PAY, reason: '\ud800' }],
  'a rounded number': ['sql_books', { sql: 'select ?', values: [2 ** 60] }],
  'a request that is no text': ['request_status', { request: { id: 1 } }],
  'a request that does not exist': ['request_status', { request: "req_' or 1=1" }],
  'a reply that is no text': ['reply_request', { request: 'req_1', text: 7 }],
  'a long wait': ['request_status', { request: 'req_1', waitSeconds: 1e9 }],
};

test('bad input has a stable code and changes nothing', async () => {
  using office = openOffice();
  await using host = await office.start({ operations });
  for (const [name, [tool, bad]] of Object.entries(BAD)) {
    const { status, code } = await toolsOf(host)(tool).call(bad);
    assert.equal(status, 'refused', name);
    assert.match(code ?? '', /^ERR_EM_(INPUT|ACTION)_INVALID|CANON_UNSUPPORTED|NOT_FOUND$/, name);
  }
  assert.deepEqual(await host.requests.list(), []);
});

test('names that no model provider takes are replaced, and two that meet are refused', async () => {
  using office = openOffice();
  await using host = await office.start();
  const { requests } = host;
  const adapters = { 'a/b': { sql: true }, 'a:b': { sql: true } };
  const error = { code: 'ERR_EM_CONFIG_INVALID' };
  assert.throws(() => agentTools({ requests, agent: 'a', run: 'r', adapters }), error);
  assert.throws(() => agentTools({ requests, agent: 'a b', run: 'r' }), error);
  assert.throws(() => agentTools({ requests, agent: 'a', run: '' }), error);
});

test('an operation whose schema library writes no JSON Schema needs one', async () => {
  using office = openOffice();
  await using host = await office.start({ operations });
  const { requests } = host;
  const validate = (value: unknown) => ({ value });
  const bare = { ...payVendor, input: { '~standard': { version: 1, vendor: 'bare', validate } } };
  const options = { requests, agent: 'a', run: 'r', operations: { 'pay.vendor': bare } } as never;
  assert.throws(() => agentTools(options), { code: 'ERR_EM_CONFIG_INVALID', message: /schemas/ });
  const schemas = { 'pay.vendor': { type: 'object', description: 'Pays.' } };
  const [tool] = agentTools({ ...(options as object), schemas } as never);
  assert.deepEqual(tool?.inputSchema.properties?.input, schemas['pay.vendor']);
});

test('an agent is not told to ask again for what happened and its ledger has forgotten', async () => {
  using office = openOffice();
  const forget = () => {
    for (const end of ['', '-wal', '-shm'])
      rmSync(join(office.folder, `effectmatch.db${end}`), { force: true });
  };
  let request = '';
  {
    await using host = await office.start({ run: 'on-call' });
    const asked = await toolsOf(host)('sql_books').call(PAY);
    request = asked.request ?? '';
    const { proposal } = await host.requests.get(request);
    const license = office.alice.sign(proposal, SIGN);
    await host.requests.answer(request, license);
    assert.equal((await host.runtime.ensure(license, PAY)).kind, 'committed');
  }
  forget();
  await using host = await office.start({ run: 'on-call' });
  const answer = await toolsOf(host)('sql_books').call(PAY);
  assert.equal(answer.request, request);
  assert.equal(answer.status, 'rejected');
  assert.match(answer.detail ?? '', /^already-committed: /);
  assert.match(answer.next, /done before.*do not ask again/);
  assert.equal(office.payments().length, 1);
});
