// Goal: on DBOS, with several workers that are killed and paused at random, every run ends, no
// effect happens twice, and every handoff report is true. Method: real worker processes and a real
// PostgreSQL; EFFECTMATCH_SEED repeats a run, EFFECTMATCH_KILLS says how many kills.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { DISRUPTIONS, runCase } from '../../bench/studies/topologies/cases.ts';
import { officeConfig } from '../../bench/studies/topologies/office.ts';
import { tagOf } from '../../bench/studies/topologies/plans.ts';
import { readTags } from '../../bench/studies/topologies/reader.ts';
import { approver } from '../../src/crypto/approver.ts';
import { IDLE } from '../../src/workflow/engine.ts';
import { openWorkflows, type Workflow } from '../../src/workflow/index.ts';
import { skipWithout } from '../integration.ts';
import { startServer } from '../postgres/server.ts';
import { chooseSeed, randomOf } from '../random.ts';
import { type DbosSite, openDbosSite } from './dbos-site.ts';

const skip = skipWithout('dbos');
const KILLS = Number(process.env.EFFECTMATCH_KILLS ?? 3);

async function start({ office, workflows }: DbosSite, name: string, run: string): Promise<void> {
  await office.setGate(run, true);
  await workflows.start(name, { id: run, input: { run, amounts: {} } });
}

async function begin(site: DbosSite, name: string, run: string): Promise<void> {
  await start(site, name, run);
  const { office, workflows } = site;
  const waiting = await workflows.unapproved(run);
  const clerk = approver(office.clerk);
  const licenses = waiting.map(({ proposal }) => clerk.sign(proposal, { expiresIn: '30m' }));
  await workflows.approve(run, await Promise.all(licenses));
}

/**
 * The run has ended, and the report is what the backends hold, once each. A node whose worker was
 * killed between its claim and its commit left nothing, and its license is spent; a request that may
 * have been sent is indeterminate until the service or a person says more.
 */
async function assertEnded({ office, workflows, faults }: DbosSite, run: string): Promise<string> {
  const report = await workflows.wait(run, { waitMs: 60_000 });
  const why = JSON.stringify({ report, faults: faults.slice(-5) });
  assert.ok(['done', 'failed'].includes(report.status), why);
  const failed = report.notDone.filter(({ state }) => state === 'rejected');
  for (const { detail } of failed) assert.match(detail ?? '', /^interrupted: /, why);
  for (const { state } of report.needsResolution) assert.equal(state, 'indeterminate', why);
  const unknown = report.needsResolution.map(({ instance }) => tagOf(run, instance));
  assert.equal(failed.length + unknown.length > 0, report.status === 'failed', why);
  const durable = report.durable.map(({ instance }) => tagOf(run, instance)).sort();
  const tags = await readTags(office.facts, run);
  const isOnce = new Set(tags).size === tags.length;
  assert.ok(isOnce, why);
  assert.deepEqual(
    tags.filter((tag) => !unknown.includes(tag)),
    durable,
    why,
  );
  return report.status;
}

describe('runs on DBOS', { skip }, () => {
  let site: DbosSite;
  before(async () => {
    site = await openDbosSite(2);
  });
  after(async () => await site[Symbol.asyncDispose]());

  test('workers are killed at random moments: every run ends, and every effect happens once', async (t) => {
    const seed = chooseSeed();
    const random = randomOf(`${seed}/dbos`);
    t.diagnostic(`EFFECTMATCH_SEED=${seed}, ${KILLS} kills`);
    const names = ['linear-0', 'fan-out-1', 'fan-in-2', 'mixed-3'];
    for (let kill = 0; kill < KILLS; kill += 1) {
      const run = `kill-${kill}`;
      await begin(site, names[kill % names.length] ?? 'linear-0', run);
      await sleep(random.below(1200));
      site.workers[random.below(site.workers.length)]?.kill('SIGKILL');
      await site.startWorker();
      if (kill % 4 === 3) await assertEnded(site, run);
    }
    const ends = new Map<string, number>();
    for (let kill = 0; kill < KILLS; kill += 1) {
      const end = await assertEnded(site, `kill-${kill}`);
      ends.set(end, (ends.get(end) ?? 0) + 1);
    }
    t.diagnostic(`ended: ${JSON.stringify(Object.fromEntries(ends))}`);
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

  test('workers that were paused and wake up after another took over do nothing twice', async () => {
    const paused = [...site.workers];
    await begin(site, 'mixed-0', 'pause');
    await sleep(400);
    for (const worker of paused) worker.kill('SIGSTOP');
    await site.startWorker();
    const end = await assertEnded(site, 'pause');
    for (const worker of paused) worker.kill('SIGCONT');
    await sleep(1500);
    assert.equal(await assertEnded(site, 'pause'), end);
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

test('the server is killed and starts again: every run ends', { skip }, async () => {
  await using server = await startServer();
  await using site = await openDbosSite(1, () => server.createDatabase());
  await begin(site, 'mixed-1', 'crash');
  await sleep(300);
  await server.kill();
  await sleep(500);
  await server.restart();
  await assertEnded(site, 'crash');
});
