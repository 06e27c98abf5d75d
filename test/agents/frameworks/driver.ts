import type { ScriptedCall } from '../../../examples/agents/model.ts';
import type { AgentTool, ToolAnswer } from '../../../src/agents/index.ts';

export type { ScriptedCall };

/** How far one run of a framework got. */
export interface Turn {
  /** Whether the framework waits for a yes. */
  readonly paused: boolean;
  /** What it shows meanwhile. */
  readonly shown: string;
  /** All that the application has to keep, as text. */
  readonly state: string;
  /** What the tool answered in this turn. */
  readonly answers: readonly ToolAnswer[];
}

/** How the model's answers travel. */
export type How = 'whole' | 'stream';

/** One framework, driven with its own scripted model. */
export interface FrameworkDriver {
  /** A new run, in which the model makes this call and then ends. */
  begin(tools: readonly AgentTool[], call: ScriptedCall, how: How): Promise<Turn>;
  /** Goes on from a kept state, with the framework's own yes. */
  sayYes(tools: readonly AgentTool[], state: string, how: How): Promise<Turn>;
}

/** The same tools, and what they answer from here on. */
export function recording(tools: readonly AgentTool[]) {
  const answers: ToolAnswer[] = [];
  const recorded = tools.map((tool) => ({
    ...tool,
    call: async (...order: Parameters<AgentTool['call']>) => {
      const answer = await tool.call(...order);
      answers.push(answer);
      return answer;
    },
  }));
  return { tools: recorded, answers };
}
