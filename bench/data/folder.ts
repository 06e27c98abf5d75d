import { existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { NotRun } from '../study.ts';

const VARIABLE = 'EFFECTMATCH_DATA';

/**
 * The folder with the public task data: `given`, else EFFECTMATCH_DATA, else `../shared/data`. Only
 * the default may be missing. Naming a folder that does not exist is a mistake.
 */
export function findFolder(given: string | undefined): string {
  const named = given ?? process.env[VARIABLE];
  const folder = resolve(named ?? join('..', 'shared', 'data'));
  if (named !== undefined && !statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    const by = given === undefined ? VARIABLE : '--data';
    throw new Error(
      `There is no folder "${folder}", which ${by} names. The task data is expected there.`,
    );
  }
  return folder;
}

/**
 * Finds the folder with the public task data. If a file that the study needs is missing, the study
 * is not run: the data is public and is not copied into the project.
 */
export function findData(given: string | undefined, needed: readonly string[]): string {
  const folder = findFolder(given);
  const lacking = needed.filter((file) => !existsSync(join(folder, file)));
  if (lacking.length === 0) return folder;
  const named = given !== undefined || process.env[VARIABLE] !== undefined;
  const [first, ...others] = lacking;
  const missing = others.length === 0 ? first : `${first} (and ${others.length} more)`;
  const where = named ? `"${folder}" has no ${missing}` : `there is no ${missing}`;
  throw new NotRun(`${where}; name the folder with the task data by --data or ${VARIABLE}`);
}
