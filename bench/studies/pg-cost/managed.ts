import { atMost, type Cell, medianCell } from '../../study.ts';
import { interleave, type LatencySize, ratio } from './latency.ts';
import { openHeld } from './paths.ts';
import type { Site } from './site.ts';

/** What the statement gate of a managed boundary adds to the operation, in turns with the other. */
export async function measureManaged(
  site: Site,
  managed: Site,
  size: LatencySize,
  numbers: { next: number },
): Promise<readonly Cell[]> {
  await using opened = new AsyncDisposableStack();
  const rights = opened.use(await openHeld(site, { certified: true }));
  const gate = opened.use(await openHeld(managed, { certified: true }));
  const [byRights, byGate] = await interleave([rights, gate], size, numbers);
  return [
    medianCell('managed boundary: certified, median', (byGate ?? []).flat(), 'ms'),
    atMost('managed boundary over server boundary, certified', ratio(byGate, byRights), 'x', 1.15),
  ];
}
