// Builds dist from src with plain tsc, from scratch, copies the .sql files, and makes the CLI
// executable.
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, globSync, mkdirSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';

rmSync('dist', { recursive: true, force: true });
const result = spawnSync('tsc', ['-p', 'tsconfig.build.json'], { stdio: 'inherit' });
if (result.status !== 0) process.exit(result.status ?? 1);
for (const file of globSync('src/**/*.sql')) {
  const target = file.replace(/^src/, 'dist');
  mkdirSync(dirname(target), { recursive: true });
  copyFileSync(file, target);
}
chmodSync('dist/cli/main.js', 0o755);
