// Goal: on DBOS, with several workers that are killed and paused at random, every run ends, no
// effect happens twice, and every handoff report is true. Method: real worker processes and a real
// PostgreSQL; EFFECTMATCH_SEED repeats a run, EFFECTMATCH_KILLS=500, EFFECTMATCH_PAUSES and
// EFFECTMATCH_SERVER_KILLS say how often workers are killed and paused, and the server is killed;
// EFFECTMATCH_FIRST_KILL=200 goes on where an earlier run ended.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { DISRUPTIONS, runCase } from '../../bench/studies/topologies/cases.ts';
import { officeConfig } from '../../bench/studies/topologies/office.ts';
import { tagOf } from '../../bench/studies/topologies/plans.ts';
import { readTags } from '../../bench/studies/topologies/reader.ts';
import { approver } from '../../src/crypto/approver.ts';
import { IDLE } from '../../src/workflow/engine.ts';
import { type HandoffReport, openWorkflows, type Workflow } from '../../src/workflow/index.ts';
import { skipWithout } from '../integration.ts';
import { startServer } from '../postgres/server.ts';
import { chooseSeed, randomOf } from '../random.ts';
import { type DbosSite, openDbosSite } from './dbos-site.ts';

const skip = skipWithout('dbos');
const KILLS = Number(process.env.EFFECTMATCH_KILLS ?? 3);
const FIRST = Number(process.env.EFFECTMATCH_FIRST_KILL ?? 0);
const PAUSES = Number(process.env.EFFECTMATCH_PAUSES ?? 1);
const SERVER_KILLS = Number(process.env.EFFECTMATCH_SERVER_KILLS ?? 1);
const PLANS = ['releases', 'linear-0', 'fan-out-1', 'fan-in-2', 'mixed-3'] as const;

async function start({ office, workflows }: DbosSite, name: string, run: string): Promise<void> {
  await office.setGate(run, true);
  await workflows.start(name, { id: run, input: { run, amounts: {} } });
}

async function begin(site: DbosSite, name: string, run: string): Promise<void> {
  await start(site, name, run);
  const { office, workflows } = site;
  const waiting = await workflows.unapproved(run);
  const clerk = approver(office.clerk);
  const licenses = waiting.map(({ proposal }) => clerk.sign(proposal, { expiresIn: '24h' }));
  await workflows.approve(run, await Promise.all(licenses));
}

/** Does the jobs that a run has handed over, as a worker of their queue would. */
async function performJobs({ runtime, workflows }: DbosSite, run: string): Promise<void> {
  const { waiting } = await workflows.report(run);
  const handed = waiting.filter(({ state }) => state === 'released').map((one) => one.occurrence);
  for (const open of await runtime.continuations())
    if (open.continuation === 'ship' && handed.includes(open.occurrence))
      await runtime.continuation(open, 'ship').perform(() => {});
}

/** Waits until nothing more happens without a person. */
async function untilEnded(site: DbosSite, run: string): Promise<HandoffReport> {
  const { workflows } = site;
  const until = performance.now() + 240_000;
  for (;;) {
    const report = await workflows.wait(run, { waitMs: 10_000 });
    const isHalted = report.waiting.every(({ state }) => state === 'waiting');
    if (report.status !== 'running' && isHalted) return report;
    assert.ok(performance.now() < until, `it does not end: ${JSON.stringify(report)}`);
    await performJobs(site, run);
    await sleep(50);
  }
}

/**
 * The run has ended, and the report is what the backends hold, once each. A node whose worker was
 * killed between its claim and its commit left nothing, and its license is spent; a request that may
 * have been sent is indeterminate until the service or a person says more; work that was released
 * and never completed needs a person.
 */
async function assertEnded(site: DbosSite, run: string): Promise<string> {
  const { office, faults } = site;
  const report = await untilEnded(site, run);
  const why = JSON.stringify({ report, faults: faults.slice(-5) });
  const failed = report.notDone.filter(({ state }) => state === 'rejected');
  for (const { detail } of failed) assert.match(detail ?? '', /^interrupted: /, why);
  const stateOf = (node: string) =>
    Object.values(report)
      .flat()
      .find((one) => one.instance === node)?.state;
  for (const { instance, state } of report.needsResolution)
    assert.equal(state, instance === 'tell' ? 'released' : 'indeterminate', why);
  const unknown = report.needsResolution
    .filter(({ state }) => state === 'indeterminate')
    .map(({ instance }) => tagOf(run, instance));
  const hasFailed = failed.length + unknown.length > 0;
  const isOpen = report.needsResolution.some(({ state }) => state === 'released');
  assert.equal(report.status, isOpen ? 'waiting' : hasFailed ? 'failed' : 'done', why);
  const durable = report.durable.filter(({ state }) => state === 'committed');
  const tags = await readTags(office.facts, run);
  assert.equal(new Set(tags).size, tags.length, why);
  assert.deepEqual(
    tags.filter((tag) => !unknown.includes(tag)),
    durable.map(({ instance }) => tagOf(run, instance)).sort(),
    why,
  );
  const { told, jobs } = await site.releasesOf(run);
  const [first] = durable;
  if (stateOf('tell') === 'released') assert.ok(told <= 1, why);
  else assert.equal(told, stateOf('tell') === 'completed' ? 1 : 0, why);
  const isShipped = stateOf('ship') === 'completed';
  assert.deepEqual(jobs, isShipped ? [`${first?.occurrence}/ship`] : [], why);
  return isOpen ? 'released' : report.status;
}

