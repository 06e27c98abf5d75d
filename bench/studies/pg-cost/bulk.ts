import type { Step } from '../../../src/contract/steps.ts';
import { insert, remove, update } from '../../../src/protocol/draft.ts';
import type { ApprovedEffect } from '../../../src/protocol/effect.ts';
import type { Samples } from '../../statistics.ts';
import { atMost, type Cell, figure, medianCell } from '../../study.ts';
import { BULK_TABLE } from './books.ts';
import { type BenchRuntime, connect, openRuntime } from './paths.ts';
import type { Site } from './site.ts';

interface BulkStatement {
  readonly name: string;
  /** The most that it may take over the bare statement. */
  readonly target: number;
  readonly sql: string;
  readonly effect: (id: number) => ApprovedEffect;
}

/** One statement each, in this order, so that the table is empty again after the last. */
const STATEMENTS: readonly BulkStatement[] = [
  {
    name: 'insert',
    target: 2.5,
    sql: `insert into ${BULK_TABLE} select n, 100, 'line ' || n from generate_series(1, $1::integer) as n`,
    effect: (id) => insert(BULK_TABLE, { id, amount_cents: 100, text: `line ${id}` }),
  },
  {
    name: 'update',
    target: 3,
    sql: `update ${BULK_TABLE} set amount_cents = amount_cents + 1 where id <= $1::integer`,
    effect: (id) => update(BULK_TABLE, { id }, { amount_cents: [100, 101] }),
  },
  {
    name: 'delete',
    target: 7,
    sql: `delete from ${BULK_TABLE} where id <= $1::integer`,
    effect: (id) => remove(BULK_TABLE, { id }, { amount_cents: 101, text: `line ${id}` }),
  },
];

/** Statements over many rows, every row and value of them approved, against the bare statements. */
export async function measureBulk(
  site: Site,
  { rows, rounds }: { readonly rows: number; readonly rounds: number },
  progress: (line: string) => void,
): Promise<Cell[]> {
  await using connections = await connect(site.plainUrl, 1);
  let claimedAt = 0;
  let promotedAt = 0;
  const reached = (step: Step) => {
    if (step === 'path:claimed') claimedAt = performance.now();
    if (step === 'path:promoted') promotedAt = performance.now();
  };
  await using bench = await openRuntime(site, { certified: false, reached });
  const client = connections.client(0);
  const times = STATEMENTS.map(() => ({
    bare: [] as number[],
    held: [] as number[],
    compared: [] as number[],
  }));
  const first: number[] = [];
  const approved: (() => Promise<void>)[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    progress(`bulk, round ${round} of ${rounds}`);
    for (const [index, statement] of STATEMENTS.entries()) {
      // Only now are the rows there that it changes, without which it is not prepared.
      approved[index] ??= await approveBulk(bench, statement, rows, rounds + 1);
      const held = await timed(approved[index]);
      const bare = await timed(async () => {
        await client.query('begin');
        await client.query(statement.sql, [rows]);
        await client.query('commit');
      });
      if (round === 0) {
        first[index] = held / bare;
        continue; // It compiles, and the license is checked.
      }
      times[index]?.bare.push(bare);
      times[index]?.held.push(held);
      times[index]?.compared.push(promotedAt - claimedAt);
    }
  }
  return STATEMENTS.flatMap(({ name, target }, index) => {
    const { bare = [], held = [], compared = [] } = times[index] ?? {};
    const over = (of: readonly number[]): Samples => ({ statistic: 'paired', of, to: bare });
    return [
      medianCell(`bulk ${name} of ${rows} rows: bare`, bare, 'ms'),
      medianCell(`bulk ${name}: protected from claim to promotion`, compared, 'ms'),
      medianCell(`bulk ${name}: protected, license of ${rows} effects included`, held, 'ms'),
      figure(`bulk ${name}: claim to promotion over bare`, over(compared), 'x'),
      figure(`bulk ${name}: first use of its license over bare`, first[index] ?? Number.NaN, 'x'),
      atMost(`bulk ${name}: protected over bare`, over(held), 'x', target),
    ];
  });
}

async function approveBulk(
  bench: BenchRuntime,
  { name, sql, effect }: BulkStatement,
  rows: number,
  occurrences: number,
): Promise<() => Promise<void>> {
  const effects = Array.from({ length: rows }, (_, index) => effect(index + 1));
  const license = await bench.approve({ task: `bulk-${name}`, effects, occurrences });
  return async () => {
    const terminal = await bench.runtime.execute(license, { sql, values: [rows] });
    if (terminal.kind !== 'committed')
      throw new Error(`not committed: ${JSON.stringify(terminal).slice(0, 2000)}`);
  };
}

async function timed(work: () => Promise<void>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}
