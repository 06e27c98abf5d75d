// The cost of protection on MariaDB: a 5-effect operation under a license, compared with the same
// statements in an XA branch and in a plain transaction. Clients and server share this machine.
import { loadavg } from 'node:os';
import type { Step } from '../../src/contract/steps.ts';
import { insert, remove, update } from '../../src/protocol/draft.ts';
import type { ApprovedEffect } from '../../src/protocol/effect.ts';
import { findMariadb, MISSING } from '../../test/mysql/binaries.ts';
import type { MariadbServer } from '../../test/mysql/server.ts';
import type { Samples } from '../statistics.ts';
import type { StudyOptions } from '../study.ts';
import { atMost, type Cell, figure, medianCell, NotRun, type Study } from '../study.ts';
import { openFloor } from './mariadb-cost/floor.ts';
import {
  approve,
  BULK_TABLE,
  type MariadbSite,
  openMariadbSite,
  openPlain,
  openProtected,
  openRuntime,
  openXa,
  startBenchServer,
} from './mariadb-cost/site.ts';
import { interleave, type LatencySize, ratio } from './pg-cost/latency.ts';
import type { Path } from './pg-cost/paths.ts';
import { runClients } from './pg-cost/throughput.ts';

const QUICK = {
  rows: 2000,
  latency: { blocks: 2, perBlock: 10, warmup: 10 },
  throughput: { rounds: 1, count: 32 },
  sizes: { rows: [1000, 10_000], latency: { blocks: 1, perBlock: 10, warmup: 10 } },
  bulk: { rows: 1000, rounds: 1 },
};
const FULL: typeof QUICK = {
  rows: 50_000,
  latency: { blocks: 8, perBlock: 40, warmup: 100 },
  throughput: { rounds: 3, count: 320 },
  sizes: { rows: [1000, 1_000_000], latency: { blocks: 6, perBlock: 40, warmup: 60 } },
  bulk: { rows: 50_000, rounds: 2 },
};

async function run({ quick, progress }: StudyOptions): Promise<readonly Cell[]> {
  if (findMariadb() === undefined) throw new NotRun(MISSING);
  const size = quick ? QUICK : FULL;
  const load = () => loadavg()[0] ?? Number.NaN;
  const cells: Cell[] = [figure('load of the machine before (1 minute)', load(), '')];
  const add = (measured: readonly Cell[]) => {
    cells.push(...measured);
    for (const { name, value, unit } of measured)
      progress(`${name}: ${value.toPrecision(3)} ${unit}`);
  };
  await using server = await startBenchServer(false);
  {
    await using site = await openMariadbSite(server, size.rows);
    const numbers = { next: 1 };
    add(await measureLatency(site, size.latency, numbers, '1 client'));
    for (const clients of [8, 32])
      add(await measureThroughput(site, clients, size.throughput, numbers));
    add(await measureBulk(site, size.bulk));
  }
  add(await measureSizes(server, size.sizes));
  await using logging = await startBenchServer(true);
  await using logged = await openMariadbSite(logging, size.rows);
  add(await measureLatency(logged, size.latency, { next: 1 }, '1 client, binary log'));
  return [...cells, figure('load of the machine after (1 minute; the study included)', load(), '')];
}

