import { postgres } from '../../../src/adapters/postgres/index.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import type { TestServer } from '../../../test/postgres/server.ts';
import { atMost, type Cell, median, medianCell, p95Cell } from '../../study.ts';
import { interleave, type LatencySize } from './latency.ts';
import { connect, openDirect, openHeld } from './paths.ts';
import { openSite, type Site } from './site.ts';

/**
 * The time added with growing tables. Sites stay open and are visited in turns, because the machine
 * does not stay the same for minutes.
 */
export async function measureSizes(
  server: TestServer,
  options: { readonly relations: number; readonly rows: readonly number[]; readonly turns: number },
  size: LatencySize,
): Promise<Cell[]> {
  await using sites = new AsyncDisposableStack();
  const opened: Site[] = [];
  for (const rows of options.rows)
    opened.push(sites.use(await openSite(server, options.relations, rows)));
  const added = await visitInTurns(opened, options.turns, size);
  const [first, ...rest] = added;
  return [
    ...added.map((times, index) =>
      medianCell(`time added over direct at ${options.rows[index]} rows`, times, 'ms'),
    ),
    ...rest.map((times, index) =>
      atMost(
        `time added at ${options.rows[index + 1]} rows over ${options.rows[0]}`,
        { statistic: 'paired', of: times, to: first ?? [] },
        'x',
        1.15,
      ),
    ),
  ];
}

/**
 * The time added, and what one fresh certificate takes, with growing numbers of registered
 * relations.
 */
export async function measureRelations(
  server: TestServer,
  options: {
    readonly executed: readonly number[];
    readonly certified: readonly number[];
    readonly turns: number;
  },
  size: LatencySize,
  certificates: number,
): Promise<Cell[]> {
  await using sites = new AsyncDisposableStack();
  const opened = new Map<number, Site>();
  for (const relations of new Set([...options.executed, ...options.certified])) {
    opened.set(relations, sites.use(await openSite(server, relations, 5000)));
  }
  const siteWith = (relations: number) => {
    const site = opened.get(relations);
    if (site === undefined) throw new Error(`no site has ${relations} relations`);
    return site;
  };
  const added = await visitInTurns(options.executed.map(siteWith), options.turns, size);
  const cells = options.executed.map((relations, index) =>
    medianCell(`time added over direct with ${relations} relations`, added[index] ?? [], 'ms'),
  );
  for (const relations of options.certified) {
    const { read, stood } = await timeCertificates(siteWith(relations), certificates);
    const what = `one fresh certificate with ${relations} relations`;
    cells.push(medianCell(`${what}, after another commit, median`, read, 'ms'));
    cells.push(p95Cell(`${what}, after another commit, p95`, read, 'ms'));
    cells.push(medianCell(`${what}, no other commit, median`, stood, 'ms'));
    cells.push(p95Cell(`${what}, no other commit, p95`, stood, 'ms'));
  }
  return cells;
}

/**
 * What protection adds to the direct transaction in each turn, in ms: medians over the blocks of
 * the turn.
 */
async function visitInTurns(
  sites: readonly Site[],
  turns: number,
  size: LatencySize,
): Promise<readonly number[][]> {
  await using stack = new AsyncDisposableStack();
  const visits = [];
  for (const site of sites) {
    const direct = stack.use(await openDirect(site, 1));
    const held = stack.use(await openHeld(site, { certified: false }));
    visits.push({ paths: [direct, held], numbers: { next: 1 }, added: [] as number[] });
  }
  for (let turn = 0; turn < turns; turn += 1) {
    for (const { paths, numbers, added } of visits) {
      const [plain, held] = await interleave(
        paths,
        { ...size, warmup: turn === 0 ? size.warmup : 0 },
        numbers,
      );
      added.push(
        median((held ?? []).map((block, index) => median(block) - median(plain?.[index] ?? []))),
      );
    }
  }
  return visits.map(({ added }) => added);
}

/**
 * The survey as the final gate asks for it: on a session that is open and has surveyed before.
 * After another client's transaction it reads the catalogues. If no other client committed, it
 * finds that out and needs no more.
 */
async function timeCertificates(
  site: Site,
  count: number,
): Promise<{ read: number[]; stood: number[] }> {
  const adapter = await postgres(site.options).open({
    name: 'books',
    clock: systemClock,
    reached: unobserved,
  });
  await using stranger = await connect(site.plainUrl, 1);
  const timeSurvey = async () => {
    const started = performance.now();
    await adapter.survey();
    return performance.now() - started;
  };
  try {
    const times = { read: [] as number[], stood: [] as number[] };
    for (let index = -3; index < count; index += 1) {
      await stranger.client(0).query('select pg_current_xact_id()');
      const [read, stood] = [await timeSurvey(), await timeSurvey()];
      if (index < 0) continue;
      times.read.push(read);
      times.stood.push(stood);
    }
    return times;
  } finally {
    await adapter.close();
  }
}
