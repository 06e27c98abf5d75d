// Goal: the console shows what would change and what became of it, takes answers only from a page
// of its own, and cannot approve. Method: its handler on a real host, asked as a browser would ask.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createConsole } from '../../src/console/app.ts';
import { parseProposal } from '../../src/crypto/proposal.ts';
import { absent, insert, read, row } from '../../src/index.ts';
import { pay } from '../requests/office.ts';
import { openFan } from './fan.ts';
import { ORIGIN, openConsole, Visitor } from './visitor.ts';

const ask = (payee: string, reason = 'it is due') => ({
  by: 'agent',
  run: 'run',
  reason,
  ...pay(payee),
});

test('a request is read in the inbox, signed elsewhere, sent back and executed once', async () => {
  await using site = await openConsole();
  const { requests, office, app } = site;
  const { id } = await requests.ask(ask('globex'));
  const visitor = new Visitor(app);
  await visitor.enter();
  const shown = await visitor.read('/');
  assert.match(shown, /globex/);
  assert.match(shown, /<option>agent<\/option>[\s\S]*<option>books<\/option>/);
  for (const state of ['diverged', 'indeterminate'])
    assert.match(await visitor.read(`/?state=${state}`), /No matching requests/);
  const page = await visitor.read(`/requests/${id}`);
  assert.match(page, /<code class="text ">&quot;globex&quot;<\/code>/);
  const proposal = await (await visitor.get(`/requests/${id}/proposal.json`)).text();
  const license = JSON.stringify(office.alice.sign(parseProposal(proposal), { expiresIn: '10m' }));
  const sent = await visitor.answer(id, 'license', { license: new Blob([license]) });
  assert.match(sent, /^303 .*Approved/);
  await requests.execute(id);
  assert.deepEqual(office.payments(), [{ payee: 'globex', amount: 10 }]);
  const { occurrence } = await requests.get(id);
  const done = await visitor.read(`/history/${occurrence}`);
  assert.match(done, /committed: what became durable is what was approved/);
  const receipt = await visitor.get(`/history/${occurrence}/receipt.json`);
  assert.equal(receipt.headers.get('content-type'), 'application/json');
  assert.match(await visitor.answer(id, 'license', { license }), /^303 .*ERR_EM_REQUEST_CLOSED/);
  assert.equal(office.payments().length, 1);
});

test('a license of another key, for another request, or that is no license leaves the request open', async () => {
  await using site = await openConsole();
  const { requests, office, app } = site;
  const [wanted, other] = [await requests.ask(ask('globex')), await requests.ask(ask('initech'))];
  const visitor = new Visitor(app);
  await visitor.enter();
  await visitor.read(`/requests/${wanted.id}`);
  const stranger = office.stranger.sign(wanted.proposal, { expiresIn: '10m' });
  const moved = office.alice.sign(other.proposal, { expiresIn: '10m' });
  for (const license of [JSON.stringify(stranger), JSON.stringify(moved), '{}', 'yes', '']) {
    const said = await visitor.answer(wanted.id, 'license', { license });
    assert.match(said, /^303 .*bad.*ERR_EM_/, license.slice(0, 40));
  }
  assert.equal((await requests.get(wanted.id)).state, 'pending');
  assert.deepEqual(office.payments(), []);
});

test('declining needs a reason, which the agent gets; expiry is not shown as a refusal', async () => {
  await using site = await openConsole();
  const { requests, office, app } = site;
  const { id } = await requests.ask(ask('globex'));
  const late = await requests.ask(ask('initech'));
  const visitor = new Visitor(app);
  await visitor.enter();
  await visitor.read(`/requests/${id}`);
  assert.match(await visitor.answer(id, 'decline', { reason: ' ' }), /bad.*say why/);
  assert.match(await visitor.answer(id, 'decline', { reason: 'disputed' }), /good.*Declined/);
  const { state, detail, answeredBy } = await requests.get(id);
  assert.deepEqual([state, detail, answeredBy], ['declined', 'disputed', 'carol']);
  office.clock.advance(25 * 3_600_000);
  await visitor.enter();
  const page = await visitor.read(`/requests/${late.id}`);
  assert.match(page, /expired/);
  assert.doesNotMatch(page, /declined|rejected/);
  assert.match(page, /Propose again/);
  await visitor.post(`/requests/${late.id}/renew`, {});
  const renewed = await visitor.read(`/requests/${late.id}`);
  assert.match(renewed, /Difference from the earlier proposal[\s\S]*The changes are the same/);
  assert.doesNotMatch(await visitor.read(`/requests/${late.id}`), /earlier proposal/);
  assert.equal((await requests.get(late.id)).state, 'pending');
});

