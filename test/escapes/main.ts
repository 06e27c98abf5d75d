// npm run escapes -- [--cases <file.json|file.ts>] [--server 17|15|<folder of programs>] [--only
// <text>] [--json]
//                    [--managed] [--tasks] [--part 1/4] [--check | --write]
// --tasks makes every statement a call of a held task, where only what became durable counts.
// --managed runs the catalogue behind the managed boundary, where only commits count, and then the cases that aim at
// its statement gate.
// Exit code 0 when every case ended as it must and nothing unapproved became durable; 1 otherwise. --write keeps the
// results of the whole catalogue in test/escapes/results.json; --check fails when they are not those of this run.
import { readFileSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import type { EscapeFile, EscapeResult } from './case.ts';
import { compareEvidence, evidenceOf, readEvidence, writeEvidence } from './evidence.ts';
import { type RunOptions, runEscapes } from './runner.ts';

const CATALOGUE = 'test/escapes/cases/postgres.ts';
const GATE = 'test/escapes/cases/gate.ts';
const { values } = parseArgs({
  options: {
    cases: { type: 'string', default: CATALOGUE },
    server: { type: 'string', default: '17' },
    managed: { type: 'boolean', default: false },
    tasks: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    part: { type: 'string', default: '1/1' },
    json: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
});
const isCatalogue =
  values.only === '' &&
  values.part === '1/1' &&
  values.cases === CATALOGUE &&
  values.server === '17';
const isWhole = isCatalogue && !values.managed && !values.tasks;
if ((values.check || values.write) && !isWhole) {
  console.error(
    '--check and --write are for the whole catalogue on PostgreSQL 17: leave out --only, --cases, --server, --tasks and --managed',
  );
  process.exit(2);
}

async function readCases(path: string): Promise<EscapeFile> {
  if (path.endsWith('.json')) return JSON.parse(readFileSync(path, 'utf8')) as EscapeFile;
  const module = (await import(pathToFileURL(resolve(path)).href)) as {
    readonly ESCAPES: EscapeFile;
  };
  return module.ESCAPES;
}

function serverOf(server: string): RunOptions {
  if (server === '17') return { version: 17 };
  return server === '15' ? { version: 15 } : { bin: resolve(server) };
}

function printResult({ ok, name, expected, found, detail, violation }: EscapeResult): void {
  const verdict = violation ? 'VIOLATION' : ok ? 'ok' : 'OTHER';
  console.log(`${verdict.padEnd(9)}  ${name.padEnd(70)}  ${found}`);
  if (!ok)
    console.log(`           expected ${expected}: ${violation ?? ''} ${detail.slice(0, 600)}`);
}

/** What an ending counts as: `found` begins with it. */
const KINDS = ['committed', 'observed', 'denied', 'refused', 'not applicable', 'indeterminate'];

/** Runs the cases of a file that were asked for. */
async function runFile(path: string, changes: Partial<EscapeFile> & { anyEnding?: boolean } = {}) {
  const { anyEnding = false, ...change } = changes;
  const file = await readCases(path);
  const [part = 1, parts = 1] = values.part.split('/').map(Number);
  const cases = file.cases.filter(
    ({ name }, index) => name.includes(values.only) && index % parts === part - 1,
  );
  const report = values.json ? () => {} : printResult;
  const where = { ...serverOf(values.server), report, anyEnding, inTask: values.tasks };
  return await runEscapes({ ...file, ...change, cases }, where);
}

const begun = performance.now();
const run = values.managed
  ? await runFile(values.cases, { boundary: 'managed', anyEnding: true })
  : await runFile(values.cases);
const aimed = values.managed ? await runFile(GATE) : { results: [] };
const results = [...run.results, ...aimed.results];
const counts = KINDS.map((kind) => [
  kind,
  results.filter(({ found }) => found.startsWith(kind)).length,
]);
const violations = results.filter((result) => result.violation !== undefined).length;
const unexpected = results.filter(({ ok }) => !ok).length;
console.log(
  JSON.stringify({
    server: values.server,
    version: run.version,
    cases: results.length,
    ...Object.fromEntries(counts),
    violations,
    unexpected,
    seconds: Math.round((performance.now() - begun) / 1000),
    ...(values.json ? { results } : {}),
  }),
);
process.exitCode = unexpected > 0 ? 1 : 0;
if (values.write && unexpected === 0)
  console.log(`kept in ${relative('.', writeEvidence(evidenceOf(run)))}`);
if (values.check) {
  const differences = compareEvidence(readEvidence(), evidenceOf(run));
  for (const difference of differences) console.error(`not as kept: ${difference}`);
  if (differences.length > 0) {
    console.error('Review the differences; `npm run escapes -- --write` keeps the new results.');
    process.exitCode = 1;
  }
}
