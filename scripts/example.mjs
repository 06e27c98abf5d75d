// Runs one of the examples, or lists them. An example is a folder of examples/ with a README.md and
// a main.ts.
//   npm run example -- refund-agent
//   npm run example -- refund-agent --keep ./look-at-it
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const folder = join(import.meta.dirname, '../examples');
const entryPoints = pathToFileURL(join(import.meta.dirname, 'entry-points.mjs')).href;
const examples = readdirSync(folder)
  .filter((name) => ['README.md', 'main.ts'].every((file) => existsSync(join(folder, name, file))))
  .sort();
const [name, ...args] = process.argv.slice(2);

if (name === undefined || name === '--help' || name === '-h') list();
else if (examples.includes(name)) run();
else {
  console.error(`there is no example "${name}"; there are ${examples.join(', ')}`);
  process.exitCode = 1;
}

function list() {
  console.log('npm run example -- <name> [--keep FOLDER]\n');
  for (const example of examples) console.log(`  ${example.padEnd(18)}${summaryOf(example)}`);
  console.log(
    '\nEach works in a temporary folder and removes it; --keep works in FOLDER, which must be new, and leaves it.',
  );
}

/** The first sentence of the example's README. */
function summaryOf(example) {
  const [, first = ''] = readFileSync(join(folder, example, 'README.md'), 'utf8').split('\n\n');
  return first.replaceAll('\n', ' ').replace(/\. .*$/, '.');
}

function run() {
  const program = join(folder, name, 'main.ts');
  const child = spawn(
    process.execPath,
    ['--no-warnings', '--import', entryPoints, program, ...args],
    {
      stdio: 'inherit',
    },
  );
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.on(signal, () => child.kill(signal));
  child.once('exit', (code) => {
    process.exitCode = code ?? 1;
  });
}
