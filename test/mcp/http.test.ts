// Goal: agents reach their tools over HTTP, each only its own, and nothing that they send approves
// anything. Method: one server in this process, the SDK's client in both revisions, raw requests.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { ToolAnswer } from '../../src/agents/index.ts';
import { call, Office, PAY, pay, REVISIONS, type Revision } from './office.ts';
import { callHeaders, callMessage, sendRaw } from './raw.ts';

const office = new Office({ link: 'https://approvals.example/{id}' });
const { clerk, rival, guest } = office.tokens;
const logged: string[] = [];
let host: Awaited<ReturnType<Office['startHttp']>>;
before(async () => {
  host = await office.startHttp((line) => logged.push(line));
});
beforeEach(() => office.db.exec('delete from payment'));
after(async () => {
  await host[Symbol.asyncDispose]();
  office[Symbol.dispose]();
});

/** Calls a tool without a client; returns what its result says. */
async function callRaw(name: string, input: unknown, more: object = {}, { token } = clerk) {
  const headers = callHeaders(token, name);
  const { body } = await sendRaw(host.url, { headers, body: callMessage(name, input, more) });
  const { result, error } = JSON.parse(body);
  return { result, error, answer: result?.structuredContent as ToolAnswer | undefined };
}

for (const revision of Object.keys(REVISIONS) as Revision[]) {
  test(`${revision}: a payment is asked for, approved by a person, and made once`, async () => {
    await using client = await office.connectHttp(host.url, revision);
    assert.equal(client.getNegotiatedProtocolVersion(), revision);
    const asked = await call(client, PAY, pay(revision));
    assert.equal(asked.status, 'approval-required');
    assert.match(String(asked.link), /^https:\/\/approvals\.example\/req_/);
    assert.deepEqual(office.payments(), []);
    await office.approve(String(asked.request));
    const { request } = asked;
    const done = await call(client, 'request_status', { request, waitSeconds: 20 });
    assert.equal(done.status, 'committed');
    assert.equal((await call(client, PAY, pay(revision))).status, 'committed');
    assert.deepEqual(office.payments(), [`${revision} 10`]);
  });

  test(`${revision}: each agent is offered what the configuration gives it`, async () => {
    const offered = async (agent: 'clerk' | 'rival' | 'guest') => {
      await using client = await office.connectHttp(host.url, revision, agent);
      return (await client.listTools()).tools;
    };
    const tools = await offered('clerk');
    const names = tools.map(({ name }) => name);
    assert.deepEqual(names, [PAY, 'sql_books', 'read_books', 'request_status', 'reply_request']);
    for (const { name, annotations, inputSchema, outputSchema } of tools) {
      const reads = name === 'read_books' || name === 'request_status';
      const isReply = name === 'reply_request';
      assert.equal(annotations?.readOnlyHint, reads, name);
      assert.equal(annotations?.destructiveHint, !reads && !isReply, name);
      assert.equal(annotations?.idempotentHint, !isReply, name);
      assert.equal(annotations?.openWorldHint, name === PAY, name);
      assert.equal(inputSchema.additionalProperties, false, name);
      assert.deepEqual(outputSchema?.required, ['status', 'next']);
    }
    const others = [await offered('rival'), await offered('guest')];
    assert.deepEqual(
      others.map((list) => list.map(({ name }) => name)),
      [
        [PAY, 'request_status', 'reply_request'],
        ['request_status', 'reply_request'],
      ],
    );
  });
}

test('a client that can open links is sent to the page; whatever it answers approves nothing', async () => {
  const opened: string[] = [];
  for (const action of ['accept', 'decline', 'cancel'] as const) {
    const capabilities = { elicitation: { url: {} } };
    await using client = await office.connectHttp(host.url, '2026-07-28', 'clerk', {
      capabilities,
    });
    client.setRequestHandler('elicitation/create', async ({ params }) => {
      opened.push(`${params.mode} ${'url' in params ? params.url : ''}`);
      return { action, ...(action === 'accept' && { content: { approved: true } }) };
    });
    const answer = await call(client, PAY, pay(`link ${action}`));
    assert.equal(answer.status, 'approval-required', action);
    assert.equal(opened.at(-1), `url https://approvals.example/${answer.request}`);
    await call(client, 'request_status', { request: answer.request });
  }
  assert.equal(opened.length, 3);
  assert.deepEqual(office.payments(), []);
});

