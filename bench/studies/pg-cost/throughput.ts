import { atLeast, type Cell, figure, median } from '../../study.ts';
import { openLockAndSnapshot } from './lock-and-snapshot.ts';
import { openDirect, openHeld, type Path } from './paths.ts';
import type { Site } from './site.ts';

export interface ThroughputSize {
  readonly rounds: number;
  /**
   * Operations of one slice: of the direct path, of the two protected ones, of lock and snapshot.
   */
  readonly direct: number;
  readonly held: number;
  readonly locked: number;
}

/**
 * Operations per second of many clients on disjoint rows of the same tables, a slice of each path
 * in turns.
 */
export async function measureThroughput(
  site: Site,
  {
    clients,
    relations,
    least,
  }: { readonly clients: number; readonly relations: number; readonly least: number },
  size: ThroughputSize,
  numbers: { next: number },
): Promise<Cell[]> {
  await using direct = await openDirect(site, clients);
  await using held = await openHeld(site, { certified: false });
  await using certified = await openHeld(site, { certified: true });
  await using locked = await openLockAndSnapshot(site, relations, clients);
  const slices = [
    { path: direct, count: size.direct, rates: [] as number[] },
    { path: held, count: size.held, rates: [] as number[] },
    { path: certified, count: size.held, rates: [] as number[] },
    { path: locked, count: size.locked, rates: [] as number[] },
  ] as const;
  for (let round = 0; round <= size.rounds; round += 1) {
    for (const { path, count, rates } of slices) {
      // The first round opens connections and compiles. The slow one needs no warming up.
      if (round === 0 && path === locked) continue;
      const ids = takeNumbers(site, numbers, path, round === 0 ? clients * 2 : count);
      await path.approve(ids);
      const rate = await runClients(path, ids, clients);
      if (round > 0) rates.push(rate);
    }
  }
  const [plain, ...others] = slices;
  const name = `${clients} clients`;
  const share = (rates: readonly number[], to: readonly number[]) =>
    median(rates.map((rate, round) => rate / (to[round] ?? Number.NaN)));
  const [protectedRates, certifiedRates, lockedRates] = others.map(({ rates }) => rates) as [
    number[],
    number[],
    number[],
  ];
  return [
    ...slices.map(({ path, rates }) => figure(`${name}: ${path.name}`, median(rates), 'op/s')),
    atLeast(`${name}: protected of direct`, share(protectedRates, plain.rates), 'x', least),
    atLeast(`${name}: certified of direct`, share(certifiedRates, plain.rates), 'x', least),
    atLeast(
      `${name}: protected over lock and snapshot`,
      share(protectedRates, lockedRates),
      'x',
      100,
    ),
    figure(`${name}: certified over lock and snapshot`, share(certifiedRates, lockedRates), 'x'),
  ];
}

/**
 * Rows for a slice. An approval is for rows that were never charged; the other paths may charge
 * rows again.
 */
function takeNumbers(
  site: Site,
  numbers: { next: number },
  path: Path,
  count: number,
): readonly number[] {
  const isApproved = path.name === 'protected' || path.name === 'certified';
  if (!isApproved) return Array.from({ length: count }, (_, index) => (index % site.rows) + 1);
  const first = numbers.next;
  numbers.next += count;
  if (numbers.next > site.rows) throw new Error('the books have too few rows');
  return Array.from({ length: count }, (_, index) => first + index);
}

/** Operations per second when so many clients share the work. */
export async function runClients(
  path: Path,
  ids: readonly number[],
  clients: number,
): Promise<number> {
  let next = 0;
  const work = async (client: number) => {
    while (next < ids.length) {
      const id = ids[next] ?? 0;
      next += 1;
      await path.run(id, client);
    }
  };
  const started = performance.now();
  await Promise.all(Array.from({ length: clients }, (_, client) => work(client)));
  return (ids.length * 1000) / (performance.now() - started);
}
