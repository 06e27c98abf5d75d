// Goal: nothing that a caller sends reaches more than its token allows, holds the server up, or
// makes anything happen that was not signed. Method: the API in this process with hostile calls,
// and over a real socket where the socket matters.
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { revokeToken, rotateToken } from '../../src/access/callers.ts';
import type { Activity, Ending } from '../../src/runtime/telemetry.ts';
import { openSite, paying, type Site, signPayment } from './site.ts';

let site: Site;
const spans: (Activity | Ending)[] = [];
before(async () => {
  const telemetry = {
    begin: (activity: Activity) => {
      if (activity.kind === 'http') spans.push(activity);
      return { step: () => {}, end: (ending: Ending) => void spans.push(ending) };
    },
    watchOrphans: () => () => {},
  };
  site = await openSite({ config: { telemetry } as never });
});
after(async () => await site[Symbol.asyncDispose]());

async function ask(payee: string, token = site.tokens.clerk): Promise<string> {
  return (await site.call('POST', '/v1/requests', { token, body: paying(payee) })).json.id;
}

test('another agent neither sees, withdraws nor renews a request, and cannot take a name', async () => {
  const { call, tokens } = site;
  const id = await ask('mine');
  const token = tokens.rival;
  for (const [method, path] of [
    ['GET', `/v1/requests/${id}`],
    ['GET', `/v1/requests/${id}/receipt`],
    ['POST', `/v1/requests/${id}/withdraw`],
    ['POST', `/v1/requests/${id}/renew`],
  ] as const) {
    const { status, json } = await call(method, path, { token });
    assert.deepEqual([status, json.code], [404, 'ERR_EM_NOT_FOUND'], path);
  }
  for (const path of ['proposal', 'license', 'decline']) {
    const method = path === 'proposal' ? 'GET' : 'POST';
    const sent = { token, ...(method === 'POST' && { body: {} }) };
    assert.equal((await call(method, `/v1/requests/${id}/${path}`, sent)).status, 403, path);
  }
  const named = await call('GET', '/v1/requests?by=clerk', { token });
  assert.deepEqual(named.json.items, []);
  const posing = { token, body: { ...paying('x'), by: 'clerk' } };
  assert.equal((await call('POST', '/v1/requests', posing)).status, 400);
  assert.equal(
    (await call('GET', `/v1/requests/${id}`, { token: tokens.clerk })).json.state,
    'pending',
  );
});

test('an agent asks only for what the configuration gives it', async () => {
  const { call, tokens } = site;
  const action = { sql: 'delete from payment' };
  const wishes = [
    paying('x'),
    { run: 'r', adapter: 'books', action },
    { run: 'r', manifest: { adapter: 'books', effects: [] }, action },
  ];
  for (const body of wishes) {
    const { status, json } = await call('POST', '/v1/requests', { token: tokens.guest, body });
    assert.deepEqual([status, json.code], [403, 'ERR_EM_ACCESS_REFUSED']);
  }
  const extra = [{ approved: true }, { license: {} }, { state: 'approved' }, { mode: 'on-call' }];
  for (const more of extra) {
    const body = { ...paying('x'), ...more };
    const { json } = await call('POST', '/v1/requests', { token: tokens.clerk, body });
    assert.equal(json.code, 'ERR_EM_INPUT_INVALID');
  }
});

test('guessed ids and paths name nothing', async () => {
  const { call, tokens } = site;
  const id = await ask('guess');
  const token = tokens.carol;
  const guesses = [
    ...['req_', id.slice(0, -1), `${id}0`, id.toUpperCase(), `${id.slice(0, -1)}%`],
    ...['..%2f..%2fopenapi.json', '%00', `${id}%0a`, '__proto__', 'constructor'],
  ];
  for (const guess of guesses)
    assert.equal((await call('GET', `/v1/requests/${guess}`, { token })).status, 404, guess);
  for (const path of ['/v1/', '/v1/requests/', '/v2/requests', '/v1/requests/x/y/z'])
    assert.equal((await site.api.fetch(new Request(`http://127.0.0.1:8421${path}`))).status, 404);
  for (const query of [
    'limit=0',
    'limit=501',
    'limit=1e2',
    'state=none',
    'state=pending&state=stale',
    'limit=-1',
  ])
    assert.equal((await call('GET', `/v1/requests?${query}`, { token })).status, 400, query);
});