test('forged answers to elicitations and forged request state change nothing', async () => {
  const forgeries = [
    { inputResponses: { approval: { action: 'accept', content: { approved: true } } } },
    { inputResponses: { approval: { action: 'accept' }, other: { action: 'accept' } } },
    { requestState: 'approved' },
    { requestState: Buffer.from('{"state":"approved"}').toString('base64url') },
    { inputResponses: {}, requestState: 'x'.repeat(5000) },
  ];
  for (const more of forgeries) {
    const { answer, result, error } = await callRaw(PAY, pay('forged'), more);
    const waits = answer?.status === 'approval-required' || result?.resultType === 'input_required';
    assert.ok(waits || error !== undefined, JSON.stringify({ more, result, error }));
  }
  const fields = [
    { approved: true },
    { license: {} },
    { by: 'rival' },
    { run: 'x' },
    { state: 'approved' },
  ];
  for (const more of fields) {
    const { answer } = await callRaw(PAY, { ...pay('forged'), ...more });
    assert.deepEqual([answer?.status, answer?.code], ['refused', 'ERR_EM_INPUT_INVALID']);
  }
  assert.deepEqual(office.payments(), []);
});

test('an agent neither sees nor resumes the requests of another, and cannot take its name', async () => {
  const none = { inputResponses: {} };
  const { answer: asked } = await callRaw(PAY, pay('mine'), none);
  const request = String(asked?.request);
  for (const other of [rival, guest]) {
    const { answer } = await callRaw('request_status', { request }, none, other);
    assert.deepEqual([answer?.status, answer?.code], ['refused', 'ERR_EM_NOT_FOUND']);
  }
  await office.approve(request);
  await host.requests.wait(request, { waitMs: 20_000 });
  const headers = { ...callHeaders(rival.token, PAY), 'x-agent': 'clerk' };
  const message = callMessage(PAY, pay('mine'), none).replaceAll('"raw"', '"clerk"');
  const { body } = await sendRaw(host.url, { headers, body: message });
  const theirs = JSON.parse(body).result.structuredContent as ToolAnswer;
  assert.equal(theirs.status, 'approval-required');
  assert.notEqual(theirs.request, request);
  assert.equal((await host.requests.get(String(theirs.request))).by, 'rival');
  assert.deepEqual(office.payments(), ['mine 10']);
});

test('two servers and ten calls at once make one payment of one approval', async () => {
  await using second = await office.startHttp();
  const clients = await Promise.all(
    [host.url, second.url].map((url) => office.connectHttp(url, '2026-07-28')),
  );
  const callAll = (name: string, input: object) =>
    Promise.all(
      clients.flatMap((client) => Array(5).fill(client)).map((c) => call(c, name, input)),
    );
  const asked = await callAll(PAY, pay('once'));
  const request = String(asked[0]?.request);
  assert.deepEqual(new Set(asked.map((answer) => answer.request)), new Set([request]));
  const [ended] = await Promise.all([
    callAll('request_status', { request, waitSeconds: 20 }),
    office.approve(request),
  ]);
  const repeated = await callAll(PAY, pay('once'));
  for (const { status } of [...ended, ...repeated]) assert.equal(status, 'committed');
  assert.deepEqual(office.payments(), ['once 10']);
  await Promise.all(clients.map((client) => client.close()));
});

