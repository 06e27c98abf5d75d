// Builds dist, or the folder that is named, from src with plain tsc, from scratch. Copies the .sql
// files and the console's assets, bundles what signs in the browser, and makes the CLI executable.
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, globSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const [folder = 'dist'] = process.argv.slice(2);
rmSync(folder, { recursive: true, force: true });
const options = ['-p', 'tsconfig.build.json', '--outDir', folder];
const result = spawnSync('node_modules/.bin/tsc', options, { stdio: 'inherit' });
if (result.status !== 0) process.exit(result.status ?? 1);
for (const file of [...globSync('src/**/*.sql'), ...globSync('src/console/assets/*')]) {
  const target = join(folder, relative('src', file));
  mkdirSync(dirname(target), { recursive: true });
  copyFileSync(file, target);
}
const assets = join(folder, 'console/assets');
const signer = spawnSync(process.execPath, ['scripts/build-signer.mjs', assets], {
  stdio: 'inherit',
});
if (signer.status !== 0) process.exit(signer.status ?? 1);
chmodSync(join(folder, 'cli/main.js'), 0o755);
