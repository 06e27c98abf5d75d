// Goal: a worker takes over from those that went silent, and from no others. Method: heartbeats in a
// real PostgreSQL, by its clock; a recorder in the place of DBOS says which runs were resumed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type DbosApi, dbosEngine } from '../../src/workflow/dbos.ts';
import { Heartbeats } from '../../src/workflow/heartbeat.ts';
import { inProcess } from '../../src/workflow/index.ts';
import { freshDatabase } from '../postgres/server.ts';

test('a worker lives as long as it was seen lately, and is gone once it leaves', async () => {
  await using db = await freshDatabase();
  const [a, b] = await Promise.all(['a', 'b'].map((name) => Heartbeats.open(db.url(), name, 300)));
  assert.ok(a !== undefined && b !== undefined);
  assert.deepEqual([...(await a.living())], [], 'not seen yet');
  await Promise.all([a.beat(), b.beat()]);
  assert.deepEqual([...(await b.living())].sort(), ['a', 'b']);
  await a.close();
  assert.deepEqual([...(await b.living())], ['b'], 'it left');
  await sleep(400);
  assert.deepEqual([...(await b.living())], [], 'it was silent');
  await b.beat();
  assert.deepEqual([...(await b.living())], ['b']);
  await b.close();
});

test('workers that start at the same time prepare their database one after another', async () => {
  await using db = await freshDatabase();
  const names = ['a', 'b', 'c', 'd'];
  const open = (name: string) => Heartbeats.open(db.url(), name, 300);
  const workers = await Promise.all(names.map(open));
  let inside = 0;
  const most = await Promise.all(
    workers.map(async (worker) => {
      let seen = 0;
      await worker.alone(async () => {
        inside += 1;
        seen = inside;
        await sleep(20);
        inside -= 1;
      });
      return seen;
    }),
  );
  assert.deepEqual(most, [1, 1, 1, 1]);
  const [first, second] = workers;
  const failed = first?.alone(async () => assert.fail('the migration failed'));
  await assert.rejects(async () => await failed, /the migration failed/);
  let isFree = false;
  await second?.alone(async () => {
    isFree = true;
  });
  assert.ok(isFree, 'one that failed keeps nothing');
  await Promise.all(workers.map((worker) => worker.close()));
});

/** What DBOS was told, and the workflows that it says are pending. */
function recorder(
  pending: readonly { readonly workflowID: string; readonly executorId: string }[],
) {
  const resumed: string[] = [];
  const nothing = async () => {};
  const DBOS: DbosApi = {
    setConfig: () => {},
    launch: nothing,
    shutdown: nothing,
    registerWorkflow: (work) => work,
    registerQueue: nothing,
    startWorkflow: () => nothing,
    runStep: (work) => work(),
    sleep: nothing,
    listWorkflows: async () => pending,
    resumeWorkflow: async (id) => void resumed.push(id),
  };
  return { DBOS, resumed };
}

const host = {
  drive: async () => 'done' as const,
  openRuns: async () => [],
  isRunnable: async () => false,
  onFault: (_: string, error: unknown) => assert.fail(String(error)),
};

test('runs of a silent worker are resumed, and those of living workers are left alone', async () => {
  await using db = await freshDatabase();
  const { DBOS, resumed } = recorder([
    { workflowID: 'effectmatch:own:1', executorId: 'self' },
    { workflowID: 'effectmatch:other:1', executorId: 'living' },
    { workflowID: 'effectmatch:dead:1', executorId: 'dead' },
  ]);
  const pace = { heartbeatMs: 50, silentMs: 400 };
  const other = await Heartbeats.open(db.url(), 'living', pace.silentMs);
  const dead = await Heartbeats.open(db.url(), 'dead', pace.silentMs);
  await Promise.all([other.beat(), dead.beat()]);
  const beating = setInterval(() => void other.beat(), 50);
  const engine = await dbosEngine({ DBOS, url: db.url(), worker: 'self', ...pace }).open(host);
  await sleep(100);
  assert.deepEqual(resumed, [], 'all were seen lately');
  await sleep(900);
  assert.ok(resumed.length > 0, 'one of them is silent');
  assert.deepEqual([...new Set(resumed)], ['effectmatch:dead:1']);
  clearInterval(beating);
  await engine.close();
  const left = await db.run('select name from effectmatch_engine.worker order by name');
  assert.deepEqual(
    left.map(({ name }) => name),
    ['dead', 'living'],
    'it has left',
  );
  await Promise.all([other.close(), dead.close()]);
});

test('an engine refuses settings by which it could not work, and leaves nothing open', async () => {
  await using db = await freshDatabase();
  const { DBOS } = recorder([]);
  const open = (options: object, url = db.url()) =>
    dbosEngine({ DBOS, url, ...options }).open(host);
  const refused = (message: RegExp) => ({ code: 'ERR_EM_CONFIG_INVALID', message });
  await assert.rejects(open({ heartbeatMs: 1000, silentMs: 2000 }), refused(/more than twice/));
  for (const option of ['runs', 'heartbeatMs', 'silentMs', 'lookMs'])
    for (const wrong of [0, -1, 1.5, Number.NaN, '5'])
      await assert.rejects(open({ [option]: wrong }), refused(new RegExp(`${option} must be`)));
  for (const options of [{ runs: 0 }, { pollMs: 0 }])
    assert.throws(() => inProcess(options), refused(/a whole number of at least 1/));
  await assert.rejects(open({}, 'postgres://nobody@127.0.0.1:1/none'), 'the database is not there');
  const engine = await open({});
  await assert.rejects(open({}), refused(/one per process/));
  await engine.close();
  await (await open({})).close();
});

test('a run that goes no further gives its place to others, and is tried less and less often', async () => {
  await using db = await freshDatabase();
  const started: number[] = [];
  const { DBOS } = recorder([]);
  let drives = 0;
  let work: (run: string) => Promise<string> = async () => '';
  const api: DbosApi = {
    ...DBOS,
    registerWorkflow: (given) => {
      work = given;
      return given;
    },
    startWorkflow: () => async (run) => {
      assert.equal(run, 'stuck');
      started.push(performance.now());
    },
  };
  const faults: unknown[] = [];
  const engine = await dbosEngine({ DBOS: api, url: db.url(), lookMs: 20 }).open({
    drive: async () => {
      drives += 1;
      throw new Error('its database is down');
    },
    openRuns: async () => ['stuck', 'waiting'],
    isRunnable: async (run) => run === 'stuck',
    onFault: (_, error) => void faults.push(error),
  });
  assert.equal(await work('stuck'), 'running', 'it ends although the run does not');
  assert.ok(drives > 1 && drives < 20, `it was tried ${drives} times`);
  assert.equal(faults.length, drives);
  while (started.length < 5) await sleep(5);
  await engine.close();
  const pauses = started.slice(1).map((at, index) => at - (started[index] ?? 0));
  for (const [index, pause] of pauses.entries())
    assert.ok(pause >= 20 * 2 ** index - 5, `pauses were ${pauses}`);
});
