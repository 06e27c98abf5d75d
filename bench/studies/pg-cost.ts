// What protection costs on PostgreSQL: a 5-effect operation under a license against the same statement in a direct
// transaction of three round trips. Clients and server share this machine.
import { loadavg } from 'node:os';
import { type Cell, figure, type Study, type StudyOptions } from '../study.ts';
import { measureLatency } from './pg-cost/latency.ts';
import { openSite, startBenchServer } from './pg-cost/site.ts';

const RELATIONS = 12;

async function run({ quick, progress }: StudyOptions): Promise<readonly Cell[]> {
  const load = loadavg()[0] ?? Number.NaN;
  await using server = await startBenchServer();
  const cells: Cell[] = [figure('load of the machine before (1 min; the study itself not included)', load, '')];
  progress('books with 20000 rows per table');
  await using site = await openSite(server, RELATIONS, 20_000);
  const numbers = { next: 1 };
  progress('latency of one client');
  const size = quick ? { blocks: 3, perBlock: 20, warmup: 20 } : { blocks: 15, perBlock: 40, warmup: 100 };
  cells.push(...(await measureLatency(site, size, numbers)));
  return cells;
}

export const pgCostStudy: Study = {
  name: 'pg-cost',
  about: 'a protected 5-effect operation on PostgreSQL against a direct transaction: latency, throughput, size, bulk',
  run,
};
