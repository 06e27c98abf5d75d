// The four disruptions of the paper, each in five variants.

import { approver } from '../../../src/crypto/approver.ts';
import { isFault } from '../../../src/errors.ts';
import type { SignedLicense } from '../../../src/protocol/license.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import type { HandoffReport, Workflow, Workflows } from '../../../src/workflow/index.ts';
import { keepFact, keepVerdict } from '../../facts.ts';
import { EXCESSIVE, type Office, POISON } from './office.ts';
import {
  type CaseInput,
  operationOf,
  type PlanChange,
  planOf,
  TOPOLOGIES,
  type Topology,
  tagOf,
} from './plans.ts';
import { readTags } from './reader.ts';

export const DISRUPTIONS = ['blocker', 'failure', 'changed plan', 'stale approval'] as const;
export type Disruption = (typeof DISRUPTIONS)[number];

/** What one case needs. */
export interface Site {
  readonly office: Office;
  readonly runtime: Runtime;
  readonly workflows: Workflows;
  /** Workflows with another definition of one plan, which nothing drives by itself. */
  openChanged(plan: Workflow): Promise<Workflows>;
}

/** How one case ended. */
export interface CaseEnd {
  readonly topology: Topology;
  readonly disruption: Disruption;
  readonly instance: number;
  /** Effects that are durable, read from the backends. */
  readonly durable: number;
  /** Of those, effects of nodes that come before the node that failed. */
  readonly predecessors: number;
  /** Whether what had to be refused was, by the code that is documented for it. */
  readonly isRefused: boolean;
  /** Whether the handoff report says what the backends hold. */
  readonly isTrue: boolean;
}

interface Case {
  readonly site: Site;
  readonly topology: Topology;
  readonly instance: number;
  readonly run: string;
  readonly name: string;
  readonly nodes: readonly string[];
}

/** Runs one case. */
export async function runCase(
  site: Site,
  topology: Topology,
  disruption: Disruption,
  instance: number,
): Promise<CaseEnd> {
  const run = `${topology}.${DISRUPTIONS.indexOf(disruption)}.${instance}.${serial()}`;
  const nodes = Object.keys(TOPOLOGIES[topology].nodes);
  const one = { site, topology, instance, run, name: `${topology}-${instance}`, nodes };
  await site.office.setGate(run, true);
  const isRefused = await RUNNERS[disruption](one);
  const tags = await readTags(site.office.facts, run);
  const before = predecessorsOf(topology);
  const predecessors = before.filter((node) => tags.includes(tagOf(run, node))).length;
  const isTrue = await isReportTrue(site.workflows, run, tags);
  keepFact({ tags });
  const durable = tags.length;
  return { topology, disruption, instance, durable, predecessors, isRefused, isTrue };
}

let count = 0;
/** Different in every process that runs cases on the same backends. */
function serial(): string {
  count += 1;
  return `${process.pid.toString(36)}${count.toString(36)}`;
}

function predecessorsOf(topology: Topology): readonly string[] {
  const { nodes, failing } = TOPOLOGIES[topology];
  return (nodes as Readonly<Record<string, readonly string[]>>)[failing] ?? [];
}

/** Compares a report with the tags that the backends hold. */
async function isReportTrue(
  workflows: Workflows,
  run: string,
  tags: readonly string[],
): Promise<boolean> {
  const report = await workflows.report(run).catch((error: unknown) => {
    if (isFault(error, 'ERR_EM_NOT_FOUND')) return undefined;
    throw error;
  });
  if (report === undefined) {
    keepFact({ reported: [] });
    return tags.length === 0;
  }
  const wrong = report.needsResolution.filter(({ state }) => state === 'diverged');
  const said = [...report.durable, ...wrong].map(({ instance }) => tagOf(run, instance));
  keepFact({ reported: said.sort() });
  return said.join() === tags.join();
}

async function start(one: Case, amounts: CaseInput['amounts'] = {}): Promise<HandoffReport> {
  const { site, name, run } = one;
  return await site.workflows.start(name, { id: run, input: { run, amounts } });
}

async function sign(one: Case, clock?: { now(): number }): Promise<readonly SignedLicense[]> {
  const { site, run } = one;
  const waiting = await site.workflows.unapproved(run);
  const clerk = approver({ ...site.office.clerk, ...(clock && { clock }) });
  return await Promise.all(
    waiting.map(({ proposal }) => clerk.sign(proposal, { expiresIn: '10m' })),
  );
}

async function finish(one: Case): Promise<HandoffReport> {
  return await one.site.workflows.wait(one.run, { waitMs: 120_000 });
}

/** Whether a call fails with this code. */
async function fails(
  code: Parameters<typeof isFault>[1],
  call: Promise<unknown>,
): Promise<boolean> {
  return await call.then(
    () => false,
    (error: unknown) => {
      if (!isFault(error, code)) throw error;
      keepFact({ refused: code });
      return true;
    },
  );
}

/** A node of the case whose backend has a gate, a limit and rows that can be in the way. */
function guardedNode({ topology, instance, nodes }: Case): string {
  const found = nodes.find((node) =>
    ['post', 'note'].includes(operationOf(topology, instance, node)),
  );
  return found ?? 'a';
}

const BLOCKED = 'ERR_EM_WORKFLOW_BLOCKED';

