// Removes every check of the execution path, one at a time, and reports the removals that no test
// notices: see USAGE.
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { changedLines } from './mutate/changed.mjs';
import { readEquivalent } from './mutate/equivalent.mjs';
import { findMutants } from './mutate/mutants.mjs';
import { TARGETS, testsFor } from './mutate/targets.mjs';
import { openWorkshop, readCoverage, stopAll } from './mutate/workshop.mjs';
import { needsPostgres } from './needs-postgres.mjs';

const USAGE = `usage: npm run mutate -- [options]

Removes every check of the execution path, one at a time, in private copies of the project, and runs the tests that run
its place until one fails. CONTRIBUTING.md says which changes are tried.

  --only <part>      only source files whose path contains this; may be repeated
  --mutant <part>    only mutants whose id, as --list prints it, contains this; may be repeated
  --tests <part>     only test files whose path contains this; may be repeated
  --since <git ref>  only files that changed since the branch left this ref
  --changed-lines    with --since: only mutants on lines that changed, committed or not
  --jobs <n>         how many copies work at the same time (default: one per core)
  --list             print the mutants instead of trying them
  --json             print the results, or with --list the mutants, as JSON
  --help             print this

Exits with 1 if a mutant survives that is not in scripts/mutate/equivalent.json, or if an entry of it is killed or
names nothing that is there; with 2 if the options are wrong.`;

