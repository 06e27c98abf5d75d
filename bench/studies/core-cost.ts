// The cost of the core alone: a 5-effect operation through license, claim, certificate, comparison,
// final gate, marker and terminal, with the SQLite ledger. The backend is in memory, and the time
// of its calls is subtracted. V8 compiles a process's code for some thousand executions; the figures
// are those of a process that has run for a while, and one tells how it was before.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { AdapterFactory, Stage } from '../../src/contract/adapter.ts';
import type { Step } from '../../src/contract/steps.ts';
import { generateApprover } from '../../src/crypto/approver.ts';
import { parseIssuerKey } from '../../src/crypto/issuer-key.ts';
import { parseSignedLicense, verifyLicense } from '../../src/crypto/signature.ts';
import { insert, update } from '../../src/protocol/draft.ts';
import type { StateRead } from '../../src/protocol/effect.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import {
  type MemoryAction,
  MemoryBackend,
  memoryAdapter,
  overlayAdapter,
  overlayStages,
  PROBE_TARGET,
  type Write,
} from '../../test/world/world.ts';
import { approveAll } from '../licenses.ts';
import {
  atMost,
  type Cell,
  figure,
  medianCell,
  p95Cell,
  type Study,
  type StudyOptions,
} from '../study.ts';
import { temporaryFolder } from '../temporary.ts';
import { unavoidableDecision } from './sqlite-cost/floor.ts';

const TARGETS = [
  { name: 'invoice', columns: ['id', 'status', 'amount'], key: ['id'], volatile: [] },
  { name: 'account', columns: ['id', 'balance'], key: ['id'], volatile: [] },
  { name: 'payment', columns: ['id', 'invoice', 'amount'], key: ['id'], volatile: [] },
  { name: 'entry', columns: ['id', 'account', 'amount'], key: ['id'], volatile: [] },
  { name: 'notification', columns: ['id', 'invoice', 'text'], key: ['id'], volatile: [] },
];

function writes(id: number): readonly Write[] {
  return [
    { op: 'update', target: 'invoice', key: { id }, set: { status: 'paid' } },
    { op: 'update', target: 'account', key: { id }, set: { balance: 900 } },
    { op: 'insert', target: 'payment', row: { id, invoice: id, amount: 100 } },
    { op: 'insert', target: 'entry', row: { id, account: id, amount: -100 } },
    { op: 'insert', target: 'notification', row: { id, invoice: id, text: 'paid' } },
  ];
}

function effects(id: number) {
  return [
    update('invoice', { id }, { status: ['pending', 'paid'] }),
    update('account', { id }, { balance: [1000, 900] }),
    insert('payment', { id, invoice: id, amount: 100 }),
    insert('entry', { id, account: id, amount: -100 }),
    insert('notification', { id, invoice: id, text: 'paid' }),
  ];
}

function createBackend(rows: number): MemoryBackend {
  const ids = Array.from({ length: rows }, (_, index) => index + 1);
  return new MemoryBackend('core-cost', [...TARGETS, PROBE_TARGET], {
    invoice: ids.map((id) => ({ id, status: 'pending', amount: 100 })),
    account: ids.map((id) => ({ id, balance: 1000 })),
  });
}

/** Measures the time of the adapter's calls, so that it can be subtracted. */
function timeCalls(factory: AdapterFactory<MemoryAction>, spend: (ms: number) => void) {
  const timed = <P extends unknown[], R>(call: (...parameters: P) => Promise<R>) => {
    return async (...parameters: P): Promise<R> => {
      const started = performance.now();
      try {
        return await call(...parameters);
      } finally {
        spend(performance.now() - started);
      }
    };
  };
  const timedStage = (stage: Stage): Partial<Stage> => ({
    read: timed((reads) => stage.read(reads)),
    observe: timed(() => stage.observe()),
    recheck: timed(() => stage.recheck()),
    promote: timed((permit) => stage.promote(permit)),
  });
  return overlayAdapter(factory, (adapter) => {
    const calls = {
      read: timed((reads: readonly StateRead[]) => adapter.read(reads)),
      survey: timed(() => adapter.survey()),
      parseAction(input: unknown) {
        const started = performance.now();
        const action = adapter.parseAction(input);
        spend(performance.now() - started);
        return action;
      },
    };
    if (adapter.capability !== 'PROMOTABLE') return calls;
    const staging = overlayStages(adapter, timedStage);
    return { ...calls, stage: timed(staging.stage) };
  });
}

/** The flush that every claim waits for: one durable row in a separate file. */
function durableRow(file: string): (id: number) => void {
  const db = new DatabaseSync(file);
  db.exec(
    'pragma journal_mode = wal; pragma synchronous = full; create table claim(id integer primary key, text text)',
  );
  const add = db.prepare('insert into claim values (?, ?)');
  return (id) => {
    add.run(id, 'x'.repeat(1500));
  };
}

async function run({ quick, progress }: StudyOptions): Promise<readonly Cell[]> {
  using folder = temporaryFolder();
  return await measure(folder.path, quick, progress);
}

