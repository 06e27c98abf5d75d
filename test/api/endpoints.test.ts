// Goal: every endpoint does what its document says, and every response that the document names
// occurs. Method: one deployment that is called as a client would, each answer checked against its
// documented form; at the end, what was answered is compared with the document.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ENDPOINTS } from '../../src/api/app.ts';
import { approver, generateApprover } from '../../src/crypto/approver.ts';
import { verifyReceipt } from '../../src/crypto/receipt.ts';
import { signResolution } from '../../src/crypto/signed-decision.ts';
import { insert } from '../../src/protocol/draft.ts';
import { openRequests } from '../../src/requests/index.ts';
import { openRig } from '../adapters/http/rig.ts';
import { createAuthenticator } from '../crypto/authenticator.ts';
import { ORIGIN, openApi, openSite, paying, type Site, signPayment } from './site.ts';

let site: Site;
const answered = new Set<string>();
before(async () => {
  site = await openSite({ webhooks: [{ url: 'http://127.0.0.1:9/', secret: 's', name: 'desk' }] });
});
after(async () => await site[Symbol.asyncDispose]());

const NOWHERE = `req_${'0'.repeat(40)}`;
const NEVER = `occ_${'0'.repeat(40)}`;
const DIGEST = '0'.repeat(64);
const PAYMENT = { id: 900, payee: 'initech', amount: 10 };

/** Asks as an agent and returns the request. */
async function ask(payee: string, token = site.tokens.clerk) {
  const { json } = await site.call('POST', '/v1/requests', { token, body: paying(payee) });
  return json;
}

test('a request is asked for, approved with a signature, executed once, and receipted', async () => {
  const { call, tokens } = site;
  const token = tokens.clerk;
  const asked = await call('POST', '/v1/requests', { token, body: paying('globex') });
  assert.deepEqual([asked.status, asked.json.state, asked.json.by], [201, 'pending', 'clerk']);
  const again = await call('POST', '/v1/requests', { token, body: paying('globex') });
  assert.deepEqual([again.status, again.json.id], [200, asked.json.id]);
  const { id } = asked.json;
  assert.match(asked.json.rendering, /globex/);
  const none = await call('GET', `/v1/requests/${id}/receipt`, { token });
  assert.equal(none.status, 404);
  const license = await site.sign(id);
  const operator = { token: tokens.carol };
  const sent = { ...operator, body: license };
  assert.equal((await call('POST', `/v1/requests/${id}/license`, sent)).json.state, 'approved');
  assert.equal((await call('POST', `/v1/requests/${id}/license`, sent)).status, 409);
  site.requests.start();
  const done = await call('GET', `/v1/requests/${id}?waitSeconds=20`, { token });
  assert.equal(done.json.state, 'committed');
  assert.equal(done.json.terminal.kind, 'committed');
  assert.deepEqual(site.payments(), ['globex']);
  const receipt = await call('GET', `/v1/requests/${id}/receipt`, { token });
  const keys = await call('GET', '/v1/receipt-keys', { token });
  const verified = verifyReceipt(keys.json.items, receipt.json);
  assert.equal(verified.kind, 'receipt');
  const path = `/v1/occurrences/${done.json.occurrence}`;
  assert.equal((await call('GET', path, operator)).json.terminal.kind, 'committed');
  assert.equal((await call('GET', `${path}/terminal`, operator)).json.terminal.kind, 'committed');
  assert.deepEqual((await call('GET', `${path}/receipt`, operator)).json, receipt.json);
  const found = await call(
    'GET',
    `/v1/occurrences?prefix=${done.json.occurrence.slice(0, 12)}`,
    operator,
  );
  assert.deepEqual(found.json.items, [done.json.occurrence]);
});

test('an outcome without an action is asked for, and says that a task carries it out', async () => {
  const manifest = { adapter: 'books', effects: [insert('payment', PAYMENT)] };
  const body = { run: 'test', manifest };
  const { status, json } = await site.call('POST', '/v1/requests', {
    ...{ token: site.tokens.clerk, body },
  });
  assert.deepEqual([status, json.mode], [201, 'on-task']);
});

