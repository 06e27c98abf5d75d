/**
 * Tools for Mastra (`@mastra/core`).
 *
 * @module
 */
import '../node-version.ts';

import type { ToolAnswer } from './answer.ts';
import { type DescribedInput, describeInput } from './json-schema.ts';
import { type Pause, pauseFor, showCall } from './pause.ts';
import type { AgentTool } from './tools.ts';

/** The argument of Mastra's `createTool`. */
interface ToolFields {
  readonly id: string;
  readonly description: string;
  readonly inputSchema: DescribedInput;
  readonly requireApproval: (input: unknown) => Promise<boolean>;
  readonly execute: (
    input: unknown,
    context?: { readonly abortSignal?: AbortSignal },
  ) => Promise<ToolAnswer>;
}

/**
 * The tools, created with Mastra's own `createTool`. A call that a person has to approve suspends
 * the run. `approveToolCall` only lets it continue: without a license the call changes nothing and
 * returns `approval-required`.
 */
export function mastraTools<Tool>(
  tools: readonly AgentTool[],
  { createTool }: { readonly createTool: (...fields: never[]) => Tool },
): Record<string, Tool> {
  const make = createTool as unknown as (fields: ToolFields) => Tool;
  const entries = tools.map((own) => {
    const made = make({
      id: own.name,
      description: own.description,
      inputSchema: describeInput(own.inputSchema),
      requireApproval: async (input) => (await pauseFor(own, input)) !== undefined,
      execute: (input, { abortSignal: signal } = {}) => own.call(input, signal && { signal }),
    });
    return [own.name, made] as const;
  });
  return Object.fromEntries(entries);
}

/** A call that Mastra has suspended, as in `suspendPayload` and `tool-call-approval`. */
export interface SuspendedCall {
  readonly toolName: string;
  readonly args: unknown;
}

/** What a person has to sign for a suspended call; undefined if it can continue. */
export async function showSuspension(
  tools: readonly AgentTool[],
  { toolName, args }: SuspendedCall,
): Promise<Pause | undefined> {
  return await showCall(tools, toolName, args);
}
