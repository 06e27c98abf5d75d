// Goal: an agent's question becomes one request, takes one license, has at most one effect, and its
// state is always true. Method: a real host on SQLite files; agents, approvers and a clock.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { SignedLicense } from '../../src/index.ts';
import { signWebhook } from '../../src/requests/index.ts';
import { openOffice, pay } from './office.ts';

const ASK = { by: 'agent', run: 'run 1', ...pay('globex') };
const SIGN = { expiresIn: '10m' } as const;
const code = (wanted: string) => (error: { readonly code?: string }) => error.code === wanted;

test('a question is proposed once, however often it is asked, and another key asks again', async () => {
  using office = openOffice();
  await using host = await office.start();
  const first = await host.requests.ask({ ...ASK, reason: 'the invoice is due' });
  assert.equal(first.state, 'pending');
  assert.equal(first.reason, 'the invoice is due');
  assert.match(first.rendering, /\+ payment id=<generated/);
  assert.deepEqual(await host.requests.ask(ASK), first);
  await using other = await office.start();
  assert.equal((await other.requests.ask(ASK)).id, first.id);
  for (const changed of [{ key: 'again' }, { run: 'run 2' }, { by: 'other' }, pay('globex', 11)])
    assert.notEqual((await host.requests.ask({ ...ASK, ...changed })).id, first.id);
});

test('a signed request is executed by the host, and the agent learns what came of it', async () => {
  using office = openOffice();
  await using host = await office.start();
  host.requests.start();
  const { id, proposal } = await host.requests.ask(ASK);
  const approved = await host.requests.answer(id, office.alice.sign(proposal, SIGN));
  assert.equal(approved.answeredBy, 'alice');
  const done = await host.requests.wait(id);
  assert.equal(done.state, 'committed');
  assert.deepEqual(done.results, [{ rows: [{ id: 1 }], omitted: 0 }]);
  assert.deepEqual(
    Object.values(done.terminal?.kind === 'committed' ? (done.terminal.generated ?? {}) : {}),
    [1],
  );
  assert.deepEqual(office.payments(), [{ payee: 'globex', amount: 10 }]);
  assert.deepEqual(
    (await host.requests.ask(ASK)).state,
    'committed',
    'asking again changes nothing',
  );
  assert.equal(office.payments().length, 1);
});

test('on-call: the license waits until the agent calls again', async () => {
  using office = openOffice();
  await using host = await office.start({ run: 'on-call' });
  host.requests.start();
  const { id, proposal } = await host.requests.ask(ASK);
  await host.requests.answer(id, office.alice.sign(proposal, SIGN));
  assert.equal((await host.requests.wait(id, { waitMs: 1200 })).state, 'approved');
  assert.equal((await host.requests.ask(ASK)).state, 'committed');
});

test('one request takes one license, also if two approvers sign at once', async () => {
  using office = openOffice();
  await using host = await office.start();
  await using other = await office.start();
  const { id, proposal } = await host.requests.ask(ASK);
  const answers = await Promise.allSettled([
    host.requests.answer(id, office.alice.sign(proposal, SIGN)),
    other.requests.answer(id, office.bob.sign(proposal, SIGN)),
    host.requests.answer(id, office.alice.sign(proposal, SIGN)),
  ]);
  const failed = answers.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[];
  assert.equal(failed.length, 2);
  for (const { reason } of failed) assert.equal(reason.code, 'ERR_EM_REQUEST_CLOSED');
  await Promise.all([host.requests.execute(id), other.requests.execute(id)]);
  assert.equal(office.payments().length, 1);
});

test('a request that needs two people stays open until the second has signed', async () => {
  using office = openOffice();
  await using host = await office.start({}, { second: ['alice'] });
  const { requests } = host;
  const { id, proposal } = await requests.ask({ by: 'agent', run: 'run', ...pay('globex') });
  const signed = office.bob.sign(proposal, { expiresIn: '10m' });
  const half = await requests.answer(id, signed);
  assert.equal(half.state, 'pending');
  assert.deepEqual(half.first, signed);
  assert.equal((await requests.events()).length, 2);
  assert.equal((await requests.execute(id)).state, 'pending');
  assert.deepEqual(office.payments(), []);
  const late = office.bob.sign(proposal, { expiresIn: '10m' });
  await assert.rejects(requests.answer(id, late), /ERR_EM_LICENSE_REFUSED|bob signed this already/);
  const both = office.alice.countersign(half.first);
  const done = await requests.answer(id, both);
  assert.deepEqual(
    [done.state, done.answeredBy, done.first],
    ['approved', 'bob, alice', undefined],
  );
  assert.equal((await requests.execute(id)).state, 'committed');
  assert.deepEqual(office.payments(), [{ payee: 'globex', amount: 10 }]);
});

