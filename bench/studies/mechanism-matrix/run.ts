import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { generateApprover } from '../../../src/crypto/approver.ts';
import type { SignedLicense } from '../../../src/protocol/license.ts';
import type { Internals } from '../../../src/runtime/runtime.ts';
import { PERFORMERS } from './conditions.ts';
import {
  type Approvers,
  approveSteps,
  CLERK,
  ISSUER,
  openRuntime,
  runLicensed,
} from './effectmatch.ts';
import { type Facts, labelOf } from './label.ts';
import type { Foreign, Scenario } from './scenarios.ts';
import type { Site, World } from './site.ts';
import {
  changesBetween,
  DEPENDENT_FILE,
  type Decision,
  expectedOf,
  type Place,
  type Snapshot,
  SQLITE_FILE,
  type Workflow,
} from './task.ts';
import { runWorkflow } from './workflow.ts';

export const EFFECTMATCH = 'EffectMatch';
export const CONDITION_NAMES: readonly string[] = [
  ...PERFORMERS.map(({ name }) => name),
  EFFECTMATCH,
];

const OWNER = generateApprover(ISSUER);
/** Signs in the owner's name with another key. */
const FORGER = generateApprover(ISSUER);
const STRANGER = generateApprover(CLERK);

/** Whom the deployment of a scenario knows, and who signs there. */
function approversFor(foreign: Foreign | undefined) {
  const owner = OWNER.publicKey;
  const clerk = (isDesignated: boolean, sources: readonly ('manifest' | 'rehearsed')[]) => ({
    ...{ owner, clerk: { key: STRANGER.publicKey, isDesignated, sources } },
  });
  switch (foreign) {
    case undefined:
      return { approvers: { owner }, signer: OWNER, isRehearsed: false };
    case 'forged':
      return { approvers: { owner }, signer: FORGER, isRehearsed: false };
    case 'unknown':
      return { approvers: { owner }, signer: STRANGER, isRehearsed: false };
    case 'undesignated':
      return { approvers: clerk(false, ['manifest']), signer: STRANGER, isRehearsed: false };
    case 'rehearsed':
      return { approvers: clerk(true, ['manifest']), signer: STRANGER, isRehearsed: true };
    case 'designated':
      return {
        ...{ approvers: clerk(true, ['manifest', 'rehearsed']), signer: STRANGER },
        isRehearsed: true,
      };
    default:
      throw new Error(`nobody is called ${foreign satisfies never}`);
  }
}

/** What a process needs to run a workflow, or to take it over. */
export interface Case {
  readonly condition: string;
  readonly place: Place;
  readonly workflow: Workflow;
  /** Only EffectMatch reads these. */
  readonly licenses: readonly SignedLicense[];
  readonly approvers: Approvers;
}
export const CASE_FILE = 'case.json';

/** Runs the workflow under its condition. The same in this process and in any other. */
export async function play(
  { condition, place, workflow, licenses, approvers }: Case,
  internals: Internals = {},
): Promise<Decision> {
  const performer = PERFORMERS.find(({ name }) => name === condition);
  if (performer !== undefined) return await runWorkflow(performer, place, workflow);
  await using runtime = await openRuntime(place, workflow, approvers, internals);
  return await runLicensed(runtime, place, workflow, licenses);
}

/** How a run ended. */
export interface Ended {
  readonly label: string;
  readonly facts: Facts;
  /** The label once our recovery has run, where a process of ours was interrupted. */
  readonly recovered?: string;
}

/**
 * One execution on fresh state: plan, meet whatever the scenario holds, run, and read what is
 * durable.
 */
export async function runOnce(
  site: Site,
  scenario: Scenario,
  condition: string,
  internals: Internals = {},
): Promise<Ended> {
  const isOurs = condition === EFFECTMATCH;
  await using world = await site.open(scenario, isOurs);
  const { place, customer } = world;
  const workflow: Workflow = { steps: scenario.steps, hasDependent: scenario.hasDependent };
  const { approvers, ...from } = approversFor(scenario.foreign);
  const licenses = isOurs ? await plan(place, workflow, approvers, from) : [];
  if (scenario.drift !== undefined) {
    using desk = new DatabaseSync(join(place.folder, SQLITE_FILE));
    desk.exec(scenario.drift);
  }
  scenario.arrange?.(customer);
  const before = await world.read();
  const given: Case = { condition, place, workflow, licenses, approvers };
  const decision = scenario.isInterrupted
    ? await playInterrupted(site, world, given)
    : await play(given, internals);
  const facts = await readFacts(world, scenario, before, decision);
  const label = labelOf(facts);
  if (!isOurs || !scenario.isInterrupted) return { label, facts };
  const settled = await recoverAndPlay(given);
  return { label, facts, recovered: labelOf(await readFacts(world, scenario, before, settled)) };
}

async function plan(
  place: Place,
  workflow: Workflow,
  approvers: Approvers,
  from: Parameters<typeof approveSteps>[3],
): Promise<readonly SignedLicense[]> {
  await using office = await openRuntime(place, workflow, approvers);
  return await approveSteps(office, place, workflow, from);
}

async function recoverAndPlay(given: Case): Promise<Decision> {
  await using runtime = await openRuntime(given.place, given.workflow, given.approvers);
  await runtime.recover({ now: true });
  return await runLicensed(runtime, given.place, given.workflow, given.licenses);
}

async function readFacts(
  world: World,
  scenario: Scenario,
  before: Snapshot,
  decision: Decision,
): Promise<Facts> {
  const local = scenario.steps.map(expectedOf);
  const log = join(world.place.folder, DEPENDENT_FILE);
  const lines = existsSync(log) ? readFileSync(log, 'utf8').split('\n').length - 1 : 0;
  return {
    changes: changesBetween(before, await world.read()),
    approved: scenario.foreign ? undefined : local,
    local,
    requests: world.customer.requests,
    dependent: scenario.hasDependent ? lines : undefined,
    readable: !world.customer.faults.readsUnavailable,
    decision,
  };
}

/**
 * A process that is killed once its payment is made and before it is answered; then one that takes
 * over.
 */
async function playInterrupted(
  { compiled }: Site,
  { place, customer }: World,
  given: Case,
): Promise<Decision> {
  writeFileSync(join(place.folder, CASE_FILE), JSON.stringify(given));
  const first = startWorker(place.folder, compiled);
  customer.swallows = () => void first.child.kill('SIGKILL');
  const ended = await first.ended;
  if (ended.signal !== 'SIGKILL') throw new Error('the first process did not end where it should');
  const { out } = await startWorker(place.folder, compiled).ended;
  return JSON.parse(out) as Decision;
}

interface Worker {
  readonly child: ChildProcess;
  readonly ended: Promise<{ readonly out: string; readonly signal: NodeJS.Signals | null }>;
}

function startWorker(folder: string, compiled: string): Worker {
  const script = fileURLToPath(new URL('./worker.ts', import.meta.url));
  const child = spawn(process.execPath, ['--no-warnings', script, folder], {
    env: { ...process.env, NODE_COMPILE_CACHE: compiled },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<Awaited<Worker['ended']>>((resolve, reject) => {
    let out = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
    child.on('error', reject);
    child.on('close', (code, signal) => {
      if (code === 0 || signal === 'SIGKILL') resolve({ out, signal });
      else reject(new Error(`a process of the study failed with ${code ?? signal}`));
    });
  });
  return { child, ended };
}
