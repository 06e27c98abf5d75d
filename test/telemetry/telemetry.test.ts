// Goal: telemetry shows every gate, verdict and orphan, knows no value, and changes nothing by
// watching. Method: the real OpenTelemetry SDK with exporters in memory; data full of canary words
// that are searched for afterwards.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { sqlite } from '../../src/adapters/sqlite/index.ts';
import { approver, createRuntime, generateApprover, insert, update } from '../../src/index.ts';
import type { Telemetry } from '../../src/runtime/telemetry.ts';
import { openTelemetry } from '../../src/telemetry/index.ts';
import { IDLE } from '../../src/workflow/engine.ts';
import { defineWorkflow, inProcess, startWatcher } from '../../src/workflow/index.ts';
import { deploy, interrupt, invoiceWorld, LEASE_MS, ofKind, PAY } from '../runtime/deploy.ts';
import { Desk, openFlow } from '../workflow/desk.ts';

/** Everything that OpenTelemetry was given. */
function openScope() {
  const spans = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const meters = new MeterProvider({ readers: [reader] });
  const telemetry = openTelemetry({
    tracer: provider.getTracer('test'),
    meter: meters.getMeter('test'),
  });
  return {
    telemetry,
    spans: () => spans.getFinishedSpans(),
    async metrics() {
      const { resourceMetrics } = await reader.collect();
      return resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics);
    },
    async points(name: string) {
      const found = (await this.metrics()).find(({ descriptor }) => descriptor.name === name);
      return (found?.dataPoints ?? []).map(({ attributes, value }) => ({ attributes, value }));
    },
    [Symbol.asyncDispose]: async () => {
      await meters.shutdown();
      await provider.shutdown();
    },
  };
}

const GATES = [
  'validated',
  'claimed',
  'certified',
  'staged',
  'observed',
  'permit-bound',
  'gate-passed',
  'promoted',
  'terminal-recorded',
];

test('an execution is one span with a child for every gate it passed, in order, and one count', async () => {
  await using scope = openScope();
  await using deployed = await deploy(invoiceWorld(), { telemetry: scope.telemetry });
  const terminal = ofKind(
    'committed',
    await deployed.runtime.execute(await deployed.approve(), PAY),
  );
  const root = scope.spans().find(({ name }) => name === 'effectmatch.execute') ?? assert.fail();
  assert.deepEqual(root.attributes, {
    'effectmatch.adapter': 'books',
    'effectmatch.disposition': 'committed',
    'effectmatch.execution': terminal.execution,
  });
  const steps = scope
    .spans()
    .filter(({ parentSpanContext }) => parentSpanContext?.spanId === root.spanContext().spanId);
  assert.deepEqual(
    steps.map(({ name }) => name),
    GATES.map((gate) => `effectmatch.path:${gate}`),
  );
  for (const [index, step] of steps.entries()) {
    const before = index === 0 ? root.startTime : steps[index - 1]?.endTime;
    assert.deepEqual(step.startTime, before, 'a step begins where the one before it ended');
  }
  assert.deepEqual(await scope.points('effectmatch.executions'), [
    {
      attributes: { 'effectmatch.adapter': 'books', 'effectmatch.disposition': 'committed' },
      value: 1,
    },
  ]);
  const timed = await scope.points('effectmatch.step.duration');
  assert.deepEqual(
    timed.map(({ attributes }) => attributes['effectmatch.step']),
    GATES.map((gate) => `path:${gate}`),
  );
});

test('refusals are counted by gate and by reasons of the core, faults by code', async () => {
  await using scope = openScope();
  const world = invoiceWorld();
  await using deployed = await deploy(world, { telemetry: scope.telemetry });
  const license = await deployed.approve();
  ofKind('committed', await deployed.runtime.execute(license, PAY));
  ofKind('rejected', await deployed.runtime.execute(license, PAY));
  ofKind('rejected', await deployed.runtime.execute(license, { writes: 'canary' }));
  const elsewhere = { ...license, license: { ...license.license, adapter: 'nowhere' } };
  await assert.rejects(deployed.runtime.execute(elsewhere, PAY));
  const counted = await scope.points('effectmatch.executions');
  assert.deepEqual(
    counted.map(({ value }) => value),
    [1, 1, 1],
  );
  assert.deepEqual(counted[2]?.attributes, {
    'effectmatch.adapter': 'books',
    'effectmatch.disposition': 'rejected',
    'effectmatch.gate': 'action',
    'effectmatch.reason': 'action-invalid',
  });
  assert.deepEqual(counted[1]?.attributes, {
    'effectmatch.adapter': 'books',
    'effectmatch.disposition': 'rejected',
    'effectmatch.gate': 'authority',
    'effectmatch.reason': 'spent',
  });
  const faults = await scope.points('effectmatch.faults');
  assert.deepEqual(
    faults.map(({ attributes }) => attributes['effectmatch.code']),
    ['ERR_EM_ADAPTER_UNAVAILABLE'],
  );
});

