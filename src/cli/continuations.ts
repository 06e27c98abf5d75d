import { openContinuations } from '../runtime/continuation.ts';
import { CONFIG_FLAG, EXIT, type Verb } from './command.ts';
import { openRecords } from './deployment.ts';
import { printableLine } from './output.ts';

/** Lists work that was released and never completed. It never opens a backend. */
export const continuations: Verb = {
  name: 'continuations',
  summary: 'list work that was released and has not completed',
  about: `Dependent work is released once, before it runs, so that it never runs twice. If its
process dies or the work throws, the release has no completion. This lists those releases, oldest
first; some may be running at this moment. Look at what the work has done, and do what is missing
under a new license.`,
  flags: CONFIG_FLAG,
  examples: ['effectmatch continuations', 'effectmatch continuations --json'],
  async run(args, output) {
    await using records = await openRecords(args);
    const open = await openContinuations(records.ledgers);
    output.document({ continuations: open });
    if (open.length === 0) output.line('nothing is open: all work that was released has completed');
    for (const { occurrence, continuation, task, releasedAt } of open) {
      const since = output.paint('caution', `since ${releasedAt}`);
      const about = printableLine(`${continuation}  ${task}`);
      output.line(`${since}  ${occurrence}  ${about}`);
    }
    return EXIT.done;
  },
};
