import type { Ledgers } from '../contract/ledgers.ts';
import { invariant } from '../errors.ts';
import type { SignedLicense } from '../protocol/license.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import type { Terminal } from '../protocol/terminal.ts';
import type { Value } from '../protocol/value.ts';
import type { Refusal } from '../runtime/attempt.ts';
import { type Lineage, lineagesOf, stateOf } from '../runtime/continuation.ts';
import type { PlanNode, RunRecord, RunRecords } from './records.ts';

/**
 * The state of one instance of a node. `waiting`: earlier nodes are not done. `unapproved`: it
 * needs a signature. `released`: its work was released and has not completed. `blocked`: an earlier
 * node failed, or the run was stopped.
 */
export type NodeState =
  | 'waiting'
  | 'unapproved'
  | 'approved'
  | 'running'
  | 'committed'
  | 'rejected'
  | 'diverged'
  | 'indeterminate'
  | 'released'
  | 'completed'
  | 'blocked'
  | 'cancelled';

/** The result of an operation: its occurrence, and the values that the backend assigned. */
export interface NodeResult {
  readonly occurrence: OccurrenceId;
  readonly generated: Readonly<Record<string, Value>>;
}

/** One instance of a node: the node itself, or one of its items. */
export interface Instance {
  readonly id: string;
  readonly node: string;
  /** The item's index, from 0; 0 for a node without items. */
  readonly index: number;
}

/** Every instance of a run, in an order in which they can run. */
export function instancesOf({ nodes }: Pick<RunRecord, 'nodes'>): readonly Instance[] {
  return nodes.flatMap(({ name: node, items }) =>
    items === null
      ? [{ id: node, node, index: 0 }]
      : Array.from({ length: items }, (_, index) => ({ id: `${node}[${index}]`, node, index })),
  );
}

/** The node of a run with this name. */
export function nodeNamed({ nodes }: Pick<RunRecord, 'nodes'>, name: string): PlanNode {
  const found = nodes.find((node) => node.name === name);
  invariant(found !== undefined, 'an instance belongs to a node of its run');
  return found;
}

/** What the ledger says about one instance, regardless of the nodes before it. */
export interface NodeFact {
  readonly state: Exclude<NodeState, 'blocked' | 'cancelled'>;
  readonly detail?: string;
  /** The occurrence of its license; for dependent work, the occurrence that releases it. */
  readonly from?: Lineage;
  readonly result?: NodeResult;
}

/** Whether the nodes that follow may run. */
export function isDone(state: NodeState): boolean {
  return state === 'committed' || state === 'completed';
}

const FAILED: ReadonlySet<NodeState> = new Set([
  ...(['rejected', 'diverged', 'indeterminate'] as const),
  ...(['blocked', 'cancelled'] as const),
]);

/** Whether the nodes that follow are blocked. */
export function isFailed(state: NodeState): boolean {
  return FAILED.has(state);
}

/** Reads what the ledger says about one instance of a run. */
export async function readFact(
  parts: { readonly ledgers: Ledgers; readonly records: RunRecords },
  record: RunRecord,
  instance: Instance,
): Promise<NodeFact> {
  const { of } = nodeNamed(record, instance.node);
  if (of === null) return await readOperation(parts, record, instance.id);
  const releasing = await readOperation(parts, record, sameItem(of, instance));
  if (releasing.state !== 'committed' || releasing.from === undefined) return { state: 'waiting' };
  const recorded = await parts.ledgers.acknowledgements(releasing.from.occurrence);
  const { isReleased, isCompleted } = stateOf(recorded, instance.node);
  const { from } = releasing;
  if (isCompleted) return { state: 'completed', from };
  return { state: isReleased ? 'released' : 'waiting', from };
}

/** The same item of another node. */
export function sameItem(node: string, { id, node: own }: Instance): string {
  return `${node}${id.slice(own.length)}`;
}

/**
 * The state of an operation. A change that an earlier revision of the run made durable, or may
 * have, counts: a revision never repeats it.
 */
async function readOperation(
  parts: { readonly ledgers: Ledgers; readonly records: RunRecords },
  record: RunRecord,
  instance: string,
): Promise<NodeFact> {
  const own = await readRevision(parts, { ...record, instance });
  for (let earlier = record.revision - 1; earlier > 0 && !isClaimed(own); earlier -= 1) {
    const before = await parts.records.read('run', { run: record.run, revision: earlier });
    const kept = before && (await readRevision(parts, { ...before, instance }));
    if (kept !== undefined && isClaimed(kept)) return kept;
  }
  return own;
}