test('without a session nothing is shown, and a link opens one session only', async () => {
  await using site = await openConsole();
  const { requests, app } = site;
  const { id } = await requests.ask(ask('globex'));
  const stranger = new Visitor(app);
  for (const path of [
    '/',
    `/requests/${id}`,
    `/requests/${id}/proposal.json`,
    '/history',
    '/events',
  ]) {
    const answer = await stranger.get(path);
    assert.equal(answer.status, 401, path);
    assert.doesNotMatch(await answer.text(), /globex/);
  }
  const link = app.createLink();
  const preview = new Request(link, { method: 'HEAD', headers: { host: '127.0.0.1:8080' } });
  assert.equal((await app.fetch(preview)).status, 405);
  assert.equal((await new Visitor(app).enter(link)).status, 200);
  const second = new Visitor(app);
  assert.equal((await second.enter(link)).status, 401);
  assert.equal(second.cookie, '');
  stranger.cookie = 'effectmatch_session=guessed';
  assert.equal((await stranger.get('/')).status, 401);
  const cookie = (await new Visitor(app).enter()).headers.get('set-cookie') ?? '';
  assert.match(cookie, /HttpOnly/);
  assert.match(cookie, /SameSite=Strict/);
});

test('over https the cookie belongs to this host alone and is never sent in the clear', async () => {
  await using site = await openConsole();
  const { runtime, requests } = site;
  const origin = 'https://approve.example.com';
  const parts = { runtime, requests, adapters: [], issuers: {}, user: 'carol' };
  await using app = createConsole({ ...parts, origin });
  const headers = { host: 'approve.example.com' };
  const entered = await app.fetch(new Request(app.createLink(), { headers }));
  const cookie = entered.headers.get('set-cookie') ?? '';
  assert.match(
    cookie,
    /^__Host-effectmatch=[^;]{40,}; Path=\/; HttpOnly; Secure; SameSite=Strict$/,
  );
  const own = { ...headers, cookie: cookie.split(';')[0] ?? '' };
  assert.equal((await app.fetch(new Request(`${origin}/`, { headers: own }))).status, 200);
  const renamed = own.cookie.replace('__Host-effectmatch', 'effectmatch_session');
  const other = new Request(`${origin}/`, { headers: { ...headers, cookie: renamed } });
  assert.equal((await app.fetch(other)).status, 401);
});

test('a session ends after twelve hours', async () => {
  await using site = await openConsole();
  const visitor = new Visitor(site.app);
  await visitor.enter();
  site.office.clock.advance(12 * 3_600_000 - 60_000);
  assert.equal((await visitor.get('/')).status, 200);
  site.office.clock.advance(60_000);
  assert.equal((await visitor.get('/')).status, 401);
});

test('forms from elsewhere, without the word of their session, and other host names are refused', async () => {
  await using site = await openConsole();
  const { requests, app } = site;
  const { id } = await requests.ask(ask('globex'));
  const visitor = new Visitor(app);
  await visitor.enter();
  await visitor.read(`/requests/${id}`);
  const decline = `/requests/${id}/decline`;
  const fields = { reason: 'no' };
  const refused = [
    await visitor.post(decline, fields, { origin: 'http://evil.example' }),
    await visitor.post(decline, fields, { origin: 'http://127.0.0.1:8080.evil.example' }),
    await visitor.post(decline, fields, { origin: 'null' }),
    await visitor.post(decline, { ...fields, form: '' }),
    await visitor.post(decline, { ...fields, form: `${visitor.formToken}x` }),
  ];
  for (const answer of refused) assert.equal(answer.status, 403);
  assert.equal((await visitor.post(decline, fields, { host: 'evil.example' })).status, 421);
  assert.equal((await visitor.get('/', { host: 'evil.example:8080' })).status, 421);
  const other = new Visitor(app);
  await other.enter();
  other.formToken = visitor.formToken;
  assert.equal((await other.post(decline, fields)).status, 403);
  assert.equal((await requests.get(id)).state, 'pending');
});

