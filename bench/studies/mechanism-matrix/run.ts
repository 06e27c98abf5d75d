import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { generateApprover } from '../../../src/crypto/approver.ts';
import type { SignedLicense } from '../../../src/protocol/license.ts';
import { lineagesOf } from '../../../src/runtime/continuation.ts';
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
import { readLedgerFile, readProgress } from './saved.ts';
import type { Foreign, Scenario } from './scenarios.ts';
import type { Site, World } from './site.ts';
import {
  changesBetween,
  DEPENDENT_FILE,
  expectedOf,
  type Place,
  type Saved,
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
      throw new Error(`there is no approver "${foreign satisfies never}"`);
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

/** Runs the workflow under its condition. */
export async function play(
  { condition, place, workflow, licenses, approvers }: Case,
  internals: Internals = {},
): Promise<void> {
  const performer = PERFORMERS.find(({ name }) => name === condition);
  if (performer !== undefined) return await runWorkflow(performer, place, workflow);
  await using runtime = await openRuntime(place, workflow, approvers, internals);
  await runLicensed(runtime, place, workflow, licenses);
}

/** Reads the condition's records when all its processes are gone. */
function readSaved({ condition, place, workflow, licenses }: Case): Saved {
  if (condition !== EFFECTMATCH) return readProgress(place, workflow);
  const occurrences = licenses.map((license) => lineagesOf(license)[0].occurrence);
  return readLedgerFile(place, occurrences);
}

/** How a run ended. */
export interface Ended {
  readonly label: string;
  readonly facts: Facts;
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
  const { steps, hasDependent, isLeftOpen = false, interrupted } = scenario;
  const isInterrupted = interrupted !== undefined;
  const workflow: Workflow = { steps, hasDependent, settles: !isLeftOpen, isInterrupted };
  const { approvers, ...from } = approversFor(scenario.foreign);
  const licenses = isOurs ? await plan(place, workflow, approvers, from) : [];
  if (scenario.drift !== undefined) {
    using desk = new DatabaseSync(join(place.folder, SQLITE_FILE));
    desk.exec(scenario.drift);
  }
  scenario.arrange?.(customer);
  const before = await world.read();
  const given: Case = { condition, place, workflow, licenses, approvers };
  if (interrupted === undefined) await play(given, internals);
  else await playInterrupted(site, world, given, interrupted);
  const facts = await readFacts(world, scenario, before, readSaved(given));
  return { label: labelOf(facts), facts };
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

async function readFacts(
  world: World,
  scenario: Scenario,
  before: Snapshot,
  saved: Saved,
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
    saved,
  };
}

/**
 * A process that is killed once its payment has arrived and before it is answered; then one that
 * takes over.
 */
async function playInterrupted(
  site: Site,
  { place, customer }: World,
  given: Case,
  interrupted: 'before' | 'after',
): Promise<void> {
  writeFileSync(join(place.folder, CASE_FILE), JSON.stringify(given));
  const first = startWorker(place.folder, site);
  const kill = () => void first.child.kill('SIGKILL');
  if (interrupted === 'before') customer.loses = kill;
  else customer.swallows = kill;
  const ended = await first.ended;
  if (ended.signal !== 'SIGKILL') throw new Error('the first process did not end where it should');
  await startWorker(place.folder, site).ended;
}

interface Worker {
  readonly child: ChildProcess;
  readonly ended: Promise<{ readonly signal: NodeJS.Signals | null }>;
}

function startWorker(folder: string, { compiled, program }: Site): Worker {
  const child = spawn(process.execPath, ['--no-warnings', program, folder], {
    env: { ...process.env, NODE_COMPILE_CACHE: compiled },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = new Promise<Awaited<Worker['ended']>>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      if (code === 0 || signal === 'SIGKILL') resolve({ signal });
      else reject(new Error(`a process of the study failed with ${code ?? signal}`));
    });
  });
  return { child, ended };
}
