import { Agent } from '@mastra/core/agent';
import { Mastra } from '@mastra/core/mastra';
import { InMemoryStore } from '@mastra/core/storage';
import { createTool } from '@mastra/core/tools';
import { mastraTools, type SuspendedCall, showSuspension } from 'effectmatch/agents/mastra';
import { type Converse, TASK } from '../../examples/agents/office.ts';

export const converse: Converse = async (office, { baseUrl: url, apiKey, model: modelId }) => {
  const clerk = new Agent({
    id: 'clerk',
    name: 'clerk',
    instructions: 'Do what the user asks.',
    model: { id: `place/${modelId}`, url, apiKey },
    tools: mastraTools(office.tools, { createTool }),
  });
  const mastra = new Mastra({ agents: { clerk }, storage: new InMemoryStore(), logger: false });
  const agent = mastra.getAgent('clerk');
  let result = await agent.generate(TASK);
  while (result.finishReason === 'suspended') {
    const call = result.suspendPayload as SuspendedCall & { readonly toolCallId: string };
    const shown = await showSuspension(office.tools, call);
    office.show(`${shown?.rendering}\n${shown?.link}`);
    await office.sign();
    const run = { runId: result.runId ?? '', toolCallId: call.toolCallId };
    result = await agent.approveToolCallGenerate(run);
  }
  return result.text;
};