test('script, markup and marks that turn text around are shown as text', async () => {
  await using site = await openConsole();
  const { requests, app } = site;
  const hostile = `<script>alert(1)</script>"'><img src=x onerror=alert(2)> \u202epaid`;
  const { id } = await requests.ask(ask(hostile, hostile));
  await requests.askBack(id, { by: 'carol', text: hostile });
  await requests.forAgent('agent').reply(id, hostile);
  const declined = await requests.ask(ask('other'));
  await requests.decline(declined.id, { by: 'carol', reason: hostile });
  // A task, its values and the verdict about them, without a request.
  const { runtime, office } = site;
  const effects = [insert('payment', { id: 1, payee: hostile, amount: 1 })];
  const manifest = { task: hostile, planRevision: 1, adapter: 'books', effects };
  const proposal = await runtime.prepare(manifest);
  const license = office.alice.sign(proposal, { expiresIn: '10m' });
  const { kind, occurrence } = await runtime.execute(license, { sql: 'select 1' });
  assert.equal(kind, 'rejected');
  const visitor = new Visitor(app);
  await visitor.enter();
  const filtered = `/?by=${encodeURIComponent(hostile)}&state=all`;
  const paths = ['/', '/?state=all', `/requests/${id}`, `/requests/${declined.id}`, filtered];
  for (const path of [...paths, '/history', `/history/${occurrence}`, '/operations']) {
    const page = await visitor.read(path);
    assert.doesNotMatch(page, /<script>alert|<img src=x/, path);
    assert.doesNotMatch(page, /\u202e/, path);
  }
  assert.match(await visitor.read(`/requests/${id}`), /\\u\{202e\}/);
});

test('every answer forbids framing, foreign origins and caching', async () => {
  await using site = await openConsole();
  const visitor = new Visitor(site.app);
  await visitor.enter();
  for (const path of ['/', '/nowhere', '/assets/console.css', '/requests/none', '/?state=odd']) {
    const { headers } = await visitor.get(path);
    assert.match(headers.get('content-security-policy') ?? '', /default-src 'none'/, path);
    assert.match(headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/, path);
    assert.equal(headers.get('cache-control'), 'no-store', path);
  }
  for (const path of ['/nowhere', '/requests/none', '/history/occ_none']) {
    const answer = await visitor.get(path);
    assert.equal(answer.status, 404);
    assert.match(await answer.text(), /<nav aria-label="Sections">[\s\S]*href="\/\?state=all"/);
  }
  assert.equal((await visitor.get('/?state=odd')).status, 400);
});

test('what must hold when it runs, and what must not change before, is listed', async () => {
  await using site = await openConsole();
  const { requests, app } = site;
  const manifest = {
    adapter: 'books',
    effects: [insert('payment', { id: 1, payee: 'globex', amount: 10 })],
    requires: [row('budget', { id: 1 }, { left: 100 }), absent('budget', { id: 2 })],
    watch: [read('budget', { id: 1 }, ['left'])],
  };
  const action = { sql: "insert into payment values (1, 'globex', 10)" };
  const { id } = await requests.ask({ by: 'agent', run: 'run', manifest, action });
  const visitor = new Visitor(app);
  await visitor.enter();
  const page = await visitor.read(`/requests/${id}`);
  const [, listed = ''] = /Must hold when it runs([\s\S]*)<\/section>/.exec(page) ?? [];
  for (const words of ['budget id=1: left = 100', 'budget id=2: does not exist'])
    assert.ok(listed.includes(words), words);
  assert.match(listed, /Must not change before it runs[\s\S]*budget id=1: left unchanged/);
});

test('large outcomes come a page at a time, and every page says how many there are', async () => {
  await using site = await openConsole();
  const { requests, app } = site;
  const rows = Array.from({ length: 250 }, (_, n) => `('payee ${n}', ${n + 1})`).join(', ');
  const sql = `insert into payment (payee, amount) values ${rows}`;
  const { id } = await requests.ask({ by: 'agent', run: 'run', adapter: 'books', action: { sql } });
  const visitor = new Visitor(app);
  await visitor.enter();
  const seen = new Set<string>();
  for (const part of [1, 2, 3]) {
    const page = await visitor.read(`/requests/${id}?part=${part}`);
    assert.match(page, new RegExp(`page ${part} of 3`));
    for (const [, name = ''] of page.matchAll(/&quot;(payee \d+)&quot;<\/code>/g)) seen.add(name);
  }
  assert.equal(seen.size, 250);
});

