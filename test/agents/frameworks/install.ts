import { join } from 'node:path';
import { integration } from '../../integration.ts';
import type { FrameworkDriver } from './driver.ts';

/** The driver of a framework, with its packages installed from their lock file. */
export async function loadDriver(name: string): Promise<FrameworkDriver> {
  if (name === 'loop') return (await import('./loop-driver.ts')).driver;
  return (await import(join(integration(name), 'driver.ts'))).driver as FrameworkDriver;
}