test('only adapters that are configured are named: anybody may write a name into a license', async () => {
  await using scope = openScope();
  await using deployed = await deploy(invoiceWorld(), { telemetry: scope.telemetry });
  const { license, ...rest } = await deployed.approve();
  const elsewhere = { ...rest, license: { ...license, adapter: 'canary' } };
  await assert.rejects(deployed.runtime.execute(elsewhere, PAY), {
    code: 'ERR_EM_ADAPTER_UNAVAILABLE',
  });
  const root = scope.spans().find(({ name }) => name === 'effectmatch.execute') ?? assert.fail();
  assert.equal('effectmatch.adapter' in root.attributes, false);
});

test('orphaned attempts are a gauge that recovery brings back to zero', async () => {
  await using scope = openScope();
  const world = invoiceWorld();
  await interrupt(world, { kind: 'step', step: 'path:staged', ending: 'die' });
  await using deployed = await deploy(world, { telemetry: scope.telemetry });
  const orphans = async () =>
    (await scope.points('effectmatch.attempts.orphaned')).map(({ value }) => value);
  assert.deepEqual(await orphans(), [0], 'its lease is live');
  world.advance(LEASE_MS + 1);
  assert.deepEqual(await orphans(), [1]);
  await deployed.runtime.recover();
  assert.deepEqual(await orphans(), [0]);
  assert.deepEqual(await scope.points('effectmatch.recovered'), [
    { attributes: { 'effectmatch.result': 'settled' }, value: 1 },
  ]);
});

test('a watcher reports what it took over and how much waits for a person, as numbers', async () => {
  await using scope = openScope();
  using desk = new Desk();
  const plan = defineWorkflow<string>('canary', {
    a: { operation: 'post', input: ({ input }) => ({ tag: input }) },
    tell: { of: 'a', run: () => assert.fail('the printer is on fire') },
  }) as never;
  {
    await using dead = await openFlow(desk, [plan], { engine: IDLE });
    for (const id of ['signed', 'open']) await dead.workflows.start('canary', { id, input: id });
    await dead.workflows.approve('signed', await dead.sign('signed'));
  }
  await using flow = await openFlow(desk, [plan], { engine: inProcess({ resume: false }) });
  const { telemetry } = scope;
  await using watcher = startWatcher({ ...flow, telemetry, everyMs: 3_600_000 });
  const isReleased = async () => (await flow.runtime.continuations()).length === 1;
  while (!(await isReleased())) await sleep(10);
  await watcher.look();
  const points = async (name: string) =>
    (await scope.points(name)).map(
      ({ attributes, value }) => `${attributes['effectmatch.waiting'] ?? ''}=${value}`,
    );
  assert.deepEqual(await points('effectmatch.waiting'), [
    ...['requests=0', 'signatures=1', 'resolutions=1', 'continuations=1'],
  ]);
  assert.deepEqual(await points('effectmatch.workflows.taken_over'), ['=2']);
  const broken = { ...flow.runtime, recover: async () => assert.fail('no ledger') };
  await using failing = startWatcher({ runtime: broken, telemetry, everyMs: 3_600_000 });
  await assert.rejects(failing.look(), /no ledger/);
  const spans = scope.spans().filter(({ name }) => name === 'effectmatch.watch');
  assert.ok(spans.some(({ attributes }) => attributes['effectmatch.code'] === 'unknown'));
  assert.doesNotMatch(JSON.stringify(spans.map(({ attributes }) => attributes)), /canary|printer/);
});

