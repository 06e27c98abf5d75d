import { findData } from '../../bench/data/folder.ts';
import { NotRun } from '../../bench/study.ts';

/** Why a test of public tasks is skipped; false where their data is here. */
export function whyAbsent(files: readonly string[]): string | false {
  try {
    findData(undefined, files);
    return false;
  } catch (error) {
    if (error instanceof NotRun) return `no public task data: ${error.message}`;
    throw error;
  }
}
