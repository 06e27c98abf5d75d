// Packages by others that tests drive. Each has a folder with its own lock file in `integrations`.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The folder of an integration, installed from its lock file if it is not yet; undefined if that
 * is not possible here.
 */
export function integration(name: string): string | undefined {
  const folder = join(import.meta.dirname, '../integrations', name);
  const [done, lock] = ['node_modules/.package-lock.json', '.installing'].map((file) =>
    join(folder, file),
  ) as [string, string];
  const pause = new Int32Array(new SharedArrayBuffer(4));
  const until = Date.now() + 300_000;
  while (!existsSync(done) && Date.now() < until) {
    if (!takeLock(lock)) {
      Atomics.wait(pause, 0, 0, 200);
      continue;
    }
    const words = ['ci', '--omit=optional', '--ignore-scripts', '--no-audit', '--no-fund'];
    const { status } = spawnSync('npm', words, { cwd: folder, stdio: 'ignore' });
    rmdirSync(lock);
    if (status !== 0) return undefined;
  }
  return existsSync(done) ? folder : undefined;
}

/** For the `skip` of a test; under CI a skip for this reason fails the run. */
export function skipWithout(name: string): string | false {
  if (integration(name) !== undefined) return false;
  return `integrations/${name} cannot be installed here; run \`npm ci\` in it`;
}

/** A folder, because making one is atomic: two test files may need the same package at once. */
function takeLock(path: string): boolean {
  try {
    mkdirSync(path);
    return true;
  } catch {
    return false;
  }
}
