// The process of an episode that will be killed. It reports every call, then waits to be told to go
// on.
import { once } from 'node:events';
import type { ChatMessage } from '../../../src/agents/loop.ts';
import { runAgent } from './episode.ts';
import type { CallReport, EpisodeOrder } from './killed.ts';
import { loadInputs } from './load.ts';
import type { OnCall } from './session.ts';

const [order] = (await once(process, 'message')) as [EpisodeOrder];
const input = loadInputs(order.data).find(({ name }) => name === order.name);
if (input === undefined) throw new Error(`there is no live task ${order.name}`);
const plan = { path: order.path, agent: order.agent, hostFinishes: true };
const messages: ChatMessage[] = [];
const report: OnCall = async (call, candidate) => {
  process.send?.({ call, candidate, messages } satisfies CallReport);
  await once(process, 'message');
};
await runAgent(input, plan, order.folder, order.approval, report, messages);
process.disconnect();
