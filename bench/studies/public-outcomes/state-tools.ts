import type { ToolKit } from '../../state-tools/tools.ts';
import { OwnTools, type ReplayedCall, Simulator } from './replay.ts';

/** What the tools are made from: recorded consequences or, with a kit, our own tools. */
export interface ToolSource {
  readonly calls: readonly ReplayedCall[];
  /** The names of the tools that the application has. */
  readonly tools: readonly string[];
  readonly kit?: ToolKit | undefined;
}

type State = { [namespace: string]: unknown };

/** Our own tools, which return what they answer, or tools that replay one recorded sequence. */
export default function stateTools({ calls, tools, kit }: ToolSource) {
  if (kit !== undefined) {
    const own = new OwnTools(kit);
    const call = (tool: string) => (state: State, args: unknown) => own.call(state, tool, args);
    return Object.fromEntries(tools.map((tool) => [tool, call(tool)]));
  }
  const simulator = new Simulator(calls);
  const run = (tool: string) => (state: State, args: unknown) =>
    void simulator.run(state, tool, args);
  return Object.fromEntries(tools.map((tool) => [tool, run(tool)]));
}
