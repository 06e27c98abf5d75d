// Private copies of the project in which mutants are tried, and the processes that run there.
import { spawn } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const running = new Set();
let stopped = false;

/**
 * A copy of the sources and tests in the temporary folder; the working tree is never written to.
 */
export function openWorkshop() {
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-mutate-'));
  chmodSync(folder, 0o711); // A PostgreSQL server that root starts in here runs as an account that must get in.
  for (const part of ['src', 'test', 'examples', 'package.json', 'tsconfig.json'])
    cpSync(part, join(folder, part), { recursive: true });
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  let postgres;
  return {
    folder,
    write: (file, text) => writeFileSync(join(folder, file), text),
    /** From here on, tests that run here share one PostgreSQL server. */
    async startPostgres() {
      postgres = await (await import('./postgres.mjs')).openPostgres();
    },
    async run(file, options) {
      const verdict = await runTest(folder, file, {
        ...options,
        environment: postgres?.environment(),
      });
      if (verdict !== 'passed') await postgres?.clear();
      return verdict;
    },
    async close() {
      await postgres?.close();
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Ends every test process that is still running, and lets no other one start. */
export function stopAll() {
  stopped = true;
  for (const child of running) killGroup(child);
}

function killGroup(child) {
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

/**
 * Runs one test file until its first failure: 'passed', 'failed' or 'timeout'. What tests leave
 * behind when they are cut short lies in a temporary folder of this run.
 */
async function runTest(folder, file, { timeoutMs, coverage, environment }) {
  if (stopped) throw new Error('stopped');
  const scratch = join(folder, 'scratch');
  mkdirSync(scratch, { recursive: true, mode: 0o711 });
  // Reading all sources again takes up to half of a quick test. With a cache, coverage would be
  // less exact.
  const measured =
    coverage === undefined
      ? { NODE_COMPILE_CACHE: join(folder, 'compiled') }
      : { NODE_V8_COVERAGE: coverage };
  const env = { ...process.env, ...environment, TMPDIR: scratch, ...measured };
  const options = { cwd: folder, env, detached: true, stdio: ['ignore', 'pipe', 'ignore'] };
  const child = spawn(process.execPath, ['--no-warnings', '--test-reporter=tap', file], options);
  running.add(child);
  let verdict;
  const end = (reason) => {
    verdict ??= reason;
    killGroup(child);
  };
  const timer = setTimeout(() => end('timeout'), timeoutMs);
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    output += chunk;
    if (/^\s*not ok /m.test(output)) end('failed');
    output = output.slice(output.lastIndexOf('\n') + 1);
  });
  const code = await new Promise((done) => child.on('close', done));
  clearTimeout(timer);
  running.delete(child);
  rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
  return verdict ?? (code === 0 ? 'passed' : 'failed');
}

/** Which places of which files ran, from the coverage that V8 wrote: `ran(file, offset)`. */
export function readCoverage(coverage, folder) {
  const functions = new Map();
  for (const report of globSync(join(coverage, '*.json'))) {
    for (const script of JSON.parse(readFileSync(report, 'utf8')).result) {
      if (!script.url.startsWith('file:')) continue;
      const file = fileURLToPath(script.url).slice(folder.length + 1);
      functions.set(file, [
        ...(functions.get(file) ?? []),
        script.functions.map(({ ranges }) => ranges),
      ]);
    }
  }
  return (file, offset) => (functions.get(file) ?? []).some((process) => ranIn(process, offset));
}

/** The innermost range around a place says how often it ran. */
function ranIn(functions, offset) {
  const around = functions
    .flat()
    .filter((range) => range.startOffset <= offset && offset < range.endOffset);
  around.sort((a, b) => a.endOffset - a.startOffset - (b.endOffset - b.startOffset));
  return (around[0]?.count ?? 0) > 0;
}
