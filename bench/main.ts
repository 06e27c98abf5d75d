// npm run bench -- list | all [<study> ...] | report | publish | <study> [--quick] [--json]
// [--strict] [--data <folder>] [--seed <n>]
// Exit code 0 if the study ran, whatever its figures, or if its data is missing; 1 if it or a study
// of `all` failed; with --strict, 3 if a figure missed its target or the study was not run; 130
// after Ctrl-C.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { runAll } from './all.ts';
import { LONG_STUDY_NAMES, loadStudies, loadStudy, STUDY_NAMES } from './catalogue.ts';
import { findFolder } from './data/folder.ts';
import { mergePublished, readPublished, writePublished } from './published.ts';
import { fingerprintOf, RawRecords, writeSamples } from './raw.ts';
import { rewritePages } from './report/quoted.ts';
import { showValue } from './report/verdict.ts';
import { gatherEntries, writeReport } from './report/write.ts';
import { describeContext, readResult, writeResult } from './results.ts';
import {
  type Cell,
  DEFAULT_SEED,
  missedTargets,
  NotRun,
  type Study,
  type StudyOptions,
} from './study.ts';
import { keepTemporary } from './temporary.ts';

const USAGE = `Usage: npm run bench -- list
       npm run bench -- all [<study> ...] [--quick] [--strict] [--data <folder>] [--seed <n>]
       npm run bench -- report [--quick]
       npm run bench -- publish
       npm run bench -- <study> [--quick] [--json] [--strict] [--data <folder>] [--seed <n>]

  report   writes bench/report/index.html and report.md from the last results
  publish  takes over complete results for the tables that the pages quote, and writes them again

  --quick  fewer repetitions: shows that it runs, not what it costs
  --json   the last line printed is one JSON object with every figure
  --strict fails when a figure misses its target, and names it; with --quick, only counts are judged
  --data   the folder with the public task data; EFFECTMATCH_DATA or ../shared/data unless told
  --seed   a number from 0 on, for what a study draws at random; ${DEFAULT_SEED} unless told
`;

interface How {
  readonly quick: boolean;
  readonly data: string | undefined;
  /** From the command line. By default each study uses its own seed. */
  readonly seed: number | undefined;
  readonly json: boolean;
  readonly strict: boolean;
}

/**
 * The exit code of a strict run whose study missed a target or could not run. It is neither a
 * success nor a failure.
 */
const MISSED = 3;

async function printList(): Promise<void> {
  for (const study of await loadStudies()) console.log(`${study.name.padEnd(16)} ${study.about}`);
}

function printTable(cells: readonly Cell[]): void {
  const width = Math.max(...cells.map((cell) => cell.name.length));
  for (const { name, value, unit, target, paper, ok } of cells) {
    const shown = showValue(value);
    const notes = [
      target && `target ${target}: ${ok ? 'met' : 'MISSED'}`,
      paper !== undefined && `paper ${paper}`,
    ];
    console.log(
      `${name.padEnd(width)}  ${shown.padStart(9)} ${unit.padEnd(8)} ${notes.filter(Boolean).join(', ')}`.trimEnd(),
    );
  }
}

async function printReport(quick: boolean): Promise<void> {
  // A long study that was not run is left out of the report.
  const entries = gatherEntries(await loadStudies(), quick).filter(
    ({ name, result }) => STUDY_NAMES.includes(name) || result !== undefined,
  );
  console.log(`\nreport: ${writeReport(entries).join(', ')}`);
}

async function publish(): Promise<void> {
  const published = mergePublished(readPublished(), gatherEntries(await loadStudies(), false));
  console.log(`written: ${[writePublished(published), ...rewritePages(published)].join(', ')}`);
}

/** Runs one study and records how it ended. Rethrows the error if it failed. */
async function runStudy(study: Study, { quick, data, json, strict, ...how }: How): Promise<void> {
  const seed = how.seed ?? study.seed ?? DEFAULT_SEED;
  const started = performance.now();
  const code = fingerprintOf([]);
  const context = () => {
    const seconds = Math.round((performance.now() - started) / 100) / 10;
    return describeContext({ quick, seed, seeded: study.seeded ?? null, seconds, code });
  };
  const options: StudyOptions = {
    quick,
    data,
    seed,
    progress: (line) => process.stderr.write(`… ${line}\n`),
  };
  options.progress(`seed ${seed}: ${study.seeded ?? 'nothing in this study is drawn at random'}`);
  let cells: readonly Cell[];
  try {
    const found = await study.run(options);
    writeSamples(`${study.name}${quick ? '-quick' : ''}`, found);
    cells = found.map(({ samples: _, ...cell }) => cell);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (!(error instanceof NotRun)) {
      writeResult({ study: study.name, context: context(), failed: message });
      throw error;
    }
    writeResult({ study: study.name, context: context(), notRun: message });
    console.log(
      json ? JSON.stringify({ study: study.name, notRun: message }) : `NOT RUN: ${message}`,
    );
    if (strict) process.exitCode = MISSED;
    return;
  }
  const { seconds, ...written } = context();
  const file = writeResult({
    study: study.name,
    context: { ...written, seconds },
    cells: [...cells],
  });
  for (const { name, value, target } of strict ? missedTargets(cells, quick) : []) {
    console.error(`MISSED: ${name}: ${value}, target ${target}`);
    process.exitCode = MISSED;
  }
  if (json) {
    console.log(JSON.stringify({ study: study.name, seed, cells }));
    return;
  }
  printTable(cells);
  const words = quick ? ', quick: too few repetitions to quote' : '';
  console.log(`\n${study.name}: ${seconds} s${words}; seed ${seed}; written to ${file}`);
}

