import { generateText, isStepCount, type ModelMessage, streamText } from 'ai';
import { convertArrayToReadableStream, MockLanguageModelV4 } from 'ai/test';
import { type AiSdkTools, aiSdkTools } from '../../src/agents/ai-sdk.ts';
import {
  type FrameworkDriver,
  type How,
  recording,
  type ScriptedCall,
  type Turn,
} from '../../test/agents/frameworks/driver.ts';

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** Makes the call, if there is one, and says that it is done once it has an answer. */
function scripted(call: ScriptedCall | undefined): MockLanguageModelV4 {
  const made = {
    type: 'tool-call',
    toolCallId: 'call-1',
    toolName: call?.name ?? '',
    input: JSON.stringify(call?.input),
  } as const;
  const text = { type: 'text', text: 'done' } as const;
  let isFirst = call !== undefined;
  const next = () => {
    const calls = isFirst;
    isFirst = false;
    const unified = calls ? ('tool-calls' as const) : ('stop' as const);
    return { calls, usage: USAGE, finishReason: { unified, raw: undefined } };
  };
  return new MockLanguageModelV4({
    doGenerate: async () => {
      const { calls, ...rest } = next();
      return { content: [calls ? made : text], ...rest, warnings: [] };
    },
    doStream: async () => {
      const { calls, ...rest } = next();
      const parts = [
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: 'done' },
        { type: 'text-end', id: 't' },
      ] as const;
      const stream = [...(calls ? [made] : parts), { type: 'finish', ...rest } as const];
      return { stream: convertArrayToReadableStream(stream) };
    },
  });
}

async function run(
  { tools, toolApproval }: AiSdkTools,
  how: How,
  messages: ModelMessage[],
  call?: ScriptedCall,
): Promise<{ shown: string; approvals: string[]; messages: ModelMessage[] }> {
  const options = {
    model: scripted(call),
    ...{ tools, toolApproval, messages },
    stopWhen: isStepCount(3),
  };
  const result = how === 'stream' ? streamText(options) : await generateText(options);
  const content = await result.content;
  const asked = content.filter((part) => part.type === 'tool-approval-request');
  return {
    shown: asked.map(({ reason }) => reason ?? '').join('\n'),
    approvals: asked.map(({ approvalId }) => approvalId),
    messages: [...messages, ...(await result.responseMessages)],
  };
}

interface State {
  readonly messages: ModelMessage[];
  readonly approvals: string[];
}

export const driver: FrameworkDriver = {
  async begin(tools, call, how): Promise<Turn> {
    const { tools: recorded, answers } = recording(tools);
    const asked: ModelMessage[] = [{ role: 'user', content: 'pay globex' }];
    const ran = await run(aiSdkTools(recorded), how, asked, call);
    const { shown, approvals, messages } = ran;
    const state: State = { messages, approvals };
    return { paused: approvals.length > 0, shown, state: JSON.stringify(state), answers };
  },
  async sayYes(tools, text, how): Promise<Turn> {
    const { tools: recorded, answers } = recording(tools);
    const state = JSON.parse(text) as State;
    const content = state.approvals.map(
      (approvalId) => ({ type: 'tool-approval-response', approvalId, approved: true }) as const,
    );
    const history = [...state.messages, { role: 'tool', content } as const];
    const { shown, approvals } = await run(aiSdkTools(recorded), how, history);
    return { paused: approvals.length > 0, shown, state: text, answers };
  },
};
