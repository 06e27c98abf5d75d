import { given } from '../contract/options.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import { type RunStatus, type RunView, statesOf, statusOf } from './run.ts';
import { isDone, type NodeState, nodeNamed } from './state.ts';

/** One instance in a report. */
export interface ReportedNode {
  /** The node's name, with the item's number if the node has items. */
  readonly instance: string;
  readonly node: string;
  readonly state: NodeState;
  readonly detail?: string;
  readonly occurrence?: OccurrenceId;
}

/**
 * What a person who takes over a run needs to know, read from the ledger: which effects are
 * durable, which are not, what the run waits for, and what must be resolved. Each instance is in
 * exactly one list.
 */
export interface HandoffReport {
  readonly workflow: string;
  readonly run: string;
  readonly revision: number;
  readonly status: RunStatus;
  /** Operations committed as approved, and dependent work that completed. */
  readonly durable: readonly ReportedNode[];
  /** Instances that left nothing durable, and to which nothing more happens in this revision. */
  readonly notDone: readonly ReportedNode[];
  /** Instances under way, or waiting for earlier nodes, an approver, or a worker. */
  readonly waiting: readonly (ReportedNode & { readonly for: string })[];
  /** Instances that are durable and wrong, perhaps durable, or released and never completed. */
  readonly needsResolution: readonly ReportedNode[];
  /** Why the preflight stopped the run. */
  readonly stop?: string;
}

const WAITS: Partial<Record<NodeState, string>> = {
  waiting: 'the nodes before it',
  unapproved: 'an approver',
  approved: 'a worker',
  running: 'its verdict',
};

/** Builds the report of a run. */
export function reportOf(view: RunView): HandoffReport {
  const { record, facts, instances, stop } = view;
  const states = statesOf(view);
  const lists = { durable: [], notDone: [], waiting: [], needsResolution: [] } as {
    durable: ReportedNode[];
    notDone: ReportedNode[];
    waiting: (ReportedNode & { readonly for: string })[];
    needsResolution: ReportedNode[];
  };
  for (const { id, node } of instances) {
    const state = states.get(id) ?? 'waiting';
    const { detail, from } = facts.get(id) ?? {};
    const reported: ReportedNode = {
      instance: id,
      node,
      state,
      ...given({ detail, occurrence: from?.occurrence }),
    };
    const { isQueued } = nodeNamed(record, node);
    const waits = state === 'released' && isQueued ? 'a worker of its queue' : WAITS[state];
    if (isDone(state)) lists.durable.push(reported);
    else if (waits !== undefined) lists.waiting.push({ ...reported, for: waits });
    else if (['diverged', 'indeterminate', 'released'].includes(state))
      lists.needsResolution.push(reported);
    else lists.notDone.push(reported);
  }
  const { workflow, run, revision } = record;
  const about = { workflow, run, revision, status: statusOf(view) };
  return { ...about, ...lists, ...given({ stop }) };
}

/** The command that moves a run forward, if there is one. */
export function nextCommand({ run, waiting, status }: HandoffReport): string | undefined {
  if (waiting.some(({ state }) => state === 'unapproved'))
    return `effectmatch workflow approve ${run} --key YOUR.key.json`;
  if (status === 'running') return `effectmatch workflow resume ${run}`;
  return status === 'failed' ? `effectmatch workflow revise ${run}` : undefined;
}
