import { spawnSync } from 'node:child_process';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** The folder in which one test run keeps data folders of servers that have not been started yet. */
export const TEMPLATES = 'EFFECTMATCH_TEST_TEMPLATES';

/**
 * Fills a server's data folder: with a copy of the run's template of that name if there is one,
 * otherwise with `create`, and then keeps a copy as the template. Initialising takes about a second
 * of processor time and a copy a few hundredths. Copies of PostgreSQL's folder share a system identifier.
 */
export async function fromTemplate(
  name: string | undefined,
  data: string,
  create: () => Promise<void>,
): Promise<void> {
  const folder = process.env[TEMPLATES];
  if (folder === undefined || name === undefined) return create();
  const template = join(folder, name);
  if (existsSync(template)) return copy(template, data);
  await create();
  const unnamed = `${template}-${process.pid}`;
  copy(data, unnamed);
  try {
    renameSync(unnamed, template);
  } catch {
    // Another process was quicker.
    rmSync(unnamed, { recursive: true });
  }
}

/** Keeps owners and modes: a server refuses a data folder that belongs to another account. */
function copy(from: string, to: string): void {
  const { status, stderr } = spawnSync('cp', ['-a', from, to], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`the data folder could not be copied: ${stderr}`);
}
