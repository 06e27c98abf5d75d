// Goal: a plan runs as its graph says, stops where it must, and can be taken up again from the
// ledger alone. Method: small plans on a SQLite file; processes that end in the middle.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { approver } from '../../src/crypto/approver.ts';
import type { Runtime } from '../../src/runtime/runtime.ts';
import { IDLE } from '../../src/workflow/engine.ts';
import {
  defineWorkflow,
  drawRun,
  inProcess,
  openWorkflows,
  type WorkflowNode,
} from '../../src/workflow/index.ts';
import { RunRecords } from '../../src/workflow/records.ts';
import { clerk, Desk, openFlow } from './desk.ts';

/** Posts a row that is named after the run and the node. */
const post = (name: string, after: readonly string[] = [], amount = 1): WorkflowNode<string> => ({
  operation: 'post',
  after,
  input: ({ input }) => ({ tag: `${input}.${name}`, amount }),
});

const instances = (list: readonly { readonly instance: string }[]) =>
  list.map(({ instance }) => instance);

test('a graph of operations and dependent work runs in order, each part once', async () => {
  using desk = new Desk();
  const order: string[] = [];
  const plan = defineWorkflow<string>('close', {
    open: post('open'),
    lines: {
      operation: 'post',
      after: 'open',
      each: (input) => [1, 2, 3].map((line) => `${input}.line${line}`),
      input: ({ item }) => ({ tag: String(item) }),
      atMost: 2,
    },
    raise: {
      operation: 'double',
      after: 'lines',
      propose: 'ready',
      input: ({ input, results }) => {
        order.push(`raise after ${[results.lines].flat().length} lines`);
        return { tag: `${input}.open`, from: 1 };
      },
    },
    tell: { of: 'raise', run: ({ from }) => void order.push(`told of ${from.occurrence}`) },
    last: post('last', ['tell']),
  });
  await using flow = await openFlow(desk, [plan as never]);
  await flow.workflows.start('close', { id: 'r1', input: 'r1' });
  const report = await flow.finish('r1');
  assert.equal(report.status, 'done', JSON.stringify(report));
  assert.deepEqual(desk.rows(), [
    'r1.last=1',
    'r1.line1=1',
    'r1.line2=1',
    'r1.line3=1',
    'r1.open=2',
  ]);
  const raise = report.durable.find(({ node }) => node === 'raise');
  assert.deepEqual(order, ['raise after 3 lines', `told of ${raise?.occurrence}`]);
  const again = await flow.workflows.drive('r1');
  assert.equal(again.status, 'done');
  assert.equal(order.length, 2, 'nothing ran again');
  const drawn = drawRun(await flow.workflows.view('r1')).map(({ text }) => text);
  assert.match(drawn.join('\n'), /└─ ● lines +3 committed +after open/);
});

test('nothing starts before everything that was proposed beforehand is approved, unless told so', async () => {
  for (const approval of ['all', 'each'] as const) {
    using desk = new Desk();
    const plan = defineWorkflow<string>('two', { a: post('a'), b: post('b') }, { approval });
    await using flow = await openFlow(desk, [plan as never]);
    await flow.workflows.start('two', { id: 'r', input: 'r' });
    const [a, b] = await flow.sign('r');
    await flow.workflows.approve('r', [a]);
    await sleep(150);
    assert.deepEqual(desk.rows(), approval === 'all' ? [] : ['r.a=1']);
    await flow.workflows.approve('r', [b]);
    await flow.workflows.wait('r');
    assert.deepEqual(desk.rows(), ['r.a=1', 'r.b=1']);
  }
});

