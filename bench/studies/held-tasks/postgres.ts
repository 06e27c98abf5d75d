import { postgres } from '../../../src/adapters/postgres/index.ts';
import { Connection } from '../../../src/postgres/connection.ts';
import { protectedDatabase } from '../../../test/postgres/protected.ts';
import { type Cell, exactly, figure, medianCell, type StudyOptions } from '../../study.ts';
import { temporaryFolder } from '../../temporary.ts';
import { startBenchServer } from '../pg-cost/site.ts';
import { CALLS, openTasks, rowsOf, SCHEMA, workOff } from './books.ts';

const SQL = 'update item set n = n + 1 where id = $1';
const AT_ONCE = 50;

/** One call against one statement in a plain transaction, and fifty tasks at once. */
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
    await plain.script('begin');
    for (const id of rowsOf(index + 1)) {
      const from = performance.now();
      await plain.query(SQL, [String(id)]);
      bare.push(performance.now() - from);
    }
    await plain.script('commit');
  }
  // No call is made before all of them are open.
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
  const crowd = await Promise.all(
    licenses.slice(alone).map((license, at) => {
      return workOff(runtime, license, alone + at + 1, SQL, opened);
    }),
  );
  const seconds = (performance.now() - from) / 1000;
  await runtime.close();
  return [
    medianCell('PostgreSQL: one call of a held task', calls, 'ms'),
    medianCell('PostgreSQL: one statement of a plain transaction', bare, 'ms'),
    exactly('PostgreSQL: tasks at once that committed', crowd.length, 'tasks', AT_ONCE),
    medianCell('PostgreSQL: one call, fifty tasks at once', crowd.flat(), 'ms'),
    figure('PostgreSQL: calls per second, fifty tasks at once', (AT_ONCE * CALLS) / seconds, '1/s'),
  ];
}
