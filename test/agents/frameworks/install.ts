import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { FrameworkDriver } from './driver.ts';

const ROOT = join(import.meta.dirname, '../../..');

/** Where the packages of a framework and its driver are. */
export const folderOf = (name: string) => join(ROOT, 'integrations', name);

/** The driver of a framework, with its packages installed from their lock file. */
export async function loadDriver(name: string): Promise<FrameworkDriver> {
  if (name === 'loop') return (await import('./loop-driver.ts')).driver;
  const folder = folderOf(name);
  if (!existsSync(join(folder, 'node_modules/.package-lock.json'))) {
    console.error(`installing integrations/${name}`);
    const words = ['ci', '--ignore-scripts', '--no-audit', '--no-fund'];
    const { status, stderr } = spawnSync('npm', words, { cwd: folder, encoding: 'utf8' });
    if (status !== 0)
      throw new Error(`integrations/${name} cannot be installed: npm ci said\n${stderr}`);
  }
  return (await import(join(folder, 'driver.ts'))).driver as FrameworkDriver;
}
