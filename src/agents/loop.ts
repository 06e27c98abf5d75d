/**
 * A plain loop over any endpoint that speaks OpenAI's chat completions.
 *
 * @module
 */
import '../node-version.ts';

import { EffectMatchError } from '../errors.ts';
import { answerOfError, type ToolAnswer } from './answer.ts';
import { complete, type Endpoint } from './chat-completions.ts';
import { answerText, type Pause, parseArguments, pauseOf } from './pause.ts';
import type { AgentTool } from './tools.ts';

/** A message in the conversation, as the protocol defines it. */
export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content?: string | null;
  readonly tool_calls?: readonly ChatToolCall[];
  readonly tool_call_id?: string;
}

/** A tool call by the model. */
export interface ChatToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

/** Options for {@link runLoop}. */
export interface LoopOptions extends Endpoint {
  readonly tools: readonly AgentTool[];
  /** The conversation so far. A paused one continues where it stopped. */
  readonly messages: readonly ChatMessage[];
  /** Whether to return when a person has to approve something. Defaults to true. */
  readonly pause?: boolean;
  /** How often to call the model. Defaults to 20. */
  readonly turns?: number;
}

/** Why the loop returned, and the conversation so far. To resume, you only need the messages. */
export interface LoopResult {
  readonly kind: 'answered' | 'paused' | 'turns-spent';
  readonly messages: readonly ChatMessage[];
  /** What a person has to sign, if the loop paused. */
  readonly waiting: readonly Pause[];
}

const TURNS = 20;

/**
 * Calls the model and runs its tool calls until it answers. To resume a paused conversation, pass
 * it in again after signing: calls without an answer run again and find their earlier requests.
 * Nothing in the messages counts as an approval.
 */
export async function runLoop(options: LoopOptions): Promise<LoopResult> {
  const { turns = TURNS } = options;
  const messages = [...options.messages];
  for (let turn = 0; turn < turns; turn += 1) {
    const waiting = await answerCalls(options, messages);
    if (waiting.length > 0) return { kind: 'paused', messages, waiting };
    const said = await complete(options, messages);
    messages.push(said);
    if ((said.tool_calls ?? []).length === 0) return { kind: 'answered', messages, waiting: [] };
  }
  return { kind: 'turns-spent', messages, waiting: [] };
}

/** Answers the open calls. Returns those that wait for a person instead. */
async function answerCalls(
  { tools, pause = true, signal }: LoopOptions,
  messages: ChatMessage[],
): Promise<readonly Pause[]> {
  const waiting: Pause[] = [];
  for (const { id, function: called } of openCalls(messages)) {
    const answer = await call(tools, called, signal);
    const open = pause ? pauseOf(answer) : undefined;
    if (open !== undefined) waiting.push(open);
    else messages.push({ role: 'tool', tool_call_id: id, content: answerText(answer) });
  }
  return waiting;
}

/** The calls in the model's last message that have no answer yet. */
function openCalls(messages: readonly ChatMessage[]): readonly ChatToolCall[] {
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  const answered = new Set(messages.slice(last + 1).map((message) => message.tool_call_id));
  const calls = messages[last]?.tool_calls ?? [];
  return calls.filter(({ id }) => !answered.has(id));
}

async function call(
  tools: readonly AgentTool[],
  { name, arguments: text }: ChatToolCall['function'],
  signal: AbortSignal | undefined,
): Promise<ToolAnswer> {
  const tool = tools.find((known) => known.name === name);
  if (tool === undefined)
    return answerOfError(
      new EffectMatchError('ERR_EM_NOT_FOUND', `no tool is called "${name.slice(0, 100)}"`),
    );
  return await tool.call(parseArguments(text), signal && { signal });
}