test('no value, key, statement, task or message is in any attribute, name, event or status', async () => {
  await using scope = openScope();
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-telemetry-'));
  try {
    using db = new DatabaseSync(join(folder, 'books.db'));
    db.exec(`create table person (id text not null primary key, name text not null);
      insert into person values ('canary-key', 'canary-before')`);
    const { issuer, publicKey, privateKey } = generateApprover('ap-team');
    await using runtime = await createRuntime({
      store: join(folder, 'effectmatch.db'),
      keyring: join(folder, 'keys.json'),
      issuers: { [issuer]: { key: publicKey, may: ['books'] } },
      adapters: { books: sqlite({ file: join(folder, 'books.db'), relations: ['person'] }) },
      telemetry: scope.telemetry,
    });
    const effects = [
      update('person', { id: 'canary-key' }, { name: ['canary-before', 'canary-after'] }),
    ];
    const terms = {
      adapter: 'books',
      task: 'canary-task',
      planRevision: 1,
      continuations: ['canary-continuation'],
    };
    const sign = approver({ issuer, privateKey });
    const license = async () =>
      sign.sign(await runtime.prepare({ ...terms, effects }), { expiresIn: '10m' });
    const sql = 'update person set name = ? where id = ? /* canary-statement */';
    const wrong = { sql, values: ['canary-wrong', 'canary-key'] };
    const right = { sql, values: ['canary-after', 'canary-key'] };
    ofKind('rejected', await runtime.execute(await license(), wrong));
    const failing = {
      sql: 'insert into person values (?, ?)',
      values: ['canary-key', 'canary-double'],
    };
    ofKind('rejected', await runtime.execute(await license(), failing));
    await runtime.shadow(await license(), right);
    const draft = { adapter: 'books', task: 'canary-task', planRevision: 1 };
    await runtime.shadow(
      { ...draft, effects: [insert('person', { id: 'canary-x', name: 'canary-y' })] },
      right,
    );
    await runtime
      .plan({ adapter: 'books', task: 'canary-task', planRevision: 1, action: right })
      .catch(() => {});
    ofKind('rejected', await runtime.execute(await license(), { sql: 'canary-syntax' }));
    ofKind('rejected', await runtime.execute(await license(), { sql: ['canary-list'] }));
    await assert.rejects(
      runtime.plan({ adapter: 'canary-adapter', task: 'x', planRevision: 1, action: right }),
    );
    ofKind('committed', await runtime.execute(await license(), right));
    const seen = scope.spans().map(({ name, attributes, events, status, links }) => ({
      name,
      attributes,
      events,
      status,
      links,
    }));
    const text = JSON.stringify([seen, await scope.metrics()]);
    assert.ok(
      seen.length > 20 && /effectmatch\.shadows/.test(text) && /ERR_EM_/.test(text),
      'there is something to search',
    );
    assert.doesNotMatch(text, /canary|person|update|insert/);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('telemetry that throws changes no verdict, and without it nothing is asked', async () => {
  const broken: Telemetry = {
    begin: () => ({
      step: () => assert.fail('from telemetry'),
      end: () => assert.fail('from telemetry'),
    }),
    watchOrphans: () => () => {},
  };
  await using watched = await deploy(invoiceWorld(), { telemetry: broken });
  ofKind('committed', await watched.runtime.execute(await watched.approve(), PAY));
  const silent: Telemetry = {
    begin: () => assert.fail('from telemetry'),
    watchOrphans: () => () => {},
  };
  await using unwatched = await deploy(invoiceWorld(), { telemetry: silent });
  ofKind('committed', await unwatched.runtime.execute(await unwatched.approve(), PAY));
});

test('telemetry that fails later, or about orphans, changes no verdict and keeps nothing open', async () => {
  const late = async () => assert.fail('from telemetry, and nobody waits for it');
  const broken: Telemetry = {
    begin: () => ({ step: late, end: late }),
    watchOrphans: () => assert.fail('at the start'),
  };
  await using watched = await deploy(invoiceWorld(), { telemetry: broken });
  ofKind('rejected', await watched.runtime.execute(await watched.approve(), { writes: 'no list' }));
  ofKind('committed', await watched.runtime.execute(await watched.approve(), PAY));
  const stuck: Telemetry = {
    begin: () => ({ step() {}, end() {} }),
    watchOrphans: () => () => assert.fail('at the end'),
  };
  await using unended = await deploy(invoiceWorld(), { telemetry: stuck });
  ofKind('committed', await unended.runtime.execute(await unended.approve(), PAY));
  await unended.runtime.close();
});
