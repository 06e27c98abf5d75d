import { Agent, OpenAIChatCompletionsModel, Runner, tool } from '@openai/agents';
import { openAiAgentsTools, showInterruption } from 'effectmatch/agents/openai-agents';
import OpenAI from 'openai';
import { type Converse, TASK } from '../../examples/agents/office.ts';

export const converse: Converse = async (office, { baseUrl, apiKey, model: modelId }) => {
  const model = new OpenAIChatCompletionsModel(new OpenAI({ baseURL: baseUrl, apiKey }), modelId);
  const tools = openAiAgentsTools(office.tools, { tool });
  const agent = new Agent({ name: 'clerk', model, tools });
  const runner = new Runner({ tracingDisabled: true });
  let result = await runner.run(agent, TASK);
  while (result.interruptions.length > 0) {
    for (const interruption of result.interruptions) {
      const shown = await showInterruption(office.tools, interruption);
      office.show(`${shown?.rendering}\n${shown?.link}`);
      result.state.approve(interruption);
    }
    await office.sign();
    result = await runner.run(agent, result.state);
  }
  return result.finalOutput ?? '';
};
