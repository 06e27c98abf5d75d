// Many writers are approved to change the same row at the same moment. The first one changes it, so
// the others' approvals no longer match the row.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqlite } from '../../../src/adapters/sqlite/index.ts';
import type { AdapterFactory } from '../../../src/contract/adapter.ts';
import { approver, generateApprover } from '../../../src/crypto/approver.ts';
import { insert, update } from '../../../src/protocol/draft.ts';
import { createRuntime, type Internals, type Runtime } from '../../../src/runtime/runtime.ts';
import { protectedDatabase } from '../../../test/postgres/protected.ts';
import { startServer } from '../../../test/postgres/server.ts';
import { keepVerdict } from '../../facts.ts';
import type { RawRecords } from '../../raw.ts';
import { type Cell, exactly } from '../../study.ts';
import { temporaryFolder } from '../../temporary.ts';

const RUNTIMES = 4;
const RELATIONS = ['counter', 'entry'];
const SCHEMA = `create table counter (id integer primary key, value integer not null);
  create table entry (id integer primary key, round integer not null);
  insert into counter values (1, 0)`;
const KEYS = generateApprover('study');

/** The result of one round: how many writers were told that they committed, and what is durable. */
export interface WriterRound {
  readonly backend: string;
  readonly writers: number;
  readonly committed: number;
  /** How much the counter grew, and how many entries were added. */
  readonly counted: number;
  readonly entries: number;
}

export interface WriterBackend extends AsyncDisposable {
  readonly name: string;
  factory(): AdapterFactory;
  /** Reads over a separate connection, bypassing the adapter. */
  read(): Promise<{ readonly value: number; readonly entries: number }>;
}

export async function openSqliteCounter(): Promise<WriterBackend> {
  await using stack = new AsyncDisposableStack();
  const file = join(stack.use(temporaryFolder()).path, 'books.db');
  using db = new DatabaseSync(file);
  db.exec(`pragma journal_mode = wal; ${SCHEMA}`);
  const opened = stack.move();
  return {
    name: 'SQLite',
    factory: () => sqlite({ file, relations: RELATIONS }) as AdapterFactory,
    async read() {
      using reader = new DatabaseSync(file, { readOnly: true });
      const row = reader.prepare(COUNTS).get();
      return { value: Number(row?.value), entries: Number(row?.entries) };
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

const COUNTS = 'select value, (select count(*) from entry) as entries from counter';

async function openPostgresCounter(): Promise<WriterBackend> {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await startServer());
  const db = await server.createDatabase();
  const held = stack.use(await protectedDatabase(SCHEMA, { relations: RELATIONS }, { db }));
  const opened = stack.move();
  return {
    name: 'PostgreSQL',
    factory: () => held.factory() as AdapterFactory,
    async read() {
      const [row] = await db.run(COUNTS);
      return { value: Number(row?.value), entries: Number(row?.entries) };
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** Who writes, how often and where. `internals` can switch off a check, which must be noticed. */
export interface Writing {
  readonly writers: number;
  readonly rounds: number;
  readonly backends?: readonly (() => Promise<WriterBackend>)[];
  readonly internals?: Internals;
}

export async function runWriters(
  raw: Pick<RawRecords, 'run'>,
  { writers, rounds, backends = [openSqliteCounter, openPostgresCounter], internals }: Writing,
  progress: (line: string) => void,
): Promise<readonly Cell[]> {
  const ended: WriterRound[] = [];
  for (const open of backends) {
    await using backend = await open();
    using folder = temporaryFolder();
    await using stack = new AsyncDisposableStack();
    const runtimes: Runtime[] = [];
    for (let index = 0; index < RUNTIMES; index += 1)
      runtimes.push(stack.use(await openRuntime(folder.path, backend, internals)));
    for (let round = 1; round <= rounds; round += 1) {
      progress(`${backend.name}: ${writers} writers, round ${round} of ${rounds}`);
      const name = `writers|${backend.name}|${writers}|${round}`;
      ended.push(await raw.run(name, () => runRound(runtimes, backend, writers)));
    }
  }
  return writerCells(ended);
}

async function openRuntime(
  folder: string,
  backend: WriterBackend,
  internals: Internals | undefined,
): Promise<Runtime> {
  const config = {
    store: join(folder, 'ledger.db'),
    keyring: join(folder, 'keys.json'),
    issuers: { study: { key: KEYS.publicKey, may: ['books'] } },
    adapters: { books: backend.factory() },
  };
  return await createRuntime(config, internals);
}

async function runRound(
  runtimes: readonly Runtime[],
  backend: WriterBackend,
  writers: number,
): Promise<WriterRound> {
  const before = await backend.read();
  const next = before.value + 1;
  const jobs = [];
  for (let writer = 1; writer <= writers; writer += 1) {
    const runtime = runtimes[writer % runtimes.length];
    if (runtime === undefined) throw new Error('there is no runtime');
    const id = next * 1000 + writer;
    const effects = [
      update('counter', { id: 1 }, { value: [before.value, next] }),
      insert('entry', { id, round: next }),
    ];
    const task = `round ${next}, writer ${writer}`;
    const proposal = await runtime.prepare({ adapter: 'books', task, planRevision: 1, effects });
    const license = approver(KEYS).sign(proposal, { expiresIn: '10m' });
    const statements = [
      { sql: `insert into entry values (${id}, ${next})` },
      { sql: 'update counter set value = value + 1 where id = 1' },
    ];
    jobs.push({ runtime, license, action: { statements } });
  }
  const verdicts = await Promise.all(
    jobs.map(({ runtime, license, action }) => runtime.execute(license, action)),
  );
  for (const verdict of verdicts) keepVerdict(verdict);
  const after = await backend.read();
  return {
    backend: backend.name,
    writers,
    committed: verdicts.filter(({ kind }) => kind === 'committed').length,
    counted: after.value - before.value,
    entries: after.entries - before.entries,
  };
}

/** Counts each backend's rounds with one commit, and the changes that were lost or doubled. */
export function writerCells(ended: readonly WriterRound[]): readonly Cell[] {
  return [...Map.groupBy(ended, ({ backend }) => backend)].flatMap(([backend, rounds]) => {
    const name = `${backend}: ${rounds[0]?.writers} writers on the same row`;
    const isRight = ({ committed, counted, entries }: WriterRound) =>
      committed === 1 && counted === 1 && entries === 1;
    const wrong = rounds.reduce(
      (sum, { committed, counted, entries }) =>
        sum + Math.abs(counted - committed) + Math.abs(entries - committed),
      0,
    );
    return [
      exactly(`${name}, one commits`, rounds.filter(isRight).length, 'rounds', rounds.length),
      exactly(`${name}, changes lost or doubled`, wrong, 'changes', 0),
    ];
  });
}
