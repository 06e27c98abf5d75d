// The cost of protection on SQLite: a 5-effect operation under a license, compared with the same
// statements in a plain durable transaction, and with the minimum of two durable writes (claim and
// business commit). The floor with the parts that protection cannot leave out is measured too. V8
// compiles a process's code for some thousand executions; the figures are those of a process that
// has run for a while, and one tells how it was before.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqlite } from '../../src/adapters/sqlite/index.ts';
import type { Step } from '../../src/contract/steps.ts';
import { generateApprover } from '../../src/crypto/approver.ts';
import { generated, insert, update } from '../../src/protocol/draft.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
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
import { unavoidableWriter } from './sqlite-cost/floor.ts';

const SCHEMA = `
  pragma journal_mode = wal;
  create table invoice(id integer primary key, status text not null, amount_cents integer not null);
  create table account(id integer primary key, balance_cents integer not null);
  create table payment(id integer primary key, invoice_id integer not null, amount_cents integer not null);
  create table entry(id integer primary key, account_id integer not null, amount_cents integer not null);
  create table notification(id integer primary key, invoice_id integer not null, text text not null);
  create trigger notify after update of status on invoice begin
    insert into notification(invoice_id, text) values (new.id, 'paid');
  end;
`;
const RELATIONS = ['invoice', 'account', 'payment', 'entry', 'notification'];

/** Two updates and two inserts by the operation, one insert by the trigger. */
function statements(id: number): { sql: string; values: (number | string)[] }[] {
  return [
    { sql: 'update invoice set status = ? where id = ?', values: ['paid', id] },
    { sql: 'update account set balance_cents = balance_cents - 100 where id = ?', values: [id] },
    { sql: 'insert into payment(invoice_id, amount_cents) values (?, 100)', values: [id] },
    { sql: 'insert into entry(account_id, amount_cents) values (?, -100)', values: [id] },
  ];
}

function effects(id: number) {
  return [
    update('invoice', { id }, { status: ['pending', 'paid'] }),
    update('account', { id }, { balance_cents: [1000, 900] }),
    insert('payment', { id: generated('payment'), invoice_id: id, amount_cents: 100 }),
    insert('entry', { id: generated('entry'), account_id: id, amount_cents: -100 }),
    insert('notification', { id: generated('notification'), invoice_id: id, text: 'paid' }),
  ];
}

function createBooks(file: string, rows: number): void {
  const db = new DatabaseSync(file);
  db.exec(SCHEMA);
  db.exec('begin');
  const invoice = db.prepare(`insert into invoice values (?, 'pending', 100)`);
  const account = db.prepare('insert into account values (?, 1000)');
  for (let id = 1; id <= rows; id += 1) {
    invoice.run(id);
    account.run(id);
  }
  db.exec('commit');
  db.close();
}

/** Runs the same statements as an application would: prepared, in one durable transaction. */
function plainWriter(file: string): (id: number) => void {
  const db = new DatabaseSync(file, { timeout: 5000 });
  db.exec('pragma synchronous = full; pragma foreign_keys = on');
  const prepared = statements(0).map(({ sql }) => db.prepare(sql));
  return (id) => {
    db.exec('begin immediate');
    for (const [index, { values }] of statements(id).entries()) prepared[index]?.run(...values);
    db.exec('commit');
  };
}