test('pages are told of a change, and only so many may listen', async () => {
  await using site = await openConsole();
  const { requests, app } = site;
  const visitor = new Visitor(app);
  await visitor.enter();
  const listening = await visitor.get('/events');
  assert.equal(listening.headers.get('content-type'), 'text/event-stream');
  const reader = listening.body?.pipeThrough(new TextDecoderStream()).getReader();
  const { id } = await requests.ask(ask('globex'));
  let text = '';
  while (!text.includes(id)) text += (await reader?.read())?.value ?? '';
  assert.match(text, new RegExp(`event: request\ndata: ${id}`));
  await reader?.cancel();
  // What happened after a page was made, and before it listens, is told too; nothing older is.
  const made = /data-last-event="(\d+)"/.exec(await visitor.read('/'))?.[1];
  const { id: later } = await requests.ask(ask('initech'));
  const late = await visitor.get(`/events?after=${made}`);
  const told = late.body?.pipeThrough(new TextDecoderStream()).getReader();
  for (text = ''; !text.includes(later); ) text += (await told?.read())?.value ?? '';
  assert.doesNotMatch(text, new RegExp(id));
  await told?.cancel();
  const pages = await Promise.all(Array.from({ length: 250 }, () => visitor.get('/events')));
  assert.ok(pages.some(({ status }) => status === 503));
  await Promise.all(pages.map((page) => page.body?.cancel()));
});

test('a page that goes without a word does not end the console, nor take a place', async () => {
  await using site = await openConsole();
  const { requests, app } = site;
  const visitor = new Visitor(app);
  await visitor.enter();
  for (let index = 0; index < 300; index += 1) {
    const left = await visitor.get('/events');
    assert.equal(left.status, 200);
    await left.body?.cancel();
    assert.equal((await visitor.head('/events')).status, 204);
  }
  // The console told its listeners, and a rejection that is not handled would fail this test.
  const staying = await visitor.get('/events');
  const { id } = await requests.ask(ask('globex'));
  let heard = '';
  for await (const chunk of staying.body as ReadableStream<Uint8Array>) {
    heard += new TextDecoder().decode(chunk);
    if (heard.includes(id)) break;
  }
});

test('a body of unknown length is not read before the session is known', async () => {
  await using site = await openConsole();
  const visitor = new Visitor(site.app);
  const body = new ReadableStream({
    pull: (controller) => controller.enqueue(new Uint8Array(1024 * 1024)),
  });
  const answer = await visitor.send('/requests/x/decline', body);
  assert.equal(answer.status, 401);
});

test('operators see what is open, what was released and the boundary', async () => {
  await using site = await openConsole();
  const visitor = new Visitor(site.app);
  await visitor.enter();
  const page = await visitor.read('/operations');
  assert.match(page, /Every attempt has a verdict/);
  assert.match(page, /books <span class="badge good">closed<\/span>/);
  assert.match(await visitor.read('/history'), /Nothing has been executed yet/);
});

test('what was approved and what was observed stand in one view, and recovery can be started', async () => {
  await using site = await openConsole();
  const { requests, office, app } = site;
  office.db.exec(`create trigger fee after insert on payment when new.payee = 'hidden'
    begin insert into payment (payee, amount) values ('fee', 1); end`);
  const action = { sql: "insert into payment (id, payee, amount) values (900, 'hidden', 5)" };
  const effects = [
    { op: 'insert', target: 'payment', after: { id: 900, payee: 'hidden', amount: 5 } },
  ] as const;
  const manifest = {
    adapter: 'books',
    effects: effects.map(({ after }) => insert('payment', after)),
  };
  const asked = await requests.ask({ by: 'agent', run: 'run', manifest, action });
  const license = office.alice.sign(asked.proposal, { expiresIn: '10m' });
  await requests.answer(asked.id, license);
  const { state, occurrence } = await requests.execute(asked.id);
  assert.equal(state, 'rejected');
  const visitor = new Visitor(app);
  await visitor.enter();
  const page = await visitor.read(`/history/${occurrence}`);
  assert.match(page, /Approved and observed/);
  assert.match(
    page,
    /<b>1<\/b> extra · <b>0<\/b> missing · <b>0<\/b> altered · <b>1<\/b> as approved/,
  );
  assert.match(page, /not approved/);
  const past = await visitor.read('/history');
  assert.match(past, /aria-label="verdicts per hour, up to 1"/);
  assert.match(past, /class="tick">\d\d:00<\/text>/);
  assert.match(past, /&quot;hidden&quot;[\s\S]*Nothing changed:/);
  await site.runtime.shadow(
    { adapter: 'books', task: 'shadow', planRevision: 1 },
    { sql: "insert into payment (payee, amount) values ('x', 1)" },
  );
  assert.match(await visitor.read('/operations'), /Of 1 shadowed changes 0 would have committed/);
  const recovered = await visitor.post('/operations/recover', {});
  assert.equal(recovered.status, 303);
  assert.match(await visitor.read('/operations'), /0 settled, 0 still running, 0 need a person/);
});