const { values: options } = parseOptions({
  options: {
    only: { type: 'string', multiple: true, default: [''] },
    mutant: { type: 'string', multiple: true, default: [''] },
    tests: { type: 'string', multiple: true, default: [''] },
    jobs: { type: 'string', default: String(availableParallelism()) },
    since: { type: 'string' },
    'changed-lines': { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

if (options.help) {
  console.log(USAGE);
  process.exit(0);
}
if (options['changed-lines'] && options.since === undefined) {
  console.error('--changed-lines needs --since <git ref>');
  process.exit(2);
}
const changed = options.since === undefined ? undefined : readChanges(options.since);
const targets = TARGETS.filter(
  (file) => isNamed(options.only, file) && (changed?.has(file) ?? true),
);
const sources = new Map(
  targets.map((file) => [file, findMutants(file, readFileSync(file, 'utf8'))]),
);
const mutants = [...sources.values()].flatMap((source) => source.mutants).filter(isWanted);

function parseOptions(config) {
  try {
    return parseArgs(config);
  } catch (error) {
    console.error(`${error.message}\n\n${USAGE}`);
    process.exit(2);
  }
}

function readChanges(ref) {
  try {
    return changedLines(ref);
  } catch (error) {
    console.error(`--since ${ref}: ${String(error.stderr ?? error.message).trim()}`);
    process.exit(2);
  }
}

/** With --changed-lines: a mutant of which a line was touched. */
function isWanted({ id, file, firstLine, lastLine }) {
  if (!isNamed(options.mutant, id)) return false;
  if (!options['changed-lines']) return true;
  for (let line = firstLine; line <= lastLine; line += 1)
    if (changed.get(file).has(line)) return true;
  return false;
}

const { entries, entryOf } = readEquivalent(
  new Map([...sources].map(([file, { source }]) => [file, source])),
);

if (options.list) list();
else await main();

function list() {
  if (options.json) {
    const listed = mutants.map((mutant) => ({
      ...mutant,
      entry: entries.indexOf(entryOf(mutant)),
    }));
    console.log(JSON.stringify(listed, null, 2));
    return;
  }
  for (const { id, original, replacement } of mutants)
    console.log(`${id}  ${original}  ->  ${replacement || '(nothing)'}`);
  console.log(`${mutants.length} mutants of ${targets.length} files`);
}

async function main() {
  const jobs = Math.max(1, Math.min(Number(options.jobs) || 1, mutants.length));
  const workshops = Array.from({ length: jobs }, openWorkshop);
  const coverage = mkdtempSync(join(tmpdir(), 'effectmatch-coverage-'));
  const cleanUp = async () => {
    stopAll();
    await Promise.all(workshops.map(async (workshop) => workshop.close()));
    rmSync(coverage, { recursive: true, force: true });
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.once(signal, () => void cleanUp().finally(() => process.exit(130)));
  try {
    const tests = await measureTests(workshops, coverage);
    report(await tryMutants(workshops, tests));
  } finally {
    await cleanUp();
  }
}

/**
 * Every test must pass as things are; how long it takes and what it runs decides where it is tried.
 */
async function measureTests(workshops, coverage) {
  const mutated = new Set(mutants.map(({ file }) => file));
  const all = globSync('test/**/*.test.ts')
    .filter((file) => isNamed(options.tests, file))
    .sort();
  const files = all.filter((file) =>
    [...mutated].some((target) => testsFor(target, [file]).length > 0),
  );
  if (files.some(needsPostgres))
    await Promise.all(workshops.map((workshop) => workshop.startPostgres()));
  const tests = new Map();
  await inParallel(workshops, files, async (workshop, file, done) => {
    progress(`tests as they are: ${done} of ${files.length}; now ${file}`);
    const written = join(coverage, file.replaceAll('/', '-'));
    const started = performance.now();
    const verdict = await workshop.run(file, { timeoutMs: 300_000, coverage: written });
    if (verdict !== 'passed')
      throw new Error(`${file} ${verdict} without any mutant; repair that first`);
    tests.set(file, {
      file,
      tookMs: performance.now() - started,
      ran: readCoverage(written, workshop.folder),
    });
    rmSync(written, { recursive: true, force: true });
  });
  return tests;
}

async function tryMutants(workshops, tests) {
  const kills = new Map();
  const results = [];
  await inParallel(workshops, mutants, async (workshop, mutant, done) => {
    const survived = results.filter(({ killedBy }) => killedBy === undefined).length;
    progress(`${done} of ${mutants.length} mutants, ${survived} survived; now ${mutant.id}`);
    const { file, start, end, replacement } = mutant;
    const { text } = sources.get(file);
    const killsOf = (test) => kills.get(`${file} ${test.file}`) ?? expectedKills(file, test.file);
    const order = testsFor(file, [...tests.keys()])
      .map((name) => tests.get(name))
      .filter((test) => file.endsWith('.sql') || test.ran(file, start))
      .sort((a, b) => (1 + killsOf(b)) / b.tookMs - (1 + killsOf(a)) / a.tookMs);
    workshop.write(file, `${text.slice(0, start)} ${replacement} ${text.slice(end)}`);
    const result = { ...mutant, tried: order.length, killedBy: undefined };
    for (const test of order) {
      const verdict = await workshop.run(test.file, { timeoutMs: 30_000 + 5 * test.tookMs });
      if (verdict === 'passed') continue;
      kills.set(`${file} ${test.file}`, 1 + killsOf(test));
      result.killedBy = verdict === 'timeout' ? `${test.file} (timeout)` : test.file;
      break;
    }
    workshop.write(file, text);
    results.push(result);
    if (result.killedBy === undefined) progress(`no test misses ${mutant.id}\n`);
  });
  progress('');
  return results.sort(
    (a, b) =>
      mutants.findIndex(({ id }) => id === a.id) - mutants.findIndex(({ id }) => id === b.id),
  );
}

/**
 * Before anything is known: the test that is named after a file is the most likely one to miss its
 * checks.
 */
function expectedKills(file, test) {
  return basename(test, '.test.ts') === basename(file, '.ts') ? 20 : 0;
}

function report(results) {
  const isListed = (result) => entryOf(result) !== undefined;
  const survived = results.filter(({ killedBy }) => killedBy === undefined);
  const unexplained = survived.filter((result) => !isListed(result));
  const killed = new Set(results.filter(({ killedBy }) => killedBy !== undefined).map(entryOf));
  const existing = new Set([...sources.values()].flatMap((source) => source.mutants.map(entryOf)));
  const stale = entries.filter(
    (entry) => sources.has(entry.file) && (killed.has(entry) || !existing.has(entry)),
  );
  if (options.json) {
    console.log(
      JSON.stringify(
        results.map(({ start, end, firstLine, lastLine, ...result }) => ({
          ...result,
          listed: isListed(result),
        })),
        null,
        2,
      ),
    );
  } else {
    for (const { id, original, replacement, tried } of unexplained) {
      console.log(
        `survived: ${id}\n  ${original}  ->  ${replacement || '(nothing)'}  (${tried} test files run this place)`,
      );
    }
    for (const { file, line } of stale)
      console.log(`listed as equivalent, but killed or gone: ${file}\n  ${line}`);
    const timeouts = results.filter(({ killedBy }) => killedBy?.endsWith('(timeout)')).length;
    console.log(
      `${results.length} mutants: ${results.length - survived.length} killed (${timeouts} by a timeout), ` +
        `${survived.length - unexplained.length} equivalent, ${unexplained.length} survived, ${stale.length} stale entries`,
    );
  }
  process.exitCode = unexplained.length + stale.length > 0 ? 1 : 0;
}

async function inParallel(workshops, items, work) {
  let next = 0;
  await Promise.all(
    workshops.map(async (workshop) => {
      while (next < items.length) {
        const index = next++;
        await work(workshop, items[index], index);
      }
    }),
  );
}

function isNamed(parts, file) {
  return parts.some((part) => file.includes(part));
}

function progress(text) {
  process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${text}` : `${text}\n`);
}