test('a failure stops what follows it; other branches finish, unless the plan says stop', async () => {
  const nodes = {
    first: post('first'),
    bad: post('bad', ['first'], 666),
    after: post('after', ['bad']),
    side: post('side', ['first']),
    slow: post('slow', ['side']),
  };
  using desk = new Desk();
  const plan = defineWorkflow<string>('finish', nodes);
  await using flow = await openFlow(desk, [plan as never]);
  await flow.workflows.start('finish', { id: 'f', input: 'f' });
  const report = await flow.finish('f');
  assert.equal(report.status, 'failed');
  assert.deepEqual(instances(report.durable), ['first', 'side', 'slow']);
  assert.deepEqual(instances(report.notDone), ['bad', 'after']);
  assert.match(report.notDone[0]?.detail ?? '', /^diverged: /);
  assert.deepEqual(desk.rows(), ['f.first=1', 'f.side=1', 'f.slow=1']);

  using other = new Desk();
  const stopping = defineWorkflow<string>(
    'stop',
    { ...nodes, side: post('side', ['bad']) },
    {
      onFailure: 'stop',
    },
  );
  await using second = await openFlow(other, [stopping as never]);
  await second.workflows.start('stop', { id: 's', input: 's' });
  assert.equal((await second.finish('s')).status, 'failed');
  assert.deepEqual(other.rows(), ['s.first=1']);
});

test('a process that ends in the middle is taken up by the next one, from the ledger alone', async () => {
  using desk = new Desk();
  const closing = new AbortController();
  const plan = defineWorkflow<string>('three', {
    a: post('a'),
    tell: { of: 'a', run: () => closing.abort() },
    b: post('b', ['tell']),
    c: post('c', ['b']),
  }) as never;
  {
    await using first = await openFlow(desk, [plan], { engine: IDLE });
    await first.workflows.start('three', { id: 'r', input: 'r' });
    await first.workflows.approve('r', await first.sign('r'));
    await first.workflows.drive('r', closing.signal);
  }
  assert.deepEqual(desk.rows(), ['r.a=1'], 'it was closed behind the first node');
  await using second = await openFlow(desk, [plan]);
  const report = await second.workflows.wait('r');
  assert.equal(report.status, 'done');
  assert.deepEqual(desk.rows(), ['r.a=1', 'r.b=1', 'r.c=1']);
});

test('a run that was cancelled starts nothing more, and what is durable stays', async () => {
  using desk = new Desk();
  const plan = defineWorkflow<string>(
    'two',
    { a: post('a'), b: { ...post('b', ['a']), propose: 'ready' } as never },
    { approval: 'each' },
  );
  await using flow = await openFlow(desk, [plan as never]);
  await flow.workflows.start('two', { id: 'r', input: 'r' });
  await flow.workflows.approve('r', await flow.sign('r'));
  while ((await flow.workflows.report('r')).durable.length === 0) await sleep(5);
  await flow.workflows.cancel('r', { by: 'olga', reason: 'wrong month' });
  const late = await flow.sign('r');
  if (late.length > 0) await flow.workflows.approve('r', late);
  const report = await flow.workflows.wait('r');
  assert.equal(report.status, 'cancelled');
  const again = flow.workflows.revise('r');
  await assert.rejects(again, { code: 'ERR_EM_WORKFLOW_BLOCKED', message: /cancelled by olga/ });
  assert.deepEqual(instances(report.durable), ['a']);
  assert.deepEqual(desk.rows(), ['r.a=1']);
});

