import { Command, interrupt, MemorySaver } from '@langchain/langgraph';
import { AIMessage, createAgent, createMiddleware, fakeModel, tool } from 'langchain';
import type { AgentTool } from '../../src/agents/index.ts';
import { langChainTools } from '../../src/agents/langchain.ts';
import {
  type FrameworkDriver,
  type How,
  recording,
  type ScriptedCall,
  type Turn,
} from '../../test/agents/frameworks/driver.ts';

const CONFIG = { configurable: { thread_id: 'thread 1' } };

function makeAgent(tools: readonly AgentTool[], checkpointer: MemorySaver, call?: ScriptedCall) {
  const model = fakeModel();
  if (call) model.respondWithTools([{ name: call.name, args: { ...call.input }, id: 'call-1' }]);
  model.respond(new AIMessage('done'));
  const own = langChainTools(tools, { tool, createMiddleware, interrupt });
  return createAgent({ model, checkpointer, ...own });
}

type Interrupts = readonly { readonly value?: unknown }[];

async function run(
  agent: ReturnType<typeof makeAgent>,
  input: Parameters<typeof agent.invoke>[0],
  how: How,
): Promise<Interrupts> {
  if (how === 'whole') {
    const state = (await agent.invoke(input, CONFIG)) as { __interrupt__?: Interrupts };
    return state.__interrupt__ ?? [];
  }
  const seen: { value?: unknown }[] = [];
  for await (const update of await agent.stream(input, { ...CONFIG, streamMode: 'updates' }))
    seen.push(...((update as { __interrupt__?: { value?: unknown }[] }).__interrupt__ ?? []));
  return seen;
}

/** The saver of LangGraph that keeps everything in memory, as text. */
function freeze({ storage, writes }: MemorySaver): string {
  const bytes = (_: string, value: unknown) =>
    value instanceof Uint8Array ? { $bytes: Buffer.from(value).toString('base64') } : value;
  return JSON.stringify({ storage, writes }, bytes);
}

function thaw(text: string): MemorySaver {
  const bytes = (_: string, value: { readonly $bytes?: string } | null) =>
    typeof value?.$bytes === 'string'
      ? Uint8Array.from(Buffer.from(value.$bytes, 'base64'))
      : value;
  return Object.assign(new MemorySaver(), JSON.parse(text, bytes));
}

function turn(seen: Interrupts, state: string): Omit<Turn, 'answers'> {
  return { paused: seen.length > 0, shown: JSON.stringify(seen), state };
}

export const driver: FrameworkDriver = {
  async begin(tools, call, how): Promise<Turn> {
    const { tools: recorded, answers } = recording(tools);
    const saver = new MemorySaver();
    const agent = makeAgent(recorded, saver, call);
    const seen = await run(agent, { messages: [{ role: 'user', content: 'pay globex' }] }, how);
    return { ...turn(seen, freeze(saver)), answers };
  },
  async sayYes(tools, state, how): Promise<Turn> {
    const { tools: recorded, answers } = recording(tools);
    const agent = makeAgent(recorded, thaw(state));
    const resume = { decisions: [{ type: 'approve' }] };
    const seen = await run(agent, new Command({ resume }), how);
    return { ...turn(seen, state), answers };
  },
};
