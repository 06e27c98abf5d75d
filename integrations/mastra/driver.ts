import { Agent } from '@mastra/core/agent';
import { Mastra } from '@mastra/core/mastra';
import { InMemoryStore } from '@mastra/core/storage';
import {
  MastraLanguageModelV2Mock,
  simulateReadableStream,
} from '@mastra/core/test-utils/llm-mock';
import { createTool } from '@mastra/core/tools';
import type { AgentTool } from '../../src/agents/index.ts';
import { mastraTools, showSuspension } from '../../src/agents/mastra.ts';
import {
  type FrameworkDriver,
  type How,
  recording,
  type ScriptedCall,
  type Turn,
} from '../../test/agents/frameworks/driver.ts';

const USAGE = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };

/** Makes the call once, and then says that it is done. */
function scripted(call: ScriptedCall) {
  let isFirst = true;
  const next = () => {
    const calls = isFirst;
    isFirst = false;
    return calls;
  };
  const made = {
    type: 'tool-call',
    toolCallId: 'call-1',
    toolName: call.name,
    input: JSON.stringify(call.input),
  } as const;
  return new MastraLanguageModelV2Mock({
    doGenerate: async () => {
      const calls = next();
      const finishReason = calls ? ('tool-calls' as const) : ('stop' as const);
      const text = { type: 'text', text: 'done' } as const;
      return { content: [calls ? made : text], finishReason, usage: USAGE, warnings: [] };
    },
    doStream: async () => {
      const calls = next();
      const finishReason = calls ? ('tool-calls' as const) : ('stop' as const);
      const parts = [
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: 'done' },
        { type: 'text-end', id: 't' },
      ] as const;
      const chunks = [
        { type: 'stream-start' as const, warnings: [] },
        ...(calls ? [made] : parts),
        { type: 'finish', finishReason, usage: USAGE } as const,
      ];
      return { stream: simulateReadableStream({ chunks, chunkDelayInMs: null }) };
    },
  });
}

function makeAgent(tools: readonly AgentTool[], storage: InMemoryStore, call: ScriptedCall) {
  const clerk = new Agent({
    id: 'clerk',
    name: 'clerk',
    instructions: 'Pay.',
    model: scripted(call),
    tools: mastraTools(tools, { createTool }),
  });
  return new Mastra({ agents: { clerk }, storage, logger: false }).getAgent('clerk');
}

interface Suspended {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly args: unknown;
}

interface State {
  readonly runId: string;
  readonly toolCallId: string;
  /** Every workflow that the run consists of, as Mastra stores it. */
  readonly kept: readonly Kept[];
}

type Workflows = NonNullable<Awaited<ReturnType<typeof workflowsOf>>>;
type Kept = Parameters<Workflows['persistWorkflowSnapshot']>[0];

const workflowsOf = (storage: InMemoryStore) => storage.getStore('workflows');

/** What a persistent storage would hold. */
async function freeze(storage: InMemoryStore): Promise<Kept[]> {
  const { runs = [] } = (await (await workflowsOf(storage))?.listWorkflowRuns()) ?? {};
  return runs.map(({ workflowName, runId, snapshot }) => {
    const plain = typeof snapshot === 'string' ? JSON.parse(snapshot) : snapshot;
    return { workflowName, runId, snapshot: plain };
  });
}

async function thaw(kept: readonly Kept[]): Promise<InMemoryStore> {
  const storage = new InMemoryStore();
  const workflows = await workflowsOf(storage);
  for (const one of kept) await workflows?.persistWorkflowSnapshot(one);
  return storage;
}

export const driver: FrameworkDriver = {
  async begin(tools, call, how): Promise<Turn> {
    const { tools: recorded, answers } = recording(tools);
    const storage = new InMemoryStore();
    const suspended = await start(makeAgent(recorded, storage, call), how);
    if (suspended === undefined) return { paused: false, shown: '', state: '', answers };
    const { runId, payload } = suspended;
    const shown = await showSuspension(tools, payload);
    const kept = await freeze(storage);
    const state: State = { runId, toolCallId: payload.toolCallId, kept };
    return { paused: true, shown: JSON.stringify(shown), state: JSON.stringify(state), answers };
  },
  async sayYes(tools, text, how): Promise<Turn> {
    const { tools: recorded, answers } = recording(tools);
    const { kept, ...run } = JSON.parse(text) as State;
    const agent = makeAgent(recorded, await thaw(kept), { name: 'none', input: {} });
    if (how === 'whole') await agent.approveToolCallGenerate(run);
    else await (await agent.approveToolCall(run)).consumeStream();
    return { paused: false, shown: '', state: text, answers };
  },
};

/** Runs until it is suspended; undefined if it ends. */
async function start(
  agent: ReturnType<typeof makeAgent>,
  how: How,
): Promise<{ readonly runId: string; readonly payload: Suspended } | undefined> {
  if (how === 'whole') {
    const { finishReason, runId, suspendPayload } = await agent.generate('pay globex');
    if (finishReason !== 'suspended' || runId === undefined) return undefined;
    return { runId, payload: suspendPayload as Suspended };
  }
  const stream = await agent.stream('pay globex');
  let payload: Suspended | undefined;
  for await (const chunk of stream.fullStream)
    if (chunk.type === 'tool-call-approval') payload = chunk.payload as Suspended;
  return payload && { runId: stream.runId, payload };
}