test('a revision keeps what is done, proposes the rest again, and ends earlier approvals', async () => {
  using desk = new Desk();
  const nodes = { a: post('a'), b: post('b', ['a'], 666) };
  const first = defineWorkflow<string>('plan', nodes) as never;
  await using one = await openFlow(desk, [first]);
  await one.workflows.start('plan', { id: 'r', input: 'r' });
  const licenses = await one.sign('r');
  await one.workflows.approve('r', licenses);
  assert.equal((await one.workflows.wait('r')).status, 'failed');

  const repaired = defineWorkflow<string>('plan', {
    ...nodes,
    b: post('b', ['a']),
    c: post('c', ['b']),
  });
  await using two = await openFlow(desk, [repaired as never]);
  await assert.rejects(two.workflows.drive('r'), { code: 'ERR_EM_WORKFLOW_CHANGED' });
  const records = new RunRecords(two.runtime.ledgers);
  const open = async () => (await records.open()).map(({ run, revision }) => `${run} ${revision}`);
  assert.deepEqual(await open(), [], 'the run is over');
  const revised = await two.workflows.revise('r');
  assert.equal(revised.revision, 2);
  assert.deepEqual(
    await open(),
    ['r 2'],
    'and open again, also for a process that knew it was over',
  );
  const proposed = (await two.workflows.unapproved('r')).map(({ proposal }) => proposal.draft);
  const { plan } = (await two.workflows.view('r')).record;
  assert.deepEqual(
    proposed.map(({ task, planRevision }) => ({ task, planRevision })),
    ['b', 'c'].map((node) => ({
      task: `plan/r/r2-${plan.slice(0, 16)}/${node}`,
      planRevision: 2,
    })),
    'what is signed names the plan, its revision and the node',
  );
  assert.deepEqual(instances(revised.durable), ['a']);
  await assert.rejects(two.workflows.approve('r', licenses), { code: 'ERR_EM_LICENSE_REFUSED' });
  for (const id of ['s', 't', 'u']) await two.workflows.start('plan', { id, input: id });
  assert.deepEqual(await open(), ['r 2', 's 1', 't 1', 'u 1']);
  assert.equal((await two.finish('r')).status, 'done');
  assert.deepEqual(desk.rows(), ['r.a=1', 'r.b=1', 'r.c=1']);
  while ((await open()).length > 3) await sleep(5);
  assert.deepEqual(await two.workflows.list(), ['r', 's', 't', 'u'], 'each once, in order');
});

test('work that throws stays released: it needs a person, and does not run again by itself', async () => {
  using desk = new Desk();
  let runs = 0;
  const plan = defineWorkflow<string>('tell', {
    a: post('a'),
    tell: {
      of: 'a',
      run: () => {
        runs += 1;
        throw new Error('the printer is on fire');
      },
    },
    last: post('last', ['tell']),
  });
  await using flow = await openFlow(desk, [plan as never]);
  await flow.workflows.start('tell', { id: 'r', input: 'r' });
  await flow.workflows.approve('r', await flow.sign('r'));
  while ((await flow.workflows.report('r')).needsResolution.length === 0) await sleep(5);
  await sleep(100);
  const report = await flow.workflows.report('r');
  assert.deepEqual(instances(report.needsResolution), ['tell']);
  assert.deepEqual(instances(report.waiting), ['last']);
  assert.equal(runs, 1);
  assert.equal((await flow.runtime.continuations()).length, 1);
});

test('a schedule starts one run for every stretch of time, from however many processes', async () => {
  using desk = new Desk();
  const plan = defineWorkflow<string>('nightly', { a: post('a') }) as never;
  let now = Date.parse('2026-03-01T00:10:00Z');
  const clock = { now: () => now, monotonic: () => performance.now() };
  const schedules = [
    { workflow: 'nightly', every: '1h', input: (at: Date) => `n${at.getUTCHours()}` },
  ];
  const options = { clock, schedules, engine: IDLE };
  await using one = await openFlow(desk, [plan], options);
  await using _two = await openFlow(desk, [plan], options);
  const started = async (count: number) => {
    while ((await one.workflows.list()).length < count) await sleep(10);
    await sleep(50);
    return await one.workflows.list();
  };
  assert.deepEqual(await started(1), ['nightly-2026-03-01T00-00-00-000Z']);
  now += 3_600_000;
  assert.equal((await started(2)).length, 2);
  const input = () => 'x';
  const long = defineWorkflow<string>('x'.repeat(40), { a: post('a') }) as never;
  for (const [wrong, message] of [
    [{ workflow: 'nowhere', every: '1h', input }, /not configured/],
    [{ workflow: 'x'.repeat(40), every: '1h', input }, /more than 39/],
    [{ workflow: 'nightly', every: 500, input }, /at least 1s/],
    [{ workflow: 'nightly', every: '1h' }, /needs a function/],
    [schedules[0], /another one/],
  ] as const) {
    const both = { ...options, schedules: [...schedules, wrong as never] };
    const fitting =
      message.source === 'another one' ? both : { ...both, schedules: [wrong as never] };
    const refused = { code: 'ERR_EM_WORKFLOW_INVALID', message };
    await assert.rejects(openFlow(desk, [plan, long], fitting), refused);
  }
});

