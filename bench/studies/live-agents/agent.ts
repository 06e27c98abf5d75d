// The agent's side: a loop around an endpoint that speaks OpenAI's chat completions. It calls the
// tools itself, or as an MCP client calls them at an MCP server.
import { complete } from '../../../src/agents/chat-completions.ts';
import type { ChatMessage, ChatToolCall } from '../../../src/agents/loop.ts';
import type { Answer, Arguments } from '../../state-tools/desk.ts';
import { openMcpPort } from './mcp-port.ts';
import type { ToolPort } from './session.ts';

/** Who runs an episode. A scripted agent is never reported as a model. */
export interface AgentConfig {
  readonly name: string;
  readonly isScripted: boolean;
  readonly baseUrl: string;
  readonly apiKey?: string | undefined;
  readonly model: string;
  /** Whether the tools are called in the loop or at an MCP server over HTTP. */
  readonly via: 'loop' | 'mcp';
}

/** How the agent's turn ended. */
export interface Conversation {
  readonly ending: 'turn ended' | 'too many turns';
  /** What the agent says about its work. Nothing trusts it. */
  readonly summary: string;
}

/** More than enough for 40 business calls. */
const MAX_TURNS = 60;

/**
 * Runs the loop until the agent says something without calling a tool. Everything that is said is
 * added to `messages`, where it stays if the loop is cut off.
 */
export async function converse(
  agent: AgentConfig,
  prompt: { readonly system: string; readonly user: string },
  session: ToolPort & { readonly isOverBudget: boolean },
  { signal, messages }: { readonly signal: AbortSignal; readonly messages: ChatMessage[] },
): Promise<Conversation> {
  await using port = agent.via === 'mcp' ? await openMcpPort(session) : plainPort(session);
  const { baseUrl, apiKey, model } = agent;
  const tools = port.tools.map(({ name, description, parameters }) => ({
    ...{ name, description, inputSchema: parameters },
  }));
  const endpoint = { baseUrl, model, tools, signal, ...(apiKey !== undefined && { apiKey }) };
  messages.push({ role: 'system', content: prompt.system });
  messages.push({ role: 'user', content: prompt.user });
  for (let turn = 0; turn < MAX_TURNS; turn += 1) {
    const said = await complete(endpoint, messages);
    messages.push(said);
    const calls = said.tool_calls ?? [];
    if (calls.length === 0) return { ending: 'turn ended', summary: said.content ?? '' };
    for (const call of calls) {
      const answer = await runCall(port, call);
      messages.push({ role: 'tool', tool_call_id: call.id, content: JSON.stringify(answer) });
    }
    if (session.isOverBudget) break;
  }
  return { ending: 'too many turns', summary: '' };
}

function plainPort(session: ToolPort): ToolPort & AsyncDisposable {
  return {
    tools: session.tools,
    call: (tool, args) => session.call(tool, args),
    [Symbol.asyncDispose]: async () => {},
  };
}

async function runCall(port: ToolPort, call: ChatToolCall): Promise<Answer> {
  let args: Arguments;
  try {
    args = JSON.parse(call.function.arguments || '{}') as Arguments;
  } catch {
    return { error: 'The arguments are not JSON.' };
  }
  return await port.call(call.function.name, args);
}