async function measure(
  folder: string,
  quick: boolean,
  progress: (line: string) => void,
): Promise<readonly Cell[]> {
  const blocks = quick ? 3 : 20;
  const perBlock = quick ? 10 : 50;
  const warmup = quick ? { start: 10, whole: 20 } : { start: 500, whole: 3000 };
  const runs = 2 * blocks * perBlock + warmup.whole;

  let inAdapter = 0;
  const spend = (ms: number) => {
    inAdapter += ms;
  };
  const marks: { step: Step; at: number; inAdapter: number }[] = [];
  const key = generateApprover('bench');
  const runtime = await createRuntime(
    {
      store: join(folder, 'ledger.db'),
      keyring: join(folder, 'keys.json'),
      issuers: { bench: { key: key.publicKey, may: ['books'] } },
      adapters: { books: timeCalls(memoryAdapter(createBackend(runs)), spend) },
    },
    {
      reached: (step) =>
        step.startsWith('path:') && marks.push({ step, at: performance.now(), inAdapter }),
    },
  );
  const extra = durableRow(join(folder, 'floor.db'));
  const lean = unavoidableDecision(join(folder, 'lean.db'));
  progress(`approving ${runs} operations (outside the measurement)`);
  const licenses = await approveAll(runtime, key, { count: runs, effects });
  const signed = parseSignedLicense(licenses[0]);

  const samples = {
    core: [] as number[],
    young: [] as number[],
    checked: [] as number[],
    flush: [] as number[],
    unavoidable: [] as number[],
    signature: [] as number[],
    cpu: [] as number[],
  };
  const byStep = new Map<string, number[]>();
  let next = 0;
  const execute = async (isChecked = false) => {
    next += 1;
    if (isChecked) await runtime.check({ license: licenses[next - 1] }, { writes: writes(next) });
    marks.length = 0;
    inAdapter = 0;
    const started = performance.now();
    const terminal = await runtime.execute(licenses[next - 1], { writes: writes(next) });
    const elapsed = performance.now() - started;
    if (terminal.kind !== 'committed')
      throw new Error(`not committed: ${JSON.stringify(terminal)}`);
    let previous = { at: started, inAdapter: 0 };
    for (const mark of marks) {
      const own = mark.at - previous.at - (mark.inAdapter - previous.inAdapter);
      if (!isChecked) byStep.set(mark.step, [...(byStep.get(mark.step) ?? []), own]);
      previous = mark;
    }
    return { core: elapsed - inAdapter, inAdapter };
  };

  for (let i = 0; i < warmup.whole; i += 1) {
    const one = await execute();
    if (i >= warmup.start && i < 2 * warmup.start) samples.young.push(one.core);
    extra(next);
    lean(next);
  }
  byStep.clear();
  for (let block = 0; block < blocks; block += 1) {
    progress(`block ${block + 1} of ${blocks}`);
    const first = next;
    const before = process.cpuUsage();
    let adapterMs = 0;
    for (let i = 0; i < perBlock; i += 1) {
      const one = await execute();
      samples.core.push(one.core);
      adapterMs += one.inAdapter;
    }
    const { user, system } = process.cpuUsage(before);
    samples.cpu.push(((user + system) / 1000 - adapterMs) / perBlock);
    for (let i = 0; i < perBlock; i += 1) samples.checked.push((await execute(true)).core);
    for (let id = first + 1; id <= next; id += 1) {
      const started = performance.now();
      extra(id);
      const flushed = performance.now();
      samples.flush.push(flushed - started);
      if (!verifyLicense([parseIssuerKey(key.publicKey)], signed))
        throw new Error('the license is ours');
      const verified = performance.now();
      samples.signature.push(verified - flushed);
      lean(id);
      samples.unavoidable.push(performance.now() - verified);
    }
  }
  await runtime.close();

  const sides = { of: samples.core, to: samples.flush };
  const leastSides = { of: samples.unavoidable, to: samples.flush };
  const checkedSides = { of: samples.checked, to: samples.flush };
  return [
    medianCell('core, median', samples.core, 'us', 1000),
    medianCell('core, license checked when it arrived, median', samples.checked, 'us', 1000),
    medianCell(
      `core, executions ${warmup.start + 1} to ${2 * warmup.start} of the process, median`,
      samples.young,
      'us',
      1000,
    ),
    p95Cell('core, p95', samples.core, 'us', 1000),
    medianCell('one durable write, median', samples.flush, 'us', 1000),
    figure('core over one durable write', { statistic: 'ratio', ...sides }, 'x'),
    atMost(
      'core beyond one durable write',
      { statistic: 'difference', ...sides, times: 1000 },
      'us',
      450,
    ),
    figure(
      'the same, license checked when it arrived',
      { statistic: 'difference', ...checkedSides, times: 1000 },
      'us',
    ),
    figure(
      'floor: signature, claim and terminal written by hand, beyond one durable write',
      { statistic: 'difference', ...leastSides, times: 1000 },
      'us',
    ),
    medianCell('checking one signature, median', samples.signature, 'us', 1000),
    medianCell('processor time of the core', samples.cpu, 'us', 1000),
    ...[...byStep].map(([step, times]) =>
      medianCell(`time to ${step}, adapter left out`, times, 'us', 1000),
    ),
  ];
}

export const coreCostStudy: Study = {
  name: 'core-cost',
  about:
    'the core of one protected 5-effect operation, adapter calls taken out, against one durable write',
  run,
};