test('a token ends when it expires, is revoked, or was rotated and its overlap is over', async () => {
  const { call, clock, requests, issue } = site;
  const works = async (token: string) =>
    (await call('GET', '/v1/receipt-keys', { token })).status === 200;
  const [kept, revoked, rotated] = [
    await issue('operator', 'dave'),
    await issue('operator', 'dave'),
    await issue('operator', 'dave'),
  ];
  const ids = (await requests.tokens.tokens()).filter(({ holder }) => holder === 'dave');
  const digests = ids.map(({ digest }) => digest);
  for (const token of [kept, revoked, rotated]) {
    assert.ok(await works(token));
    assert.ok(!JSON.stringify(ids).includes(token) && digests.every((one) => one !== token));
  }
  const { digestOfHeader } = await import('../../src/access/token.ts');
  const idOf = (token: string) =>
    ids.find(({ digest }) => digest === digestOfHeader(`Bearer ${token}`))?.id ?? '';
  await revokeToken(requests.tokens, idOf(revoked), clock);
  const { token: successor } = await rotateToken(
    requests.tokens,
    idOf(rotated),
    { overlapMs: 1000 },
    clock,
  );
  assert.deepEqual(
    [await works(revoked), await works(rotated), await works(successor)],
    [false, true, true],
  );
  clock.advance(1001);
  assert.deepEqual([await works(rotated), await works(successor)], [false, true]);
  await assert.rejects(revokeToken(requests.tokens, 'tok_none', clock), {
    code: 'ERR_EM_NOT_FOUND',
  });
  clock.advance(90 * 86_400_000);
  assert.deepEqual([await works(kept), await works(successor)], [false, false]);
  site.tokens.carol = await issue('operator', 'carol', [
    'read',
    'answer',
    'execute',
    'audit',
    'operate',
  ]);
  for (const name of ['clerk', 'rival', 'guest'] as const)
    site.tokens[name] = await issue('agent', name);
});

test('an agent cannot be given what only operators have', async () => {
  for (const scope of ['answer', 'audit', 'operate', 'admin', ''])
    await assert.rejects(site.issue('agent', 'clerk', [scope]), { code: 'ERR_EM_USAGE' });
  await assert.rejects(site.issue('operator', 'carol', ['ask']), { code: 'ERR_EM_USAGE' });
  await assert.rejects(site.issue('operator', 'a b'), { code: 'ERR_EM_USAGE' });
});

test('large, endless, deep and broken bodies are refused and change nothing', async () => {
  const { call, tokens, requests } = site;
  const before = (await requests.list()).length;
  const token = tokens.clerk;
  const refused = async (status: number, body: unknown) => {
    const answer = await call('POST', '/v1/requests', { token, body });
    assert.equal(answer.status, status, JSON.stringify(answer.json));
  };
  await refused(413, JSON.stringify({ ...paying('x'), reason: 'x'.repeat(1024 * 1024) }));
  const chunk = new Uint8Array(64 * 1024).fill(0x20);
  let sent = 0;
  const endless = new ReadableStream({
    pull(controller) {
      sent += chunk.length;
      controller.enqueue(chunk);
    },
  });
  await refused(413, endless);
  assert.ok(sent < 3 * 1024 * 1024, `it stopped reading after ${sent} bytes`);
  await refused(400, `${'['.repeat(200_000)}${']'.repeat(200_000)}`);
  await refused(
    400,
    `{"run":"r","adapter":"books","action":${'{"a":'.repeat(65)}1${'}'.repeat(65)}}`,
  );
  await refused(400, '{"run":"r","__proto__":{"adapter":"books"}}');
  await refused(400, '\ud800');
  await refused(400, '[]');
  await refused(400, 'null');
  const invalid = new ReadableStream({
    start(controller) {
      controller.enqueue(new Uint8Array([0x22, 0xff, 0x22]));
      controller.close();
    },
  });
  await refused(400, invalid);
  assert.equal((await requests.list()).length, before);
});

