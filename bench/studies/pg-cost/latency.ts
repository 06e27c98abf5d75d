import type { Step } from '../../../src/contract/steps.ts';
import type { Samples } from '../../statistics.ts';
import { atMost, type Cell, figure, medianCell, p95Cell } from '../../study.ts';
import type { CpuMeter } from './cpu.ts';
import { FLOORS, openFloor, openFloorSessions } from './floor.ts';
import { connect, LEDGERS, openDirect, openHeld, type Path } from './paths.ts';
import type { Site } from './site.ts';

export interface LatencySize {
  readonly blocks: number;
  readonly perBlock: number;
  readonly warmup: number;
}

/** Times of one path, block by block. */
export type Blocks = readonly (readonly number[])[];

/**
 * Runs the paths in turns, a block each, so that whatever disturbs the machine disturbs all of
 * them.
 */
export async function interleave(
  paths: readonly Path[],
  { blocks, perBlock, warmup }: LatencySize,
  numbers: { next: number },
  around: (path: number, block: () => Promise<void>) => Promise<void> = (_, block) => block(),
): Promise<readonly Blocks[]> {
  const times = paths.map(() => [] as number[][]);
  for (let block = -1; block < blocks; block += 1) {
    const count = block < 0 ? warmup : perBlock;
    for (const [index, path] of paths.entries()) {
      const ids = Array.from({ length: count }, (_, offset) => numbers.next + offset);
      numbers.next += count;
      await path.approve(ids);
      const measured: number[] = [];
      const runBlock = async () => {
        for (const id of ids) {
          const started = performance.now();
          await path.run(id, 0);
          measured.push(performance.now() - started);
        }
      };
      if (block < 0) await runBlock();
      else {
        await around(index, runBlock);
        times[index]?.push(measured);
      }
    }
  }
  return times;
}

/** The median over the blocks of how the medians within a block compare. */
export function ratio(of: Blocks = [], to: Blocks = []): Samples {
  return { statistic: 'blocks', of, to };
}

/** Targets of the ratios to the direct transaction, by ledger. */
const TARGETS = {
  SQLite: { protected: 3.6, certified: 4 },
  PostgreSQL: { protected: 3, certified: 3.4 },
} as const;

/** What one client waits for, and where the time goes, with both ledgers. */
export async function measureLatency(
  site: Site,
  size: LatencySize,
  numbers: { next: number },
  meter: CpuMeter,
): Promise<Cell[]> {
  await using opened = new AsyncDisposableStack();
  const open = async (path: Promise<Path>) => opened.use(await path);
  const paths = [await open(openDirect(site, 1))];
  const timers: { readonly name: string; readonly timer: StepTimer }[] = [];
  const sessions = opened.use(await openFloorSessions(site, 1));
  for (const ledger of LEDGERS) {
    for (const kind of FLOORS) paths.push(await open(openFloor(site, { kind, ledger, sessions })));
    for (const certified of [false, true]) {
      const timer = stepTimer();
      const { reached } = timer;
      const path = await open(openHeld(site, { certified, ledger, reached }));
      timers.push({ name: path.name, timer });
      paths.push(timer.wrap(path));
    }
  }
  const strangers = opened.use(await connect(site.plainUrl, 1));
  const stranger = strangers.client(0);
  for (const certified of [false, true])
    paths.push(await open(openHeld(site, { certified, stranger })));
  const [, , kind] = FLOORS;
  const disturb = () => stranger.query('select pg_current_xact_id()');
  paths.push(await open(openFloor(site, { kind, ledger: 'SQLite', sessions, disturb })));
  const used = paths.map(() => ({ client: [] as number[], server: [] as number[] }));
  const times = await interleave(paths, size, numbers, async (path, block) => {
    const before = meter.read();
    await block();
    const after = meter.read();
    used[path]?.client.push((after.client - before.client) / size.perBlock);
    used[path]?.server.push((after.server - before.server) / size.perBlock);
  });
  const figures = paths.flatMap(({ name }, index) => [
    medianCell(`1 client: ${name}, median`, (times[index] ?? []).flat(), 'ms'),
    p95Cell(`1 client: ${name}, p95`, (times[index] ?? []).flat(), 'ms'),
    medianCell(`1 client: ${name}, client's processor`, used[index]?.client ?? [], 'ms'),
    medianCell(`1 client: ${name}, server's processor`, used[index]?.server ?? [], 'ms'),
  ]);
  const byName = new Map(paths.map(({ name }, index) => [name, times[index]]));
  const steps = timers.flatMap(({ name, timer }) => timer.figures(name));
  return [...figures, ...ratiosOf(byName), ...steps];
}

function ratiosOf(times: ReadonlyMap<string, Blocks | undefined>): readonly Cell[] {
  const over = (name: string, to: string) => ratio(times.get(name), times.get(to));
  const perLedger = LEDGERS.flatMap((ledger) => {
    const at = `${ledger} ledger`;
    const [held, full] = [`protected, ${at}`, `certified, ${at}`];
    const [bare, needs, needsAll] = FLOORS.map((floor) => `${floor}, ${at}`) as [
      string,
      string,
      string,
    ];
    const target = TARGETS[ledger];
    return [
      ...[bare, needs, needsAll].map((floor) =>
        figure(`1 client: ${floor} over direct`, over(floor, 'direct'), 'x'),
      ),
      atMost(`1 client: ${held} over direct`, over(held, 'direct'), 'x', target.protected),
      atMost(`1 client: ${full} over direct`, over(full, 'direct'), 'x', target.certified),
      figure(`1 client: ${held} over its floor`, over(held, bare), 'x'),
      figure(`1 client: ${held} over the floor with what protection needs`, over(held, needs), 'x'),
      figure(
        `1 client: ${full} over the floor with what certification needs`,
        over(full, needsAll),
        'x',
      ),
    ];
  });
  const held = 'protected, SQLite ledger';
  const among = over('certified among strangers, SQLite ledger', held);
  // Waiting for the strangers is part of the figure; this is how much.
  const strangers = over('protected among strangers, SQLite ledger', held);
  const certified = over('certified, SQLite ledger', held);
  const floor = `${FLOORS[2]} among strangers`;
  return [
    ...perLedger,
    { ...atMost('1 client: certified over protected', certified, 'x', 1.5), paper: 2.19 },
    atMost('1 client: certified among strangers over protected', among, 'x', 1.4),
    figure(`1 client: ${floor} over protected`, over(`${floor}, SQLite ledger`, held), 'x'),
    figure('1 client: protected among strangers over protected', strangers, 'x'),
  ];
}

type StepTimer = ReturnType<typeof stepTimer>;

/** Notes when the steps of an execution are reached, each as the time since the one before. */
function stepTimer() {
  const byStep = new Map<string, number[]>();
  let previous = 0;
  const note = (name: string) => {
    const now = performance.now();
    const times = byStep.get(name) ?? [];
    times.push(now - previous);
    byStep.set(name, times);
    previous = now;
  };
  return {
    reached: (step: Step) => note(step),
    wrap: (path: Path): Path => ({
      ...path,
      async run(id, client) {
        previous = performance.now();
        await path.run(id, client);
        note('returned');
      },
    }),
    figures: (name: string): Cell[] =>
      [...byStep]
        .filter(([, times]) => times.length > 1)
        .map(([step, times]) => medianCell(`${name}: time to ${step}`, times, 'ms')),
  };
}
