// The four topologies, each in five mixtures of backends.
import { defineWorkflow, type Workflow, type WorkflowNode } from '../../../src/workflow/index.ts';
import { OPERATION_NAMES } from './office.ts';

/** The input of a run: the gate that its entries need, and the amount of every node. */
export interface CaseInput {
  readonly run: string;
  readonly amounts: Readonly<Record<string, number | string>>;
}

/** Each node with the nodes before it, and the one that fails in the middle of a run. */
export const TOPOLOGIES = {
  linear: { nodes: { a: [], b: ['a'], c: ['b'] }, failing: 'b' },
  'fan-out': { nodes: { a: [], b: ['a'], c: ['a'] }, failing: 'b' },
  'fan-in': { nodes: { a: [], b: [], c: ['a', 'b'] }, failing: 'c' },
  mixed: { nodes: { a: [], b: ['a'], c: ['a'], d: ['b', 'c'] }, failing: 'b' },
} as const satisfies Record<
  string,
  { readonly nodes: Readonly<Record<string, readonly string[]>>; readonly failing: string }
>;
export type Topology = keyof typeof TOPOLOGIES;

/** How a plan differs from the one that everyone has. */
export type PlanChange = 'input' | 'node' | 'edge' | 'version';

export const INSTANCES = 5;

/** The operation of a node in one mixture. */
export function operationOf(topology: Topology, mixture: number, node: string): string {
  const at = Object.keys(TOPOLOGIES[topology].nodes).indexOf(node);
  return OPERATION_NAMES[(at + mixture) % OPERATION_NAMES.length] ?? 'post';
}

/** The tag that an effect of a node carries, wherever it becomes durable. */
export function tagOf(run: string, node: string): string {
  return `${run}.${node}`;
}

function nodeOf(
  operation: string,
  name: string,
  after: readonly string[],
): WorkflowNode<CaseInput> {
  // Functions of different nodes have the same text; `after` and the name tell them apart.
  const input: WorkflowNode<CaseInput> = {
    operation,
    after: [...after],
    input: (context) => ({
      tag: tagOf(context.input.run, name),
      gate: context.input.run,
      amount: context.input.amounts[name] ?? 1,
    }),
  };
  return input;
}

/** One plan. */
export function planOf(topology: Topology, mixture: number, change?: PlanChange): Workflow {
  const entries = Object.entries<readonly string[]>(TOPOLOGIES[topology].nodes).map(
    ([name, after]) => {
      const rest = change === 'edge' && name === 'c' ? after.slice(1) : after;
      return [name, nodeOf(operationOf(topology, mixture, name), name, rest)] as const;
    },
  );
  const nodes = Object.fromEntries(entries);
  if (change === 'node') nodes.z = nodeOf('post', 'z', []);
  if (change === 'input') {
    const input = ({ input: { run } }: { readonly input: CaseInput }) => {
      return { tag: tagOf(run, 'a'), gate: run, amount: 2 };
    };
    nodes.a = { operation: operationOf(topology, mixture, 'a'), input };
  }
  const version = change === 'version' ? '2' : '1';
  return defineWorkflow(`${topology}-${mixture}`, nodes, { version }) as Workflow;
}

/** Every plan, by name. */
export function allPlans(): Readonly<Record<string, Workflow>> {
  const topologies = Object.keys(TOPOLOGIES) as Topology[];
  const plans = topologies.flatMap((topology) =>
    Array.from({ length: INSTANCES }, (_, mixture) => planOf(topology, mixture)),
  );
  return Object.fromEntries(plans.map((plan) => [plan.name, plan]));
}
