import { type RunView, statesOf } from './run.ts';
import { isDone, isFailed, type NodeState } from './state.ts';

/** One line of a drawn graph: how far it is from the start, and what it says. */
export interface DrawnNode {
  readonly text: string;
  readonly state: NodeState;
}

/**
 * The graph of a run, one node per line: nodes of one level may run at the same time, and each says
 * which nodes it comes after.
 */
export function drawRun(view: RunView): readonly DrawnNode[] {
  const { record, instances } = view;
  const states = statesOf(view);
  const levels = new Map<string, number>();
  const byNode = Map.groupBy(instances, ({ node }) => node);
  const widest = Math.max(...record.nodes.map(({ name }) => name.length));
  return record.nodes.map(({ name: node, before }) => {
    const level = Math.max(-1, ...before.map((one) => levels.get(one) ?? 0)) + 1;
    levels.set(node, level);
    const own = (byNode.get(node) ?? []).map(({ id }) => states.get(id) ?? 'waiting');
    const state = summarise(own);
    const after = before.length === 0 ? '' : `  after ${before.join(', ')}`;
    const branch = level === 0 ? '' : `${'   '.repeat(level - 1)}└─ `;
    const drawn = `${branch}${mark(state)} ${node}`.padEnd(widest + 3 * level + 2);
    return { state, text: `${drawn}  ${count(own)}${after}` };
  });
}

/** The state that matters most among those of a node's items. */
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
