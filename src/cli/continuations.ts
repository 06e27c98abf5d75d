import { openContinuations } from '../runtime/continuation.ts';
import { CONFIG_FLAG } from './arguments.ts';
import { EXIT } from './exit-code.ts';
import { loadConfig } from './load-config.ts';
import { openStore } from './open-store.ts';
import { printableLine } from './output.ts';
import type { Verb } from './verb.ts';

/**
 * Lists work that was released and never completed. It opens keyring and store only, never a
 * backend.
 */
export const continuations: Verb = {
  name: 'continuations',
  summary: 'list work that was released and has not completed',
  about: `Dependent work is released once, before it runs, so that it never runs twice. Where its process dies, or the
work throws, the release stays without its completion: this lists every one of them, oldest first, with since when. It
may also be under way at this moment. It is never released again: look at what it has done, and do what is missing
under a new license.`,
  positionals: [],
  flags: { ...CONFIG_FLAG },
  examples: ['effectmatch continuations', 'effectmatch continuations --json'],
  async run(args, output) {
    const config = await loadConfig(args);
    await using store = await openStore(config);
    const open = await openContinuations(store.ledgers);
    output.document({ continuations: open });
    if (open.length === 0) output.line('nothing is open: all work that was released has completed');
    for (const { occurrence, continuation, task, releasedAt } of open) {
      const since = output.paint('caution', `since ${releasedAt}`);
      output.line(
        `${since}  ${occurrence}  ${printableLine(continuation)}  ${printableLine(task)}`,
      );
    }
    return EXIT.done;
  },
};
