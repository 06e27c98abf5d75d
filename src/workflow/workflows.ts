import { setTimeout as sleep } from 'node:timers/promises';
import { type Clock, instant, systemClock } from '../contract/clock.ts';
import { parseDuration } from '../crypto/duration.ts';
import { parseSignedLicense } from '../crypto/signature.ts';
import { EffectMatchError, errorsOf, messageOf } from '../errors.ts';
import { canonical } from '../protocol/canon.ts';
import type { Proposal, SignedLicense } from '../protocol/license.ts';
import { copyValue, type Value } from '../protocol/value.ts';
import { findUnfit } from '../requests/fit.ts';
import type { Runtime, RuntimeConfig } from '../runtime/runtime.ts';
import { isWorkflowName, type Workflow } from './definition.ts';
import { driveRun } from './drive.ts';
import type { OpenEngine, WorkflowEngine } from './engine.ts';
import { inProcess } from './in-process.ts';
import { type Blocker, findBlockers, NO_APPROVER } from './preflight.ts';
import { type ProposedNode, type RunRecord, RunRecords, taskOf } from './records.ts';
import { type HandoffReport, reportOf } from './report.ts';
import {
  inParallel,
  nodeActionOf,
  planNodes,
  proposeInstance,
  type RunParts,
  type RunView,
  readRun,
  statusOf,
  workflowOf,
} from './run.ts';
import { type Instance, instancesOf, nodeNamed } from './state.ts';

/** A schedule that starts a workflow at regular intervals. */
export interface WorkflowSchedule {
  readonly workflow: string;
  /**
   * For example `1h` or `1d`, at least `1s`. One run starts in each interval, counted from 1970
   * (UTC). An interval in which no process ran is skipped.
   */
  readonly every: string | number;
  /** The input of the run for the interval that begins at `at`. */
  input(at: Date): unknown;
}

/** What {@link openWorkflows} needs. */
export interface WorkflowsOptions {
  readonly runtime: Runtime;
  /** The operations from the runtime's configuration. */
  readonly operations?: RuntimeConfig['operations'];
  /** The workflows by name. */
  readonly plans: Readonly<Record<string, Workflow>>;
  /** The engine that drives the runs; `inProcess()` by default. */
  readonly engine?: WorkflowEngine;
  readonly schedules?: readonly WorkflowSchedule[];
  /** Called with faults after which the engine tries again, and with faults of schedules. */
  readonly onFault?: (run: string, error: unknown) => void;
  readonly clock?: Clock;
}

/** Which run to start. */
export interface StartOptions {
  /** Names the run. Starting it again with the same plan and input changes nothing. */
  readonly id: string;
  readonly input?: unknown;
}

/** A node that waits for a signature. */
export interface WaitingNode {
  readonly instance: string;
  readonly proposal: Proposal;
  /** The configured issuers who could sign it. */
  readonly issuers: readonly string[];
}

const WAIT_MS = 60_000;
const POLL_MS = 100;
const SCHEDULE_MS = 1000;
const MAX_EVERY_MS = 366 * 86_400_000;
/** The longest workflow name that leaves room for the time in a run's id. */
const SCHEDULED_NAME_MAX = 39;

/** Opens workflows, and resumes the runs that an earlier process left. */
export async function openWorkflows(options: WorkflowsOptions): Promise<Workflows> {
  const workflows = new Workflows(options);
  await workflows.open(options.engine ?? inProcess());
  return workflows;
}

/**
 * Runs of workflows. The ledger holds everything about a run: its plan and input, its proposals,
 * its licenses, and its verdicts.
 */
export class Workflows implements AsyncDisposable {
  readonly #parts: RunParts;
  readonly #clock: Clock;
  readonly #options: WorkflowsOptions;
  readonly #closing = new AbortController();
  /** How many drives of each run are active in this process. */
  readonly #drives = new Map<string, number>();
  #engine: OpenEngine | undefined;
  #scheduling: Promise<void> | undefined;

  constructor(options: WorkflowsOptions) {
    const { runtime, operations = {}, plans: workflows, clock = systemClock } = options;
    const { ledgers } = runtime;
    this.#options = options;
    this.#clock = clock;
    this.#parts = { runtime, operations, workflows, ledgers, records: new RunRecords(ledgers) };
    for (const [name, workflow] of Object.entries(workflows))
      if (workflow?.name !== name)
        throw invalid(`workflow "${name}" must be what defineWorkflow has made under that name`);
  }

