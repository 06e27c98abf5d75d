import { type ReplayedCall, Simulator } from './replay.ts';

/** What a simulator has in it, and the tools that the application has. */
export interface Recorded {
  readonly calls: readonly ReplayedCall[];
  readonly tools: readonly string[];
}

type State = { [namespace: string]: unknown };

/** Tools that replay one recorded sequence, in its order. */
export default function stateTools({ calls, tools }: Recorded) {
  const simulator = new Simulator(calls);
  const run = (tool: string) => (state: State, args: unknown) =>
    void simulator.run(state, tool, args);
  return Object.fromEntries(tools.map((tool) => [tool, run(tool)]));
}
