import { Agent, Runner, RunState, tool } from '@openai/agents';
import { assistantMessage, functionCall, ScriptedModel } from '@openai/agents-core/testing';
import type { AgentTool } from '../../src/agents/index.ts';
import { openAiAgentsTools, showInterruption } from '../../src/agents/openai-agents.ts';
import {
  type FrameworkDriver,
  type How,
  recording,
  type ScriptedCall,
  type Turn,
} from '../../test/agents/frameworks/driver.ts';

const runner = new Runner({ tracingDisabled: true });
const DONE = [assistantMessage('done')];

function makeAgent(tools: readonly AgentTool[], call?: ScriptedCall) {
  const calls = call ? [[functionCall(call.name, { ...call.input }, { callId: 'call-1' })]] : [];
  const model = new ScriptedModel([...calls, DONE]);
  return new Agent({ name: 'clerk', model, tools: openAiAgentsTools(tools, { tool }) });
}

type ClerkAgent = ReturnType<typeof makeAgent>;

async function run(
  agent: ClerkAgent,
  input: string | RunState<unknown, ClerkAgent>,
  how: How,
  tools: readonly AgentTool[],
): Promise<Omit<Turn, 'answers'>> {
  const result =
    how === 'stream'
      ? await runner.run(agent, input, { stream: true })
      : await runner.run(agent, input);
  if ('completed' in result) await result.completed;
  const { interruptions } = result;
  const shown = await Promise.all(interruptions.map((one) => showInterruption(tools, one)));
  return {
    paused: interruptions.length > 0,
    shown: JSON.stringify(shown),
    state: result.state.toString(),
  };
}

export const driver: FrameworkDriver = {
  async begin(tools, call, how): Promise<Turn> {
    const { tools: recorded, answers } = recording(tools);
    const ran = await run(makeAgent(recorded, call), 'pay globex', how, tools);
    return { ...ran, answers };
  },
  async sayYes(tools, text, how): Promise<Turn> {
    const { tools: recorded, answers } = recording(tools);
    const agent = makeAgent(recorded);
    const state = await RunState.fromString(agent, text);
    for (const interruption of state.getInterruptions()) state.approve(interruption);
    const ran = await run(agent, state, how, tools);
    return { ...ran, answers };
  },
};
