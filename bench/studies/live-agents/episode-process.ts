// The process of an episode that will be killed. It reports every call, then waits to be told to go
// on.
import { once } from 'node:events';
import { runAgent } from './episode.ts';
import type { CallReport, EpisodeOrder } from './killed.ts';
import { loadInputs } from './load.ts';

const [order] = (await once(process, 'message')) as [EpisodeOrder];
const input = loadInputs(order.data).find(({ name }) => name === order.name);
if (input === undefined) throw new Error(`there is no live task ${order.name}`);
const plan = { path: order.path, agent: order.agent, hostFinishes: true };
await runAgent(input, plan, order.folder, order.approval, async (call, candidate) => {
  process.send?.({ call, candidate } satisfies CallReport);
  await once(process, 'message');
});
process.disconnect();
