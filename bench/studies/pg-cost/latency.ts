import type { Step } from '../../../src/contract/steps.ts';
import { atMost, type Cell, figure, median, quantile } from '../../study.ts';
import type { CpuMeter } from './cpu.ts';
import { connect, openDirect, openHeld, type Path } from './paths.ts';
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
export function ratio(of: Blocks | undefined, to: Blocks | undefined): number {
  return median((of ?? []).map((block, index) => median(block) / median(to?.[index] ?? [])));
}

/** What one client waits for, and where the time goes. */
export async function measureLatency(
  site: Site,
  size: LatencySize,
  numbers: { next: number },
  meter: CpuMeter,
): Promise<Cell[]> {
  const steps = { protected: stepTimer(), certified: stepTimer() };
  await using direct = await openDirect(site, 1);
  await using held = await openHeld(site, { certified: false, reached: steps.protected.reached });
  await using certified = await openHeld(site, {
    certified: true,
    reached: steps.certified.reached,
  });
  await using strangers = await connect(site.plainUrl, 1);
  await using among = await openHeld(site, { certified: true, stranger: strangers.client(0) });
  const timed = [direct, steps.protected.wrap(held), steps.certified.wrap(certified), among];
  const used = timed.map(() => ({ client: [] as number[], server: [] as number[] }));
  const [plain, uncertified, full, disturbed] = await interleave(
    timed,
    size,
    numbers,
    async (path, block) => {
      const before = meter.read();
      await block();
      const after = meter.read();
      used[path]?.client.push((after.client - before.client) / size.perBlock);
      used[path]?.server.push((after.server - before.server) / size.perBlock);
    },
  );
  const cells = [plain, uncertified, full, disturbed].flatMap((blocks, index) => [
    figure(`1 client: ${timed[index]?.name}, median`, median((blocks ?? []).flat()), 'ms'),
    figure(`1 client: ${timed[index]?.name}, p95`, quantile((blocks ?? []).flat(), 0.95), 'ms'),
    figure(
      `1 client: ${timed[index]?.name}, processor time of the client`,
      median(used[index]?.client ?? []),
      'ms',
    ),
    figure(
      `1 client: ${timed[index]?.name}, processor time of the server`,
      median(used[index]?.server ?? []),
      'ms',
    ),
  ]);
  return [
    ...cells,
    atMost('1 client: protected over direct', ratio(uncertified, plain), 'x', 2.6),
    atMost('1 client: certified over direct', ratio(full, plain), 'x', 3),
    {
      ...atMost('1 client: certified over protected', ratio(full, uncertified), 'x', 1.5),
      paper: 2.19,
    },
    figure(
      '1 client: certified among strangers over protected',
      ratio(disturbed, uncertified),
      'x',
    ),
    ...steps.protected.figures('protected'),
    ...steps.certified.figures('certified'),
  ];
}

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
        .map(([step, times]) => figure(`${name}: time to ${step}`, median(times), 'ms')),
  };
}