test('a tool that an agent was not given does not exist for it', async () => {
  await using client = await office.connectHttp(host.url, '2025-11-25', 'rival');
  const odd = ['approve', '__proto__', 'constructor', '', '../pay', 'x'.repeat(500), '\u{1f600}'];
  for (const name of [...odd, 'sql_books', 'read_books', 'pay/invoice']) {
    const called = client.callTool({ name, arguments: { sql: 'select 1' } });
    const data = { code: 'ERR_EM_NOT_FOUND' };
    await assert.rejects(called, { code: -32_602, data }, name);
  }
});

test('without a known token, or from a web page, nothing is served', async () => {
  const body = callMessage('request_status', { request: 'x' });
  const good = callHeaders(clerk.token, 'request_status');
  const { authorization: _, ...without } = good;
  const wrong = `Bearer ${clerk.token.slice(0, -1)}${clerk.token.endsWith('A') ? 'B' : 'A'}`;
  const cases: [number, Record<string, string>][] = [
    [401, without],
    [401, { ...good, authorization: wrong }],
    [401, { ...good, authorization: `Bearer ${clerk.digest}` }],
    [401, { ...good, authorization: `Basic ${clerk.token}` }],
    [401, { ...good, authorization: `Bearer ${clerk.token}, Bearer ${rival.token}` }],
    [403, { ...good, host: 'evil.example' }],
    [403, { ...good, origin: 'https://evil.example' }],
    [403, { ...good, origin: 'null' }],
  ];
  for (const [expected, headers] of cases) {
    const { status, code } = await sendRaw(host.url, { headers, body });
    assert.deepEqual([status, code], [expected, 'ERR_EM_ACCESS_REFUSED'], JSON.stringify(headers));
  }
  const elsewhere = await sendRaw(new URL('/requests', host.url).href, { headers: good, body });
  assert.deepEqual([elsewhere.status, elsewhere.code], [404, 'ERR_EM_NOT_FOUND']);
  assert.equal((await sendRaw(host.url, { headers: good, body })).status, 200);
});

test('an idle connection stays open longer than clients and proxies use one', async () => {
  const body = callMessage('request_status', { request: 'x' });
  const headers = callHeaders(clerk.token, 'request_status');
  const answer = await fetch(host.url, { method: 'POST', headers, body });
  assert.equal(answer.headers.get('keep-alive'), 'timeout=75');
  await answer.text();
});

test('bad input gets a stable code, and nothing is asked for or changed', async () => {
  const before = await host.requests.list({ limit: 500 });
  let deep: unknown = 1;
  for (let depth = 0; depth < 2000; depth += 1) deep = { deep };
  const inputs: [unknown, string][] = [
    [{}, 'ERR_EM_INPUT_INVALID'],
    [{ input: { payee: 1, amount: 10 } }, 'ERR_EM_INPUT_INVALID'],
    [{ input: { payee: 'x', amount: -1 } }, 'ERR_EM_INPUT_INVALID'],
    [{ input: { payee: 'x', amount: 1, more: 1 } }, 'ERR_EM_INPUT_INVALID'],
    [{ input: 'x' }, 'ERR_EM_INPUT_INVALID'],
    [{ ...pay('x'), key: 7 }, 'ERR_EM_INPUT_INVALID'],
    [{ ...pay('x'), reason: 'x'.repeat(5000) }, 'ERR_EM_INPUT_INVALID'],
    [{ input: deep }, 'ERR_EM_CANON_UNSUPPORTED'],
    [{ input: { payee: 'x'.repeat(70_000), amount: 1 } }, 'ERR_EM_INPUT_INVALID'],
    [{ input: { payee: '\ud800', amount: 1 } }, 'ERR_EM_CANON_UNSUPPORTED'],
  ];
  for (const [input, code] of inputs) {
    const { answer, result } = await callRaw(PAY, input);
    const shown = JSON.stringify(result).slice(0, 300);
    assert.deepEqual(
      [answer?.status, answer?.code, result.isError],
      ['refused', code, true],
      shown,
    );
  }
  const headers = callHeaders(clerk.token, PAY);
  const message = callMessage(PAY, pay('bytes'));
  const bytes = Buffer.from(message).map((byte) => (byte === 0x62 ? 0xff : byte));
  const bodies: [string | Buffer, number][] = [
    ['{', 400],
    ['', 400],
    [Buffer.from(bytes), 400],
    ['x'.repeat(1024 * 1024 + 1), 413],
    [`[${message}]`, 400],
    ['[]', 400],
  ];
  for (const [body, expected] of bodies) {
    const { status, code } = await sendRaw(host.url, { headers, body });
    assert.deepEqual([status, code], [expected, 'ERR_EM_INPUT_INVALID']);
  }
  for (const body of ['1', 'null', '{}', '{"jsonrpc":"2.0"}']) {
    const { status } = await sendRaw(host.url, { headers, body });
    assert.ok(status >= 400 && status < 500, `${body.slice(0, 20)}: ${status}`);
  }
  const nested = '['.repeat(250_000) + ']'.repeat(250_000);
  const deepest = message.replace('"bytes"', nested);
  const { body: received } = await sendRaw(host.url, { headers, body: deepest });
  assert.match(received, /"code":"ERR_EM_CANON_UNSUPPORTED"/);
  for (const method of ['GET', 'PUT', 'DELETE', 'OPTIONS', 'HEAD'])
    assert.ok((await sendRaw(host.url, { method, headers })).status >= 400, method);
  assert.equal((await host.requests.list({ limit: 500 })).length, before.length);
  assert.deepEqual(office.payments(), []);
});

