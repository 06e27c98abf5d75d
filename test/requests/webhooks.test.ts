// Goal: a receiver gets every event at least once and in order, with longer and longer pauses while
// it refuses, and the log says what was tried. Method: real receivers that refuse, are slow or go
// away; a host that is stopped and started again; a clock that the test moves.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { signWebhook } from '../../src/requests/index.ts';
import { openOffice, pay } from './office.ts';

interface Message {
  readonly body: string;
  readonly signature: string;
}

/** A receiver that answers with these statuses in turn, then with 204. */
async function openReceiver(statuses: (number | 'never')[] = []) {
  const seen: Message[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request
      .on('data', (chunk) => (body += chunk))
      .on('end', () => {
        const signature = String(request.headers['effectmatch-signature']);
        seen.push({ body, signature });
        const status = statuses.shift() ?? 204;
        if (status !== 'never') response.writeHead(status, { location: '/elsewhere' }).end();
      });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook/secret-path`;
  return {
    ...{ url, seen },
    [Symbol.dispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

const ask = (payee: string) => ({ by: 'agent', run: 'r', ...pay(payee) });

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(20);
}

test('a refusal is tried again after a pause that doubles, also across a restart', async () => {
  using office = openOffice();
  using receiver = await openReceiver([500, 302, 404]);
  const webhooks = [{ url: receiver.url, secret: 's', name: 'desk' }];
  const { clock } = office;
  {
    await using host = await office.start({ webhooks });
    await host.requests.ask(ask('a'));
    host.requests.start();
    await until(async () => (await host.requests.deliveries()).length === 1);
  }
  await using host = await office.start({ webhooks });
  host.requests.start();
  const tries = async () => await host.requests.deliveries();
  for (const [index, pauseMs] of [500, 1000, 2000].entries()) {
    const count = index + 1;
    await until(async () => (await tries()).length >= count);
    const { at } = (await tries()).at(-1) ?? { at: '' };
    clock.advance(Date.parse(at) + pauseMs - 5 - clock.now());
    await until(async () => (await tries()).length > count);
    const waited = Date.parse((await tries()).at(-1)?.at ?? '') - Date.parse(at);
    assert.ok(waited >= pauseMs, `${waited} ms after try ${count}`);
  }
  const log = await tries();
  assert.deepEqual(
    log.map(({ receiver: name, seq, attempt, delivered, result }) => [
      name,
      seq,
      attempt,
      delivered,
      result,
    ]),
    [
      ['desk', 1, 1, false, '500'],
      ['desk', 1, 2, false, 'unreachable'],
      ['desk', 1, 3, false, '404'],
      ['desk', 1, 4, true, '204'],
    ],
  );
  for (const { body, signature } of receiver.seen) {
    const [, at = ''] = /^t=(\d+),/.exec(signature) ?? [];
    assert.equal(signature, signWebhook('s', at, body));
  }
});

test('a receiver that never answers holds up neither executions nor other receivers', async () => {
  using office = openOffice();
  using stuck = await openReceiver(['never']);
  using receiver = await openReceiver();
  const webhooks = [
    { url: stuck.url, secret: 's' },
    { url: receiver.url, secret: 's' },
  ];
  const host = await office.start({ webhooks });
  host.requests.start();
  const { id, proposal } = await host.requests.ask(ask('a'));
  await until(() => stuck.seen.length === 1);
  await host.requests.answer(id, office.alice.sign(proposal, { expiresIn: '10m' }));
  assert.equal((await host.requests.wait(id)).state, 'committed');
  await until(() => receiver.seen.some(({ body }) => body.includes('committed')));
  const shown = JSON.stringify(await host.requests.deliveries());
  assert.ok(!shown.includes('secret-path'), 'a path may be a secret, and is not shown');
  stuck[Symbol.dispose]();
  await host[Symbol.asyncDispose]();
});

test('a message for Slack has a link, no button, and no markup of an agent', async () => {
  using office = openOffice();
  using receiver = await openReceiver();
  const webhooks = [{ url: receiver.url, secret: 's', format: 'slack' as const }];
  await using host = await office.start({ webhooks, link: 'https://desk/{id}' });
  host.requests.start();
  const { id } = await host.requests.ask({ ...ask('a'), by: 'a@b' });
  await until(() => receiver.seen.length === 1);
  const message = JSON.parse(receiver.seen[0]?.body ?? '');
  assert.deepEqual(message, { text: `a@b: books is pending <https://desk/${id}|open>` });
});
