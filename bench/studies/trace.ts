// The paper's second figure, run on PostgreSQL with the profile relation-write. An invoice update
// is approved, a trigger also inserts a notification, the candidate is rolled back, and two fresh
// workers find the recorded rejection. The control has no trigger.

import { approver } from '../../src/crypto/approver.ts';
import { writes } from '../../src/protocol/draft.ts';
import type { Terminal } from '../../src/protocol/terminal.ts';
import { lineagesOf } from '../../src/runtime/continuation.ts';
import { createRuntime, type Internals } from '../../src/runtime/runtime.ts';
import { protectedDatabase } from '../../test/postgres/protected.ts';
import { startServer, type TestServer } from '../../test/postgres/server.ts';
import { keepVerdict } from '../facts.ts';
import { RawRecords } from '../raw.ts';
import { type Cell, exactly, type Study, type StudyOptions } from '../study.ts';
import { temporaryFolder } from '../temporary.ts';
import { KEYS } from './public-outcomes/state-conditions.ts';
import { CONTINUATION, databaseConfig, writeCase } from './recovery/case-file.ts';
import { type Start, starter } from './recovery/case-run.ts';

const REPETITIONS = 20;
const WORKERS = 2;
const SCHEMA = `
  create table invoice (id int primary key, status text not null);
  create table notification (id int generated always as identity primary key, invoice int not null);
  insert into invoice values (4711, 'pending')`;
const TRIGGER = `
  create function on_paid() returns trigger language plpgsql as $$ begin
    insert into notification (invoice) values (new.id); return null; end $$;
  create trigger paid after update on invoice for each row execute function on_paid()`;
const ACTION = "update invoice set status = 'paid' where id = 4711";

/** One pass through the figure's steps. */
export interface InvoiceTrace {
  readonly verdict: string;
  /** The unapproved writes. */
  readonly extra: readonly string[];
  readonly status: string;
  readonly notifications: number;
  /** The terminal that each fresh worker read, and the answer to its release. */
  readonly workers: readonly { readonly terminal: string; readonly release: string }[];
  /** The verdict when the same license is presented again. */
  readonly replay: string;
}

async function run({ quick, progress }: StudyOptions): Promise<readonly Cell[]> {
  const repetitions = quick ? 1 : REPETITIONS;
  const raw = new RawRecords(`trace${quick ? '-quick' : ''}`, []);
  using folder = temporaryFolder();
  await using server = await startServer();
  const start = starter(folder.path);
  const traces = { trigger: [] as InvoiceTrace[], control: [] as InvoiceTrace[] };
  for (const variant of ['trigger', 'control'] as const) {
    progress(variant);
    for (let repetition = 1; repetition <= repetitions; repetition += 1)
      traces[variant].push(
        await raw.run(`${variant}|${repetition}`, () => runTrace(server, start, variant)),
      );
  }
  raw.finish();
  return traceCells(traces.trigger, traces.control);
}

/** Runs one pass. `internals` can switch off a check, which the study must notice. */
export async function runTrace(
  server: TestServer,
  start: Start,
  variant: 'trigger' | 'control',
  internals: Internals = {},
): Promise<InvoiceTrace> {
  using folder = temporaryFolder();
  const db = await server.createDatabase();
  const schema = variant === 'trigger' ? `${SCHEMA};${TRIGGER}` : SCHEMA;
  const relations = ['invoice', 'notification'];
  const settings = { relations, profile: 'relation-write' } as const;
  await using held = await protectedDatabase(schema, settings, { db });
  const config = databaseConfig(held.options, folder.path, KEYS.publicKey);
  let terminal: Terminal;
  let replay: Terminal;
  {
    await using runtime = await createRuntime(config, internals);
    const proposal = await runtime.prepare({
      adapter: 'chinook',
      task: 'invoice-4711',
      planRevision: 1,
      effects: [writes('update', 'invoice', 1)],
      continuations: [CONTINUATION],
    });
    const license = approver(KEYS).sign(proposal, { expiresIn: '10m' });
    const work = { kind: 'database', options: held.options, statements: [ACTION] } as const;
    writeCase(folder.path, { work, license, publicKey: KEYS.publicKey });
    const action = { statements: [{ sql: ACTION }] };
    terminal = keepVerdict(await runtime.execute(license, action));
    replay = keepVerdict(await runtime.execute(license, action));
    const [origin] = lineagesOf(license);
    terminal = (await runtime.terminal(origin.occurrence)) ?? terminal;
  }
  const asked = await Promise.all(
    Array.from({ length: WORKERS }, () => start('reader', folder.path, 'as-saved')),
  );
  const [row] = await db.run(
    'select status, (select count(*)::int from notification) as n from invoice',
  );
  return {
    verdict: describe(terminal),
    extra: extraOf(terminal),
    status: String(row?.status),
    notifications: Number(row?.n),
    workers: asked.map(({ out }) => JSON.parse(out)),
    replay: describe(replay),
  };
}

function describe(terminal: Terminal): string {
  return terminal.kind === 'rejected'
    ? `rejected at ${terminal.at}: ${terminal.outcome?.kind ?? terminal.reason}`
    : terminal.kind;
}

/** The extra writes in the stored diff, as operation, relation and count. */
function extraOf(terminal: Terminal): readonly string[] {
  if (terminal.kind !== 'rejected' || terminal.outcome?.kind !== 'DIVERGED') return [];
  return terminal.outcome.diff.extra.map(({ op, target, count }) => `${op} ${target} ${count}`);
}

const EXTRA = 'insert notification 1';

/** Counts each step of the figure over all passes. */
export function traceCells(
  trigger: readonly InvoiceTrace[],
  control: readonly InvoiceTrace[],
): readonly Cell[] {
  const cell = (
    name: string,
    traces: readonly InvoiceTrace[],
    holds: (trace: InvoiceTrace) => boolean,
  ) => exactly(name, traces.filter(holds).length, 'passes', traces.length);
  const allWorkers = (terminal: string, halted: number) => (trace: InvoiceTrace) =>
    trace.workers.length === WORKERS &&
    trace.workers.every((worker) => worker.terminal === terminal) &&
    trace.workers.filter(({ release }) => release !== 'released').length === halted;
  return [
    cell(
      'trigger: rejected by the comparison, DIVERGED',
      trigger,
      ({ verdict }) => verdict === 'rejected at comparison: DIVERGED',
    ),
    cell(
      'trigger: the saved difference is one more insert into notification',
      trigger,
      ({ extra }) => extra.join() === EXTRA,
    ),
    cell(
      'trigger: invoice pending, no notification',
      trigger,
      ({ status, notifications }) => status === 'pending' && notifications === 0,
    ),
    cell(
      'trigger: both fresh workers read the rejection and halt',
      trigger,
      allWorkers('rejected', 2),
    ),
    cell('trigger: the license buys nothing more', trigger, ({ replay }) => /spent/.test(replay)),
    cell('control: committed', control, ({ verdict }) => verdict === 'committed'),
    cell(
      'control: invoice paid, no notification',
      control,
      ({ status, notifications }) => status === 'paid' && notifications === 0,
    ),
    cell('control: both read the commit, one is released', control, allWorkers('committed', 1)),
    cell('control: the license buys nothing more', control, ({ replay }) => /spent/.test(replay)),
  ];
}

export const traceStudy: Study = {
  name: 'trace',
  about:
    'the running example of the paper’s second figure, under relation-write, with two fresh workers',
  run,
};