  async open(engine: WorkflowEngine): Promise<void> {
    const { onFault = () => {}, schedules = [] } = this.#options;
    checkSchedules(this.#parts.workflows, schedules);
    this.#engine = await engine.open({
      drive: async (run, signal) => statusOf(await this.#drive(run, signal)),
      openRuns: () => this.openRuns(),
      isRunnable: async (run) => statusOf(await this.view(run)) === 'running',
      onFault,
    });
    if (schedules.length > 0) this.#scheduling = this.#schedule(schedules);
  }

  /**
   * Starts a run: checks every node that can be checked, proposes every node that can be proposed
   * in advance, and records the run. Throws `ERR_EM_WORKFLOW_BLOCKED` with every obstacle; nothing
   * has changed then.
   */
  async start(name: string, { id, input = null }: StartOptions): Promise<HandoffReport> {
    const { workflows, records } = this.#parts;
    const workflow = Object.hasOwn(workflows, name) ? workflows[name] : undefined;
    if (workflow === undefined) throw this.#notConfigured(name);
    if (!isWorkflowName(id))
      throw invalid(`the id of a run has 1 to 64 letters, digits and . _ -, not ${describe(id)}`);
    const record = this.#record(workflow, id, 1, plainInput(input));
    const known = await records.newest(id);
    if (known !== undefined) {
      demandSame(known, record);
      // A process that died halfway through may have recorded the run without listing it.
      await records.begin(known);
      await this.#engine?.wake(id);
      return await this.report(id);
    }
    const proposed = await this.#preflight(workflow, record);
    return await this.#begin(record, proposed);
  }

  #notConfigured(name: string): EffectMatchError<'ERR_EM_NOT_FOUND'> {
    const known = Object.keys(this.#parts.workflows).join(', ') || 'none';
    const message = `no workflow named "${name}" is configured; there are: ${known}`;
    return new EffectMatchError('ERR_EM_NOT_FOUND', message);
  }

  /**
   * Replaces the plan of a run with the one configured now, even if only approvals must be given
   * again. What is durable stays. Licenses of the earlier revision can no longer be used.
   */
  async revise(id: string, { input }: { readonly input?: unknown } = {}): Promise<HandoffReport> {
    const { records, runtime, workflows } = this.#parts;
    const known = await this.#parts.records.find(id);
    const workflow = workflows[known.workflow];
    if (workflow === undefined) throw this.#notConfigured(known.workflow);
    const cancelled = await records.read('cancel', { run: id });
    if (cancelled !== undefined)
      throw new EffectMatchError(
        'ERR_EM_WORKFLOW_BLOCKED',
        `run "${id}" was cancelled by ${cancelled.by}; start another one`,
      );
    const given = input === undefined ? known.input : plainInput(input);
    const revision = known.revision + 1;
    const record = this.#record(workflow, id, revision, given);
    const proposed = await this.#preflight(workflow, record);
    // From here on, no license of the earlier revision can be claimed.
    await inParallel(instancesOf(known), async (instance) => {
      await runtime.ledgers.announcePlan(taskOf(known, instance.id), revision);
    });
    await records.keep('over', known, { over: true });
    return await this.#begin(record, proposed);
  }