/** One durable write of one row in another file: the minimum cost of a claim. */
function durableRow(file: string): (id: number) => void {
  const db = new DatabaseSync(file);
  db.exec(
    'pragma journal_mode = wal; pragma synchronous = full; create table claim(occurrence text primary key, text text)',
  );
  const add = db.prepare('insert into claim values (?, ?)');
  return (id) => {
    add.run(`occ_${id}`, 'x'.repeat(1500));
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
  const warmup = quick ? { start: 10, whole: 20 } : { start: 200, whole: 3000 };
  const runs = blocks * perBlock + warmup.whole;
  for (const name of ['plain', 'held', 'lean']) createBooks(join(folder, `${name}.db`), runs + 1);

  const marks: { step: Step; at: number }[] = [];
  const key = generateApprover('bench');
  const runtime = await createRuntime(
    {
      store: join(folder, 'ledger.db'),
      keyring: join(folder, 'keys.json'),
      issuers: { bench: { key: key.publicKey, may: ['books'] } },
      adapters: { books: sqlite({ file: join(folder, 'held.db'), relations: RELATIONS }) },
    },
    { reached: (step) => marks.push({ step, at: performance.now() }) },
  );
  const plain = plainWriter(join(folder, 'plain.db'));
  const extra = durableRow(join(folder, 'floor.db'));
  const lean = unavoidableWriter(
    join(folder, 'lean.db'),
    join(folder, 'lean-ledger.db'),
    statements,
  );

  progress(`approving ${runs} operations (outside the measurement)`);
  const licenses = await approveAll(runtime, key, { count: runs, effects });
  const samples = {
    plain: [] as number[],
    floor: [] as number[],
    unavoidable: [] as number[],
    held: [] as number[],
    young: [] as number[],
  };
  const byStep = new Map<string, number[]>();
  let next = 0;

  const held = async () => {
    // Each request arrives in a new event loop turn. Work that an adapter does between requests is
    // not counted.
    await new Promise((resolve) => setImmediate(resolve));
    next += 1;
    marks.length = 0;
    const started = performance.now();
    const terminal = await runtime.execute(licenses[next - 1], { statements: statements(next) });
    const elapsed = performance.now() - started;
    if (terminal.kind !== 'committed')
      throw new Error(`not committed: ${JSON.stringify(terminal)}`);
    let previous = started;
    for (const { step, at } of marks) {
      byStep.set(step, [...(byStep.get(step) ?? []), at - previous]);
      previous = at;
    }
    return elapsed;
  };
  const timed = (work: () => void) => {
    const started = performance.now();
    work();
    return performance.now() - started;
  };

  for (let i = 0; i < warmup.whole; i += 1) {
    const one = await held();
    if (i >= warmup.start && i < 2 * warmup.start) samples.young.push(one);
    plain(next);
    extra(next);
    lean(next);
  }
  byStep.clear();
  for (let block = 0; block < blocks; block += 1) {
    progress(`block ${block + 1} of ${blocks}`);
    const first = next;
    for (let i = 0; i < perBlock; i += 1) samples.held.push(await held());
    for (let id = first + 1; id <= next; id += 1) {
      const write = timed(() => plain(id));
      samples.plain.push(write);
      samples.floor.push(write + timed(() => extra(id)));
      samples.unavoidable.push(timed(() => lean(id)));
    }
  }
  await runtime.close();

  const over = (to: readonly number[]) => ({ statistic: 'ratio', of: samples.held, to }) as const;
  const breakdown = [...byStep].map(([step, times]) =>
    medianCell(`time to ${step}`, times, 'us', 1000),
  );
  return [
    medianCell('plain durable transaction, median', samples.plain, 'us', 1000),
    p95Cell('plain, p95', samples.plain, 'us', 1000),
    medianCell('floor: plain and one more durable write, median', samples.floor, 'us', 1000),
    medianCell(
      'floor with signature, authorizer, changeset, marker and terminal, median',
      samples.unavoidable,
      'us',
      1000,
    ),
    medianCell('protected execution, median', samples.held, 'us', 1000),
    medianCell(
      `protected, executions ${warmup.start + 1} to ${2 * warmup.start} of the process, median`,
      samples.young,
      'us',
      1000,
    ),
    p95Cell('protected, p95', samples.held, 'us', 1000),
    figure('protected over plain', over(samples.plain), 'x'),
    atMost('protected over the floor of two durable writes', over(samples.floor), 'x', 2.5),
    figure(
      'floor with what protection needs, over the floor of two durable writes',
      { statistic: 'ratio', of: samples.unavoidable, to: samples.floor },
      'x',
    ),
    figure('protected over the floor with what protection needs', over(samples.unavoidable), 'x'),
    ...breakdown,
  ];
}

export const sqliteCostStudy: Study = {
  name: 'sqlite-cost',
  about:
    'a protected 5-effect operation on SQLite against a plain durable transaction and against two durable writes',
  run,
};