test('a first signature that runs out makes the request expired, and renewing drops it', async () => {
  using office = openOffice();
  await using host = await office.start({}, { second: ['alice'] });
  const { requests } = host;
  const { id, proposal } = await requests.ask({ by: 'agent', run: 'run', ...pay('globex') });
  const half = await requests.answer(id, office.bob.sign(proposal, { expiresIn: '10m' }));
  office.clock.advance(11 * 60_000);
  assert.equal((await requests.get(id)).state, 'expired');
  await assert.rejects(requests.answer(id, office.alice.countersign(half.first)), {
    code: 'ERR_EM_REQUEST_CLOSED',
  });
  const { request } = await requests.renew(id);
  assert.deepEqual([request.state, request.first], ['pending', undefined]);
});

test('an approver cannot approve what they asked for, neither first nor second', async () => {
  using office = openOffice();
  await using host = await office.start({}, { second: ['alice'] });
  const { requests } = host;
  for (const by of ['alice', 'bob']) {
    const { id, proposal } = await requests.ask({ by, run: 'run', ...pay('globex') });
    const first = office.bob.sign(proposal, { expiresIn: '10m' });
    const answer = by === 'bob' ? first : office.alice.countersign(first);
    await assert.rejects(requests.answer(id, answer), {
      code: 'ERR_EM_LICENSE_REFUSED',
      message: /asked for this and cannot approve it/,
    });
    assert.equal((await requests.get(id)).state, 'pending');
  }
  assert.deepEqual(office.payments(), []);
});

test('an approver asks back, the agent replies, and both stay when it is proposed again', async () => {
  using office = openOffice();
  await using host = await office.start();
  const { requests } = host;
  const agent = requests.forAgent('agent');
  const { id } = await agent.ask({ run: 'run', ...pay('globex') });
  await Promise.all([
    requests.askBack(id, { by: 'alice', text: ' which invoice? ' }),
    requests.askBack(id, { by: 'bob', text: 'is it due?' }),
  ]);
  await agent.reply(id, '4711, today');
  await requests.assign(id, 'bob');
  const { messages = [], assignedTo, state } = (await requests.renew(id)).request;
  assert.deepEqual(
    messages
      .slice(0, 2)
      .map(({ by, text }) => `${by}: ${text}`)
      .sort(),
    ['alice: which invoice?', 'bob: is it due?'],
  );
  assert.equal(messages[2]?.text, '4711, today');
  assert.deepEqual([messages[2]?.from, assignedTo, state], ['agent', 'bob', 'pending']);
  await assert.rejects(requests.forAgent('other').reply(id, 'x'), { code: 'ERR_EM_NOT_FOUND' });
  for (const text of ['', '  '])
    await assert.rejects(requests.askBack(id, { by: 'alice', text }), {
      code: 'ERR_EM_INPUT_INVALID',
    });
  await assert.rejects(requests.assign(id, 'no such <name>'), { code: 'ERR_EM_INPUT_INVALID' });
  await requests.decline(id, { by: 'bob', reason: 'no' });
  await assert.rejects(requests.askBack(id, { by: 'alice', text: 'but?' }), {
    code: 'ERR_EM_REQUEST_CLOSED',
  });
});