/** How many runs ended how, which is asserted once more for each. */
async function countEnds(site: DbosSite, runs: readonly string[]): Promise<string> {
  const ends = new Map<string, number>();
  for (const run of runs) {
    const end = await assertEnded(site, run);
    ends.set(end, (ends.get(end) ?? 0) + 1);
  }
  return JSON.stringify(Object.fromEntries(ends));
}

describe('runs on DBOS', { skip }, () => {
  let site: DbosSite;
  before(async () => {
    site = await openDbosSite(2);
  });
  after(async () => await site[Symbol.asyncDispose]());

  test('workers are killed at random moments: every run ends, and every effect happens once', async (t) => {
    const seed = chooseSeed();
    t.diagnostic(`EFFECTMATCH_SEED=${seed}, kills ${FIRST} to ${FIRST + KILLS - 1}`);
    const begun: string[] = [];
    for (let kill = FIRST; kill < FIRST + KILLS; kill += 1) {
      const random = randomOf(`${seed}/dbos/${kill}`);
      const run = `kill-${kill}`;
      begun.push(run);
      await begin(site, PLANS[kill % PLANS.length] ?? 'releases', run);
      await sleep(random.below(1200));
      site.workers[random.below(site.workers.length)]?.kill('SIGKILL');
      await site.startWorker();
      if (kill % 5 === 4) await assertEnded(site, run);
      if (kill % 25 === 24) console.error(`${kill + 1} kills, seed ${seed}`);
    }
    t.diagnostic(`ended: ${await countEnds(site, begun)}`);
    assert.equal((await site.runtime.verifyJournal()).kind, 'intact');
  });

  test('runs that wait for a signature take no place: the workers drive others meanwhile', async () => {
    const unsigned = [0, 1, 2, 3, 4].map((number) => `unsigned-${number}`);
    for (const run of unsigned) await start(site, 'linear-0', run);
    await sleep(1000);
    await begin(site, 'linear-0', 'signed');
    assert.equal(await assertEnded(site, 'signed'), 'done');
    for (const run of unsigned) {
      const { status } = await site.workflows.report(run);
      assert.equal(status, 'waiting');
    }
  });

  test('workers that were paused and wake up after another took over do nothing twice', async (t) => {
    const seed = chooseSeed();
    const random = randomOf(`${seed}/pauses`);
    t.diagnostic(`EFFECTMATCH_SEED=${seed}, ${PAUSES} pauses`);
    const begun: string[] = [];
    for (let pause = 0; pause < PAUSES; pause += 1) {
      const run = `pause-${pause}`;
      begun.push(run);
      const paused = [...site.workers];
      await begin(site, PLANS[pause % PLANS.length] ?? 'releases', run);
      await sleep(random.below(600));
      for (const worker of paused) worker.kill('SIGSTOP');
      const fresh = await site.startWorker();
      const end = await assertEnded(site, run);
      for (const worker of paused) worker.kill('SIGCONT');
      await sleep(300 + random.below(1200));
      // Work that a paused worker was released to do is done when it wakes up.
      if (end === 'released') await assertEnded(site, run);
      else assert.equal(await assertEnded(site, run), end);
      fresh.kill('SIGKILL');
      await once(fresh, 'exit');
    }
    t.diagnostic(`ended: ${await countEnds(site, begun)}`);
  });

  test('cases of every disruption end as they do in one process', async () => {
    const { runtime, office } = site;
    const { operations } = officeConfig(office.facts);
    const openChanged = (plan: Workflow) =>
      openWorkflows({ runtime, engine: IDLE, operations, plans: { [plan.name]: plan } });
    const isWhole = process.env.EFFECTMATCH_CASES === 'all';
    const all = ['mixed', 'linear', 'fan-out', 'fan-in'] as const;
    for (const topology of isWhole ? all : all.slice(0, 1))
      for (const disruption of DISRUPTIONS)
        for (const instance of isWhole ? [0, 1, 2, 3, 4] : [3]) {
          const end = await runCase({ ...site, openChanged }, topology, disruption, instance);
          const { isRefused, isTrue } = end;
          const right = { isRefused: true, isTrue: true };
          assert.deepEqual({ isRefused, isTrue }, right, JSON.stringify(end));
        }
  });
});

test('the server is killed and starts again: every run ends', { skip }, async (t) => {
  const seed = chooseSeed();
  const random = randomOf(`${seed}/servers`);
  t.diagnostic(`EFFECTMATCH_SEED=${seed}, ${SERVER_KILLS} kills of the server`);
  await using server = await startServer();
  await using site = await openDbosSite(1, () => server.createDatabase());
  const begun: string[] = [];
  for (let kill = 0; kill < SERVER_KILLS; kill += 1) {
    const run = `crash-${kill}`;
    begun.push(run);
    await begin(site, PLANS[kill % PLANS.length] ?? 'releases', run);
    await sleep(random.below(800));
    await server.kill();
    await sleep(random.below(800));
    await server.restart();
    await assertEnded(site, run);
  }
  t.diagnostic(`ended: ${await countEnds(site, begun)}`);
  assert.equal((await site.runtime.verifyJournal()).kind, 'intact');
});
