import { runLanes } from '../test/crash/lanes.ts';
import { NotRun } from './study.ts';

/** How the studies of `all` ended, each list in the order of the studies. */
export interface Summary {
  readonly ran: readonly string[];
  /** Finished by an earlier `all` that was interrupted. */
  readonly kept: readonly string[];
  readonly notRun: readonly string[];
  readonly failed: readonly string[];
}

/** Remembers the finished studies, so that an interrupted `all` can continue with the rest. */
export interface Done {
  run<T extends object>(
    name: string,
    work: () => Promise<T>,
  ): Promise<T & { readonly run: string }>;
  finish(): void;
}

/** How `all` runs its studies. */
export interface Course {
  /**
   * Runs a study. Rejects with {@link NotRun} if something that it needs is missing, and with any
   * other error if it failed. In both cases the next `all` tries the study again.
   */
  start(name: string): Promise<void>;
  /** Whether a study has to be alone on the machine. */
  isAlone(name: string): boolean;
  /** About how long a study takes, to begin with the longest. */
  seconds(name: string): number;
  /** How many of the other studies run at a time. */
  readonly lanes: number;
  say(line: string): void;
}

/**
 * Runs every study, even if others fail: first those that have to be alone, one after another, then
 * the others beside each other, the longest first.
 */
export async function runAll(
  names: readonly string[],
  { start, isAlone, seconds, lanes, say }: Course,
  done: Done,
): Promise<Summary> {
  const ends = new Map<string, keyof Summary>();
  const running = new Set<string>();
  const runOne = async (name: string) => {
    const begun = performance.now();
    const spent = () => `${Math.round((performance.now() - begun) / 1000)} s`;
    let isNew = false;
    try {
      await done.run(name, async () => {
        isNew = true;
        const beside = running.size === 0 ? '' : `, beside ${[...running].join(' and ')}`;
        say(`${ends.size + running.size + 1} of ${names.length}: ${name}${beside}`);
        running.add(name);
        await start(name);
        return { seconds: Math.round((performance.now() - begun) / 1000) };
      });
      ends.set(name, isNew ? 'ran' : 'kept');
      say(`${name}: ${isNew ? `done in ${spent()}` : 'done by the run that was interrupted'}`);
    } catch (error) {
      const isMissing = error instanceof NotRun;
      const why = error instanceof Error ? error.message : error;
      ends.set(name, isMissing ? 'notRun' : 'failed');
      say(`${name}: ${isMissing ? 'NOT RUN' : 'FAILED'} after ${spent()}: ${why}`);
    }
    running.delete(name);
  };
  const others = names.filter((name) => !isAlone(name));
  await runLanes(names.filter(isAlone), 1, runOne);
  const longestFirst = others.toSorted((one, other) => seconds(other) - seconds(one));
  await runLanes(longestFirst, lanes, runOne);
  const ended = (how: keyof Summary) => names.filter((name) => ends.get(name) === how);
  const summary = {
    ...{ ran: ended('ran'), kept: ended('kept') },
    ...{ notRun: ended('notRun'), failed: ended('failed') },
  };
  if (summary.failed.length === 0) done.finish();
  return summary;
}
