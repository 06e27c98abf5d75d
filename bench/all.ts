import { NotRun } from './study.ts';

/** How the studies of `all` ended. */
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

/**
 * Runs every study in turn, even if others fail. `start` rejects with {@link NotRun} if something
 * that the study needs is missing, and with any other error if the study failed. In both cases the
 * next `all` tries the study again.
 */
export async function runAll(
  names: readonly string[],
  start: (name: string) => Promise<void>,
  done: Done,
  say: (line: string) => void,
): Promise<Summary> {
  const summary = {
    ran: [] as string[],
    kept: [] as string[],
    notRun: [] as string[],
    failed: [] as string[],
  };
  for (const [index, name] of names.entries()) {
    say(`${index + 1} of ${names.length}: ${name}`);
    const begun = performance.now();
    let isNew = false;
    try {
      await done.run(name, async () => {
        isNew = true;
        await start(name);
        return { seconds: Math.round((performance.now() - begun) / 1000) };
      });
      summary[isNew ? 'ran' : 'kept'].push(name);
      if (!isNew) say(`${name}: done by the run that was interrupted`);
    } catch (error) {
      summary[error instanceof NotRun ? 'notRun' : 'failed'].push(name);
      say(
        `${name}: ${error instanceof NotRun ? 'NOT RUN' : 'FAILED'}: ${error instanceof Error ? error.message : error}`,
      );
    }
  }
  if (summary.failed.length === 0) done.finish();
  return summary;
}
