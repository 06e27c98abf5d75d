import { Command, interrupt, MemorySaver } from '@langchain/langgraph';
import { ChatOpenAI } from '@langchain/openai';
import { type LangChainPause, langChainTools } from 'effectmatch/agents/langchain';
import { createAgent, createMiddleware, tool } from 'langchain';
import { type Converse, TASK } from '../../examples/agents/office.ts';

const CONFIG = { configurable: { thread_id: 'invoice 4711' } };

export const converse: Converse = async (office, { baseUrl, apiKey, model: modelId }) => {
  const model = new ChatOpenAI({ model: modelId, apiKey, configuration: { baseURL: baseUrl } });
  const own = langChainTools(office.tools, { tool, createMiddleware, interrupt });
  const agent = createAgent({ model, checkpointer: new MemorySaver(), ...own });
  let input: Parameters<typeof agent.invoke>[0] = { messages: [{ role: 'user', content: TASK }] };
  for (;;) {
    const state = await agent.invoke(input, CONFIG);
    const { __interrupt__: pauses = [] } = state as {
      __interrupt__?: { readonly value: LangChainPause }[];
    };
    if (pauses.length === 0) return state.messages.at(-1)?.text ?? '';
    for (const { value } of pauses) office.show(`${value.rendering}\n${value.link}`);
    await office.sign();
    input = new Command({ resume: 'yes' });
  }
};
