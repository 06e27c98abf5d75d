// Goal: a watcher settles what dead processes left, takes their runs further, lets requests expire,
// and says what needs a person; several at once do it once. Method: real ledgers and files, processes
// that ended in the middle, and two watchers of two processes.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { IDLE } from '../../src/workflow/engine.ts';
import {
  defineWorkflow,
  inProcess,
  startWatcher,
  type WatcherFindings,
} from '../../src/workflow/index.ts';
import { openOffice, pay } from '../requests/office.ts';
import { deploy, interrupt, invoiceWorld, LEASE_MS } from '../runtime/deploy.ts';
import { Desk, openFlow } from './desk.ts';

const until = async (isSo: () => boolean | Promise<boolean>) => {
  const end = performance.now() + 20_000;
  while (!(await isSo())) {
    assert.ok(performance.now() < end, 'it takes too long');
    await sleep(5);
  }
};

test('attempts are settled once their lease has run out, once by however many watchers', async () => {
  const world = invoiceWorld();
  await interrupt(world, { kind: 'step', step: 'path:promoted', ending: 'die' });
  await using a = await deploy(world, { recoverAtStart: false });
  await using b = await deploy(world, { recoverAtStart: false });
  const found: WatcherFindings[] = [];
  const onLook = (one: WatcherFindings) => void found.push(one);
  const faults: unknown[] = [];
  const common = { everyMs: 5, onLook, onFault: (error: unknown) => void faults.push(error) };
  await using _one = startWatcher({ runtime: a.runtime, ...common });
  await using _two = startWatcher({ runtime: b.runtime, ...common });
  await until(() => found.length >= 4);
  const kinds = () => found.flatMap(({ recovered }) => recovered.map(({ kind }) => kind));
  assert.ok(kinds().length > 0 && kinds().every((kind) => kind === 'running'), String(kinds()));
  world.advance(LEASE_MS + 1);
  await until(() => kinds().includes('settled'));
  const [last] = found.slice(-1);
  await until(() => found.at(-1) !== last && found.at(-1)?.recovered.length === 0);
  const rows = await a.runtime.ledgers.journal();
  const terminals = rows.filter(({ kind }) => kind === 'terminal');
  assert.equal(terminals.length, 1, 'one verdict');
  assert.deepEqual(faults, []);
});

test('runs that a dead process left go on, and what needs a person is said', async () => {
  using desk = new Desk();
  const post = (name: string, after: readonly string[] = []) => ({
    operation: 'post',
    after,
    input: ({ input }: { readonly input: unknown }) => ({ tag: `${input}.${name}` }),
  });
  const plan = defineWorkflow('two', {
    a: post('a'),
    tell: {
      of: 'a',
      run: ({ input }) => {
        if (input === 'broken') throw new Error('the printer is on fire');
      },
    },
    b: post('b', ['a']),
  });
  {
    await using dead = await openFlow(desk, [plan], { engine: IDLE });
    for (const id of ['left', 'unsigned', 'broken'])
      await dead.workflows.start('two', { id, input: id });
    for (const id of ['left', 'broken']) await dead.workflows.approve(id, await dead.sign(id));
  }
  const engine = inProcess({ resume: false, pollMs: 20 });
  await using one = await openFlow(desk, [plan], { engine });
  await using two = await openFlow(desk, [plan], { engine });
  assert.equal((await one.workflows.report('left')).status, 'running', 'no process drives it');
  const found: WatcherFindings[] = [];
  const watch = { everyMs: 10, onLook: (seen: WatcherFindings) => void found.push(seen) };
  await using first = startWatcher({ ...one, ...watch });
  await using _second = startWatcher({ ...two, ...watch });
  await until(async () => (await one.workflows.report('left')).status === 'done');
  await until(async () => (await one.workflows.report('broken')).durable.length === 2);
  assert.deepEqual(desk.rows(), ['broken.a=1', 'broken.b=1', 'left.a=1', 'left.b=1']);
  assert.ok(found.flatMap(({ takenOver }) => takenOver).includes('left'));
  const { runs, continuations } = await first.look();
  assert.deepEqual(runs, [
    { run: 'unsigned', unapproved: ['a', 'b'], needsResolution: [] },
    { run: 'broken', unapproved: [], needsResolution: ['tell'] },
  ]);
  assert.deepEqual(
    continuations.map(({ continuation }) => continuation),
    ['tell'],
  );
});

test('overdue requests expire without anyone looking at them, and a failed look is not the last', async () => {
  using office = openOffice();
  const { runtime, requests } = await office.start();
  const faults: unknown[] = [];
  const found: WatcherFindings[] = [];
  await using _runtime = runtime;
  await using _watcher = startWatcher({
    ...{ runtime, requests, everyMs: 5 },
    onLook: (seen) => void found.push(seen),
    onFault: (error) => void faults.push(error),
  });
  const asked = { by: 'agent', run: 'run', reason: 'it is due', ...pay('globex') };
  const { id } = await requests.ask(asked);
  await until(() => found.at(-1)?.waiting === 1);
  office.clock.advance(25 * 3_600_000);
  await until(() => found.at(-1)?.waiting === 0);
  using stored = new DatabaseSync(join(office.folder, 'requests.db'), { readOnly: true });
  const [request] = stored.prepare('select id, state from request').all();
  assert.deepEqual({ ...request }, { id, state: 'expired' });
  await requests.close();
  const looks = found.length;
  await until(() => faults.length >= 2);
  assert.ok(found.length <= looks + 1, 'a look that failed found nothing');
});
