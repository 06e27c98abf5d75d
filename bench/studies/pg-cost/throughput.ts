import type { Samples } from '../../statistics.ts';
import { atLeast, type Cell, figure, medianCell } from '../../study.ts';
import { FLOORS, openFloor, openFloorSessions } from './floor.ts';
import { openLockAndSnapshot } from './lock-and-snapshot.ts';
import { LEDGERS, openDirect, openHeld, type Path } from './paths.ts';
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

/** Of the throughput of direct transactions, certified and with the ledger in the database. */
const LEAST = 0.28;

/**
 * Operations per second of many clients on disjoint rows of the same tables, a slice of each path
 * in turns.
 */
export async function measureThroughput(
  site: Site,
  { clients, relations }: { readonly clients: number; readonly relations: number },
  size: ThroughputSize,
  numbers: { next: number },
): Promise<Cell[]> {
  await using opened = new AsyncDisposableStack();
  const open = async (path: Promise<Path>) => opened.use(await path);
  const locked = await open(openLockAndSnapshot(site, relations, clients));
  const paths = [await open(openDirect(site, clients)), locked];
  const sessions = opened.use(await openFloorSessions(site, clients));
  for (const ledger of LEDGERS) {
    for (const kind of FLOORS) paths.push(await open(openFloor(site, { kind, ledger, sessions })));
    for (const certified of [false, true])
      paths.push(await open(openHeld(site, { certified, ledger })));
  }
  const rates = new Map(paths.map(({ name }) => [name, [] as number[]]));
  const countOf = (path: Path) =>
    path.writesOnce ? size.held : path === locked ? size.locked : size.direct;
  for (let round = 0; round <= size.rounds; round += 1) {
    for (const path of paths) {
      // The first round opens connections and compiles. The slow one needs no warming up.
      if (round === 0 && path === locked) continue;
      const ids = takeNumbers(site, numbers, path, round === 0 ? clients * 2 : countOf(path));
      await path.approve(ids);
      const rate = await runClients(path, ids, clients);
      if (round > 0) rates.get(path.name)?.push(rate);
    }
  }
  return cellsOf(`${clients} clients`, rates);
}

function cellsOf(name: string, rates: ReadonlyMap<string, readonly number[]>): Cell[] {
  const share = (path: string, to: string): Samples => ({
    statistic: 'paired',
    of: rates.get(path) ?? [],
    to: rates.get(to) ?? [],
  });
  const judged = 'certified, PostgreSQL ledger';
  const others = [...rates.keys()].filter((path) => path.includes('ledger') && path !== judged);
  const held = 'protected, SQLite ledger';
  const locked = 'lock and snapshot';
  return [
    ...[...rates].map(([path, own]) => medianCell(`${name}: ${path}`, own, 'op/s')),
    ...others.map((path) => figure(`${name}: ${path}, of direct`, share(path, 'direct'), 'x')),
    atLeast(`${name}: ${judged}, of direct`, share(judged, 'direct'), 'x', LEAST),
    atLeast(`${name}: protected over ${locked}`, share(held, locked), 'x', 100),
    figure(`${name}: certified over ${locked}`, share('certified, SQLite ledger', locked), 'x'),
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
  if (!path.writesOnce) return Array.from({ length: count }, (_, index) => (index % site.rows) + 1);
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
