import { postgres } from '../../../src/adapters/postgres/index.ts';
import { Connection } from '../../../src/postgres/connection.ts';
import { protectedDatabase } from '../../../test/postgres/protected.ts';
import type { TestDatabase } from '../../../test/postgres/server.ts';
import {
  type Cell,
  exactly,
  figure,
  medianCell,
  pairedCell,
  type StudyOptions,
} from '../../study.ts';
import { temporaryFolder } from '../../temporary.ts';
import { startBenchServer } from '../pg-cost/site.ts';
import { CALLS, openTasks, rowsOf, SCHEMA, workOff } from './books.ts';

const SQL = 'update item set n = n + 1 where id = $1';
const AT_ONCE = 50;

/** One call against one statement in a plain transaction, and fifty of either at once. */
export async function measurePostgres({ quick, progress }: StudyOptions): Promise<readonly Cell[]> {
  progress('PostgreSQL: calls of held tasks, one by one and fifty at once');
  const alone = quick ? 10 : 100;
  const tasks = alone + AT_ONCE;
  await using server = await startBenchServer();
  using folder = temporaryFolder();
  const rows = `insert into item select n, n / ${CALLS}, 0 from generate_series(0, ${(tasks + 1) * CALLS}) as s(n)`;
  const settings = { relations: ['item'], sessions: { max: AT_ONCE }, stageTimeoutMs: 120_000 };
  const db = await server.createDatabase();
  await using place = await protectedDatabase(`${SCHEMA}; ${rows}`, settings, { db });
  const { runtime, licenses } = await openTasks(folder.path, postgres(place.options), tasks);
  const other = await server.createDatabase();
  await other.run(`${SCHEMA}; ${rows}`);
  await using plain = await Connection.open(other.url(), 'bench');
  const calls: number[] = [];
  const bare: number[] = [];
  for (const [index, license] of licenses.slice(0, alone).entries()) {
    calls.push(...(await workOff(runtime, license, index + 1, SQL)));
    bare.push(...(await workPlainly(plain, index + 1)));
  }
  const crowd = await atOnce((at, opened) => {
    return workOff(runtime, licenses[alone + at], alone + at + 1, SQL, opened);
  });
  const others = await plainCrowd(other, alone);
  await runtime.close();
  return [
    medianCell('PostgreSQL: one call of a held task', calls, 'ms'),
    medianCell('PostgreSQL: one statement of a plain transaction', bare, 'ms'),
    pairedCell('PostgreSQL: one call over one statement', calls, bare),
    exactly('PostgreSQL: tasks at once that committed', crowd.samples.length, 'tasks', AT_ONCE),
    medianCell('PostgreSQL: one call, fifty tasks at once', crowd.samples.flat(), 'ms'),
    figure('PostgreSQL: calls per second, fifty tasks at once', crowd.perSecond, '1/s'),
    figure('PostgreSQL: the same, fifty plain transactions at once', others.perSecond, '1/s'),
    figure('PostgreSQL: fifty at once, of plain', crowd.perSecond / others.perSecond, 'x'),
  ];
}

/** The statements of one task in a transaction; how long each took. */
async function workPlainly(
  plain: Connection,
  task: number,
  opened: () => Promise<void> = async () => {},
): Promise<readonly number[]> {
  const samples: number[] = [];
  await plain.script('begin');
  await opened();
  for (const id of rowsOf(task)) {
    const from = performance.now();
    await plain.query(SQL, [String(id)]);
    samples.push(performance.now() - from);
  }
  await plain.script('commit');
  return samples;
}

async function plainCrowd(db: TestDatabase, alone: number) {
  await using opened = new AsyncDisposableStack();
  const sessions: Connection[] = [];
  for (let at = 0; at < AT_ONCE; at += 1)
    sessions.push(opened.use(await Connection.open(db.url(), 'bench')));
  return await atOnce((at, wait) => workPlainly(sessions[at] as Connection, alone + at + 1, wait));
}

/** Fifty that make no call before all of them are open; until the last of them is committed. */
async function atOnce(
  work: (at: number, opened: () => Promise<void>) => Promise<readonly number[]>,
) {
  const { promise: allOpen, resolve } = Promise.withResolvers<void>();
  let open = 0;
  let from = 0;
  const opened = async () => {
    open += 1;
    if (open === AT_ONCE) {
      from = performance.now();
      resolve();
    }
    await allOpen;
  };
  const samples = await Promise.all(Array.from({ length: AT_ONCE }, (_, at) => work(at, opened)));
  const seconds = (performance.now() - from) / 1000;
  return { samples, perSecond: (AT_ONCE * CALLS) / seconds };
}
