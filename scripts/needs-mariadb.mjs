import { readFileSync } from 'node:fs';

/** Whether a test file uses the MariaDB server that a run of tests starts for all of them. */
export function needsMariadb(file) {
  return (
    file.includes('/mysql/') || /(?:from|import\() *'[^']*mysql\//.test(readFileSync(file, 'utf8'))
  );
}
