import { serveModel } from '../../../examples/agents/model.ts';
import type { AgentTool } from '../../../src/agents/index.ts';
import { type ChatMessage, runLoop } from '../../../src/agents/loop.ts';
import {
  type FrameworkDriver,
  type How,
  recording,
  type ScriptedCall,
  type Turn,
} from './driver.ts';

async function run(
  tools: readonly AgentTool[],
  messages: readonly ChatMessage[],
  how: How,
  call: ScriptedCall,
): Promise<Turn> {
  using server = await serveModel(call);
  const { tools: recorded, answers } = recording(tools);
  const result = await runLoop({
    baseUrl: server.baseUrl,
    ...{ apiKey: 'key', model: 'scripted', tools: recorded, messages },
    ...(how === 'stream' && { onText: () => {} }),
  });
  const { kind, waiting } = result;
  const shown = JSON.stringify(waiting);
  return { paused: kind === 'paused', shown, state: JSON.stringify(result.messages), answers };
}

export const driver: FrameworkDriver = {
  begin: (tools, call, how) => run(tools, [{ role: 'user', content: 'pay globex' }], how, call),
  // The loop has no yes: what a host could say is the kept conversation, once more.
  sayYes: (tools, state, how) =>
    run(tools, JSON.parse(state) as ChatMessage[], how, { name: 'none', input: {} }),
};