test('a license that does not fit, or does not count, leaves the request open', async () => {
  using office = openOffice();
  await using host = await office.start();
  const { id, proposal } = await host.requests.ask(ASK);
  const other = await host.requests.ask({ ...ASK, ...pay('globex', 10_000) });
  const good = office.alice.sign(proposal, SIGN);
  const wrong: Readonly<Record<string, SignedLicense>> = {
    'signed for another request': office.alice.sign(other.proposal, SIGN),
    'signed by an unknown key in her name': office.stranger.sign(proposal, SIGN),
    'altered afterwards': {
      ...good,
      license: { ...good.license, expiresAt: '2099-01-01T00:00:00.000Z' },
    },
  };
  for (const [name, license] of Object.entries(wrong)) {
    await assert.rejects(host.requests.answer(id, license), code('ERR_EM_LICENSE_REFUSED'), name);
    assert.equal((await host.requests.get(id)).state, 'pending', name);
  }
  await host.requests.answer(id, good);
  assert.equal((await host.requests.execute(id)).state, 'committed');
});

test('declined, expired and withdrawn are told apart, and nothing runs after them', async () => {
  using office = openOffice();
  await using host = await office.start({ expiresIn: '1h' });
  const asked = await Promise.all(
    ['declined', 'withdrawn', 'expired'].map((key) => host.requests.ask({ ...ASK, key })),
  );
  const licenses = asked.map(({ proposal }) => office.alice.sign(proposal, { expiresIn: '2h' }));
  const [declined, withdrawn, expired] = asked.map(({ id }) => id) as [string, string, string];
  await host.requests.decline(declined, { by: 'alice', reason: 'pay it next month' });
  await host.requests.withdraw(withdrawn);
  office.clock.advance(61 * 60_000);
  assert.equal((await host.requests.get(declined)).detail, 'pay it next month');
  for (const [id, state] of [
    [declined, 'declined'],
    [withdrawn, 'withdrawn'],
    [expired, 'expired'],
  ] as const) {
    assert.equal((await host.requests.get(id)).state, state);
    const license = licenses[[declined, withdrawn, expired].indexOf(id)];
    await assert.rejects(host.requests.answer(id, license), code('ERR_EM_REQUEST_CLOSED'));
    await host.requests.execute(id);
  }
  assert.deepEqual(office.payments(), []);
});

test('a license that was not used in time makes the request expired', async () => {
  using office = openOffice();
  await using host = await office.start({ run: 'on-call' });
  const { id, proposal } = await host.requests.ask(ASK);
  await host.requests.answer(id, office.alice.sign(proposal, { expiresIn: '5m' }));
  office.clock.advance(6 * 60_000);
  assert.equal((await host.requests.get(id)).state, 'expired');
  assert.equal((await host.requests.ask(ASK)).state, 'expired');
  assert.deepEqual(office.payments(), []);
});

const WATCHING = {
  by: 'agent',
  run: 'run 1',
  manifest: {
    adapter: 'books',
    effects: [
      {
        op: 'insert',
        target: 'payment',
        key: { id: { is: 7 } },
        after: { payee: { is: 'globex' }, amount: { is: 10 } },
        count: 1,
      },
    ],
    watch: [{ target: 'budget', key: { id: 1 } }],
  },
  action: { sql: "insert into payment values (7, 'globex', 10)" },
} as const;

test('a request whose state has changed is stale; renewed, it shows what is different', async () => {
  using office = openOffice();
  await using host = await office.start();
  const { id, proposal } = await host.requests.ask(WATCHING as never);
  const early = office.alice.sign(proposal, SIGN);
  await host.requests.answer(id, early);
  office.db.exec('update budget set left = 50');
  const stale = await host.requests.execute(id);
  assert.equal(stale.state, 'stale');
  assert.match(stale.detail ?? '', /^stale-state/);
  const { request, difference } = await host.requests.renew(id);
  assert.equal(request.state, 'pending');
  assert.equal(request.generation, 2);
  assert.deepEqual(difference, ['~ the rows that it depends on have changed']);
  await assert.rejects(host.requests.answer(id, early), code('ERR_EM_LICENSE_REFUSED'));
  office.db.exec('update budget set left = 100');
  const old = await host.runtime.execute(early, WATCHING.action);
  assert.equal(
    old.kind === 'rejected' && old.reason,
    'plan-superseded',
    'the earlier license is dead',
  );
  office.db.exec('update budget set left = 50');
  await host.requests.answer(id, office.alice.sign(request.proposal, SIGN));
  assert.equal((await host.requests.execute(id)).state, 'committed');
  await assert.rejects(host.requests.renew(id), code('ERR_EM_REQUEST_CLOSED'));
});

