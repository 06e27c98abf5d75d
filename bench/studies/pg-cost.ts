// The cost of protection on PostgreSQL: a 5-effect operation under a license, compared with the
// same statement in a direct transaction of three round trips. Clients, server and anything else
// that runs share this machine.
import { loadavg } from 'node:os';
import { type Cell, figure, type Study, type StudyOptions } from '../study.ts';
import { measureBulk } from './pg-cost/bulk.ts';
import { cpuMeter } from './pg-cost/cpu.ts';
import { measureRelations, measureSizes } from './pg-cost/growth.ts';
import { measureLatency } from './pg-cost/latency.ts';
import { measureLedgers } from './pg-cost/ledgers.ts';
import { measureManaged } from './pg-cost/managed.ts';
import { measurePeak } from './pg-cost/peak.ts';
import { openSite, startBenchServer } from './pg-cost/site.ts';
import { measureThroughput } from './pg-cost/throughput.ts';

const RELATIONS = 12;

const QUICK = {
  rows: 2000,
  latency: { blocks: 2, perBlock: 10, warmup: 10 },
  throughput: { rounds: 1, direct: 200, held: 50, locked: 4 },
  bulk: { rows: 1000, rounds: 1 },
  peakRows: 1000,
  ledgers: { claims: 64, occurrences: [200, 1000], lookups: 50 },
  sizes: { rows: [1000, 10_000], turns: 1 },
  relations: { executed: [12, 40], certified: [12, 40], turns: 1 },
  growth: { blocks: 2, perBlock: 8, warmup: 8 },
  certificates: 5,
};
const FULL: typeof QUICK = {
  rows: 24_000,
  latency: { blocks: 12, perBlock: 40, warmup: 200 },
  throughput: { rounds: 4, direct: 1000, held: 250, locked: 16 },
  bulk: { rows: 50_000, rounds: 3 },
  peakRows: 1_000_000,
  ledgers: { claims: 2000, occurrences: [10_000, 1_000_000], lookups: 1000 },
  sizes: { rows: [1000, 100_000, 1_000_000], turns: 4 },
  relations: { executed: [12, 100], certified: [12, 100, 1000], turns: 3 },
  growth: { blocks: 2, perBlock: 40, warmup: 40 },
  certificates: 100,
};

async function run({ quick, progress }: StudyOptions): Promise<readonly Cell[]> {
  const size = quick ? QUICK : FULL;
  const load = () => loadavg()[0] ?? Number.NaN;
  const cells: Cell[] = [figure('load of the machine before (1 minute)', load(), '')];
  // Print figures at once, so that an interrupted run of minutes still shows something.
  const add = (measured: readonly Cell[]) => {
    cells.push(...measured);
    for (const { name, value, unit } of measured)
      progress(`${name}: ${value.toPrecision(3)} ${unit}`);
  };
  await using server = await startBenchServer();
  {
    progress(`books with ${size.rows} rows per table`);
    await using site = await openSite(server, RELATIONS, size.rows);
    const numbers = { next: 1 };
    progress('1 client');
    add(await measureLatency(site, size.latency, numbers, cpuMeter(server.pid)));
    {
      progress('the managed boundary');
      await using managed = await openSite(server, RELATIONS, size.rows, 'managed');
      add(await measureManaged(site, managed, size.latency, numbers));
    }
  }
  {
    // Protected operations need rows that were not charged before.
    await using site = await openSite(server, RELATIONS, size.rows);
    const numbers = { next: 1 };
    for (const clients of [8, 32]) {
      progress(`${clients} clients`);
      const setting = { clients, relations: RELATIONS };
      add(await measureThroughput(site, setting, size.throughput, numbers));
    }
    add(await measureBulk(site, size.bulk, progress));
    add(await measurePeak(site, size.peakRows, progress));
    add(await measureLedgers(site, size.ledgers, progress));
  }
  progress(`tables with ${size.sizes.rows.join(', ')} rows`);
  add(await measureSizes(server, { ...size.sizes, relations: RELATIONS }, size.growth));
  progress(`${size.relations.certified.join(', ')} relations`);
  add(await measureRelations(server, size.relations, size.growth, size.certificates));
  return [...cells, figure('load of the machine after (1 minute; the study included)', load(), '')];
}

export const pgCostStudy: Study = {
  name: 'pg-cost',
  about:
    'a protected 5-effect operation on PostgreSQL against a direct transaction: latency, throughput, size, bulk',
  run,
};
