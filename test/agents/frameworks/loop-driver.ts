// A local server that speaks OpenAI's chat completions, whole and as a stream, with a scripted model.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import type { AgentTool } from '../../../src/agents/index.ts';
import { type ChatMessage, runLoop } from '../../../src/agents/loop.ts';
import {
  type FrameworkDriver,
  type How,
  recording,
  type ScriptedCall,
  type Turn,
} from './driver.ts';

interface Asked {
  readonly messages: readonly ChatMessage[];
  readonly stream: boolean;
}

/** Makes the call when a user asks, and says that it is done once it has an answer. */
export async function serveModel(call: ScriptedCall): Promise<Server & Disposable> {
  const server = createServer(async (request, response) => {
    const { messages, stream } = (await json(request)) as Asked;
    const isNew = messages.at(-1)?.role === 'user';
    const { name, input } = call;
    const made = {
      id: 'call-1',
      type: 'function',
      function: { name, arguments: JSON.stringify(input) },
    };
    const message = isNew ? { content: null, tool_calls: [made] } : { content: 'done' };
    if (!stream) {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ choices: [{ message: { role: 'assistant', ...message } }] }));
      return;
    }
    response.setHeader('content-type', 'text/event-stream');
    for (const delta of isNew ? pieces(made) : [{ content: 'do' }, { content: 'ne' }])
      response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\r\n\r\n`);
    response.end('data: [DONE]\n\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return Object.assign(server, {
    [Symbol.dispose]: () => {
      server.closeAllConnections();
      server.close();
    },
  });
}

/** A call as models stream it: its name first, then its arguments in pieces. */
function pieces(call: {
  readonly id: string;
  readonly function: { name: string; arguments: string };
}) {
  const { name, arguments: text } = call.function;
  const first = { index: 0, id: call.id, type: 'function', function: { name, arguments: '' } };
  const rest = text.match(/.{1,7}/gs) ?? [];
  const parts = rest.map((piece) => ({ index: 0, function: { arguments: piece } }));
  return [first, ...parts].map((part) => ({ tool_calls: [part] }));
}

async function run(
  tools: readonly AgentTool[],
  messages: readonly ChatMessage[],
  how: How,
  call: ScriptedCall,
): Promise<Turn> {
  using server = await serveModel(call);
  const { port } = server.address() as AddressInfo;
  const { tools: recorded, answers } = recording(tools);
  const result = await runLoop({
    baseUrl: `http://127.0.0.1:${port}/v1/`,
    ...{ apiKey: 'key', model: 'scripted', tools: recorded, messages },
    ...(how === 'stream' && { onText: () => {} }),
  });
  const { kind, waiting } = result;
  const shown = JSON.stringify(waiting);
  return { paused: kind === 'paused', shown, state: JSON.stringify(result.messages), answers };
}

export const driver: FrameworkDriver = {
  begin: (tools, call, how) => run(tools, [{ role: 'user', content: 'pay globex' }], how, call),
  // The loop has no yes: what a host could say is the kept conversation, once more.
  sayYes: (tools, state, how) =>
    run(tools, JSON.parse(state) as ChatMessage[], how, { name: 'none', input: {} }),
};