function isClaimed({ state }: NodeFact): boolean {
  return isDone(state) || ['running', 'diverged', 'indeterminate'].includes(state);
}

async function readRevision(
  { ledgers, records }: { readonly ledgers: Ledgers; readonly records: RunRecords },
  place: RunRecord & { readonly instance: string },
): Promise<NodeFact> {
  const license = await records.read('license', place);
  if (license !== undefined) return await readLicensed(ledgers, license);
  const refusal = await records.read('refusal', place);
  if (refusal !== undefined) return refusedFact(refusal);
  const isProposed = (await records.read('proposal', place)) !== undefined;
  return { state: isProposed ? 'unapproved' : 'waiting' };
}

/** The fact for an instance that cannot run and has no attempt that says so. */
export function refusedFact({ reason, detail }: Refusal): NodeFact {
  return { state: 'rejected', detail: `${reason}: ${detail}` };
}

async function readLicensed(ledgers: Ledgers, license: SignedLicense): Promise<NodeFact> {
  const [from] = lineagesOf(license);
  const holder = await ledgers.holder(from.occurrence);
  const terminal = holder && (await ledgers.terminal(from.occurrence));
  if (terminal !== undefined) return factOf(from, terminal);
  if (holder !== undefined) return { state: 'running', from };
  // A refusal before the claim spends nothing, but it still ends this node: the approval does not
  // fit the current state.
  const refused = (await ledgers.attempts(from.occurrence)).at(-1);
  return refused === undefined ? { state: 'approved', from } : factOf(from, refused);
}

/** The fact that follows from a verdict. */
export function factOf(from: Lineage, terminal: Terminal): NodeFact {
  const { kind, occurrence } = terminal;
  if (kind === 'committed')
    return { state: kind, from, result: { occurrence, generated: terminal.generated ?? {} } };
  if (kind === 'rejected')
    return { state: kind, from, detail: `${terminal.reason}: ${terminal.detail}` };
  if (kind === 'indeterminate') return { state: kind, from, detail: terminal.gap };
  return { state: kind, from, detail: 'durable, and not what was approved' };
}

/** What stops a whole run. */
export interface Stops {
  readonly isCancelled: boolean;
  /** The preflight found something. */
  readonly isStopped: boolean;
}

/** The state of every instance, given what the ledger says about each. */
export function deriveStates(
  record: RunRecord,
  instances: readonly Instance[],
  facts: ReadonlyMap<string, NodeFact>,
  stops: Stops,
): ReadonlyMap<string, NodeState> {
  const states = new Map<string, NodeState>();
  const byNode = Map.groupBy(instances, ({ node }) => node);
  const nodes = new Map<string, 'done' | 'failed' | 'open'>();
  const isStopped =
    stops.isStopped ||
    (record.onFailure === 'stop' && [...facts.values()].some(({ state }) => isFailed(state)));
  for (const { name: node, before: earlier } of record.nodes) {
    const before = earlier.map((one) => nodes.get(one));
    const stopped = before.includes('failed') || isStopped ? 'blocked' : undefined;
    const halt = stops.isCancelled ? 'cancelled' : stopped;
    const isReady = before.every((state) => state === 'done');
    const own = (byNode.get(node) ?? []).map(({ id }) => {
      const state = deriveState(facts.get(id)?.state ?? 'waiting', halt, isReady);
      states.set(id, state);
      return state;
    });
    nodes.set(node, own.every(isDone) ? 'done' : own.some(isFailed) ? 'failed' : 'open');
  }
  return states;
}

const BEGUN: ReadonlySet<NodeState> = new Set([
  ...(['running', 'committed', 'rejected', 'diverged', 'indeterminate'] as const),
  ...(['released', 'completed'] as const),
]);

/** Whether anything in a run has begun, according to the ledger. */
export function hasBegun(facts: ReadonlyMap<string, NodeFact>): boolean {
  return [...facts.values()].some(({ state }) => BEGUN.has(state));
}

function deriveState(
  own: NodeState,
  halt: 'blocked' | 'cancelled' | undefined,
  isReady: boolean,
): NodeState {
  if (BEGUN.has(own)) return own;
  if (halt !== undefined) return halt;
  return own === 'approved' && !isReady ? 'waiting' : own;
}