test('forms and scripts of other pages reach nothing, with or without a token', async () => {
  const { call, tokens } = site;
  const id = await ask('csrf');
  const path = `/v1/requests/${id}/withdraw`;
  const { clerk: token } = tokens;
  for (const origin of ['http://evil.example', 'null', 'http://127.0.0.1:8421.evil.example'])
    assert.equal((await call('POST', path, { token, headers: { origin } })).status, 403);
  // What a form can send: no token, and none of the types that are read.
  const form = { headers: { 'content-type': 'application/x-www-form-urlencoded', cookie: 'a=b' } };
  assert.equal((await call('POST', path, form)).status, 401);
  const body = JSON.stringify(paying('x'));
  const plain = { token, body, headers: { 'content-type': 'text/plain' } };
  assert.equal((await call('POST', '/v1/requests', plain)).status, 415);
  for (const host of ['evil.example:8421', 'localhost:8421', '127.0.0.1', ''])
    assert.equal((await call('GET', '/v1/requests', { token, headers: { host } })).status, 421);
  const { response } = await call('GET', '/health');
  assert.equal(response.headers.get('access-control-allow-origin'), null);
  assert.equal(response.headers.get('cache-control'), 'no-store');
  assert.equal((await call('GET', `/v1/requests/${id}`, { token })).json.state, 'pending');
});

test('neither logs nor spans nor problems of the server hold a value, a token or an id of data', async () => {
  const { call, tokens, log } = site;
  const token = tokens.carol;
  const body = await signPayment(site, 'secret-payee');
  await call('POST', '/v1/executions', { token, body });
  await call('GET', '/v1/requests/secret-payee', { token });
  await call('GET', `/v1/requests?by=secret-payee`, { token });
  const id = await ask('secret-payee-2');
  const lines = log.map((entry) => JSON.stringify(entry)).join('\n');
  const reported = JSON.stringify(spans);
  for (const secret of ['secret-payee', token, id, 'emt_', 'occ_']) {
    assert.ok(!lines.includes(secret), secret);
    assert.ok(!reported.includes(secret), secret);
  }
  assert.ok(spans.some((span) => 'route' in span && span.route === 'POST /v1/executions'));
  assert.ok(spans.some((span) => span.kind === 'answered' && span.status === 404));
  const last = log.at(-1);
  assert.deepEqual([last?.route, last?.caller], ['/v1/requests', 'agent clerk']);
  const own = await call('GET', '/health', { headers: { 'x-request-id': 'trace-7' } });
  assert.equal(own.response.headers.get('x-request-id'), 'trace-7');
  const forged = await call('GET', '/health', { headers: { 'x-request-id': 'a b"<' } });
  assert.match(String(forged.response.headers.get('x-request-id')), /^[0-9a-f-]{36}$/);
});

test('over a socket: a client that sends nothing more is let go, and others are served', async () => {
  const { createAdaptorServer } = await import('@hono/node-server');
  const server = createAdaptorServer({ fetch: site.api.fetch });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  const { port } = server.address() as { port: number };
  const socket = connect(port, '127.0.0.1');
  let answer = '';
  socket.setEncoding('utf8').on('data', (text) => {
    answer += text;
  });
  const head = ['POST /v1/requests HTTP/1.1', 'host: 127.0.0.1:8421', 'content-length: 1000'];
  const more = ['content-type: application/json', `authorization: Bearer ${site.tokens.clerk}`];
  socket.write(`${[...head, ...more].join('\r\n')}\r\n\r\n{"run":`);
  const served = await fetch(`http://127.0.0.1:${port}/health`, { headers: { host: 'x' } });
  await served.body?.cancel();
  while (!answer.includes('ERR_EM_')) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.match(answer, /^HTTP\/1.1 408 /);
  socket.destroy();
  server.close();
  if ('closeAllConnections' in server) server.closeAllConnections();
});
