import { digestValueOf } from '../crypto/digest.ts';
import { EffectMatchError } from '../errors.ts';
import type { Digest } from '../protocol/record.ts';
import type { HandOverTransaction, Lineage } from '../runtime/continuation.ts';
import type { NodeResult } from './state.ts';

/** What the input of a node is computed from. */
export interface NodeContext<Input = unknown> {
  /** The input of the run. */
  readonly input: Input;
  /** The item that this instance is for, if the node has `each`. */
  readonly item?: unknown;
  /** The results of finished operations by node; for a node with `each`, a list in item order. */
  readonly results: Readonly<Record<string, NodeResult | readonly NodeResult[]>>;
}

interface CommonNode {
  /** Nodes that must be done first. */
  readonly after?: string | readonly string[];
}

/** A node that executes a configured operation. */
export interface OperationNode<Input = unknown> extends CommonNode {
  readonly operation: string;
  /** The input of the operation. */
  input(context: NodeContext<Input>): unknown;
  /** Makes one instance per item, at most 10,000. Computed from the run's input alone. */
  each?(input: Input): readonly unknown[];
  /** How many instances run at the same time; 8 by default. */
  readonly atMost?: number;
  /**
   * When to propose the change: `start`, before anything runs, or `ready`, once the nodes before it
   * are done, because the change depends on their results.
   */
  readonly propose?: 'start' | 'ready';
}

/** A node that runs dependent work, once for each instance of the operation that releases it. */
export interface ContinuationNode<Input = unknown> extends CommonNode {
  /** The operation node whose commit releases the work. */
  readonly of: string;
  /** The work. It runs at most once. Its effects need licenses like any others. */
  run?(context: ContinuationContext<Input>): unknown;
  /** Instead of `run`: inserts a job into the ledger's database. */
  handOver?(transaction: HandOverTransaction, context: ContinuationContext<Input>): unknown;
}

/** What dependent work is called with: the run, and the occurrence that released it. */
export interface ContinuationContext<Input = unknown> extends NodeContext<Input> {
  readonly from: Lineage;
}

/** One node of a workflow. */
export type WorkflowNode<Input = unknown> = OperationNode<Input> | ContinuationNode<Input>;

/** Options of a whole workflow. */
export interface WorkflowOptions {
  /**
   * Change it when something changes that the functions only refer to. A plan identifies only the
   * text of its functions.
   */
  readonly version?: string;
  /** Whether branches that do not depend on a failed node continue; they do by default. */
  readonly onFailure?: 'finish-branches' | 'stop';
  /**
   * `each`: a node may run as soon as it is approved. `all`, the default: only once every node that
   * is proposed at the start is approved.
   */
  readonly approval?: 'all' | 'each';
}

/** A checked graph of operations and dependent work, in an order in which it can run. */
export interface Workflow<Input = unknown> extends Required<Omit<WorkflowOptions, 'version'>> {
  readonly name: string;
  readonly nodes: ReadonlyMap<string, WorkflowNode<Input>>;
  /** The nodes before each node. */
  readonly before: ReadonlyMap<string, readonly string[]>;
  /** Identifies the graph and the text of its functions. */
  readonly plan: Digest;
}

/** Valid names. They appear in the task that an approver signs. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const NODES_MAX = 1000;
/** The most instances of one node. */
export const ITEMS_MAX = 10_000;
const AT_MOST = 1000;

const FIELDS = {
  operation: ['operation', 'input', 'each', 'atMost', 'propose', 'after'],
  continuation: ['of', 'run', 'handOver', 'after'],
};
const OPTIONS = ['version', 'onFailure', 'approval'];

/** Whether a value is a valid name for a workflow, a node or a run. */
export function isWorkflowName(name: unknown): name is string {
  return typeof name === 'string' && NAME.test(name);
}

/** Whether a node executes an operation. */
export function isOperation<Input>(node: WorkflowNode<Input>): node is OperationNode<Input> {
  return 'operation' in node;
}

/** Checks a graph of operations and dependent work. Throws `ERR_EM_WORKFLOW_INVALID`. */
export function defineWorkflow<Input = unknown>(
  name: string,
  nodes: Readonly<Record<string, WorkflowNode<Input>>>,
  options: WorkflowOptions = {},
): Workflow<Input> {
  if (!isWorkflowName(name)) throw invalid('a workflow', nameRule('name', name));
  const where = `workflow "${name}"`;
  const { onFailure = 'finish-branches', approval = 'all', version } = options;
  const stray = Object.keys(options).find((option) => !OPTIONS.includes(option));
  if (stray !== undefined) throw invalid(where, `unknown option "${stray}"; known are ${OPTIONS}`);
  if (!['finish-branches', 'stop'].includes(onFailure))
    throw invalid(where, 'onFailure is "finish-branches" or "stop"');
  if (!['all', 'each'].includes(approval)) throw invalid(where, 'approval is "all" or "each"');
  const names = Object.keys(nodes ?? {});
  if (names.length === 0 || names.length > NODES_MAX)
    throw invalid(where, `a workflow has 1 to ${NODES_MAX} nodes`);
  for (const node of names) checkNode(where, node, nodes);
  const before = new Map(names.map((node) => [node, predecessorsOf(nodes, node)] as const));
  const ordered = order(where, before);
  return Object.freeze({
    name,
    nodes: new Map(ordered.map((node) => [node, nodes[node] as WorkflowNode<Input>])),
    before,
    onFailure,
    approval,
    plan: identify(name, nodes, before, { onFailure, approval, version }),
  });
}