test('an agent sees and changes only what it asked for', async () => {
  using office = openOffice();
  await using host = await office.start();
  const { run, ...wanted } = { run: 'run 1', ...pay('globex') };
  const own = await host.requests.forAgent('agent').ask({ run, ...wanted });
  const thief = host.requests.forAgent('thief');
  for (const attempt of [thief.get(own.id), thief.wait(own.id), thief.withdraw(own.id)])
    await assert.rejects(attempt, code('ERR_EM_NOT_FOUND'));
  const claimed = { run, ...wanted, by: 'agent' } as never;
  assert.equal((await thief.ask(claimed)).by, 'thief', 'it cannot ask in another name');
  assert.equal((await host.requests.get(own.id)).state, 'pending');
});

test('a designated signer answers what its limits allow, and leaves the rest to people', async () => {
  using office = openOffice();
  const { defineOperation, insert, generated } = await import('../../src/index.ts');
  const input = {
    '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) },
  } as never;
  const operation = defineOperation<{ payee: string; amount: number }>({
    name: 'pay',
    adapter: 'books',
    input,
    approve: ({ payee, amount }) => ({
      effects: [insert('payment', { id: generated('payment'), payee, amount })],
    }),
    action: ({ payee, amount }) => ({
      sql: 'insert into payment (payee, amount) values (?, ?)',
      values: [payee, amount],
    }),
  });
  const operations = { pay: operation } as never;
  const rules = [{ approver: office.bob, operations: ['pay'], expiresIn: '10m' }];
  const limits = {
    sources: ['contract'],
    limits: { amounts: [{ target: 'payment', column: 'amount', max: 100 }] },
  };
  await using host = await office.start({ operations, rules }, limits);
  const ask = (amount: number) =>
    host.requests.ask({
      by: 'agent',
      run: 'run 1',
      operation: 'pay',
      input: { payee: 'x', amount },
    });
  const small = await ask(50);
  assert.equal(small.answeredBy, 'bob');
  assert.equal((await host.requests.execute(small.id)).state, 'committed');
  assert.equal((await ask(5000)).state, 'pending');
});

test('requests are listed by state, agent and adapter, newest first, in pages', async () => {
  using office = openOffice();
  await using host = await office.start();
  const asked: string[] = [];
  for (let index = 0; index < 7; index += 1) {
    const by = index % 2 === 0 ? 'even' : 'odd';
    asked.push((await host.requests.ask({ ...ASK, by, key: String(index) })).id);
    office.clock.advance(10);
  }
  await host.requests.withdraw(asked[0] as string);
  const ids = async (query: Parameters<typeof host.requests.list>[0]) =>
    (await host.requests.list(query)).map(({ id }) => id);
  assert.deepEqual(await ids({}), asked.toReversed());
  assert.deepEqual(await ids({ by: 'odd' }), [asked[5], asked[3], asked[1]]);
  assert.deepEqual(await ids({ state: 'withdrawn' }), [asked[0]]);
  assert.deepEqual(await ids({ limit: 2 }), [asked[6], asked[5]]);
  assert.deepEqual(await ids({ limit: 2, after: asked[5] as string }), [asked[4], asked[3]]);
  assert.deepEqual(await ids({ adapter: 'other' }), []);
});

