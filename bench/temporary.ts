import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Names the folder for servers, which other users must be able to reach: they get no private folder
 * around them.
 */
export const SERVER_FOLDER_VARIABLE = 'EFFECTMATCH_SERVER_TMPDIR';
const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/**
 * Puts everything temporary of this process and of its children into one folder, which goes when
 * the process ends, by Ctrl-C too. PostgreSQL servers have keepers that end and remove them when
 * this process is gone. Raw records are not temporary: each was written when its run ended.
 * `before` is waited for when a signal ends the process.
 */
export function keepTemporary(
  before: (signal: NodeJS.Signals) => Promise<void> = async () => {},
): void {
  process.env[SERVER_FOLDER_VARIABLE] ??= tmpdir();
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-bench-'));
  process.env.TMPDIR = folder;
  process.on('exit', () =>
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }),
  );
  for (const [name, status] of Object.entries(SIGNALS)) {
    process.once(name, async () => {
      await before(name as NodeJS.Signals);
      console.error('\ninterrupted: raw records are kept, and the same command goes on from them');
      process.exit(status);
    });
  }
}

/** A folder of one run, which goes with its scope. */
export function temporaryFolder(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), 'effectmatch-study-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
