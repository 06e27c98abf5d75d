import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Names the parent folder for servers. Other users must be able to reach a server's folder, so it
 * cannot be inside a private one.
 */
export const SERVER_FOLDER_VARIABLE = 'EFFECTMATCH_SERVER_TMPDIR';
const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/**
 * Puts all temporary files of this process and its children into one folder, and removes the folder
 * when the process ends, also after Ctrl-C. PostgreSQL servers have keepers that stop and remove
 * them after this process has ended. Raw records are not temporary: each is written when its run
 * ends. If a signal ends the process, `before` is awaited first.
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

/** A folder for one run, removed at the end of its scope. */
export function temporaryFolder(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), 'effectmatch-study-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
