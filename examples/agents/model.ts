/**
 * A model that is a script, behind a server that speaks OpenAI's chat completions, whole and as a
 * stream.
 *
 * @module
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

/** The call that the model makes. */
export interface ScriptedCall {
  readonly name: string;
  readonly input: object;
}

interface Asked {
  readonly messages: readonly { readonly role: string }[];
  readonly stream?: boolean;
}

/** Makes the call when a user asks, and says that it is done once it has an answer. */
export async function serveModel(
  call: ScriptedCall,
): Promise<{ readonly baseUrl: string } & Disposable> {
  const server = createServer(async (request, response) => {
    const { messages, stream = false } = (await json(request)) as Asked;
    const isNew = !messages.some(({ role }) => role === 'tool');
    answer(response, isNew ? callOf(call) : undefined, stream);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    [Symbol.dispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

type ToolCall = ReturnType<typeof callOf>;

function callOf({ name, input }: ScriptedCall) {
  const id = 'call_1';
  return { id, type: 'function', function: { name, arguments: JSON.stringify(input) } };
}

function answer(response: ServerResponse, call: ToolCall | undefined, stream: boolean): void {
  const finish_reason = call === undefined ? 'stop' : 'tool_calls';
  const common = { id: `chat_${randomUUID()}`, created: 1, model: 'scripted' };
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  if (!stream) {
    const said = call === undefined ? { content: 'done' } : { content: null, tool_calls: [call] };
    const choices = [{ index: 0, finish_reason, message: { role: 'assistant', ...said } }];
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ ...common, object: 'chat.completion', choices, usage }));
    return;
  }
  response.setHeader('content-type', 'text/event-stream');
  const send = (delta: object, end: string | null) => {
    const choices = [{ index: 0, delta, finish_reason: end }];
    const chunk = { ...common, object: 'chat.completion.chunk', choices };
    response.write(`data: ${JSON.stringify(chunk)}\r\n\r\n`);
  };
  const deltas = call === undefined ? [{ content: 'do' }, { content: 'ne' }] : pieces(call);
  for (const delta of deltas) send(delta, null);
  send({}, finish_reason);
  response.end('data: [DONE]\n\n');
}

/** A call as models stream it: its name first, then its arguments in pieces. */
function pieces({ id, function: { name, arguments: text } }: ToolCall): readonly object[] {
  const first = { index: 0, id, type: 'function', function: { name, arguments: '' } };
  const parts = text.match(/.{1,7}/gs) ?? [];
  const rest = parts.map((piece) => ({ index: 0, function: { arguments: piece } }));
  return [first, ...rest].map((part) => ({ tool_calls: [part] }));
}
