import { existsSync, mkdirSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { freemem, tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { TEMPLATES } from '../test/postgres/data-template.ts';

/**
 * Names the parent folder for servers. Other users must be able to reach a server's folder, so it
 * cannot be inside a private one.
 */
export const SERVER_FOLDER_VARIABLE = 'EFFECTMATCH_SERVER_TMPDIR';
const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
const PREFIX = 'effectmatch-bench-';
/** Where Linux keeps files in memory. */
const MEMORY_FOLDER = '/dev/shm';
/** What the files of one study may need. */
const MEMORY_BYTES = 2 * 2 ** 30;
/** What `statfs` says of a file system in memory (`TMPFS_MAGIC`). */
const TMPFS = 0x01021994;

/** Where a study has its files: only one that measures time needs a disk. */
export type Medium = 'disk' | 'memory';

/** The medium that the temporary folder of this process is on; nobody knows what others do. */
export function mediumOf(folder = tmpdir()): Medium {
  return statfsSync(folder).type === TMPFS ? 'memory' : 'disk';
}

/** The variables that tell a process where its temporary files and those of its servers go. */
export type Folders = { readonly [variable: string]: string };

/** Where files go that had better be in memory: there, if the user did not choose and it has room. */
function chooseFolder(wanted: Medium): string {
  const isChosen = process.env.TMPDIR !== undefined || wanted === 'disk';
  if (isChosen || !existsSync(MEMORY_FOLDER)) return tmpdir();
  const { bavail, bsize } = statfsSync(MEMORY_FOLDER);
  const hasRoom = bavail * bsize >= MEMORY_BYTES && freemem() >= MEMORY_BYTES;
  return hasRoom ? MEMORY_FOLDER : tmpdir();
}

/**
 * Makes a folder for the temporary files of studies, and removes it when this process ends, also
 * after Ctrl-C. Returns the variables that make this process or another use it. PostgreSQL servers
 * have keepers that stop and remove them after this process has ended. Raw records are not
 * temporary: each is written when its run ends.
 */
export function makeTemporary(wanted: Medium): Folders {
  const parent = chooseFolder(wanted);
  const folder = mkdtempSync(join(parent, PREFIX));
  process.on('exit', () => remove(folder));
  const templates = process.env[TEMPLATES] ?? join(folder, 'templates');
  mkdirSync(templates, { recursive: true });
  const servers = process.env[SERVER_FOLDER_VARIABLE] ?? parent;
  return { TMPDIR: folder, [SERVER_FOLDER_VARIABLE]: servers, [TEMPLATES]: templates };
}

function remove(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
}

/** Ends this process when the `all` that started it does, and removes what that one cannot. */
export function endWithParent(): void {
  const { TMPDIR: given = '' } = process.env;
  process.on('disconnect', () => {
    if (basename(given).startsWith(PREFIX)) remove(given);
    process.exit(1);
  });
  process.channel?.unref();
}

/** Ends this process in order if a signal ends it; `before` is awaited first. */
export function endInOrder(
  before: (signal: NodeJS.Signals) => Promise<void> = async () => {},
): void {
  let isEnding = false;
  for (const [name, status] of Object.entries(SIGNALS)) {
    // It stays: a terminal and `all` may both send one, and the second must not cut off the end.
    process.on(name, async () => {
      if (isEnding) return;
      isEnding = true;
      await before(name as NodeJS.Signals);
      // `all` says it once for all its studies.
      if (process.channel === undefined)
        console.error(
          '\ninterrupted: raw records are kept, and the same command goes on from them',
        );
      process.exit(status);
    });
  }
}

/** A folder for one run, removed at the end of its scope. */
export function temporaryFolder(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), 'effectmatch-study-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