/** Measures one client's latency, its parts, and the server's flushes. */
async function measureLatency(
  site: MariadbSite,
  size: LatencySize,
  numbers: { next: number },
  name: string,
): Promise<readonly Cell[]> {
  const parts = new Parts();
  await using plain = await openPlain(site, 1);
  await using xa = await openXa(site, 1);
  await using floor = await openFloor(site);
  await using held = await openProtected(site, (step) => parts.note(step));
  const paths = [plain, xa, floor, held];
  const flushed = paths.map(() => 0);
  const times = await interleave(paths, size, numbers, async (path, block) => {
    const before = await site.flushes();
    await block();
    flushed[path] = (flushed[path] ?? 0) + (await site.flushes()) - before;
  });
  const [ofPlain, ofXa, ofFloor, ofHeld] = times;
  const perPath = paths.flatMap((path, index) => {
    const runs = size.blocks * size.perBlock;
    return [
      medianCell(`${name}: ${path.name}, median`, (times[index] ?? []).flat(), 'ms'),
      figure(
        `${name}: ${path.name}, flushes of the server`,
        (flushed[index] ?? 0) / runs,
        'per op',
      ),
    ];
  });
  return [
    ...perPath,
    atMost(`${name}: protected over direct XA`, ratio(ofHeld, ofXa), 'x', 6),
    atMost(`${name}: protected over plain transaction`, ratio(ofHeld, ofPlain), 'x', 6),
    figure(`${name}: floor over direct XA`, ratio(ofFloor, ofXa), 'x'),
    figure(`${name}: floor over plain transaction`, ratio(ofFloor, ofPlain), 'x'),
    figure(`${name}: protected over its floor`, ratio(ofHeld, ofFloor), 'x'),
    medianCell(`${name}: survey alone`, await timeSurveys(site, size), 'ms'),
    figure(
      `${name}: comparison and gate alone`,
      parts.between('path:observed', 'path:gate-passed'),
      'ms',
    ),
  ];
}

/** Within an operation the first survey runs beside the claim, so surveys are measured alone. */
async function timeSurveys(site: MariadbSite, size: LatencySize): Promise<readonly number[]> {
  await using runtime = await openRuntime(site);
  const times: number[] = [];
  for (let index = -size.warmup; index < size.blocks * size.perBlock; index += 1) {
    const started = performance.now();
    await runtime.survey('books');
    if (index >= 0) times.push(performance.now() - started);
  }
  return times;
}

/** The times at which consecutive executions reached their steps. */
class Parts {
  readonly #at = new Map<Step, number[]>();

  note(step: Step): void {
    const times = this.#at.get(step) ?? [];
    times.push(performance.now());
    this.#at.set(step, times);
  }

