import type { Ledgers } from '../contract/ledgers.ts';
import { EffectMatchError, messageOf } from '../errors.ts';
import { copyValue, type Value } from '../protocol/value.ts';
import { actionFor } from '../requests/wanted.ts';
import type { Runtime, RuntimeConfig } from '../runtime/runtime.ts';
import {
  ITEMS_MAX,
  isOperation,
  type NodeContext,
  type OperationNode,
  type Workflow,
} from './definition.ts';
import { type PlanNode, type ProposedNode, type RunRecord, RunRecords, taskOf } from './records.ts';
import {
  deriveStates,
  hasBegun,
  type Instance,
  instancesOf,
  isDone,
  type NodeFact,
  type NodeResult,
  type NodeState,
  nodeNamed,
  readFact,
  refusedFact,
} from './state.ts';

/** What it takes to read and drive runs. */
export interface RunParts {
  readonly runtime: Runtime;
  readonly operations: NonNullable<RuntimeConfig['operations']>;
  readonly workflows: Readonly<Record<string, Workflow>>;
  readonly ledgers: Ledgers;
  readonly records: RunRecords;
}

/** One run at one moment, as recorded in the ledger. */
export interface RunView {
  readonly record: RunRecord;
  readonly instances: readonly Instance[];
  readonly facts: Map<string, NodeFact>;
  readonly isCancelled: boolean;
  /** Why the preflight stopped the run. */
  readonly stop: string | undefined;
}

/** The workflow of a record. Its plan must be the one that the run was started with. */
export function workflowOf(
  { workflows }: Pick<RunParts, 'workflows'>,
  record: RunRecord,
): Workflow {
  const found = Object.hasOwn(workflows, record.workflow) ? workflows[record.workflow] : undefined;
  if (found === undefined)
    throw new EffectMatchError(
      'ERR_EM_NOT_FOUND',
      `workflow "${record.workflow}" is not configured here`,
    );
  if (found.plan === record.plan) return found;
  throw new EffectMatchError(
    'ERR_EM_WORKFLOW_CHANGED',
    `run "${record.run}" was started with another plan of "${record.workflow}" than the one here; nothing was started`,
  );
}

/** The nodes of a workflow for one input, as the run records them. */
export function planNodes(workflow: Workflow, input: Value): readonly PlanNode[] {
  const items = new Map<string, number | null>();
  return [...workflow.nodes].map(([name, node]) => {
    const own = isOperation(node)
      ? (itemsOf(workflow, name, input)?.length ?? null)
      : (items.get(node.of) ?? null);
    items.set(name, own);
    return {
      name,
      before: workflow.before.get(name) ?? [],
      operation: isOperation(node) ? node.operation : null,
      of: isOperation(node) ? null : node.of,
      items: own,
      propose: (isOperation(node) && node.propose) || 'start',
      isQueued: !isOperation(node) && node.handOver !== undefined,
    };
  });
}

/** The items of a node; undefined if it runs once. */
export function itemsOf(
  { name, nodes }: Workflow,
  node: string,
  input: Value,
): readonly unknown[] | undefined {
  const definition = nodes.get(node);
  if (definition === undefined || !isOperation(definition)) return undefined;
  const where = `workflow "${name}", node "${node}"`;
  const invalid = (why: string, cause?: unknown) =>
    new EffectMatchError('ERR_EM_WORKFLOW_INVALID', `${where}: ${why}`, { cause });
  let items: readonly unknown[] | undefined;
  try {
    items = definition.each?.(copyValue(input));
  } catch (cause) {
    const given = input === null ? 'the run was started without input, and ' : '';
    throw invalid(`${given}its function "each" threw: ${messageOf(cause)}`, cause);
  }
  if (items === undefined) return undefined;
  if (!Array.isArray(items)) throw invalid('its function "each" must return a list');
  if (items.length > ITEMS_MAX)
    throw invalid(`it has ${items.length} items, and ${ITEMS_MAX} is the most`);
  return items;
}

/** Reads a run from the ledger alone. */
export async function readRun(
  parts: Pick<RunParts, 'ledgers' | 'records'>,
  record: RunRecord,
): Promise<RunView> {
  const { records } = parts;
  const instances = instancesOf(record);
  const facts = new Map<string, NodeFact>();
  await inParallel(instances, async (instance) => {
    facts.set(instance.id, await readFact(parts, record, instance));
  });
  const isCancelled = (await records.read('cancel', record)) !== undefined;
  const stop = await readStop(records, record, facts);
  return { record, instances, facts, isCancelled, stop };
}

/**
 * Why the preflight stopped a run. A stop counts only while nothing has begun: a process that
 * checks while another one executes sees used licenses, and its stop is wrong.
 */