/** Runs each study in a separate process, so that no heap or crash carries over to the next. */
async function runEverything(
  names: readonly string[],
  { quick, data, seed, strict }: How,
): Promise<void> {
  const folder = findFolder(data);
  let current: ReturnType<typeof fork> | undefined;
  let interrupted = false;
  const code = fingerprintOf([]);
  keepTemporary(async (signal) => {
    interrupted = true;
    if (current === undefined || current.exitCode !== null || current.signalCode !== null) return;
    current.kill(signal);
    await once(current, 'exit');
  });
  const start = async (name: string) => {
    const given = [
      ...(seed === undefined ? [] : ['--seed', String(seed)]),
      ...(quick ? ['--quick'] : []),
      ...(strict ? ['--strict'] : []),
      ...(data === undefined ? [] : ['--data', data]),
    ];
    current = fork(fileURLToPath(import.meta.url), [name, ...given]);
    const [status, signal] = await once(current, 'exit');
    // An interrupted study has not failed, and no other study may start after it.
    if (interrupted) await new Promise(() => {});
    const ended = readResult(name, quick);
    if (status === MISSED && ended !== undefined && 'cells' in ended)
      throw new Error('a figure missed its target');
    if (status !== 0 && status !== MISSED) {
      const message = `it ended with ${status ?? signal}`;
      // A killed process wrote no result. Record the failure, so that the report does not show
      // older figures.
      if (ended === undefined || !('failed' in ended)) {
        const told = seed ?? DEFAULT_SEED;
        const context = describeContext({ quick, seed: told, seeded: null, seconds: 0, code });
        writeResult({ study: name, context, failed: message });
      }
      throw new Error(message);
    }
    if (ended !== undefined && 'notRun' in ended) throw new NotRun(ended.notRun);
  };
  const inputs = globSync('**/*', { cwd: folder, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  const files = inputs.map(({ parentPath, name }) => join(parentPath, name)).sort();
  const part = names.length === STUDY_NAMES.length ? [] : names;
  const done = new RawRecords(['all', ...part, ...(quick ? ['quick'] : [])].join('-'), files, seed);
  const begun = performance.now();
  const { ran, kept, notRun, failed } = await runAll(names, start, done, (line) =>
    console.error(`\n=== ${line}`),
  );
  await printReport(quick);
  const minutes = ((performance.now() - begun) / 60_000).toFixed(1);
  console.log(
    `\nall: ${minutes} min; seed ${seed ?? DEFAULT_SEED}; ran ${ran.length}, kept from before ${kept.length}`,
  );
  if (notRun.length > 0) console.log(`not run: ${notRun.join(', ')}`);
  if (failed.length > 0) {
    console.log(`FAILED: ${failed.join(', ')}; the same command tries only these again`);
    process.exitCode = 1;
  }
}

function readSeed(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const seed = Number(text);
  if (text.trim() !== '' && Number.isSafeInteger(seed) && seed >= 0) return seed;
  console.error(`--seed must be a whole number from 0 on, not "${text}"`);
  process.exit(1);
}

/** Checks `--data` before anything runs, even for a study that reads no data. Prints no stack. */
function refuseAbsentFolder(data: string | undefined): void {
  try {
    findFolder(data);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  }
}

function readArguments() {
  const options = {
    quick: { type: 'boolean' },
    json: { type: 'boolean' },
    strict: { type: 'boolean' },
    data: { type: 'string' },
    seed: { type: 'string' },
    help: { type: 'boolean' },
  } as const;
  try {
    return parseArgs({ allowPositionals: true, options });
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${USAGE}`);
    process.exit(1);
  }
}

const { values, positionals } = readArguments();
const [name, ...others] = positionals;
const { quick = false, json = false, strict = false, data } = values;
const how: How = { quick, json, strict, data, seed: readSeed(values.seed) };
refuseAbsentFolder(data);
const wanted = name === 'all' ? others : [name ?? '', ...others];
const known = [...STUDY_NAMES, ...LONG_STUDY_NAMES];
const unknown = wanted.find((one) => !known.includes(one));
if (values.help || name === undefined) console.log(USAGE);
else if (name === 'list') await printList();
else if (name === 'report') await printReport(quick);
else if (name === 'publish') await publish();
else if (unknown !== undefined || (name !== 'all' && others.length > 0)) {
  console.error(`There is no study "${unknown ?? wanted.join(' ')}". These exist:`);
  await printList();
  process.exitCode = 1;
} else if (name === 'all') {
  const asked = known.filter((one) => others.includes(one));
  await runEverything(others.length === 0 ? STUDY_NAMES : asked, how);
} else {
  keepTemporary();
  // A study that `all` started ends with it.
  process.on('disconnect', () => process.exit(1));
  process.channel?.unref();
  await runStudy(await loadStudy(name), how);
}
