import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { digestRecord, occurrenceId } from '../../crypto/digest.ts';
import { licenseRecord } from '../../protocol/license.ts';
import {
  announcedPlan,
  claimFixture,
  fixtureAcknowledgement,
  fixtureLicense,
  fixtureTerminal,
} from './fixtures.ts';
import { type LedgerBench, type LedgerKit, openBench, prepareBench } from './kit.ts';
import type { Order, WorkerAnswer } from './worker.ts';

const PROCESSES = 8;
const ROUNDS = 100;
const KILLED_AFTER = 40;

/** What survives a crash, and what several processes agree on. Only for stores that declare it. */
export function processTests(kit: LedgerKit): void {
  const durable = reasonToSkip(kit, kit.durable, 'not durable');
  const shared = reasonToSkip(kit, kit.shared, 'not shared between processes');

  test('what was recorded is there when the store is opened again', { skip: durable }, async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    const { record: claim } = await claimFixture(ledgers, context, 'kept', { leaseMs: 0 });
    const { record: open } = await claimFixture(ledgers, context, 'open', { leaseMs: 0 });
    await ledgers.announcePlan('task', 7);
    const terminal = await ledgers.record(fixtureTerminal(context, claim, 'committed'), 'relaxed');
    await ledgers.acknowledge(fixtureAcknowledgement(context, claim));
    const journal = await ledgers.journal();
    const checkpoint = await ledgers.checkpoint();
    await ledgers.close();

    const reopened = await bench.open();
    assert.deepEqual(await reopened.journal(), journal);
    assert.deepEqual(await reopened.terminal(claim.occurrence), terminal);
    assert.deepEqual(
      (await reopened.unsettled()).map((entry) => entry.claim.record),
      [open],
    );
    assert.equal(await announcedPlan(reopened, 'task'), 7);
    assert.equal(await reopened.acknowledge(fixtureAcknowledgement(context, claim)), false);
    assert.deepEqual(await reopened.checkpoint(), checkpoint);
    assert.equal((await reopened.verify(checkpoint)).kind, 'intact');
  });

  test(`every claim that was reported before a SIGKILL is there afterwards`, {
    skip: durable,
  }, async () => {
    await using bench = await openBench(kit);
    await using crew = await startCrew(kit, bench, 1);
    const [worker] = crew.workers;
    assert.ok(worker !== undefined);
    const reported: string[] = [];
    worker.process.send({ do: 'stream', name: 'stream', by: 'stream' } satisfies Order);
    while (reported.length < KILLED_AFTER) reported.push((await worker.answer()).name);
    worker.process.kill('SIGKILL');
    await once(worker.process, 'exit');
    reported.push(...worker.unread());

    const { ledgers, context } = bench;
    for (const name of reported) {
      const license = fixtureLicense(name);
      const occurrence = occurrenceId({
        ...license,
        license: digestRecord(licenseRecord, license),
        index: 0,
      });
      assert.ok(
        (await ledgers.holder(occurrence)) !== undefined,
        `${name} was reported and is lost`,
      );
    }
    assert.equal((await ledgers.verify()).kind, 'intact');
    await claimFixture(ledgers, context, 'after the crash');
  });

  test(`${PROCESSES} processes that open a fresh store at once and race for one license each time: one claims`, {
    skip: shared,
  }, async () => {
    await using bench = await prepareBench(kit);
    await using crew = await startCrew(kit, bench, PROCESSES);
    for (let round = 0; round < ROUNDS; round += 1) {
      const answers = await crew.all((worker) => ({
        do: 'claim',
        name: `round ${round}`,
        by: `${round} ${worker}`,
      }));
      const expected = ['claimed', ...Array.from({ length: PROCESSES - 1 }, () => 'spent')];
      assert.deepEqual(answers.toSorted(), expected, `round ${round}`);
    }
    const ledgers = await bench.open();
    const journal = await ledgers.journal({ limit: 2 * ROUNDS });
    assert.equal(journal.length, ROUNDS);
    assert.equal((await ledgers.verify()).kind, 'intact');
  });

  test('processes that consume and void one permit at once see one winner; one of many releases', {
    skip: shared,
  }, async () => {
    await using bench = await openBench(kit);
    const { context, ledgers } = bench;
    await using crew = await startCrew(kit, bench, 4);
    for (let round = 0; round < 20; round += 1) {
      const name = `fence ${round}`;
      const { record: claim } = await claimFixture(ledgers, context, name);
      const fence = await crew.all((worker) => ({
        do: worker % 2 === 0 ? 'consume' : 'void',
        name,
        by: name,
      }));
      const state = await ledgers.permit(claim.occurrence);
      const expected =
        state?.kind === 'consumed'
          ? ['consumed', 'found consumed', 'found consumed', 'spent']
          : ['found void', 'found void', 'void', 'void'];
      assert.deepEqual(fence.toSorted(), expected, `round ${round}`);
      if (state?.kind !== 'consumed') continue;
      const verdicts = await crew.all(() => ({ do: 'commit', name, by: name }));
      assert.deepEqual(
        verdicts,
        Array.from({ length: 4 }, () => 'committed'),
      );
      assert.equal((await ledgers.attempts(claim.occurrence)).length, 1);
      const releases = await crew.all(() => ({ do: 'acknowledge', name, by: name }));
      assert.deepEqual(releases.toSorted(), [
        'not released',
        'not released',
        'not released',
        'released',
      ]);
    }
    assert.equal((await ledgers.verify()).kind, 'intact');
  });

  test('processes that checkpoint while others claim agree on one chain', {
    skip: shared,
  }, async () => {
    await using bench = await openBench(kit);
    await using crew = await startCrew(kit, bench, 2);
    const other = await bench.open();
    for (const { process } of crew.workers)
      process.send({ do: 'stream', name: `${process.pid}`, by: '' } satisfies Order);
    for (let round = 0; round < 10; round += 1) {
      await Promise.all(crew.workers.map(async (worker) => worker.answer()));
      const [mine, theirs] = await Promise.all([bench.ledgers.checkpoint(), other.checkpoint()]);
      assert.equal((await bench.ledgers.verify(mine)).kind, 'intact');
      assert.equal((await bench.ledgers.verify(theirs)).kind, 'intact');
    }
  });
}

