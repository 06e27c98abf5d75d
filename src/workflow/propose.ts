import type { OperationNode, Workflow } from './definition.ts';
import { type ProposedNode, taskOf } from './records.ts';
import { contextOf, type RunParts, type RunView } from './run.ts';
import type { Instance } from './state.ts';

/** Proposes one instance as a separate task, with the work that its commit releases. */
export async function propose(
  { runtime }: RunParts,
  view: RunView,
  workflow: Workflow,
  instance: Instance,
): Promise<ProposedNode> {
  const { record } = view;
  const node = workflow.nodes.get(instance.node) as OperationNode;
  const input = await node.input(contextOf(view, workflow, instance));
  const released = record.nodes.filter(({ of }) => of === instance.node);
  const continuations = released.map(({ name }) => name);
  const proposal = await runtime.propose(node.operation, input, {
    task: taskOf(record, instance.id),
    planRevision: record.revision,
    continuations,
  });
  return { input, proposal };
}