test('bad input is refused by name, and nothing is started', async () => {
  using desk = new Desk();
  const invalid = (nodes: object, message: RegExp, options = {}) =>
    assert.throws(() => defineWorkflow('w', nodes as never, options as never), {
      code: 'ERR_EM_WORKFLOW_INVALID',
      message,
    });
  const a = post('a');
  invalid({ a: post('a', ['b']), b: post('b', ['a']) }, /cycle: a, b/);
  invalid({ a: post('a', ['a']) }, /cycle/);
  invalid({ a: post('a', ['nowhere']) }, /"nowhere", which is not a node/);
  invalid({ a, b: { of: 'x', run: () => {} } }, /"x", which is not a node/);
  const tell = { of: 'a', run: () => {} };
  invalid({ a, tell, b: { of: 'tell', run: () => {} } }, /must name the operation/);
  invalid({ a, b: { of: 'a' } }, /run or handOver/);
  invalid({ a: { ...a, atMost: 0 } }, /atMost/);
  invalid({ a: { ...a, retries: 3 } }, /unknown field "retries"/);
  invalid({ 'a b': a }, /"a b"/);
  invalid({}, /1 to 1000 nodes/);
  invalid({ a }, /onFailure/, { onFailure: 'retry' });

  const items = (count: number) =>
    defineWorkflow('many', {
      a: { operation: 'post', each: () => Array(count).fill(0), input: () => ({ tag: 'x' }) },
    });
  const plans = [
    items(10_001),
    defineWorkflow('missing', { a: { operation: 'nothing', input: () => ({}) } }),
    defineWorkflow<string>('twice', { a: post('a'), b: post('b', ['a']) }) as never,
    defineWorkflow<string>('once', { a: post('a') }) as never,
  ];
  await using flow = await openFlow(desk, plans);
  const { workflows } = flow;
  const refused = (code: string, message: RegExp, call: Promise<unknown>) =>
    assert.rejects(call, { code, message });
  const start = (name: string, id = 'r', input: unknown = 'r') =>
    workflows.start(name, { id, input });
  await refused('ERR_EM_WORKFLOW_INVALID', /10001 items/, start('many'));
  await refused('ERR_EM_WORKFLOW_BLOCKED', /"nothing" is not configured/, start('missing'));
  await refused('ERR_EM_NOT_FOUND', /no workflow/, start('nowhere'));
  await refused('ERR_EM_WORKFLOW_INVALID', /the id of a run/, start('twice', 'a/b'));
  await refused('ERR_EM_CANON_UNSUPPORTED', /./, start('twice', 'r', { when: new Date() }));
  await refused('ERR_EM_NOT_FOUND', /never started/, workflows.report('r'));
  assert.deepEqual(await workflows.list(), [], 'nothing was recorded');

  await start('twice');
  await refused('ERR_EM_WORKFLOW_CHANGED', /another plan or input/, start('twice', 'r', 'other'));
  await refused('ERR_EM_WORKFLOW_CHANGED', /another plan or input/, start('once'));
  const [first, second] = await workflows.unapproved('r');
  const sign = (one: typeof first, changes: object = {}) => {
    const { proposal } = one ?? assert.fail();
    const draft = { ...proposal.draft, ...changes };
    return approver(clerk).sign({ ...proposal, draft } as never, { expiresIn: '10m' });
  };
  const license = sign(first);
  const other = { ...license, license: { ...license.license, task: sign(second).license.task } };
  const swapped = workflows.approve('r', [sign(second), other]);
  await refused('ERR_EM_LICENSE_REFUSED', /"b"/, swapped);
  const foreign = { ...license, license: { ...license.license, task: 'twice/x/r1/a' } };
  const strange = workflows.approve('r', [foreign]);
  await refused('ERR_EM_LICENSE_REFUSED', /not a node of this plan/, strange);
  assert.equal((await workflows.report('r')).waiting.length, 2, 'no license was taken');
  assert.deepEqual(desk.rows(), []);
});

