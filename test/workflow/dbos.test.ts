// Goal: on DBOS, with several workers that are killed and paused at random, every run ends, no
// effect happens twice, and every handoff report is true. Method: real worker processes and a real
// PostgreSQL; EFFECTMATCH_SEED repeats a run, EFFECTMATCH_KILLS says how many kills.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { DISRUPTIONS, runCase } from '../../bench/studies/topologies/cases.ts';
import { officeConfig } from '../../bench/studies/topologies/office.ts';
import { tagOf } from '../../bench/studies/topologies/plans.ts';
import { readTags } from '../../bench/studies/topologies/reader.ts';
import { approver } from '../../src/crypto/approver.ts';
import { openWorkflows, type Workflow } from '../../src/workflow/index.ts';
import { skipWithout } from '../integration.ts';
import { startServer } from '../postgres/server.ts';
import { chooseSeed, randomOf } from '../random.ts';
import { type DbosSite, IDLE, openDbosSite } from './dbos-site.ts';

const skip = skipWithout('dbos');
const KILLS = Number(process.env.EFFECTMATCH_KILLS ?? 4);

async function begin({ office, workflows }: DbosSite, name: string, run: string): Promise<void> {
  await office.setGate(run, true);
  await workflows.start(name, { id: run, input: { run, amounts: {} } });
  const waiting = await workflows.unapproved(run);
  const clerk = approver(office.clerk);
  const licenses = waiting.map(({ proposal }) => clerk.sign(proposal, { expiresIn: '30m' }));
  await workflows.approve(run, await Promise.all(licenses));
}

/** Every node of a run happened once, and the report says so. */
async function assertDone({ office, workflows, faults }: DbosSite, run: string): Promise<void> {
  const report = await workflows.wait(run, { waitMs: 60_000 });
  const why = JSON.stringify({ report, faults: faults.slice(-5) });
  assert.equal(report.status, 'done', why);
  const tags = await readTags(office.facts, run);
  assert.deepEqual(
    tags,
    report.durable.map(({ instance }) => tagOf(run, instance)).sort(),
    'once each',
  );
}

test('workers are killed at random moments: every run ends, and every effect happens once', {
  skip,
}, async (t) => {
  const seed = chooseSeed();
  const random = randomOf(`${seed}/dbos`);
  t.diagnostic(`EFFECTMATCH_SEED=${seed}, ${KILLS} kills`);
  await using site = await openDbosSite(2);
  const names = ['linear-0', 'fan-out-1', 'fan-in-2', 'mixed-3'];
  for (let kill = 0; kill < KILLS; kill += 1) {
    const run = `kill-${kill}`;
    await begin(site, names[kill % names.length] ?? 'linear-0', run);
    await sleep(random.below(1200));
    const victim = site.workers[random.below(site.workers.length)];
    victim?.kill('SIGKILL');
    await site.startWorker();
    if (kill % 4 === 3) await assertDone(site, run);
  }
  for (let kill = 0; kill < KILLS; kill += 1) await assertDone(site, `kill-${kill}`);
  assert.equal((await site.runtime.verifyJournal()).kind, 'intact');
});

test('a worker that was paused and wakes up after another took over does nothing twice', {
  skip,
}, async () => {
  await using site = await openDbosSite(1);
  const [paused] = site.workers;
  await begin(site, 'mixed-0', 'pause');
  await sleep(400);
  paused?.kill('SIGSTOP');
  await site.startWorker();
  await assertDone(site, 'pause');
  paused?.kill('SIGCONT');
  await sleep(1500);
  await assertDone(site, 'pause');
  const report = await site.workflows.report('pause');
  assert.equal(report.status, 'done');
});

test('the server is killed and starts again: every run ends', { skip }, async () => {
  await using server = await startServer();
  await using site = await openDbosSite(2, await server.createDatabase());
  for (const run of ['crash-0', 'crash-1']) await begin(site, 'mixed-1', run);
  await sleep(300);
  await server.kill();
  await sleep(500);
  await server.restart();
  for (const run of ['crash-0', 'crash-1']) await assertDone(site, run);
});

test('cases of every topology and disruption end on DBOS as they do in one process', {
  skip,
}, async () => {
  await using site = await openDbosSite(2);
  const { runtime, office } = site;
  const common = { runtime, engine: IDLE };
  const openChanged = async (plan: Workflow) => {
    const { operations } = officeConfig(office.facts);
    return await openWorkflows({ ...common, operations, plans: { [plan.name]: plan } });
  };
  const cases = process.env.EFFECTMATCH_CASES === 'all' ? [0, 1, 2, 3, 4] : [3];
  for (const topology of ['linear', 'fan-out', 'fan-in', 'mixed'] as const)
    for (const disruption of DISRUPTIONS)
      for (const instance of cases) {
        const end = await runCase({ ...site, openChanged }, topology, disruption, instance);
        const { isRefused, isTrue } = end;
        assert.deepEqual(
          { isRefused, isTrue },
          { isRefused: true, isTrue: true },
          JSON.stringify(end),
        );
      }
});