test('a license of another key, for another request or that is none leaves the request open', async () => {
  const { call, tokens } = site;
  const token = tokens.carol;
  const [wanted, other] = [await ask('wanted'), await ask('other')];
  const path = `/v1/requests/${wanted.id}/license`;
  const licenses = [await site.sign(other.id), await site.sign(wanted.id, site.stranger)];
  for (const body of licenses)
    assert.equal((await call('POST', path, { token, body })).status, 422);
  assert.equal((await call('POST', path, { token, body: {} })).status, 400);
  const missing = { token, body: licenses[0] };
  assert.equal((await call('POST', `/v1/requests/${NOWHERE}/license`, missing)).status, 404);
  assert.equal((await call('GET', `/v1/requests/${wanted.id}`, { token })).json.state, 'pending');
});

test('where two people have to sign, the second gets what the first signed', async () => {
  const { call, tokens } = site;
  const token = tokens.carol;
  const { id } = await ask('two people');
  const path = `/v1/requests/${id}/license`;
  assert.equal((await call('GET', path, { token })).status, 404);
  const first = { token, body: await site.sign(id, site.dora) };
  assert.equal((await call('POST', path, first)).json.state, 'pending');
  const { json } = await call('GET', path, { token });
  const body = approver({ ...site.alice, clock: site.clock }).countersign(json);
  const approved = await call('POST', path, { token, body });
  assert.ok(['approved', 'running', 'committed'].includes(approved.json.state));
  assert.equal(approved.json.answeredBy, 'dora, alice');
});

test('an approver asks back, the agent replies, and the request is handed over; it stays open', async () => {
  const { call, tokens } = site;
  const { carol, clerk, rival } = tokens;
  const { id } = await ask('unclear');
  const path = `/v1/requests/${id}`;
  const asked = { token: carol, body: { text: 'which invoice?' } };
  assert.equal((await call('POST', `${path}/questions`, asked)).json.state, 'pending');
  const said = { token: clerk, body: { text: 'number 4711' } };
  assert.equal((await call('POST', `${path}/replies`, { ...said, token: rival })).status, 404);
  const { json } = await call('POST', `${path}/replies`, said);
  const heard = json.messages.map(({ from, by, text }: Record<string, string>) => [from, by, text]);
  assert.deepEqual(heard, [
    ['approver', 'carol', 'which invoice?'],
    ['agent', 'clerk', 'number 4711'],
  ]);
  const handed = { token: carol, body: { to: 'dora' } };
  const assigned = await call('POST', `${path}/assignment`, handed);
  assert.deepEqual([assigned.json.assignedTo, assigned.json.state], ['dora', 'pending']);
  await call('POST', `${path}/withdraw`, { token: clerk });
  const sent = { questions: asked, replies: said, assignment: handed };
  for (const [name, more] of Object.entries(sent)) {
    assert.equal((await call('POST', `${path}/${name}`, more)).status, 409, name);
    assert.equal((await call('POST', `/v1/requests/${NOWHERE}/${name}`, more)).status, 404, name);
  }
});

test('a decline counts only with the signature of an issuer over this proposal', async () => {
  const { call, tokens } = site;
  const token = tokens.carol;
  const [{ id }, other] = [await ask('disputed'), await ask('undisputed')];
  const path = `/v1/requests/${id}/decline`;
  const wrong = [
    await site.signDecline(id, 'no', site.stranger),
    await site.signDecline(id, 'no', generateApprover('mallory')),
    await site.signDecline(other.id, 'no'),
    { ...(await site.signDecline(id, 'no')), reason: 'yes' },
    { ...(await site.signDecline(id, 'no')), generation: 2 },
  ];
  for (const body of wrong) {
    const { status, json } = await call('POST', path, { token, body });
    assert.deepEqual([status, json.code], [422, 'ERR_EM_SIGNATURE_INVALID']);
  }
  const passkey = createAuthenticator();
  const signedUnread = { ...(await site.signDecline(id, 'no')), signature: passkey.assert(DIGEST) };
  assert.equal((await call('POST', path, { token, body: signedUnread })).status, 422);
  const body = await site.signDecline(id, 'the invoice is disputed');
  const declined = await call('POST', path, { token, body });
  assert.deepEqual([declined.json.state, declined.json.answeredBy], ['declined', 'alice']);
  assert.deepEqual(declined.json.decline, body);
  assert.equal((await call('POST', path, { token, body })).status, 409);
  assert.equal(
    (await call('POST', `/v1/requests/${NOWHERE}/decline`, { token, body })).status,
    404,
  );
  const own = await call('GET', `/v1/requests/${id}`, { token: tokens.clerk });
  assert.equal(own.json.detail, 'the invoice is disputed');
});

