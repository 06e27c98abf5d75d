import { EffectMatchError, invariant, isFault, messageOf } from '../errors.ts';
import type { Proposal, SignedLicense } from '../protocol/license.ts';
import { findUnfit } from '../requests/fit.ts';
import { lineagesOf } from '../runtime/continuation.ts';
import { type ContinuationNode, isOperation, type Workflow } from './definition.ts';
import { taskOf } from './records.ts';
import {
  contextOf,
  inParallel,
  nextInstances,
  nodeActionOf,
  proposeInstance,
  type RunParts,
  type RunView,
  readRun,
  statusOf,
  workflowOf,
} from './run.ts';
import { factOf, hasBegun, type Instance, type NodeFact, readFact, sameItem } from './state.ts';

/** Temporary faults: the run stays as it is, and is tried again later. */
const PASSING = [
  'ERR_EM_ADAPTER_UNAVAILABLE',
  'ERR_EM_ATTEMPT_OPEN',
  'ERR_EM_STORE_BUSY',
  'ERR_EM_STORE_UNAVAILABLE',
] as const;

/** The most instances of one node that run at the same time, unless the node sets `atMost`. */
const AT_MOST = 8;

/**
 * Drives a run as far as it can go now: proposes, executes and releases what is ready, until the
 * run is over or waits for a person. Any number of processes may drive one run at the same time,
 * because every effect goes through `ensure` and every release through the ledger.
 */
export async function driveRun(
  parts: RunParts,
  run: string,
  signal?: AbortSignal,
): Promise<RunView> {
  const record = await parts.records.find(run);
  const workflow = workflowOf(parts, record);
  const view = await checkBeforeFirst(parts, await readRun(parts, record));
  const running = new Map<string, Promise<void>>();
  const faults: unknown[] = [];
  const isOver = () => faults.length > 0 || signal?.aborted === true;
  const begin = (instance: Instance) => {
    const work = step(parts, { view, workflow, instance }, signal)
      .then((fact) => void view.facts.set(instance.id, fact))
      .catch((error: unknown) => void faults.push(error))
      .finally(() => running.delete(instance.id));
    running.set(instance.id, work);
  };
  for (;;) {
    if (!isOver() && !(await isStopped(parts, view)))
      for (const instance of chooseNext(view, workflow, running)) begin(instance);
    if (running.size === 0) break;
    await Promise.race(running.values());
  }
  if (faults.length > 0 && signal?.aborted !== true) throw faults[0];
  const last = await readRun(parts, record);
  if (isFinal(last)) await parts.records.keep('over', record, { over: true });
  return last;
}

/** Whether the status is final: neither recovery nor an operator's decision can change it. */
function isFinal(view: RunView): boolean {
  const status = statusOf(view);
  if (status === 'running' || status === 'waiting') return false;
  return [...view.facts.values()].every(({ state }) => state !== 'indeterminate');
}

async function isStopped({ records }: RunParts, { record }: RunView): Promise<boolean> {
  return (await records.read('cancel', record)) !== undefined;
}

/** The instances to begin now, with no more of one node at a time than it allows. */
function chooseNext(
  view: RunView,
  workflow: Workflow,
  running: ReadonlyMap<string, unknown>,
): readonly Instance[] {
  const counts = new Map<string, number>();
  for (const { id, node } of view.instances)
    if (running.has(id)) counts.set(node, (counts.get(node) ?? 0) + 1);
  return nextInstances(view).filter(({ id, node }) => {
    const definition = workflow.nodes.get(node);
    const atMost = (definition && isOperation(definition) && definition.atMost) || AT_MOST;
    const count = counts.get(node) ?? 0;
    if (running.has(id) || count >= atMost) return false;
    counts.set(node, count + 1);
    return true;
  });
}

/**
 * Checks every license before the first effect. If one would be refused now, nothing of the run
 * starts.
 */
async function checkBeforeFirst(parts: RunParts, view: RunView): Promise<RunView> {
  const { records, runtime } = parts;
  if (hasBegun(view.facts) || view.stop !== undefined || nextInstances(view).length === 0)
    return view;
  const approved = view.instances.filter(({ id }) => view.facts.get(id)?.state === 'approved');
  const found: string[] = [];
  await inParallel(approved, async (instance) => {
    const { license, proposal, action } = await licensed(parts, view, instance);
    const refusal =
      (await runtime.check({ license }, action)) ?? (await runtime.check({ proposal }, action));
    if (refusal === undefined) return;
    found.push(`${instance.id}: ${refusal.reason}: ${refusal.detail}`);
    await records.keep('refusal', { ...view.record, instance: instance.id }, refusal);
  });
  if (found.length === 0) return view;
  await records.keep('stop', view.record, { why: found.toSorted().join('; ').slice(0, 4000) });
  return await readRun(parts, view.record);
}

