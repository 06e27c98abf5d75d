// The study `integrated` has this pair with its controls; here it stands among the other ablations.
import type { Site } from '../boundary/site.ts';
import * as scenarios from '../integrated/scenarios.ts';
import type { Pair } from './pair.ts';

/**
 * A right that is granted while the candidate is held; the removal presents the first certificate
 * again.
 */
export function certificateReuse(site: Site): Pair {
  const play = async (scenario: scenarios.Scenario) =>
    (await scenarios.runScenario(site, scenario)) === undefined;
  return {
    name: 'final boundary check, certificate reuse',
    paper: 20,
    runs: (removed) => [
      {
        name: 'payment',
        run: async () => {
          const isAsExpected = await play(removed ? scenarios.TEMP_REUSED : scenarios.TEMP);
          return isAsExpected ? (removed ? 'admitted' : 'stopped') : 'neither';
        },
      },
    ],
    replays: () => [{ name: 'permit', run: () => play(scenarios.TEMP_REPLAYED) }],
    controls: (removed) => [
      { name: 'payment', run: () => play(removed ? scenarios.CLEAN_REUSED : scenarios.CLEAN) },
    ],
  };
}