  /** Compares the last entries, because admission passes some steps before the first execution. */
  between(from: Step, to: Step): Samples {
    const [begins, ends] = [this.#at.get(from) ?? [], this.#at.get(to) ?? []];
    const count = Math.min(begins.length, ends.length);
    const last = begins.slice(-count);
    return { statistic: 'increment', of: ends.slice(-count), to: last };
  }
}

/** Operations per second of many clients on different rows. The paths are measured in turn. */
async function measureThroughput(
  site: MariadbSite,
  clients: number,
  { rounds, count }: { readonly rounds: number; readonly count: number },
  numbers: { next: number },
): Promise<readonly Cell[]> {
  await using plain = await openPlain(site, clients);
  await using xa = await openXa(site, clients);
  await using held = await openProtected(site);
  const slices = [plain, xa, held].map((path) => ({ path, rates: [] as number[] }));
  for (let round = 0; round <= rounds; round += 1)
    for (const { path, rates } of slices) {
      const ids = Array.from({ length: count }, (_, index) => numbers.next + index);
      numbers.next += count;
      await path.approve(ids);
      const rate = await runClients(path, ids, clients);
      if (round > 0) rates.push(rate); // The first round opens connections and compiles.
    }
  const share = (of: readonly number[], to: readonly number[]): Samples => ({
    statistic: 'paired',
    of,
    to,
  });
  const [ofPlain = [], ofXa = [], ofHeld = []] = slices.map(({ rates }) => rates);
  return [
    ...slices.map(({ path, rates }) =>
      medianCell(`${clients} clients: ${path.name}`, rates, 'op/s'),
    ),
    figure(`${clients} clients: protected of direct XA`, share(ofHeld, ofXa), 'x'),
    figure(`${clients} clients: protected of plain transaction`, share(ofHeld, ofPlain), 'x'),
  ];
}

/** Measures the same operation on small and large tables. Its time must not grow with them. */
async function measureSizes(
  server: MariadbServer,
  { rows, latency }: { readonly rows: readonly number[]; readonly latency: LatencySize },
): Promise<readonly Cell[]> {
  await using small = await openMariadbSite(server, rows[0] ?? 0);
  await using large = await openMariadbSite(server, rows[1] ?? 0);
  await using few = await openProtected(small);
  await using many = await openProtected(large);
  const paths: readonly Path[] = [few, many];
  const read = paths.map(() => 0);
  const around = async (path: number, block: () => Promise<void>) => {
    const before = await small.rowsRead();
    await block();
    read[path] = (read[path] ?? 0) + (await small.rowsRead()) - before;
  };
  const [ofFew, ofMany] = await interleave(paths, latency, { next: 1 }, around);
  const [readOfFew = 0, readOfMany = 0] = read;
  return [
    atMost('rows that the server looks at, large over small', readOfMany / readOfFew, 'x', 1.05),
    medianCell(`${rows[0]} rows: protected, median`, (ofFew ?? []).flat(), 'ms'),
    medianCell(`${rows[1]} rows: protected, median`, (ofMany ?? []).flat(), 'ms'),
    atMost(`${rows[1]} rows over ${rows[0]} rows`, ratio(ofMany, ofFew), 'x', 1.2),
  ];
}

interface BulkStatement {
  readonly name: string;
  readonly sql: (rows: number) => string;
  readonly effect: (id: number) => ApprovedEffect;
}

/** One statement of each kind. In this order the table is empty again after the last one. */
const BULK: readonly BulkStatement[] = [
  {
    name: 'insert',
    sql: (rows) =>
      `insert into ${BULK_TABLE} select id, 100, concat('line ', id) from invoice where id <= ${rows}`,
    effect: (id) => insert(BULK_TABLE, { id, amount_cents: 100, text: `line ${id}` }),
  },
  {
    name: 'update',
    sql: (rows) => `update ${BULK_TABLE} set amount_cents = amount_cents + 1 where id <= ${rows}`,
    effect: (id) => update(BULK_TABLE, { id }, { amount_cents: [100, 101] }),
  },
  {
    name: 'delete',
    sql: (rows) => `delete from ${BULK_TABLE} where id <= ${rows}`,
    effect: (id) => remove(BULK_TABLE, { id }, { amount_cents: 101, text: `line ${id}` }),
  },
];

/** Statements over many rows, each row approved, against the bare statements. */
async function measureBulk(
  site: MariadbSite,
  { rows, rounds }: { readonly rows: number; readonly rounds: number },
): Promise<readonly Cell[]> {
  await using runtime = await openRuntime(site);
  const times = BULK.map(() => ({ bare: [] as number[], held: [] as number[] }));
  const licenses: unknown[] = [];
  for (let round = 0; round <= rounds; round += 1)
    for (const [index, { name, sql, effect }] of BULK.entries()) {
      // Approve here: preparing fails before the rows that the statement changes exist.
      const effects = Array.from({ length: rows }, (_, at) => effect(at + 1));
      licenses[index] ??= await approve(runtime, `bulk-${name}`, effects, rounds + 1);
      const began = performance.now();
      const terminal = await runtime.execute(licenses[index], { sql: sql(rows) });
      const ended = performance.now();
      if (terminal.kind !== 'committed')
        throw new Error(`not committed: ${JSON.stringify(terminal).slice(0, 2000)}`);
      await site.runPlain(sql(rows));
      const bare = performance.now() - ended;
      if (round === 0) continue; // The first round compiles.
      times[index]?.bare.push(bare);
      times[index]?.held.push(ended - began);
    }
  return BULK.flatMap(({ name }, index) => {
    const { bare = [], held = [] } = times[index] ?? {};
    return [
      medianCell(`bulk ${name} of ${rows} rows: bare`, bare, 'ms'),
      medianCell(`bulk ${name} of ${rows} rows: protected`, held, 'ms'),
      figure(`bulk ${name}: protected over bare`, { statistic: 'paired', of: held, to: bare }, 'x'),
    ];
  });
}

export const mariadbCostStudy: Study = {
  name: 'mariadb-cost',
  about:
    'a protected 5-effect operation on MariaDB against direct XA and a plain transaction: latency, throughput, size, bulk',
  run,
};
