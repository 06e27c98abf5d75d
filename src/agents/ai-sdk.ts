/**
 * Tools for the Vercel AI SDK (`ai`, version 7).
 *
 * @module
 */
import '../node-version.ts';

import type { ToolAnswer } from './answer.ts';
import { type DescribedInput, describeInput } from './json-schema.ts';
import { describePause, pauseFor } from './pause.ts';
import type { AgentTool } from './tools.ts';

/** A tool in the form that `generateText` and `streamText` take. */
export interface AiSdkTool {
  readonly description: string;
  readonly inputSchema: DescribedInput;
  execute(
    input: unknown,
    options: { readonly abortSignal?: AbortSignal | undefined },
  ): Promise<ToolAnswer>;
}

/** Whether the SDK pauses before a call, and the reason that it shows. */
export type AiSdkApproval = (
  input: unknown,
) => Promise<{ readonly type: 'user-approval'; readonly reason: string } | 'not-applicable'>;

/** The options for `generateText`, `streamText` or an agent: `{ tools, toolApproval }`. */
export interface AiSdkTools {
  readonly tools: Record<string, AiSdkTool>;
  readonly toolApproval: Record<string, AiSdkApproval>;
}

/**
 * The tools, and an approval configuration that pauses a call and shows what a person has to sign,
 * and where. An `approved: true` in the messages only lets the call continue: without a license it
 * changes nothing and returns `approval-required`.
 */
export function aiSdkTools(tools: readonly AgentTool[]): AiSdkTools {
  const entries = tools.map((tool) => [tool.name, aiSdkTool(tool)] as const);
  const pausing = tools.filter(({ show }) => show !== undefined);
  const approvals = pausing.map((tool) => [tool.name, approvalOf(tool)] as const);
  return { tools: Object.fromEntries(entries), toolApproval: Object.fromEntries(approvals) };
}

function aiSdkTool(tool: AgentTool): AiSdkTool {
  return {
    description: tool.description,
    inputSchema: describeInput(tool.inputSchema),
    execute: (input, { abortSignal: signal }) => tool.call(input, signal && { signal }),
  };
}

function approvalOf(tool: AgentTool): AiSdkApproval {
  return async (input) => {
    const pause = await pauseFor(tool, input);
    if (pause === undefined) return 'not-applicable';
    return { type: 'user-approval', reason: describePause(pause) };
  };
}
