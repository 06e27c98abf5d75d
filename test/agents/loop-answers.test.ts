// Goal: whatever an endpoint answers, the loop ends with one error that its host knows, at once.
// Method: a local server with answers that no model gives.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { runLoop } from '../../src/agents/loop.ts';

const call = { id: 'a', function: { name: 'x', arguments: '{}' } };
const message = (tool_calls: unknown) => JSON.stringify({ choices: [{ message: { tool_calls } }] });
const event = (data: unknown) => `data: ${JSON.stringify(data)}\n\ndata: [DONE]\n\n`;
const delta = (index: unknown) =>
  event({ choices: [{ delta: { tool_calls: [{ index, ...call }] } }] });

const ANSWERS: readonly (readonly [what: string, answer: string])[] = [
  ['text', 'hello'],
  ['null', 'null'],
  ['no message', '{"choices":[null]}'],
  ['calls that are no list', message('x')],
  ['a call of nothing', message([{ id: 'a' }])],
  ['a call of a number', message([{ id: 'a', function: { name: 5, arguments: '{}' } }])],
  ['too many calls', message(Array(2000).fill(call))],
];
const STREAMS: readonly (readonly [what: string, answer: string])[] = [
  ['a broken event', 'data: {x\n\n'],
  ['a call with a huge index', delta(4_000_000_000)],
  ['a call with a word for its index', delta('__proto__')],
];

async function ask(answer: string, isStreamed: boolean): Promise<void> {
  const server = createServer((request, response) => {
    request.resume();
    response.end(answer);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const place = { baseUrl, model: 'm', tools: [], messages: [], turns: 2 };
  try {
    await runLoop({ ...place, ...(isStreamed && { onText: () => {} }) });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

for (const [isStreamed, answers] of [
  [false, ANSWERS],
  [true, STREAMS],
] as const)
  for (const [what, answer] of answers)
    test(`an answer with ${what} is refused`, async () => {
      await assert.rejects(ask(answer, isStreamed), { code: 'ERR_EM_MODEL_UNAVAILABLE' });
    });
