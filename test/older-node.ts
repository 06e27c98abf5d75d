import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** A Node that is too old for this package, if the machine has one. */
export function findOlderNode(): string | undefined {
  const folders = ['/usr/bin', ...(process.env.PATH ?? '').split(delimiter)];
  return folders
    .map((folder) => join(folder, 'node'))
    .filter((file) => existsSync(file))
    .find((file) => {
      const [major = 0, minor = 0] = execFileSync(file, ['-p', 'process.versions.node'], {
        encoding: 'utf8',
      })
        .split('.')
        .map(Number);
      return major < 24 || (major === 24 && minor < 12);
    });
}
