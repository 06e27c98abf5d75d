// The same on a SQLite file, a folder and a payment service: one change each, approved by hand.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { startPaymentService } from '../../../examples/payment-service/server.ts';
import type { Step } from '../../../src/contract/steps.ts';
import { approver } from '../../../src/crypto/approver.ts';
import { generated, insert, update } from '../../../src/protocol/draft.ts';
import type { PrepareRequest } from '../../../src/runtime/prepare.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { compareStates } from '../../facts.ts';
import type { RawRecords } from '../../raw.ts';
import { type Cell, exactly } from '../../study.ts';
import { temporaryFolder } from '../../temporary.ts';
import { KEYS } from '../public-outcomes/state-conditions.ts';
import {
  type BackendWork,
  backendConfig,
  CONTINUATION,
  INVOICE_FILE,
  writeCase,
} from './case-file.ts';
import { type CaseRun, runCase, type Start } from './case-run.ts';

const REPETITIONS = 5;

/** A backend with one thing to change, laid down in a folder. */
interface RecoveryBackend {
  readonly name: string;
  readonly effects: PrepareRequest['effects'];
  /** Where a process ends: before anything can be durable, and when it is but not yet recorded. */
  readonly before: Step;
  readonly after: Step;
  open(folder: string): Promise<
    AsyncDisposable & {
      readonly work: BackendWork;
      /** Reads past the adapter whether the approved change is durable. */
      look(): Promise<ReturnType<typeof compareStates>>;
    }
  >;
}

const SQLITE: RecoveryBackend = {
  name: 'SQLite',
  effects: [update('invoice', { id: 4711 }, { status: ['pending', 'paid'] })],
  before: 'path:staged',
  after: 'path:promoted',
  async open(folder) {
    const file = join(folder, 'books.db');
    {
      using db = new DatabaseSync(file);
      db.exec(`pragma journal_mode = wal;
        create table invoice (id integer primary key, status text not null);
        insert into invoice values (4711, 'pending')`);
    }
    return {
      work: { kind: 'sqlite', file },
      async look() {
        using db = new DatabaseSync(file, { readOnly: true });
        const durable = db.prepare('select status from invoice').get()?.status;
        return compareStates<unknown>({ initial: 'pending', approved: 'paid', durable });
      },
      async [Symbol.asyncDispose]() {},
    };
  },
};

const FILES: RecoveryBackend = {
  name: 'files',
  effects: [update('file', { path: INVOICE_FILE }, { content: ['pending\n', 'paid\n'] })],
  before: 'path:staged',
  after: 'path:promoted',
  async open(folder) {
    const root = join(folder, 'invoices');
    mkdirSync(root, { mode: 0o755 });
    writeFileSync(join(root, INVOICE_FILE), 'pending\n', { mode: 0o644 });
    return {
      work: { kind: 'files', root },
      async look() {
        const durable = readFileSync(join(root, INVOICE_FILE), 'utf8');
        return compareStates({ initial: 'pending\n', approved: 'paid\n', durable });
      },
      async [Symbol.asyncDispose]() {},
    };
  },
};

const HTTP: RecoveryBackend = {
  name: 'HTTP',
  effects: [insert('payment', { id: generated('payment'), payee: 'acme', amount: 35, memo: null })],
  before: 'path:request-built',
  after: 'path:dispatched',
  async open() {
    const service = await startPaymentService();
    const { origin, token } = service;
    return {
      work: { kind: 'payment', place: { origin, token, account: 'main' } },
      async look() {
        const payments = [...service.account('main').payments.values()];
        const ordered = payments.filter(({ memo }) => memo !== 'probe');
        const durable = ordered.map(({ payee, amount }) => ({ payee, amount }));
        const approved = [{ payee: 'acme', amount: 35 }];
        return compareStates({ initial: [], approved, durable });
      },
      [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
    };
  },
};

const BACKENDS = [SQLITE, FILES, HTTP];

/** Of all runs: whether the state is the approved one, whether readers are released, and after recovery. */
const EXITS = [
  { name: 'exit before it can be durable', at: 'before', ends: [0, 0, 0] },
  { name: 'exit when durable, before terminal', at: 'after', ends: [1, 0, 1] },
  { name: 'exit after terminal', at: 'path:terminal-recorded', ends: [1, 1, 1] },
] as const;

async function runBackend(start: Start, backend: RecoveryBackend, exitAt: Step): Promise<CaseRun> {
  using temporary = temporaryFolder();
  const folder = temporary.path;
  await using opened = await backend.open(folder);
  {
    await using office = await createRuntime(backendConfig(opened.work, folder, KEYS.publicKey));
    await office.prove('backend');
    const task = { adapter: 'backend', task: 'task', planRevision: 1 };
    const { effects } = backend;
    const request = { ...task, effects, continuations: [CONTINUATION] };
    const license = approver(KEYS).sign(await office.prepare(request), { expiresIn: '10m' });
    writeCase(folder, { work: opened.work, license, publicKey: KEYS.publicKey });
  }
  return await runCase(start, folder, exitAt, () => opened.look());
}

export async function runBackendCases(
  raw: RawRecords,
  start: Start,
  { quick, progress }: { readonly quick: boolean; progress(line: string): void },
): Promise<readonly Cell[]> {
  const repetitions = quick ? 1 : REPETITIONS;
  const cells: Cell[] = [];
  for (const backend of BACKENDS)
    for (const { name, at, ends } of EXITS) {
      // The one that only this system continues, everywhere; the others in a complete run.
      if (quick && at !== 'after') continue;
      const place = `${backend.name}, ${name}`;
      progress(place);
      const step = at === 'before' || at === 'after' ? backend[at] : at;
      const runs: CaseRun[] = [];
      for (let repetition = 1; repetition <= repetitions; repetition += 1)
        runs.push(await raw.run(`${place}|${repetition}`, () => runBackend(start, backend, step)));
      cells.push(...countBackend(place, runs, ends));
    }
  return cells;
}

function countBackend(
  place: string,
  runs: readonly CaseRun[],
  [correct, released, recovered]: readonly [number, number, number],
): readonly Cell[] {
  const cell = (words: string, holds: (run: CaseRun) => boolean, share: number) =>
    exactly(`${place}: ${words}`, runs.filter(holds).length, 'runs', share * runs.length);
  return [
    cell('correct state', ({ isCorrect }) => isCorrect, correct),
    cell('released', ({ releases }) => releases === 1, released),
    cell(
      'released more than once',
      ({ releases, releasesAfterRecovery }) => releases > 1 || releasesAfterRecovery > 1,
      0,
    ),
    cell(
      'released once, after our recovery',
      ({ releasesAfterRecovery }) => releasesAfterRecovery === 1,
      recovered,
    ),
  ];
}