function reasonToSkip(kit: LedgerKit, declared: boolean, otherwise: string): string | false {
  if (!declared) return `the store is declared as ${otherwise}`;
  return kit.module === undefined
    ? 'the kit names no module that other processes could open the store with'
    : false;
}

interface Worker {
  readonly process: ChildProcess;
  /** Returns the next answer, in order. Fails if the process ends instead. */
  answer(): Promise<WorkerAnswer>;
  /** The names of answers that have arrived and were not read yet. */
  unread(): readonly string[];
}

interface Crew extends AsyncDisposable {
  readonly workers: readonly Worker[];
  /** Gives every worker an order at once and waits for all answers. */
  all(order: (worker: number) => Order): Promise<readonly string[]>;
}

/** Starts processes together; resolves when each has opened the store. */
async function startCrew(kit: LedgerKit, bench: LedgerBench, count: number): Promise<Crew> {
  const module = kit.module;
  assert.ok(module !== undefined);
  const workers = Array.from({ length: count }, () => startWorker(module, bench.store.location));
  const dispose = async (): Promise<void> => {
    const running = workers.filter(
      ({ process }) => process.exitCode === null && process.signalCode === null,
    );
    for (const { process } of running) process.kill('SIGKILL');
    await Promise.all(running.map(({ process }) => once(process, 'exit')));
  };
  const crew: Crew = {
    workers,
    async all(order) {
      for (const [index, { process }] of workers.entries()) process.send(order(index));
      return await Promise.all(workers.map(async (worker) => (await worker.answer()).answer));
    },
    [Symbol.asyncDispose]: dispose,
  };
  const greetings = await Promise.allSettled(workers.map((worker) => worker.answer()));
  const failed = greetings.find(
    (greeting) => greeting.status === 'rejected' || greeting.value.answer !== 'ready',
  );
  if (failed !== undefined) await dispose();
  assert.equal(failed, undefined, 'every process opens the store');
  return crew;
}

function startWorker(module: URL, location: string): Worker {
  const script = new URL(
    import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js',
    import.meta.url,
  );
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const child = fork(script, [module.href, location], { env, execArgv: [] });
  const arrived: WorkerAnswer[] = [];
  const waiting: { resolve(answer: WorkerAnswer): void; reject(error: Error): void }[] = [];
  child.on('message', (answer: WorkerAnswer) => {
    const next = waiting.shift();
    if (next === undefined) arrived.push(answer);
    else next.resolve(answer);
  });
  child.on('exit', (code, signal) => {
    for (const { reject } of waiting.splice(0))
      reject(new Error(`the process ended with ${code ?? signal}`));
  });
  const answer = (): Promise<WorkerAnswer> => {
    const next = arrived.shift();
    if (next !== undefined) return Promise.resolve(next);
    return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
  };
  return { process: child, answer, unread: () => arrived.map(({ name }) => name) };
}
