import { type RunView, statesOf } from './run.ts';
import { isDone, isFailed, type NodeState } from './state.ts';

/** One line of a drawn graph. */
export interface DrawnNode {
  readonly text: string;
  readonly state: NodeState;
}

/** One node in the graph of a run. */
export interface GraphNode {
  readonly name: string;
  readonly before: readonly string[];
  /** The length of the longest path to this node. Nodes of one level may run together. */
  readonly level: number;
  /** The most important state among its items. */
  readonly state: NodeState;
  /** How many items are in each state. */
  readonly counts: string;
}

/** The graph of a run, in an order in which it can run. */
export function graphOf(view: RunView): readonly GraphNode[] {
  const { record, instances } = view;
  const states = statesOf(view);
  const levels = new Map<string, number>();
  const byNode = Map.groupBy(instances, ({ node }) => node);
  return record.nodes.map(({ name, before }) => {
    const level = Math.max(-1, ...before.map((one) => levels.get(one) ?? 0)) + 1;
    levels.set(name, level);
    const own = (byNode.get(name) ?? []).map(({ id }) => states.get(id) ?? 'waiting');
    return { name, before, level, state: summarise(own), counts: count(own) };
  });
}

/**
 * The graph of a run, one node per line. Nodes of one level may run at the same time, and each line
 * names the nodes that come before.
 */
export function drawRun(view: RunView): readonly DrawnNode[] {
  const widest = Math.max(...view.record.nodes.map(({ name }) => name.length));
  return graphOf(view).map(({ name, before, level, state, counts }) => {
    const after = before.length === 0 ? '' : `  after ${before.join(', ')}`;
    const branch = level === 0 ? '' : `${'   '.repeat(level - 1)}└─ `;
    const drawn = `${branch}${mark(state)} ${name}`.padEnd(widest + 3 * level + 2);
    return { state, text: `${drawn}  ${counts}${after}` };
  });
}

/** The most important state among a node's items. */
function summarise(states: readonly NodeState[]): NodeState {
  const failed = states.find((state) => isFailed(state));
  return failed ?? states.find((state) => !isDone(state)) ?? states[0] ?? 'committed';
}

function mark(state: NodeState): string {
  if (isDone(state)) return '●';
  if (isFailed(state)) return '✗';
  return state === 'running' || state === 'released' ? '◐' : '○';
}

function count(states: readonly NodeState[]): string {
  if (states.length === 0) return 'no items';
  if (states.length === 1) return states[0] ?? '';
  const counts = new Map<NodeState, number>();
  for (const state of states) counts.set(state, (counts.get(state) ?? 0) + 1);
  return [...counts].map(([state, number]) => `${number} ${state}`).join(', ');
}