async function readStop(
  records: RunRecords,
  record: RunRecord,
  facts: Map<string, NodeFact>,
): Promise<string | undefined> {
  const stop = await records.read('stop', record);
  if (stop === undefined || hasBegun(facts)) return undefined;
  for (const [instance, { state }] of facts) {
    const refusal =
      state === 'approved' ? await records.read('refusal', { ...record, instance }) : undefined;
    if (refusal !== undefined) facts.set(instance, refusedFact(refusal));
  }
  return stop.why;
}

/** Finds a run by its id and reads it, without the code of its plan and without a backend. */
export async function findRun(ledgers: Ledgers, id: string): Promise<RunView> {
  const records = new RunRecords(ledgers);
  return await readRun({ ledgers, records }, await records.find(id));
}

/** The state of every instance of a run. */
export function statesOf(view: RunView): ReadonlyMap<string, NodeState> {
  const { record, instances, facts, isCancelled, stop } = view;
  return deriveStates(record, instances, facts, { isCancelled, isStopped: stop !== undefined });
}

/** What the functions of a node are called with. */
export function contextOf(view: RunView, workflow: Workflow, instance: Instance): NodeContext {
  const results: Record<string, NodeResult | readonly NodeResult[]> = {};
  for (const [node, own] of Map.groupBy(view.instances, (one) => one.node)) {
    const found = own.flatMap(({ id }) => view.facts.get(id)?.result ?? []);
    const [only] = found;
    if (own[0]?.id !== node) results[node] = found;
    else if (only !== undefined) results[node] = only;
  }
  const { input } = view.record;
  const { of } = nodeNamed(view.record, instance.node);
  const items = itemsOf(workflow, of ?? instance.node, input);
  const item = items === undefined ? {} : { item: items[instance.index] };
  return { input: copyValue(input), results, ...item };
}

/** Proposes one instance as a separate task, with the work that its commit releases. */
export async function proposeInstance(
  { runtime }: RunParts,
  view: RunView,
  workflow: Workflow,
  instance: Instance,
): Promise<ProposedNode> {
  const { record } = view;
  const node = workflow.nodes.get(instance.node) as OperationNode;
  const input = await node.input(contextOf(view, workflow, instance));
  const released = record.nodes.filter(({ of }) => of === instance.node);
  const proposal = await runtime.propose(node.operation, input, {
    task: taskOf(record, instance.id),
    planRevision: record.revision,
    continuations: released.map(({ name }) => name),
  });
  return { input, proposal };
}

/** The action of a node's operation, for the input that was proposed. */
export async function nodeActionOf(
  { runtime, operations }: RunParts,
  record: RunRecord,
  node: string,
  { input }: ProposedNode,
): Promise<unknown> {
  const { operation } = nodeNamed(record, node);
  return await actionFor({ runtime, operations }, { operation: operation ?? '', input });
}

/** The status of a whole run. */
export type RunStatus = 'running' | 'waiting' | 'done' | 'failed' | 'cancelled';

/** The status of a run: whether it can make progress, waits, or has nothing left to do. */
export function statusOf(view: RunView): RunStatus {
  const states = [...statesOf(view).values()];
  if (states.every(isDone)) return 'done';
  if (states.includes('running')) return 'running';
  if (nextInstances(view).length > 0) return 'running';
  if (states.some((state) => state === 'unapproved' || state === 'released')) return 'waiting';
  return view.isCancelled ? 'cancelled' : 'failed';
}

/** The instances that can be proposed, executed or released now. */
export function nextInstances(view: RunView): readonly Instance[] {
  const { record, instances } = view;
  const states = statesOf(view);
  const undone = new Set(
    instances.filter(({ id }) => !isDone(states.get(id) ?? 'waiting')).map(({ node }) => node),
  );
  const nodes = new Map(record.nodes.map((node) => [node.name, node]));
  const isReady = ({ node }: Instance) =>
    nodes.get(node)?.before.every((before) => !undone.has(before)) === true;
  const isAwaited = ({ node, id }: Instance) =>
    nodes.get(node)?.propose === 'start' && states.get(id) === 'unapproved';
  const isHeld = record.approval === 'all' && instances.some(isAwaited);
  return instances.filter((instance) => {
    const state = states.get(instance.id);
    if (state === 'running') return true;
    return !isHeld && (state === 'approved' || state === 'waiting') && isReady(instance);
  });
}

const PARALLEL = 32;

/** Runs `work` for every entry of a list, several at a time. */
export async function inParallel<T>(
  list: readonly T[],
  work: (one: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  const run = async () => {
    for (let at = next++; at < list.length; at = next++) await work(list[at] as T);
  };
  await Promise.all(Array.from({ length: Math.min(PARALLEL, list.length) }, run));
}
