// Goal: whatever an endpoint answers, the loop ends, says what is wrong, and changes nothing.
// Method: a local server with one answer each.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { AgentTool } from '../../src/agents/index.ts';
import { runLoop } from '../../src/agents/loop.ts';

const CALLED: unknown[] = [];
const tool: AgentTool = {
  ...{ name: 't', description: 'd', inputSchema: { type: 'object' } },
  annotations: {
    ...{ readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  },
  call: async (input) => {
    CALLED.push(input);
    return { status: 'read', next: '' };
  },
};

async function ask(body: string, options: object = {}, status = 200) {
  const server = createServer((_, response) => {
    response.statusCode = status;
    response.end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const messages = [{ role: 'user', content: 'x' }] as const;
  try {
    return await runLoop({ baseUrl, model: 'm', tools: [tool], messages, turns: 3, ...options });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const reply = (message: object) => JSON.stringify({ choices: [{ message }] });
const call = (name: string, text: string) =>
  reply({ tool_calls: [{ id: 'c', type: 'function', function: { name, arguments: text } }] });
const stream = { onText: () => {} };
const code = { code: 'ERR_EM_MODEL_UNAVAILABLE' };

test('an endpoint that fails or answers nonsense is named, and no tool is called', async () => {
  await assert.rejects(ask('no key', {}, 401), { ...code, message: /answered 401: no key/ });
  await assert.rejects(ask('<html>'), code);
  await assert.rejects(ask('{}'), code);
  await assert.rejects(ask('null'), code);
  await assert.rejects(ask('data: {"choices"\n\n', stream), code);
  const far = { choices: [{ delta: { tool_calls: [{ index: 1e9, id: 'c' }] } }] };
  await assert.rejects(ask(`data: ${JSON.stringify(far)}\n\n`, stream), code);
  assert.deepEqual(CALLED, []);
});

test('a model that never ends is stopped, and meets odd names and arguments with an answer', async () => {
  const spent = await ask(call('t', '{"a":1}'));
  assert.equal(spent.kind, 'turns-spent');
  assert.deepEqual(CALLED.splice(0), [{ a: 1 }, { a: 1 }]);
  const odd = await ask(call('__proto__', '{}'));
  assert.match(odd.messages.at(2)?.content ?? '', /"refused","code":"ERR_EM_NOT_FOUND"/);
  await ask(call('t', '{"a":'));
  assert.deepEqual(CALLED, [undefined, undefined]);
});

test('text arrives in pieces, and comments of the stream are left out', async () => {
  const pieces: string[] = [];
  const chunk = (content: string) =>
    `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;
  const onText = (text: string) => pieces.push(text);
  const { kind, messages } = await ask(`${chunk('é')}: note\n${chunk('…')}data: [DONE]\n\n`, {
    onText,
  });
  assert.deepEqual([kind, pieces, messages.at(-1)?.content], ['answered', ['é', '…'], 'é…']);
});