test('agents withdraw and renew their own requests; what became impossible is refused', async () => {
  const { call, tokens, db } = site;
  const token = tokens.clerk;
  const { id } = await ask('later');
  const renewed = await call('POST', `/v1/requests/${id}/renew`, { token });
  assert.equal(renewed.json.request.generation, 2);
  const rehearsed = { token, body: { run: 'test', adapter: 'books', action: BLOCKED } };
  const { id: blocked } = (await call('POST', '/v1/requests', rehearsed)).json;
  db.exec("insert into payment (payee, amount) values ('blocked', 1)");
  const body = { ...rehearsed.body, key: 'another' };
  const refused = await call('POST', '/v1/requests', { token, body });
  assert.deepEqual([refused.status, refused.json.code], [422, 'ERR_EM_REHEARSAL_REFUSED']);
  assert.equal((await call('POST', `/v1/requests/${blocked}/renew`, { token })).status, 422);
  for (const verb of ['withdraw', 'renew']) {
    const path = `/v1/requests/${NOWHERE}/${verb}`;
    assert.equal((await call('POST', path, { token })).status, 404);
  }
  const withdrawn = await call('POST', `/v1/requests/${id}/withdraw`, { token });
  assert.equal(withdrawn.json.state, 'withdrawn');
  for (const verb of ['withdraw', 'renew'])
    assert.equal((await call('POST', `/v1/requests/${id}/${verb}`, { token })).status, 409);
  for (const part of ['', '/proposal', '/receipt']) {
    const path = `/v1/requests/${NOWHERE}${part}`;
    assert.equal((await call('GET', path, { token: tokens.carol })).status, 404);
  }
  const pages = [];
  for (let next = ''; next !== undefined; ) {
    const after = next && `&after=${next}`;
    const { json } = await call('GET', `/v1/requests?limit=2${after}`, { token });
    pages.push(...json.items.map(({ id: one }: { id: string }) => one));
    next = json.next;
  }
  assert.equal(new Set(pages).size, pages.length);
  assert.equal(pages.length, (await site.requests.list()).length);
});
const BLOCKED = { sql: "insert into payment (payee, amount) values ('blocked', 2)" };

test('a repeated execution returns the same verdict, and dependent work is released once', async () => {
  const { call, tokens } = site;
  const token = tokens.carol;
  const body = await signPayment(site, 'once');
  const first = await call('POST', '/v1/executions', { token, body });
  const second = await call('POST', '/v1/executions', { token, body });
  assert.deepEqual([first.json.earlier, second.json.earlier], [false, true]);
  assert.deepEqual(second.json.terminal, first.json.terminal);
  assert.equal(site.payments().filter((payee) => payee === 'once').length, 1);
  const { occurrence, lineage } = first.json.terminal;
  const work = `/v1/occurrences/${occurrence}/continuations/notify`;
  const from = { token, body: { lineage } };
  assert.deepEqual((await call('POST', `${work}/complete`, from)).json, { completed: false });
  const wrong = { token, body: { lineage: DIGEST } };
  assert.equal((await call('POST', `${work}/release`, wrong)).json.why, 'lineage');
  assert.deepEqual((await call('POST', `${work}/release`, from)).json, { kind: 'released' });
  const again = await call('POST', `${work}/release`, from);
  assert.deepEqual(again.json, { kind: 'halted', why: 'already-released' });
  const open = await call('GET', '/v1/continuations', { token });
  assert.deepEqual(open.json.items[0].occurrence, occurrence);
  assert.deepEqual((await call('POST', `${work}/complete`, from)).json, { completed: true });
  assert.deepEqual((await call('GET', '/v1/continuations', { token })).json.items, []);
});

test('other effects than the approved ones are a verdict with its differences', async () => {
  const { license } = await signPayment(site, 'approved');
  const action = { sql: "insert into payment (payee, amount) values ('other', 10)" };
  const sent = { token: site.tokens.carol, body: { license, action } };
  const { status, json } = await site.call('POST', '/v1/executions', sent);
  assert.deepEqual([status, json.terminal.kind], [200, 'rejected']);
  assert.match(json.difference, /other/);
  assert.ok(!site.payments().includes('other'));
});

