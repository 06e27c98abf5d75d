// Goal: with the ledger beside the business data an execution waits for one flush, and a crash that
// takes its claim takes everything that was claimed with it. Method: a server that flushes nothing
// by itself, whose counters and log are read; it is killed at the claim.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { postgres } from '../../src/adapters/postgres/index.ts';
import type { Step } from '../../src/contract/steps.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { optionsIn, postgresOn } from '../crash/backends/postgres.ts';
import { ADAPTER, ISSUER, type Operation } from '../crash/commands.ts';
import { readFacts } from '../crash/facts.ts';
import { createTemplate, type Installation, type Template } from '../crash/installation.ts';
import { findViolations } from '../crash/violations.ts';
import { startCuttingLine } from '../ledger/wire.ts';
import { Freezer } from './freeze.ts';
import { startServer, type TestServer } from './server.ts';

const FEW = 5;
const MANY = 25;
let server: TestServer;
let template: Template;
let installation: Installation;
let left: Operation[];

before(async () => {
  const settings = { wal_writer_delay: '10s', log_statement: 'all' };
  server = await startServer({ settings });
  const backend = postgresOn(() => server.createDatabase(), 'ledger beside');
  template = await createTemplate(backend, Array(FEW + MANY + 10).fill('append'));
  installation = await template.copy();
  left = [...installation.operations];
});
after(async () => {
  await installation[Symbol.asyncDispose]();
  await template[Symbol.asyncDispose]();
  await server.stop();
});

/** A runtime on the installation, reached as the changes say. */
function openRuntime(
  reached: (step: Step) => void = () => {},
  through: { readonly store?: string; readonly execution?: string } = {},
): Promise<Runtime> {
  const { ledger, keyring, issuerKey, leaseMs, folder } = installation.site;
  const { execution, store = ledger } = through;
  const business = { ...optionsIn(folder), ...(execution && { execution }) };
  const adapters = { [ADAPTER]: postgres(business) };
  const issuers = { [ISSUER]: { key: issuerKey, may: [ADAPTER] } };
  const options = { store, keyring, issuers, adapters, leaseMs, recoverAtStart: false };
  return createRuntime(options, { reached });
}

async function execute(runtime: Runtime, { license, action } = nextOperation()) {
  return await runtime.execute(license, action);
}

function nextOperation(): Operation {
  const operation = left.shift();
  assert.ok(operation);
  return operation;
}

/** Flushes of the log and complete readings of the catalogues that so many executions cost. */
async function costOf(executions: number) {
  const db = await server.createDatabase();
  const flushes = async () =>
    Number((await db.run('select wal_sync from pg_stat_wal'))[0]?.wal_sync);
  const readings = () => server.readLog().match(/execute effectmatch_fingerprint/g)?.length ?? 0;
  const from = { flushes: await flushes(), readings: readings() };
  const runtime = await openRuntime();
  for (let turn = 0; turn < executions; turn += 1)
    assert.equal((await execute(runtime)).kind, 'committed');
  // Sessions report what they counted at the latest when they end.
  await runtime.close();
  await db.run('select pg_stat_clear_snapshot() from pg_sleep(0.5)');
  return { flushes: (await flushes()) - from.flushes, readings: readings() - from.readings };
}

test('an execution waits for one flush, and the transactions of the ledger do not look like changes', async () => {
  const few = await costOf(FEW);
  const many = await costOf(MANY);
  console.log(JSON.stringify({ few, many }));
  // Opening flushes too, not always as often. Two for each execution would be twice as many.
  const each = (many.flushes - few.flushes) / (MANY - FEW);
  assert.ok(each > 0.8 && each < 1.3, `${each} flushes for each execution`);
  assert.ok(many.readings - few.readings <= 2, 'the catalogues are not read again each time');
});

test('a crash right after the claim loses the claim, its process is told so, and nothing happened', async () => {
  const operation = nextOperation();
  const freezer = new Freezer(server);
  const runtime = await openRuntime((step) => {
    if (step === 'path:validated') freezer.look();
    if (step === 'path:claimed') freezer.freeze();
  });
  const running = execute(runtime, operation);
  await freezer.stopped;
  await server.kill();
  await server.restart();
  const terminal = await running;
  assert.ok(terminal.kind === 'rejected' && terminal.claim === undefined);
  assert.match(terminal.detail, /lost the claim in a crash/);
  const facts = await readFacts(installation);
  assert.deepEqual(findViolations(installation, facts, { stage: 'settled' }), []);
  assert.equal((await execute(runtime, operation)).kind, 'committed', 'the license was unused');
  await runtime.close();
});

test('a connection cut at COMMIT or before its answer, to the ledger or to the data, costs no true verdict', async () => {
  await using lines = new AsyncDisposableStack();
  const ledger = lines.use(await startCuttingLine(server.port));
  const data = lines.use(await startCuttingLine(server.port));
  const { folder, site } = installation;
  const store = through(site.ledger, ledger.port);
  const execution = through(String(optionsIn(folder).execution), data.port);
  let cutAt: Step | undefined;
  let cut: () => void = () => {};
  const runtime = await openRuntime(
    (step) => {
      if (step === cutAt) cut();
    },
    { store, execution },
  );
  const ends: string[] = [];
  for (const [line, step] of [
    [ledger, 'path:validated'],
    [data, 'path:gate-passed'],
    [ledger, 'path:promoted'],
  ] as const) {
    for (const when of ['before', 'after'] as const) {
      cutAt = step;
      cut = () => line.cutNext(when);
      const terminal = await execute(runtime);
      ends.push(`${step} ${when} ${terminal.kind}`);
    }
  }
  assert.equal(ledger.cuts() + data.cuts(), 6);
  assert.deepEqual(ends, [
    'path:validated before committed',
    'path:validated after committed',
    'path:gate-passed before rejected',
    'path:gate-passed after committed',
    'path:promoted before committed',
    'path:promoted after committed',
  ]);
  const facts = await readFacts(installation);
  assert.deepEqual(findViolations(installation, facts, { stage: 'settled' }), []);
  assert.equal((await runtime.verifyJournal()).kind, 'intact');
  await runtime.close();
});

function through(url: string, port: number): string {
  const other = new URL(url);
  other.port = String(port);
  return other.href;
}