test('webhooks get every event in order, signed, and again until they confirm it', async () => {
  using office = openOffice();
  const seen: { body: string; signature: string }[] = [];
  let refusals = 2;
  const server = createServer((request, response) => {
    let body = '';
    request
      .on('data', (chunk) => (body += chunk))
      .on('end', () => {
        const signature = String(request.headers['effectmatch-signature']);
        if (refusals > 0) refusals -= 1;
        else seen.push({ body, signature });
        response.writeHead(refusals > 0 ? 500 : 204).end();
      });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  {
    await using host = await office.start({
      webhooks: [{ url, secret: 's' }],
      link: 'https://desk/{id}',
    });
    host.requests.start();
    const { id, proposal } = await host.requests.ask(ASK);
    await host.requests.answer(id, office.alice.sign(proposal, SIGN));
    await host.requests.wait(id);
    while (!seen.some(({ body }) => body.includes('committed')))
      await new Promise((resolve) => setTimeout(resolve, 50));
    const events = seen.map(({ body }) => JSON.parse(body));
    assert.equal(events.at(-1).link, `https://desk/${id}`);
    for (const { body, signature } of seen) {
      const [, at = ''] = /^t=(\d+),/.exec(signature) ?? [];
      assert.equal(signature, signWebhook('s', at, body));
    }
    const order = [...new Set(events.map(({ seq }) => seq))];
    assert.deepEqual(
      order,
      order.toSorted((a, b) => a - b),
    );
  }
  server.close();
});

const BAD: Readonly<Record<string, unknown>> = {
  'no agent': { ...ASK, by: '' },
  'an agent that is no name': { ...ASK, by: 'a b' },
  'no run': { ...ASK, run: '' },
  'nothing wanted': { by: 'agent', run: 'r' },
  'an unknown field': { ...ASK, approved: true },
  'a long reason': { ...ASK, reason: 'x'.repeat(4001) },
  'a reason that is no text': { ...ASK, reason: 7 },
};
for (const [name, ask] of Object.entries(BAD)) {
  test(`bad input is refused and changes nothing: ${name}`, async () => {
    using office = openOffice();
    await using host = await office.start();
    await assert.rejects(host.requests.ask(ask as never), code('ERR_EM_INPUT_INVALID'));
    assert.deepEqual(await host.requests.list(), []);
  });
}

test('a file of another program is refused', async () => {
  using office = openOffice();
  const store = `${office.folder}/books.db`;
  await assert.rejects(office.start({ store }), code('ERR_EM_STORE_UNAVAILABLE'));
});

test('requests that wait for their agent do not hide one that is due', async () => {
  using office = openOffice();
  await using host = await office.start();
  const ask = { by: 'agent', run: 'run' };
  const due = await host.requests.ask({ ...ask, ...pay('due') });
  await host.requests.answer(due.id, office.alice.sign(due.proposal, { expiresIn: '1h' }));
  await using calling = await office.start({ run: 'on-call' });
  for (let index = 0; index < 51; index += 1) {
    const { id, proposal } = await calling.requests.ask({ ...ask, ...pay(`waits ${index}`) });
    await calling.requests.answer(id, office.alice.sign(proposal, { expiresIn: '1h' }));
  }
  host.requests.start();
  assert.equal((await host.requests.wait(due.id, { waitMs: 20_000 })).state, 'committed');
  assert.deepEqual(office.payments(), [{ payee: 'due', amount: 10 }]);
});

test('a request is found by its beginning, and only if that is of one request', async () => {
  using office = openOffice();
  await using host = await office.start();
  const { requests } = host;
  const { id } = await requests.ask({ by: 'agent', run: 'run', ...pay('globex') });
  await requests.ask({ by: 'agent', run: 'run', ...pay('initech') });
  assert.equal(await requests.findId(id.slice(0, 20)), id);
  assert.equal(await requests.findId(id), id);
  for (const odd of ['req_', 'req_zzzz', '%', 'req_0000000000', ''])
    await assert.rejects(requests.findId(odd), { code: 'ERR_EM_NOT_FOUND' }, odd);
  assert.equal(await requests.countWaiting(), 2);
});

test('a request whose state has changed is stale once it is looked at, and can be renewed', async () => {
  using office = openOffice();
  await using host = await office.start();
  const { requests } = host;
  const action = { sql: 'update budget set left = 50 where id = 1' };
  const { id } = await requests.ask({ by: 'agent', run: 'run', adapter: 'books', action });
  assert.equal((await requests.recheck(id)).state, 'pending');
  office.db.exec('update budget set left = 80 where id = 1');
  const { state, detail } = await requests.recheck(id);
  assert.equal(state, 'stale');
  assert.match(detail ?? '', /stale-state|precondition-broken/);
  const { request } = await requests.renew(id);
  assert.equal(request.state, 'pending');
  assert.match(request.rendering, /80 -> 50|left=80/);
});

test('what would change nothing is not asked', async () => {
  using office = openOffice();
  await using host = await office.start();
  const action = { sql: 'update budget set left = 5 where id = 99' };
  const ask = { by: 'agent', run: 'run', adapter: 'books', action };
  await assert.rejects(host.requests.ask(ask), { code: 'ERR_EM_INPUT_INVALID' });
});
