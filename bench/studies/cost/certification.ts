import { atMost, type Cell, figure, median } from '../../study.ts';
import { interleave } from '../pg-cost/latency.ts';
import { openHeld } from '../pg-cost/paths.ts';
import { openSite, startBenchServer } from '../pg-cost/site.ts';
import { PAPER_CERTIFICATION } from './paper.ts';

const RELATIONS = 12;
const ROWS = 2000;

/**
 * Pairs of the same five-effect operation under a license, the second with a fresh certificate and
 * a fresh last look.
 */
export async function measureCertification(
  pairs: number,
  warmups: number,
): Promise<readonly Cell[]> {
  await using server = await startBenchServer();
  await using site = await openSite(server, RELATIONS, ROWS);
  await using off = await openHeld(site, { certified: false });
  await using on = await openHeld(site, { certified: true });
  const size = { blocks: pairs, perBlock: 1, warmup: warmups };
  const [without = [], certified = []] = await interleave([off, on], size, { next: 1 });
  const [offMs, onMs] = [median(without.flat()), median(certified.flat())];
  return [
    { ...figure('PostgreSQL: certification off', offMs, 'ms'), paper: PAPER_CERTIFICATION.off },
    { ...figure('PostgreSQL: certification on', onMs, 'ms'), paper: PAPER_CERTIFICATION.on },
    {
      ...atMost('PostgreSQL: on over off', onMs / offMs, 'x', 1.5),
      paper: PAPER_CERTIFICATION.ratio,
    },
  ];
}
