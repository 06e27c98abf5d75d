import type { ToolAnswer } from './answer.ts';
import type { AgentTool } from './tools.ts';

/** What a person is shown while a framework pauses. */
export interface Pause {
  readonly request: string;
  readonly link?: string;
  readonly rendering: string;
}

/**
 * What to show before a call, if a person has to approve it; undefined if the call can go on. Asks,
 * and executes nothing. Whatever the framework is told afterwards is no approval: the call itself
 * checks the license.
 */
export async function pauseFor(tool: AgentTool, input: unknown): Promise<Pause | undefined> {
  const answer = await tool.show?.(input);
  if (answer?.status !== 'approval-required') return undefined;
  const { request = '', link, rendering = '' } = answer;
  return { request, rendering, ...(link !== undefined && { link }) };
}

/** The same for a call that a framework has kept. */
export async function showCall(
  tools: readonly AgentTool[],
  name: string | undefined,
  input: unknown,
): Promise<Pause | undefined> {
  const tool = tools.find((known) => known.name === name);
  return tool && (await pauseFor(tool, input));
}

/** The same in words. */
export function describePause({ rendering, link, request }: Pause): string {
  const where = link === undefined ? `as request ${request}` : `at ${link}`;
  return `${rendering}\n\nIt is approved by a signature ${where}. A yes here only goes on.`;
}

/** Arguments as models write them; what is no JSON is no input. */
export function parseArguments(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** An answer as the text that models read. */
export function answerText(answer: ToolAnswer): string {
  return JSON.stringify(answer);
}