test('what could only fail after the first effect is found before it, also of nodes proposed later', async () => {
  using desk = new Desk();
  const late = (name: string) => ({ ...post(name, ['a']), propose: 'ready' }) as never;
  const ship = { of: 'a', handOver: () => {} };
  const plans = [
    defineWorkflow<string>('ship', { a: post('a'), ship }),
    defineWorkflow<string>('unsigned', { a: post('a'), b: late('b') }),
  ] as never[];
  const { clerk: able } = desk.config.issuers;
  const issuers = { clerk: { ...able, sources: ['manifest'] as const } };
  await using flow = await openFlow(desk, plans, { engine: IDLE });
  await using unable = await openFlow(desk, plans, { engine: IDLE, config: { issuers } });
  const blocked = (message: RegExp) => ({ code: 'ERR_EM_WORKFLOW_BLOCKED', message });
  await assert.rejects(
    flow.workflows.start('ship', { id: 'r', input: 'r' }),
    blocked(/node "ship": handOver needs the ledger in the PostgreSQL database/),
  );
  await assert.rejects(
    unable.workflows.start('unsigned', { id: 'r', input: 'r' }),
    blocked(/node "a": no configured approver .*node "b": no configured approver may sign it/),
  );
  assert.deepEqual(await flow.workflows.list(), []);
  await flow.workflows.start('unsigned', { id: 'r', input: 'r' });
  assert.deepEqual(instances((await flow.workflows.report('r')).waiting), ['a', 'b']);
});

test('a run that is woken while its last drive ends is driven once more', async () => {
  let drives = 0;
  let wake: () => void = () => {};
  const engine = await inProcess({ pollMs: 60_000 }).open({
    drive: async () => {
      drives += 1;
      if (drives === 1) wake();
      return 'failed';
    },
    openRuns: async () => [],
    isRunnable: async () => false,
    onFault: (_, error) => assert.fail(String(error)),
  });
  wake = () => void engine.wake('r');
  await engine.wake('r');
  while (drives < 2) await sleep(5);
  await sleep(20);
  assert.equal(drives, 2);
  await engine.close();
});

test('a process that was paused before its check finds another state, and stops nothing', async () => {
  using desk = new Desk();
  desk.change("insert into entry values ('old', 1)");
  const double = { operation: 'double', input: () => ({ tag: 'old', from: 1 }) };
  const plan = defineWorkflow<string>('two', { a: double, b: post('b', ['a']) }) as never;
  await using quick = await openFlow(desk, [plan], { engine: IDLE });
  await quick.workflows.start('two', { id: 'r', input: 'r' });
  await quick.workflows.approve('r', await quick.sign('r'));
  const { runtime } = quick;
  let checks = 0;
  const paused: Runtime = {
    ...runtime,
    check: async (...given) => {
      checks += 1;
      await quick.workflows.drive('r');
      return await runtime.check(...given);
    },
  };
  const { operations } = desk.config;
  const plans = { two: plan };
  await using late = await openWorkflows({ runtime: paused, operations, plans, engine: IDLE });
  const report = await late.drive('r');
  assert.ok(checks > 0, 'it saw a run that had not begun');
  assert.equal(report.status, 'done', JSON.stringify(report));
  assert.deepEqual(instances(report.durable), ['a', 'b']);
  assert.equal(report.stop, undefined);
  assert.deepEqual(desk.rows(), ['old=2', 'r.b=1']);
});

