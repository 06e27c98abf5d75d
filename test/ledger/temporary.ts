import { mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock, type WallClock } from '../../src/contract/clock.ts';
import type { LedgersFactory } from '../../src/contract/ledgers.ts';
import { sqliteLedgers } from '../../src/ledger/sqlite/index.ts';

let folder: string | undefined;
let files = 0;

/**
 * A ledger in a file that ends with the test process, or with its disposal. It can be opened any
 * number of times, as several processes would.
 */
export function temporaryLedgers(clock: WallClock = systemClock): LedgersFactory & Disposable {
  folder ??= makeFolder();
  files += 1;
  const file = join(folder, `${files}.db`);
  const remove = () => {
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${file}${suffix}`, { force: true });
  };
  return { ...sqliteLedgers(file, { clock }), [Symbol.dispose]: remove };
}

function makeFolder(): string {
  const path = mkdtempSync(join(quickestDisk(), 'effectmatch-ledgers-'));
  process.once('exit', () => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Memory that is mounted as a disk, if there is enough of it: a flush costs nothing there. */
function quickestDisk(): string {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm');
    return bavail * bsize > 2 ** 30 ? '/dev/shm' : tmpdir();
  } catch {
    return tmpdir();
  }
}
