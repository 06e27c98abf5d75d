/**
 * Tools for the OpenAI Agents SDK (`@openai/agents`).
 *
 * @module
 */

import '../node-version.ts';

import type { JsonSchema } from './json-schema.ts';
import { answerText, type Pause, parseArguments, pauseFor, showCall } from './pause.ts';
import type { AgentTool } from './tools.ts';

/** The argument of the SDK's `tool`. */
interface ToolFields {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonSchema;
  readonly strict: false;
  readonly needsApproval: (context: unknown, input: unknown) => Promise<boolean>;
  readonly execute: (
    input: unknown,
    context?: unknown,
    details?: { readonly signal?: AbortSignal },
  ) => Promise<string>;
}

/** A call that the SDK has interrupted, as in `result.interruptions`. */
export interface InterruptedCall {
  readonly name?: string | undefined;
  readonly arguments?: string | undefined;
}

/**
 * The tools, created with the SDK's own `tool` function. A call that a person has to approve
 * interrupts the run. Anyone who holds the run's state can tell the SDK to continue. Without a
 * license the call then changes nothing and returns `approval-required`.
 */
export function openAiAgentsTools<Tool>(
  tools: readonly AgentTool[],
  { tool }: { readonly tool: (...fields: never[]) => Tool },
): Tool[] {
  const make = tool as unknown as (fields: ToolFields) => Tool;
  return tools.map((own) =>
    make({
      name: own.name,
      description: own.description,
      parameters: own.inputSchema,
      strict: false,
      needsApproval: async (_, input) => (await pauseFor(own, input)) !== undefined,
      execute: async (input, _, { signal } = {}) =>
        answerText(await own.call(input, signal && { signal })),
    }),
  );
}

/** What a person has to sign for an interrupted call; undefined if it can continue. */
export async function showInterruption(
  tools: readonly AgentTool[],
  { name, arguments: text = '' }: InterruptedCall,
): Promise<Pause | undefined> {
  return await showCall(tools, name, parseArguments(text));
}
