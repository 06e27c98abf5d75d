import { given } from '../contract/options.ts';
import type { ToolAnswer } from './answer.ts';
import type { AgentTool } from './tools.ts';

/** What a person sees while a framework is paused. */
export interface Pause {
  readonly request: string;
  readonly link?: string;
  readonly rendering: string;
}

/**
 * What to show before a call that a person has to approve; undefined if the call can continue.
 * Creates the request if it is new, but executes nothing. The framework's answer does not approve
 * the call: the call itself checks the license.
 */
export async function pauseFor(tool: AgentTool, input: unknown): Promise<Pause | undefined> {
  const answer = await tool.show?.(input);
  return answer && pauseOf(answer);
}

/** What to show if an answer waits for a person. */
export function pauseOf(answer: ToolAnswer): Pause | undefined {
  const { status, request = '', link, rendering = '' } = answer;
  return status === 'approval-required' ? { request, rendering, ...given({ link }) } : undefined;
}

/** Like {@link pauseFor}, for a call that a framework has stored. */
export async function showCall(
  tools: readonly AgentTool[],
  name: string | undefined,
  input: unknown,
): Promise<Pause | undefined> {
  const tool = tools.find((known) => known.name === name);
  return tool && (await pauseFor(tool, input));
}

/** A pause as text. */
export function describePause({ rendering, link, request }: Pause): string {
  const where = link === undefined ? `as request ${request}` : `at ${link}`;
  return `${rendering}\n\nIt is approved by a signature ${where}. A yes here only continues.`;
}

/** Parses the arguments of a call; undefined if they are not JSON, which every tool refuses. */
export function parseArguments(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** An answer as JSON text for a model. */
export function answerText(answer: ToolAnswer): string {
  return JSON.stringify(answer);
}
