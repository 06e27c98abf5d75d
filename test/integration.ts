// Packages by others that tests drive. Each has a folder with its own lock file in `integrations`.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

const PATIENCE_MS = 300_000;

/** The folder of an integration, installed from its lock file if it is not yet. */
export function integration(name: string): string {
  const folder = join(import.meta.dirname, '../integrations', name);
  const done = join(folder, 'node_modules/.package-lock.json');
  const lock = join(folder, '.installing');
  const pause = new Int32Array(new SharedArrayBuffer(4));
  while (!existsSync(done)) {
    if (takeLock(lock)) install(folder, lock);
    else Atomics.wait(pause, 0, 0, 200);
  }
  return folder;
}

/** For the `skip` of a test; under CI a skip for this reason fails the run. */
export function skipWithout(name: string): string | false {
  try {
    integration(name);
    return false;
  } catch (error) {
    return String(error);
  }
}

function install(folder: string, lock: string): void {
  const words = ['ci', '--ignore-scripts', '--no-audit', '--no-fund'];
  const { status, stderr } = spawnSync('npm', words, { cwd: folder, encoding: 'utf8' });
  rmSync(lock, { recursive: true });
  if (status !== 0) throw new Error(`${folder} cannot be installed: npm ci said\n${stderr}`);
}

/** A folder, because making one is atomic: two test files may need the same packages at once. */
function takeLock(lock: string): boolean {
  try {
    mkdirSync(lock);
    return true;
  } catch {
    const since = statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
    if (Date.now() - since > PATIENCE_MS) rmSync(lock, { recursive: true, force: true });
    return false;
  }
}
