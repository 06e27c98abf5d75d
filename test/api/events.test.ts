// Goal: a client that follows events misses none, also when it comes back, and neither many clients
// nor slow ones hold up the server. Method: real streams of the API, read, left and resumed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { revokeToken } from '../../src/access/callers.ts';
import { openSite, paying, type Site } from './site.ts';

interface Message {
  readonly id: number;
  readonly data: { readonly id: string; readonly by: string; readonly state: string };
}

/** Reads messages from a stream until there are so many. */
async function read(response: Response, count: number): Promise<Message[]> {
  const messages: Message[] = [];
  let text = '';
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    const parts = text.split('\n\n');
    text = parts.pop() ?? '';
    for (const part of parts) {
      const [, id, data] = /^id: (\d+)\nevent: request\ndata: (.*)$/.exec(part) ?? [];
      if (data !== undefined) messages.push({ id: Number(id), data: JSON.parse(data) });
    }
    if (messages.length >= count) return messages;
  }
  return messages;
}

async function ask({ call, tokens }: Site, payee: string, agent: 'clerk' | 'rival' = 'clerk') {
  const { json } = await call('POST', '/v1/requests', {
    token: tokens[agent],
    body: paying(payee),
  });
  return json.id as string;
}

test('a stream goes on from the last id, without gaps and without repetition', async () => {
  await using site = await openSite();
  const { call, tokens } = site;
  const token = tokens.carol;
  const ids = [];
  for (let index = 0; index < 30; index += 1) ids.push(await ask(site, `payee ${index}`));
  const opened = await call('GET', '/v1/events?after=0', { token });
  const first = await read(opened.response, 7);
  const cut = first.slice(0, 7);
  const last = String(cut.at(-1)?.id);
  const resumed = await call('GET', '/v1/events', { token, headers: { 'last-event-id': last } });
  const reading = read(resumed.response, 24);
  const late = await ask(site, 'late');
  const seen = [...cut, ...(await reading)];
  assert.deepEqual(
    seen.map(({ data }) => data.id),
    [...ids, late],
  );
  const numbers = seen.map(({ id }) => id);
  assert.deepEqual(
    numbers,
    [...new Set(numbers)].toSorted((a, b) => a - b),
  );
});

test('an agent hears of its own requests only', async () => {
  await using site = await openSite();
  const [, mine] = [await ask(site, 'theirs', 'rival'), await ask(site, 'mine')];
  const { response } = await site.call('GET', '/v1/events?after=0', { token: site.tokens.clerk });
  await ask(site, 'also theirs', 'rival');
  await site.call('POST', `/v1/requests/${mine}/withdraw`, { token: site.tokens.clerk });
  const seen = await read(response, 2);
  assert.deepEqual(
    seen.map(({ data }) => [data.by, data.state]),
    [
      ['clerk', 'pending'],
      ['clerk', 'withdrawn'],
    ],
  );
});

test('a stream ends with its token', async (t) => {
  await using site = await openSite();
  const token = await site.issue('operator', 'dave');
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { response } = await site.call('GET', '/v1/events?after=0', { token });
  const [issued] = (await site.requests.tokens.tokens()).filter(({ holder }) => holder === 'dave');
  assert.ok(issued);
  t.mock.timers.tick(15_000);
  await ask(site, 'while it is good');
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  assert.ok(reader);
  let text = '';
  while (!text.includes('event: request')) text += (await reader.read()).value ?? '';
  assert.match(text, /still here/);
  await revokeToken(site.requests.tokens, issued.id, site.clock);
  t.mock.timers.tick(15_000);
  const { done } = await reader.read();
  assert.ok(done, 'nothing more is sent');
});

test('thousands of streams are refused politely, and the places become free again', async () => {
  await using site = await openSite();
  const { call, tokens } = site;
  const ending = new AbortController();
  const open = () => call('GET', '/v1/events', { token: tokens.clerk, signal: ending.signal });
  const opened = await Promise.all(Array.from({ length: 2000 }, open));
  const refused = opened.filter(({ status }) => status === 503);
  assert.equal(opened.length - refused.length, 20);
  for (const { json, response } of refused.slice(0, 3)) {
    assert.equal(json.retry, true);
    assert.equal(response.headers.get('retry-after'), '5');
  }
  assert.equal((await call('GET', '/v1/events', { token: tokens.carol })).status, 200);
  ending.abort();
  const again = new AbortController();
  const { status } = await call('GET', '/v1/events', { token: tokens.clerk, signal: again.signal });
  assert.equal(status, 200);
  again.abort();
});

test('a client that does not read is cut off, and may come back', async () => {
  await using site = await openSite();
  const { response } = await site.call('GET', '/v1/events', { token: site.tokens.carol });
  await new Promise((resolve) => setTimeout(resolve, 600));
  const store = site.requests.tokens as unknown as {
    change: (...values: unknown[]) => Promise<boolean>;
  };
  const id = await ask(site, 'many');
  for (let index = 0; index < 1200; index += 1) {
    const [from, state] = index % 2 === 0 ? ['pending', 'stale'] : ['stale', 'pending'];
    await store.change(id, { from: [from], generation: 1 }, { state }, index);
  }
  await new Promise((resolve) => setTimeout(resolve, 1500));
  const seen = await read(response, 10_000);
  assert.ok(seen.length < 1201, `${seen.length} messages, then the end`);
  const after = seen.at(-1)?.id ?? 0;
  const back = await site.call('GET', `/v1/events?after=${after}`, { token: site.tokens.carol });
  const rest = await read(back.response, 1201 - seen.length);
  assert.equal(seen.length + rest.length, 1201);
});
