import { join } from 'node:path';
import { integration } from '../../integration.ts';
import type { FrameworkDriver } from './driver.ts';

const ROOT = join(import.meta.dirname, '../../..');

/** Where the packages of a framework and its driver are. */
export const folderOf = (name: string) => join(ROOT, 'integrations', name);

/** The driver of a framework, with its packages installed from their lock file. */
export async function loadDriver(name: string): Promise<FrameworkDriver> {
  if (name === 'loop') return (await import('./loop-driver.ts')).driver;
  return (await import(join(integration(name), 'driver.ts'))).driver as FrameworkDriver;
}
