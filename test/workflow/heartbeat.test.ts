// Goal: a worker takes over from those that went silent, and from no others. Method: heartbeats in a
// real PostgreSQL, by its clock; a recorder in the place of DBOS says which runs were resumed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type DbosApi, dbosEngine } from '../../src/workflow/dbos.ts';
import { Heartbeats } from '../../src/workflow/heartbeat.ts';
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
    send: nothing,
    recv: async () => null,
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

test('an engine refuses settings by which living workers would seem dead', async () => {
  const { DBOS } = recorder([]);
  const engine = dbosEngine({ DBOS, url: '', heartbeatMs: 1000, silentMs: 1500 });
  await assert.rejects(engine.open(host), { code: 'ERR_EM_CONFIG_INVALID' });
});