test('a run is stopped before its first effect if a license no longer fits, and all of it is named', async () => {
  using desk = new Desk();
  const plan = defineWorkflow<string>('two', { a: post('a'), b: post('b', ['a']) }) as never;
  await using flow = await openFlow(desk, [plan], { engine: IDLE });
  await flow.workflows.start('two', { id: 'r', input: 'r' });
  await flow.workflows.approve('r', await flow.sign('r'));
  desk.change("insert into entry values ('r.b', 7)");
  const report = await flow.workflows.drive('r');
  assert.equal(report.status, 'failed');
  assert.match(report.stop ?? '', /^b: /);
  assert.deepEqual(
    report.notDone.map(({ instance, state }) => `${instance} ${state}`),
    ['a blocked', 'b rejected'],
  );
  assert.deepEqual(desk.rows(), ['r.b=7']);
});

test('a revision waits for the verdict of a node that was under way, and asks for it again', async () => {
  using desk = new Desk();
  const plan = defineWorkflow<string>('two', { a: post('a'), b: post('b', ['a']) }) as never;
  const leaseMs = 700;
  {
    let isDying = true;
    const dying = {
      reached(step: string) {
        if (isDying && step === 'path:claimed') {
          isDying = false;
          throw new Error('the process dies');
        }
      },
    };
    await using first = await openFlow(desk, [plan], {
      ...{ engine: IDLE, config: { leaseMs }, seams: dying },
    });
    await first.workflows.start('two', { id: 'r', input: 'r' });
    await first.workflows.approve('r', await first.sign('r'));
    await assert.rejects(first.workflows.drive('r'));
    assert.equal((await first.workflows.report('r')).waiting[0]?.state, 'running');
    const revised = await first.workflows.revise('r');
    assert.equal(revised.waiting[0]?.state, 'running', 'it may still commit');
  }
  await using second = await openFlow(desk, [plan], { config: { leaseMs } });
  const report = await second.finish('r');
  assert.equal(report.status, 'done', JSON.stringify(report));
  assert.deepEqual(desk.rows(), ['r.a=1', 'r.b=1']);
});

test('a license that is kept for another node is not executed, however it got there', async () => {
  using desk = new Desk();
  const plan = defineWorkflow<string>('two', { a: post('a'), b: post('b') }) as never;
  await using flow = await openFlow(desk, [plan], { engine: IDLE });
  await flow.workflows.start('two', { id: 'r', input: 'r' });
  const { record } = await flow.workflows.view('r');
  const [a, b] = await flow.sign('r');
  assert.ok(a !== undefined && b !== undefined);
  const records = new RunRecords(flow.runtime.ledgers);
  const refused = { code: 'ERR_EM_LICENSE_REFUSED', message: /signed for something else/ };
  await records.keep('license', { ...record, instance: 'a' }, a);
  await records.keep('license', { ...record, instance: 'b' }, a);
  await assert.rejects(flow.workflows.drive('r'), refused, 'it does not fit the proposal');

  await flow.workflows.start('two', { id: 's', input: 's' });
  const other = (await flow.workflows.view('s')).record;
  const revised = { ...other, revision: 2 };
  const [first] = await flow.workflows.unapproved('s');
  const license = (await flow.sign('s'))[0];
  assert.ok(first !== undefined && license !== undefined);
  const proposed = { input: { tag: 's.a', amount: 1 }, proposal: first.proposal };
  for (const instance of ['a', 'b']) {
    await records.keep('proposal', { ...revised, instance }, proposed);
    await records.keep('license', { ...revised, instance }, license);
  }
  await records.begin(revised);
  await assert.rejects(flow.workflows.drive('s'), refused, 'the proposal is of another revision');
  assert.deepEqual(desk.rows(), []);
});

test('a license of an earlier revision is refused everywhere, also past the workflow', async () => {
  using desk = new Desk();
  const plan = defineWorkflow<string>('one', { a: post('a') }) as never;
  await using flow = await openFlow(desk, [plan], { engine: IDLE });
  await flow.workflows.start('one', { id: 'r', input: 'r' });
  const [license] = await flow.sign('r');
  await flow.workflows.revise('r');
  const action = { sql: 'insert into entry values (?, ?)', values: ['r.a', 1] };
  const terminal = await flow.runtime.ensure(license, action);
  assert.equal(terminal.kind === 'rejected' && terminal.reason, 'plan-superseded');
  assert.deepEqual(desk.rows(), []);
});