test('while another process executes it, the answer is to call again later', async () => {
  const { call, tokens, db } = site;
  const token = tokens.carol;
  const body = await signPayment(site, 'busy');
  db.exec('begin immediate');
  const first = call('POST', '/v1/executions', { token, body });
  const occurrences = async () =>
    (await site.runtime.ledgers.unsettled({ includeLeased: true })).length;
  while ((await occurrences()) === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  const open = await call('POST', '/v1/executions', { token, body: { ...body, waitSeconds: 0 } });
  assert.deepEqual([open.status, open.json.code], [409, 'ERR_EM_ATTEMPT_OPEN']);
  assert.equal(open.json.retry, true);
  assert.equal(open.response.headers.get('retry-after'), '5');
  const recovered = await call('POST', '/v1/recovery', { token, body: {} });
  assert.equal(recovered.status, 200);
  db.exec('rollback');
  assert.equal((await first).json.terminal.kind, 'committed');
});

test('journal, shadows, certificate and deliveries are read in pages', async () => {
  const { call, tokens, runtime } = site;
  const token = tokens.carol;
  const draft = { adapter: 'books', task: 'shadow', planRevision: 1 };
  await runtime.shadow(draft, { sql: "insert into payment (payee, amount) values ('s', 1)" });
  const rows = [];
  for (let after = 0; after !== undefined; ) {
    const { json } = await call('GET', `/v1/journal?limit=3&after=${after}`, { token });
    rows.push(...json.items.map(({ seq }: { seq: number }) => seq));
    after = json.next;
  }
  assert.deepEqual(
    rows,
    Array.from({ length: rows.length }, (_, index) => index + 1),
  );
  const shadows = await call('GET', '/v1/shadows?limit=500', { token });
  assert.equal(shadows.json.items[0].record.would, 'propose');
  const boundary = await call('GET', '/v1/adapters/books/certificate', { token });
  assert.equal(boundary.json.certified, true);
  assert.equal((await call('GET', '/v1/adapters/none/certificate', { token })).status, 404);
  let tries: { delivered: boolean; receiver: string; result: string }[] = [];
  while (tries.length === 0) {
    const { json } = await call('GET', '/v1/deliveries?limit=500', { token });
    tries = json.items;
    if (tries.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const [{ delivered, receiver, result }] = tries as [(typeof tries)[number]];
  assert.deepEqual([delivered, receiver, result], [false, 'desk', 'unreachable']);
  for (const part of ['', '/terminal', '/receipt'])
    assert.equal((await call('GET', `/v1/occurrences/${NEVER}${part}`, { token })).status, 404);
  const { license, action } = await signPayment(site, 'elsewhere');
  const moved = {
    license: { ...license, license: { ...license.license, adapter: 'none' } },
    action,
  };
  assert.equal((await call('POST', '/v1/executions', { token, body: moved })).status, 503);
});

test('an operator resolves what stays indeterminate, with a signature and evidence', async () => {
  await using rig = await openRig();
  const operator = generateApprover('night-shift');
  const operators = { 'night-shift': { key: operator.publicKey } };
  await using runtime = await rig.start({ operators });
  const license = await rig.approve(runtime);
  rig.faults.arm('drop-before');
  const store = `${site.folder}/remote.db`;
  await using requests = await openRequests({ runtime, store });
  const { config } = site;
  await using opened = asDisposable(openApi({ runtime, requests, config }));
  const { tokens } = await withTokens(requests);
  const executed = await opened.call('POST', '/v1/executions', {
    ...{ token: tokens, body: { license, action: {} } },
  });
  const { terminal } = executed.json;
  assert.equal(terminal.kind, 'indeterminate');
  const { occurrence, execution, lineage } = terminal;
  const evidence = 'the statement of today shows no such payment';
  const decision = { occurrence, execution, lineage, finding: 'did-not-happen', evidence } as const;
  const resolution = signResolution({ operator: 'night-shift', ...operator }, decision);
  const path = `/v1/occurrences/${occurrence}/resolution`;
  const wrong = { token: tokens, body: { resolution, evidence: 'something else' } };
  assert.equal((await opened.call('POST', path, wrong)).status, 422);
  const right = { token: tokens, body: { resolution, evidence } };
  assert.deepEqual((await opened.call('POST', path, right)).json, resolution);
  for (const { method, route, status } of opened.log) answered.add(`${method} ${route} ${status}`);
});

function asDisposable(opened: ReturnType<typeof openApi>) {
  return { ...opened, [Symbol.asyncDispose]: () => opened.api[Symbol.asyncDispose]() };
}

async function withTokens(requests: Parameters<typeof openApi>[0]['requests']) {
  const { issueToken } = await import('../../src/access/callers.ts');
  const scopes = ['execute', 'operate'];
  const { token } = await issueToken(requests.tokens, { kind: 'operator', holder: 'bob', scopes });
  return { tokens: token };
}

test('what every endpoint refuses: no token, the wrong scope, origin, host, pace, body or query', async () => {
  const { call, tokens } = site;
  await call('GET', '/v1/events', { token: tokens.slow });
  for (const { method, path, scopes, query, body } of ENDPOINTS) {
    const target = path
      .replace('{id}', NOWHERE)
      .replace('{occurrence}', NEVER)
      .replace('{continuation}', 'x')
      .replace('{adapter}', 'x');
    const refused = async (status: number, more: Parameters<typeof call>[2], at = target) => {
      const { status: found, json } = await call(method, at, more);
      assert.equal(found, status, `${method} ${path}: ${JSON.stringify(json)}`);
      assert.match(json.code, /^ERR_EM_/);
    };
    const needed = body === undefined ? {} : { body: {} };
    const scoped = scopes?.includes('read') || scopes?.includes('ask') ? undefined : tokens.reader;
    await refused(403, {
      ...needed,
      token: tokens.carol,
      headers: { origin: 'http://evil.example' },
    });
    await refused(421, { ...needed, token: tokens.carol, headers: { host: 'evil.example' } });
    if (scopes !== undefined) {
      await refused(401, needed);
      await refused(401, { ...needed, token: `${tokens.carol.slice(0, -1)}!` });
      await refused(429, { ...needed, token: tokens.slow });
      if (scoped !== undefined) await refused(403, { ...needed, token: scoped });
    }
    const token = scopes?.includes('ask') ? tokens.clerk : tokens.carol;
    if (Object.keys(query).length > 0) await refused(400, { token }, `${target}?surprise=1`);
    if (body === undefined) continue;
    await refused(400, { token, body: '{' });
    await refused(415, { token, body: '{}', headers: { 'content-type': 'text/plain' } });
    await refused(413, { token, body: '{}', headers: { 'content-length': '99999999999' } });
    await refused(408, { token, body: new ReadableStream({ pull: () => new Promise(() => {}) }) });
  }
});

test('streams, health and readiness tell how the server is', async () => {
  const { call, tokens } = site;
  assert.deepEqual((await call('GET', '/health')).json, { status: 'alive' });
  assert.deepEqual((await call('GET', '/ready')).json, { status: 'ready' });
  assert.deepEqual((await call('GET', '/openapi.json')).json, site.api.document);
  const ending = new AbortController();
  const { signal } = ending;
  const open = () => call('GET', '/v1/events', { token: tokens.carol, signal });
  const statuses: number[] = [];
  for (let index = 0; index < 21; index += 1) statuses.push((await open()).status);
  assert.deepEqual(statuses.slice(-2), [200, 503]);
  ending.abort();
  await site.requests.close();
  const down = await call('GET', '/ready');
  assert.deepEqual([down.status, down.json.code], [503, 'ERR_EM_STORE_UNAVAILABLE']);
});

test('every documented response occurred, and no other', () => {
  for (const { method, route, status } of site.log)
    if (route !== '') answered.add(`${method} ${route} ${status}`);
  const { paths } = site.api.document as { paths: Record<string, Record<string, object>> };
  const documented = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) =>
      Object.keys((operation as { responses: object }).responses).map(
        (status) => `${method.toUpperCase()} ${path} ${status}`,
      ),
    ),
  );
  assert.equal(Object.keys(paths).length, new Set(ENDPOINTS.map(({ path }) => path)).size);
  assert.deepEqual([...answered].sort(), documented.sort());
  assert.ok(ORIGIN.startsWith('http://'));
});