test('history comes a page at a time, and shows the verdicts of one kind', async () => {
  await using site = await openConsole();
  const { requests, office, app } = site;
  const finish = async (payee: string) => {
    const { id, proposal } = await requests.ask(ask(payee));
    await requests.answer(id, office.alice.sign(proposal, { expiresIn: '10m' }));
    await requests.execute(id);
  };
  for (let index = 0; index < 51; index += 1) await finish(`payee-${index}`);
  const visitor = new Visitor(app);
  await visitor.enter();
  const first = await visitor.read('/history');
  assert.match(first, />51 verdicts<[\s\S]*>51 committed<[\s\S]*>0 rejected</);
  assert.equal(first.match(/<li><a class="row"/g)?.length, 50);
  assert.match(first, /payee-50&quot;/);
  const [, older = ''] = /<a href="([^"]*)">older →/.exec(first) ?? [];
  const second = await visitor.read(older.replaceAll('&amp;', '&'));
  assert.equal(second.match(/<li><a class="row"/g)?.length, 1);
  assert.match(second, /payee-0&quot;/);
  assert.match(await visitor.read('/history?kind=rejected'), /No verdict is rejected/);
  assert.equal((await visitor.get('/history?kind=nothing')).status, 400);
});

test('runs of workflows are listed with their reports, and the graph of each is drawn', async () => {
  await using fan = await openFan(ORIGIN);
  const { app, workflows } = fan;
  const visitor = new Visitor(app);
  await visitor.enter();
  assert.match(await visitor.read('/operations/workflows'), /No run has started/);
  assert.doesNotMatch(await visitor.read('/operations'), /Workflows/);
  await fan.run();
  const operations = await visitor.read('/operations');
  assert.match(operations, /failed<\/span><\/td><td><a href="\/operations\/workflows\/stops">/);
  assert.match(operations, /<a href="\/operations\/workflows">All runs/);
  const list = await visitor.read('/operations/workflows');
  assert.ok(list.indexOf('>stops<') < list.indexOf('>waits<'), 'newest first');
  assert.match(list, /failed<\/span><\/td><td><a href="\/operations\/workflows\/stops">/);
  assert.match(list, /waiting<\/span>/);

  const page = await visitor.read('/operations/workflows/stops');
  const boxes = [...page.matchAll(/<g class="(\w+)"><title>([^<]*)<\/title>/g)];
  assert.deepEqual(
    boxes.map(([, tone, title]) => `${tone} ${title}`),
    [
      'good start: committed',
      'good left: committed, after start',
      'bad right: rejected, after start',
      'bad end: blocked, after start, left, right',
    ],
  );
  assert.equal(page.match(/<path /g)?.length, 4, 'start is before end by way of the others');
  const rects = [...page.matchAll(/<rect x="(\d+)" y="(\d+)"/g)].map(([, x, y]) => [x, y]);
  const [start, left, right, end] = rects.map(([x]) => Number(x));
  assert.ok((start ?? 0) < (left ?? 0) && left === right && (right ?? 0) < (end ?? 0));
  assert.match(page, /Durable \(2\)[\s\S]*Not done \(2\)[\s\S]*diverged: /);
  assert.match(page, /effectmatch workflow revise stops/);
  const { occurrence } = (await workflows.report('stops')).durable[0] ?? assert.fail();
  assert.ok(page.includes(`href="/history/${occurrence}"`));
  assert.equal(page.match(/href="\/history\/occ_/g)?.length, 3, 'what was tried can be opened');
  assert.match(
    await visitor.read('/operations/workflows/waits'),
    /Waiting \(4\)[\s\S]*for an approver/,
  );
  for (const unknown of ['nothing', '%3Cscript%3E', 'a%2Fb'])
    assert.equal((await visitor.get(`/operations/workflows/${unknown}`)).status, 404);
  const stranger = new Visitor(app);
  assert.equal((await stranger.get('/operations/workflows/stops')).status, 401);
});