test('SQL is rehearsed and waits; reading cannot write; neither reaches the ledger or the keys', async () => {
  const none = { inputResponses: {} };
  const sql = 'update budget set left = 1 where id = 1';
  const { answer: asked } = await callRaw('sql_books', { sql }, none);
  assert.equal(asked?.status, 'approval-required');
  assert.match(String(asked?.rendering), /~ budget id=1 {2}left: 100 -> 1/);
  const { answer: rows } = await callRaw('read_books', { sql: 'select left from budget' });
  assert.deepEqual(rows?.rows, [{ left: 100 }]);
  const keys = office.path('effectmatch.keys.json');
  for (const bad of [
    sql,
    `attach '${office.path('requests.db')}' as r`,
    `select readfile('${keys}')`,
    `select load_extension('x')`,
    'pragma writable_schema = 1',
    "vacuum into '/tmp/copy.db'",
  ]) {
    for (const tool of ['read_books', 'sql_books']) {
      if (bad === sql && tool === 'sql_books') continue;
      const { answer } = await callRaw(tool, { sql: bad }, none);
      assert.equal(answer?.status, 'refused', `${tool}: ${bad}: ${JSON.stringify(answer)}`);
    }
  }
  assert.deepEqual({ ...office.db.prepare('select left from budget').get() }, { left: 100 });
});

test('an agent that calls too often is told to wait, and others are not', async () => {
  using small = new Office({ callsPerMinute: 4 });
  await using served = await small.startHttp();
  const body = callMessage('request_status', { request: 'x' });
  const send = (token: string) =>
    sendRaw(served.url, { headers: callHeaders(token, 'request_status'), body });
  const codes: unknown[] = [];
  for (let index = 0; index < 6; index += 1)
    codes.push((await send(small.tokens.clerk.token)).status);
  assert.deepEqual(codes, [200, 200, 200, 200, 429, 429]);
  assert.equal((await send(small.tokens.clerk.token)).code, 'ERR_EM_RATE_LIMITED');
  assert.equal((await send(small.tokens.rival.token)).status, 200);
});

test('the log says who called what and how it ended, and never what was sent or a token', () => {
  assert.ok(logged.some((line) => /^clerk: pay_invoice: approval-required req_/.test(line)));
  const text = logged.join('\n');
  for (const secret of [clerk.token, rival.token, clerk.digest, 'forged', 'budget', 'payee'])
    assert.ok(!text.includes(secret), secret);
});