function checkNode<Input>(
  workflow: string,
  name: string,
  nodes: Readonly<Record<string, WorkflowNode<Input>>>,
): void {
  const where = `${workflow}, node "${name}"`;
  if (!isWorkflowName(name)) throw invalid(workflow, nameRule('node', name));
  const node = nodes[name];
  if (typeof node !== 'object' || node === null) throw invalid(where, 'it is not an object');
  const kind = isOperation(node) ? 'operation' : 'continuation';
  const stray = Object.keys(node).find((field) => !FIELDS[kind].includes(field));
  if (stray !== undefined)
    throw invalid(
      where,
      `unknown field "${stray}"; a node with "${FIELDS[kind][0]}" may have ${FIELDS[kind]}`,
    );
  const unknown = predecessorsOf(nodes, name).find((other) => !Object.hasOwn(nodes, other));
  if (unknown !== undefined)
    throw invalid(where, `it comes after "${unknown}", which is not a node`);
  if (isOperation(node)) checkOperation(where, node);
  else checkContinuation(where, node, nodes);
}

function checkOperation<Input>(where: string, node: OperationNode<Input>): void {
  const { operation, input, each, atMost = 1, propose = 'start' } = node;
  if (typeof operation !== 'string') throw invalid(where, 'operation must be a name');
  if (typeof input !== 'function') throw invalid(where, 'input must be a function');
  if (each !== undefined && typeof each !== 'function')
    throw invalid(where, 'each must be a function that returns a list');
  if (!Number.isInteger(atMost) || atMost < 1 || atMost > AT_MOST)
    throw invalid(where, `atMost must be a whole number from 1 to ${AT_MOST}`);
  if (!['start', 'ready'].includes(propose)) throw invalid(where, 'propose is "start" or "ready"');
}

function checkContinuation<Input>(
  where: string,
  node: ContinuationNode<Input>,
  nodes: Readonly<Record<string, WorkflowNode<Input>>>,
): void {
  const { of, run, handOver } = node;
  const releasing = Object.hasOwn(nodes, of) ? nodes[of] : undefined;
  if (releasing === undefined || !isOperation(releasing))
    throw invalid(where, '"of" must name the operation node that releases it');
  const works = [run, handOver].filter((work) => work !== undefined);
  if (works.length !== 1 || typeof works[0] !== 'function')
    throw invalid(where, 'it needs one function: run or handOver');
}

function predecessorsOf<Input>(
  nodes: Readonly<Record<string, WorkflowNode<Input>>>,
  name: string,
): readonly string[] {
  const node = nodes[name];
  const after = [node?.after ?? []].flat() as readonly string[];
  const of = node !== undefined && !isOperation(node) ? [node.of] : [];
  return [...new Set([...of, ...after])];
}

/** The nodes in topological order. Throws if there is a cycle. */
function order(where: string, before: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const ordered = new Set<string>();
  while (ordered.size < before.size) {
    const free = [...before].filter(
      ([name, earlier]) => !ordered.has(name) && earlier.every((one) => ordered.has(one)),
    );
    if (free.length === 0) {
      const rest = [...before.keys()].filter((name) => !ordered.has(name));
      throw invalid(where, `its nodes wait for each other in a cycle: ${rest.join(', ')}`);
    }
    for (const [name] of free) ordered.add(name);
  }
  return [...ordered];
}

function identify<Input>(
  name: string,
  nodes: Readonly<Record<string, WorkflowNode<Input>>>,
  before: ReadonlyMap<string, readonly string[]>,
  options: Required<Omit<WorkflowOptions, 'version'>> & { readonly version: string | undefined },
): Digest {
  const textOf = (part: unknown) =>
    typeof part === 'function' ? String(part).toWellFormed() : null;
  const facts = Object.entries(nodes).map(([key, node]) => ({
    name: key,
    before: before.get(key)?.toSorted() ?? [],
    ...(isOperation(node)
      ? {
          operation: node.operation,
          propose: node.propose ?? 'start',
          code: [node.input, node.each].map(textOf),
        }
      : { of: node.of, code: [node.run, node.handOver].map(textOf) }),
  }));
  const sorted = facts.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const { version = null, onFailure, approval } = options;
  const whole = { name, nodes: sorted, version, onFailure, approval };
  return digestValueOf('effectmatch/workflow-plan/v1', whole as never);
}

function nameRule(what: string, given: unknown): string {
  return `its ${what} ${JSON.stringify(given)} must have 1 to 64 letters, digits and . _ -`;
}

function invalid(what: string, why: string): EffectMatchError<'ERR_EM_WORKFLOW_INVALID'> {
  return new EffectMatchError('ERR_EM_WORKFLOW_INVALID', `${what}: ${why}`);
}
