// The study `integrated` also has this pair, with its controls. Here it joins the other ablations.
import type { Site } from '../boundary/site.ts';
import * as scenarios from '../integrated/scenarios.ts';
import type { Pair } from './pair.ts';

/**
 * A privilege is granted while the candidate is held. The ablation presents the first certificate
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
