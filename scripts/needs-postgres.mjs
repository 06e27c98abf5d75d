import { readFileSync } from 'node:fs';

/** Whether a test file uses the PostgreSQL server that a run of tests starts for all of them. */
export function needsPostgres(file) {
  return (
    file.includes('/postgres/') ||
    /(?:from|import\() *'[^']*postgres/.test(readFileSync(file, 'utf8'))
  );
}