  /** The nodes that wait for a signature, in the order they would run. */
  async unapproved(id: string): Promise<readonly WaitingNode[]> {
    const view = await this.view(id);
    const open = view.instances.filter((one) => view.facts.get(one.id)?.state === 'unapproved');
    const found: WaitingNode[] = [];
    for (const { id: instance } of open) {
      const proposed = await this.#parts.records.read('proposal', { ...view.record, instance });
      if (proposed === undefined) continue;
      const { proposal } = proposed;
      found.push({ instance, proposal, issuers: this.#parts.runtime.issuersFor(proposal) });
    }
    return found;
  }

  /**
   * Answers one or more proposals of a run with their licenses. All are checked before any is
   * stored: if one does not fit or could not be used, none counts.
   */
  async approve(id: string, licenses: readonly unknown[]): Promise<HandoffReport> {
    const { records } = this.#parts;
    const record = await this.#parts.records.find(id);
    workflowOf(this.#parts, record);
    const byTask = new Map(instancesOf(record).map((one) => [taskOf(record, one.id), one]));
    const checked: { readonly instance: Instance; readonly license: SignedLicense }[] = [];
    for (const given of licenses) {
      const license = parseSignedLicense(given);
      const instance = byTask.get(license.license.task);
      if (instance === undefined)
        throw refused(`it is for "${license.license.task}", which is not a node of this plan`);
      await this.#check(record, instance, license);
      checked.push({ instance, license });
    }
    for (const { instance, license } of checked)
      await records.keep('license', { ...record, instance: instance.id }, license);
    await this.#engine?.wake(id);
    return await this.report(id);
  }

  async #check(
    record: RunRecord,
    { id: instance, node }: Instance,
    license: SignedLicense,
  ): Promise<void> {
    const { records, runtime } = this.#parts;
    const place = { ...record, instance };
    const proposed = await records.read('proposal', place);
    if (proposed === undefined) throw refused(`"${instance}" was not proposed yet`);
    const unfit = findUnfit(proposed.proposal, license);
    if (unfit !== undefined)
      throw refused(`it was not signed for what "${instance}" proposes: its ${unfit} differs`);
    const kept = await records.read('license', place);
    if (kept !== undefined && canonical(kept as never) !== canonical(license as never))
      throw refused(`"${instance}" has a license already`);
    const action = await nodeActionOf(this.#parts, record, node, proposed);
    const refusal = kept === undefined ? await runtime.check({ license }, action) : undefined;
    if (refusal !== undefined)
      throw refused(`"${instance}" could not run (${refusal.reason}): ${refusal.detail}`);
  }

  /**
   * Cancels a run: nothing more of it starts. Attempts under way still end, and what is durable
   * stays.
   */
  async cancel(id: string, { by, reason }: { readonly by: string; readonly reason: string }) {
    await this.#parts.records.find(id);
    const at = instant(this.#clock.now());
    await this.#parts.records.keep('cancel', { run: id }, { by, reason, at });
    await this.#engine?.wake(id);
    return await this.report(id);
  }

  /** A run as recorded in the ledger now. */
  async view(id: string): Promise<RunView> {
    return await readRun(this.#parts, await this.#parts.records.find(id));
  }

  /** What a person who takes over the run needs to know. */
  async report(id: string): Promise<HandoffReport> {
    return reportOf(await this.view(id));
  }

  /** Every run ever started, in order. */
  list(): Promise<readonly string[]> {
    return this.#parts.records.list();
  }

  /** Runs that are not over and whose plan is configured here. */
  async openRuns(): Promise<readonly string[]> {
    const { records, workflows } = this.#parts;
    const open = await records.open();
    return open
      .filter(({ workflow, plan }) => workflows[workflow]?.plan === plan)
      .map(({ run }) => run);
  }

  /** Drives a run as far as it can go now, in this call. */
  async drive(id: string, signal?: AbortSignal): Promise<HandoffReport> {
    return reportOf(await this.#drive(id, signal));
  }

  async #drive(id: string, signal?: AbortSignal): Promise<RunView> {
    this.#drives.set(id, (this.#drives.get(id) ?? 0) + 1);
    try {
      return await driveRun(this.#parts, id, signal);
    } finally {
      const others = (this.#drives.get(id) ?? 1) - 1;
      if (others > 0) this.#drives.set(id, others);
      else this.#drives.delete(id);
    }
  }

  /** Takes over the runs of workers that went silent, and returns their ids. */
  async takeOver(): Promise<readonly string[]> {
    return (await this.#engine?.takeOver()) ?? [];
  }

  /**
   * Waits until a run is over, or until it waits for a person and this process is not driving it.
   * Returns the report, also when the time is up.
   */
  async wait(
    id: string,
    options: { readonly waitMs?: number; readonly signal?: AbortSignal } = {},
  ): Promise<HandoffReport> {
    const { waitMs = WAIT_MS, signal } = options;
    const until = performance.now() + waitMs;
    for (;;) {
      // Check this first: a drive may end while the report is made.
      const isDriven = this.#drives.has(id);
      const report = await this.report(id);
      const isHalted = report.status !== 'running' && !isDriven;
      if (isHalted || performance.now() >= until) return report;
      await sleep(POLL_MS, undefined, { ...(signal && { signal }) });
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#scheduling;
    await this.#engine?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #record(workflow: Workflow, run: string, revision: number, input: Value): RunRecord {
    const startedAt = instant(this.#clock.now());
    const { name, plan, onFailure, approval } = workflow;
    const nodes = planNodes(workflow, input);
    const about = { version: 1 as const, workflow: name, run, revision, plan };
    return { ...about, nodes, onFailure, approval, input, startedAt };
  }

  /** Proposes every node that can be proposed now, and collects all obstacles. */
  async #preflight(
    workflow: Workflow,
    record: RunRecord,
  ): Promise<ReadonlyMap<string, ProposedNode>> {
    const blockers: Blocker[] = [...(await findBlockers(this.#parts, workflow))];
    const proposed = new Map<string, ProposedNode>();
    const view = await readRun(this.#parts, record);
    const early = view.instances.filter(({ id, node }) => {
      const { operation, propose: when } = nodeNamed(record, node);
      const isEarly = operation !== null && when === 'start';
      return isEarly && view.facts.get(id)?.state === 'waiting';
    });
    if (blockers.length === 0)
      await inParallel(early, async (instance) => {
        try {
          const one = await proposeInstance(this.#parts, view, workflow, instance);
          proposed.set(instance.id, one);
          if (this.#parts.runtime.issuersFor(one.proposal).length === 0)
            blockers.push({ node: instance.id, why: NO_APPROVER });
        } catch (error) {
          blockers.push({ node: instance.id, why: messageOf(error) });
        }
      });
    if (blockers.length === 0) return proposed;
    const list = blockers.slice(0, 10).map(({ node, why }) => `node "${node}": ${why}`);
    throw new EffectMatchError(
      'ERR_EM_WORKFLOW_BLOCKED',
      `run "${record.run}" of "${workflow.name}" cannot start, and nothing was changed: ${list.join('; ')}`,
    );
  }

  async #begin(
    record: RunRecord,
    proposed: ReadonlyMap<string, ProposedNode>,
  ): Promise<HandoffReport> {
    const { records } = this.#parts;
    // Proposals come first, so that a run that exists has them.
    await inParallel([...proposed], async ([instance, one]) => {
      await records.keep('proposal', { ...record, instance }, one);
    });
    demandSame(await records.begin(record), record);
    await this.#engine?.wake(record.run);
    return await this.report(record.run);
  }

  async #schedule(schedules: readonly WorkflowSchedule[]): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      for (const schedule of schedules) await this.#startDue(schedule);
      await sleep(SCHEDULE_MS, undefined, { signal }).catch(() => {});
    }
  }

  /** The id names the interval, so several processes start the run only once. */
  async #startDue({ workflow, every, input }: WorkflowSchedule): Promise<void> {
    const everyMs = parseDuration(every, MAX_EVERY_MS);
    const begin = new Date(Math.floor(this.#clock.now() / everyMs) * everyMs);
    const id = `${workflow}-${begin.toISOString().replace(/[:.]/g, '-')}`;
    try {
      if ((await this.#parts.records.newest(id)) === undefined)
        await this.start(workflow, { id, input: input(begin) });
    } catch (error) {
      this.#options.onFault?.(id, error);
    }
  }
}

/** Checks schedules. Their runs are named after the workflow and the time, so a name must fit. */
function checkSchedules(
  workflows: Readonly<Record<string, Workflow>>,
  schedules: readonly WorkflowSchedule[],
): void {
  const seen = new Set<string>();
  for (const { workflow, every, input } of schedules) {
    const where = `the schedule of workflow "${workflow}"`;
    if (!Object.hasOwn(workflows, workflow)) throw invalid(`${where}: it is not configured`);
    if (seen.has(workflow)) throw invalid(`${where}: it has another one; define two workflows`);
    seen.add(workflow);
    if (workflow.length > SCHEDULED_NAME_MAX)
      throw invalid(`${where}: its name must not have more than ${SCHEDULED_NAME_MAX} characters`);
    if (typeof input !== 'function') throw invalid(`${where}: it needs a function "input"`);
    if (parseDuration(every, MAX_EVERY_MS) < SCHEDULE_MS)
      throw invalid(`${where}: "every" must be at least 1s`);
  }
}

function plainInput(input: unknown): Value {
  canonical(input as Value);
  return copyValue(input as Value);
}

/** One id cannot stand for two plans or two inputs. */
function demandSame(known: RunRecord, wanted: RunRecord): void {
  const isSame =
    known.workflow === wanted.workflow &&
    known.plan === wanted.plan &&
    canonical(known.input) === canonical(wanted.input);
  if (isSame) return;
  throw new EffectMatchError(
    'ERR_EM_WORKFLOW_CHANGED',
    `run "${wanted.run}" was started before with another plan or input; choose another id, or revise it`,
  );
}

function describe(value: unknown): string {
  return JSON.stringify(value)?.slice(0, 80) ?? String(value);
}

const invalid = errorsOf('ERR_EM_WORKFLOW_INVALID');

const refused = errorsOf('ERR_EM_LICENSE_REFUSED', 'no license was taken: ');