/** One instance of a run, with what its step needs. */
interface Step {
  readonly view: RunView;
  readonly workflow: Workflow;
  readonly instance: Instance;
}

/** Takes one step of an instance, and returns what is known about it afterwards. */
async function step(
  parts: RunParts,
  one: Step,
  signal: AbortSignal | undefined,
): Promise<NodeFact> {
  const { view, workflow, instance } = one;
  const node = workflow.nodes.get(instance.node);
  if (node !== undefined && !isOperation(node)) return await releaseWork(parts, one, node);
  const { state } = view.facts.get(instance.id) ?? { state: 'waiting' };
  if (state === 'waiting') return await proposeLate(parts, one);
  const place = { ...view.record, instance: instance.id };
  if (state === 'running' && (await parts.records.read('license', place)) === undefined)
    return await awaitEarlier(parts, one, signal);
  const { license, action } = await licensed(parts, view, instance);
  const terminal = await parts.runtime.ensure(license, action, { ...(signal && { signal }) });
  return factOf(lineagesOf(license)[0], terminal);
}

/** Waits for the verdict of an attempt that was under way when its run was revised. */
async function awaitEarlier(
  parts: RunParts,
  { view, instance }: Step,
  signal: AbortSignal | undefined,
): Promise<NodeFact> {
  const { from } = view.facts.get(instance.id) ?? {};
  invariant(from !== undefined, 'what is under way has an occurrence');
  const terminal = await parts.runtime.wait(from.occurrence, { ...(signal && { signal }) });
  if (terminal !== undefined) return await readFact(parts, view.record, instance);
  throw new EffectMatchError(
    'ERR_EM_ATTEMPT_OPEN',
    `node "${instance.id}" of the earlier revision has no verdict yet (${from.occurrence})`,
  );
}

/** The license of an instance, with its action. Throws if it was not signed for this node. */
async function licensed(
  parts: RunParts,
  { record }: RunView,
  { id, node }: Instance,
): Promise<{
  readonly license: SignedLicense;
  readonly proposal: Proposal;
  readonly action: unknown;
}> {
  const { records } = parts;
  const place = { ...record, instance: id };
  const license = await records.read('license', place);
  const proposed = await records.read('proposal', place);
  const isFit =
    license !== undefined &&
    proposed !== undefined &&
    proposed.proposal.draft.task === taskOf(record, id) &&
    findUnfit(proposed.proposal, license) === undefined;
  if (!isFit)
    throw new EffectMatchError(
      'ERR_EM_LICENSE_REFUSED',
      `the license of node "${id}" was signed for something else; nothing was executed`,
    );
  const action = await nodeActionOf(parts, record, node, proposed);
  return { license, proposal: proposed.proposal, action };
}

/** Proposes a node whose change depends on the nodes before it. */
async function proposeLate(parts: RunParts, { view, workflow, instance }: Step): Promise<NodeFact> {
  const place = { ...view.record, instance: instance.id };
  try {
    const proposed = await proposeInstance(parts, view, workflow, instance);
    await parts.records.keep('proposal', place, proposed);
    return { state: 'unapproved' };
  } catch (error) {
    if (PASSING.some((code) => isFault(error, code))) throw error;
    const reason = error instanceof EffectMatchError ? error.code : 'input-failed';
    const refusal = { reason, detail: messageOf(error).slice(0, 4000).toWellFormed() };
    await parts.records.keep('refusal', place, refusal);
    return { state: 'rejected', detail: `${reason}: ${refusal.detail}` };
  }
}

/**
 * Releases dependent work, once. Work that throws stays released and not completed. A hand-over
 * that throws leaves neither the job nor the release.
 */
async function releaseWork(
  { runtime }: RunParts,
  { view, workflow, instance }: Step,
  node: ContinuationNode,
): Promise<NodeFact> {
  const from = view.facts.get(sameItem(node.of, instance))?.from;
  invariant(from !== undefined, 'work is released after the operation that releases it');
  const context = { ...contextOf(view, workflow, instance), from };
  const gate = runtime.continuation(from, instance.node);
  const { run, handOver } = node;
  try {
    const released =
      handOver === undefined
        ? await gate.release(() => run?.(context))
        : await gate.handOver((transaction) => handOver(transaction, context));
    if (released.kind === 'halted')
      return released.why === 'already-released'
        ? { state: 'released', from }
        : { state: 'rejected', from, detail: released.why };
    return { state: handOver === undefined ? 'completed' : 'released', from };
  } catch (error) {
    if (handOver !== undefined || PASSING.some((code) => isFault(error, code))) throw error;
    return { state: 'released', from, detail: messageOf(error) };
  }
}