/** Something is in the way that can be seen before the first effect. */
async function runBlocker(one: Case): Promise<boolean> {
  const { site, instance, run } = one;
  const node = guardedNode(one);
  switch (instance) {
    case 0:
      await site.office.setGate(run, false);
      return await fails(BLOCKED, start(one));
    case 1: {
      await start(one);
      const licenses = await sign(one);
      await site.office.setGate(run, false);
      return await fails('ERR_EM_LICENSE_REFUSED', site.workflows.approve(run, licenses));
    }
    case 2:
      return await fails(BLOCKED, start(one, { [node]: EXCESSIVE }));
    case 3:
      return await fails(BLOCKED, start(one, { [node]: 'many' }));
    default: {
      // No approver of the configuration has signed; one whom it does not know has.
      await start(one);
      const stranger = approver({ ...site.office.clerk, issuer: 'stranger' });
      const waiting = await site.workflows.unapproved(run);
      const licenses = await Promise.all(
        waiting.map(({ proposal }) => stranger.sign(proposal, { expiresIn: '10m' })),
      );
      return await fails('ERR_EM_LICENSE_REFUSED', site.workflows.approve(run, licenses));
    }
  }
}

/** A backend does something else than was approved, in the middle of the run. */
async function runFailure(one: Case): Promise<boolean> {
  const { site, topology, instance, run } = one;
  const { failing } = TOPOLOGIES[topology];
  const isPaid = operationOf(topology, instance, failing) === 'pay';
  await start(one, { [failing]: POISON });
  const licenses = await sign(one);
  if (isPaid) site.office.poisonBank();
  await site.workflows.approve(run, licenses);
  const { notDone, needsResolution } = await finish(one);
  const ended = [...notDone, ...needsResolution].find(({ instance: id }) => id === failing);
  const stopped = notDone.filter(({ state }) => state === 'blocked').map(({ node }) => node);
  const after = Object.entries<readonly string[]>(TOPOLOGIES[topology].nodes)
    .filter(([, before]) => before.includes(failing))
    .map(([node]) => node);
  keepFact({ failed: ended?.state ?? null, stopped, successors: after });
  const hasFailed = ended?.state === (isPaid ? 'diverged' : 'rejected');
  return hasFailed && stopped.join() === after.join();
}

const CHANGES: readonly PlanChange[] = ['input', 'node', 'edge', 'version'];

/** The plan is another one when the run is to be executed. */
async function runChange(one: Case): Promise<boolean> {
  const { site, topology, instance, run, name } = one;
  const change = CHANGES[instance];
  if (change !== undefined) {
    const plan = planOf(topology, instance, change);
    await using changed = await site.openChanged(plan);
    const input = { run, amounts: {} };
    await changed.start(name, { id: run, input });
    const waiting = await changed.unapproved(run);
    const clerk = approver(site.office.clerk);
    const licenses = waiting.map(({ proposal }) => clerk.sign(proposal, { expiresIn: '10m' }));
    await changed.approve(run, await Promise.all(licenses));
    const code = 'ERR_EM_WORKFLOW_CHANGED';
    const isDriven = await fails(code, site.workflows.drive(run));
    const isStarted = await fails(code, site.workflows.start(name, { id: run, input }));
    return isDriven && isStarted;
  }
  // A later revision of the same run: approvals of the earlier one no longer count.
  await start(one);
  const earlier = await sign(one);
  await site.workflows.revise(run);
  const isRefused = await fails('ERR_EM_LICENSE_REFUSED', site.workflows.approve(run, earlier));
  const executed = await executeAll(site.runtime, earlier);
  return isRefused && executed.every((reason) => reason === 'plan-superseded');
}

/** Tries licenses past the workflow, and says why each was refused. */
async function executeAll(
  runtime: Runtime,
  licenses: readonly SignedLicense[],
): Promise<readonly string[]> {
  const reasons: string[] = [];
  for (const license of licenses.filter((one) => one.license.adapter === 'bank')) {
    const terminal = await runtime.execute(license, {});
    keepVerdict(terminal);
    reasons.push(terminal.kind === 'rejected' ? terminal.reason : terminal.kind);
  }
  return reasons;
}

/** The approvals are old, for something else, or were used before. */
async function runStale(one: Case): Promise<boolean> {
  const { site, instance, run, name } = one;
  const { workflows } = site;
  const refuses = (licenses: readonly SignedLicense[], id = run) =>
    fails('ERR_EM_LICENSE_REFUSED', workflows.approve(id, licenses));
  await start(one);
  switch (instance) {
    case 0:
      return await refuses(await sign(one, { now: () => Date.now() - 3_600_000 }));
    case 1: {
      const licenses = await sign(one);
      await site.office.setGate(run, false);
      return await refuses(licenses);
    }
    case 2: {
      const [first, ...rest] = await sign(one);
      const [second] = rest;
      if (first === undefined || second === undefined) return false;
      const swapped = { ...first, license: { ...first.license, task: second.license.task } };
      return await refuses([swapped, ...rest]);
    }
    default: {
      // Used by one run, and presented for the next.
      const licenses = await sign(one);
      await workflows.approve(run, licenses);
      const { status } = await finish(one);
      const next = `${run}-next`;
      await site.office.setGate(next, true);
      await workflows.start(name, { id: next, input: { run: next, amounts: {} } });
      const isRefused = await refuses(licenses, next);
      const executed = await executeAll(site.runtime, licenses);
      const tags = await readTags(site.office.facts, next);
      keepFact({ first: status, tagsOfTheNextRun: tags });
      return (
        status === 'done' &&
        isRefused &&
        tags.length === 0 &&
        executed.every((reason) => reason === 'spent')
      );
    }
  }
}

const RUNNERS: Readonly<Record<Disruption, (one: Case) => Promise<boolean>>> = {
  blocker: runBlocker,
  failure: runFailure,
  'changed plan': runChange,
  'stale approval': runStale,
};
