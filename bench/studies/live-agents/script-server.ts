// node script-server.ts <data folder>: scripted agents behind OpenAI's chat completions, on
// 127.0.0.1. The model's name is the behaviour; the task is known from what the customer wrote. Ends
// when its input ends.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ChatMessage } from '../../../src/agents/loop.ts';
import { type LiveTask, loadLiveTasks } from '../../data/state-native.ts';
import { BEHAVIOURS, nextMessage } from './scripts.ts';

const [folder = ''] = process.argv.slice(2);
const tasks = loadLiveTasks(folder);

interface Asked {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
}

function answer({ model, messages }: Asked): ChatMessage {
  const behaviour = BEHAVIOURS.find((name) => name === model);
  if (behaviour === undefined) throw new Error(`there is no scripted agent "${model}"`);
  return nextMessage(behaviour, findTask(messages), messages);
}

function findTask(messages: readonly ChatMessage[]): LiveTask {
  const said = messages.find(({ role }) => role === 'user')?.content ?? '';
  const task = tasks.find(
    ({ userMessages: [first] }) => first !== undefined && said.includes(first),
  );
  if (task === undefined) throw new Error('this is none of the six tasks');
  return task;
}

const server = createServer(async (request, response) => {
  const send = (status: number, body: object) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  };
  try {
    let text = '';
    for await (const chunk of request) text += chunk;
    if (request.url !== '/v1/chat/completions') return send(404, { error: { message: 'unknown' } });
    const asked = JSON.parse(text) as Asked;
    const message = answer(asked);
    const finish_reason = message.tool_calls === undefined ? 'stop' : 'tool_calls';
    const choices = [{ index: 0, finish_reason, message }];
    send(200, { object: 'chat.completion', model: asked.model, choices });
  } catch (error) {
    send(400, { error: { message: error instanceof Error ? error.message : String(error) } });
  }
});
// Otherwise it could close a connection that an agent on a busy machine is about to use again.
server.keepAliveTimeout = 0;
server.listen(0, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`);
});
process.stdin.on('end', () => process.exit(0)).resume();
