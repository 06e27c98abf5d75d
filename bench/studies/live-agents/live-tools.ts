import type { ToolKit } from '../../state-tools/tools.ts';
import { OwnTools } from '../public-outcomes/replay.ts';

/** What the tools of an episode are made from. */
export interface LiveToolData {
  readonly kit: ToolKit;
  readonly tools: readonly string[];
}

type State = { [namespace: string]: unknown };

/** Our own tools. Each call also returns the state that it left, for the record of the episode. */
export default function liveTools({ kit, tools }: LiveToolData) {
  const own = new OwnTools(kit);
  const call = (tool: string) => (state: State, args: unknown) => {
    const answer = own.call(state, tool, args);
    return { answer, state: structuredClone(state) };
  };
  return Object.fromEntries(tools.map((tool) => [tool, call(tool)]));
}
