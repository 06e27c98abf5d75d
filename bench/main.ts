// npm run bench -- list | all [<study> ...] | report | publish | <study> [--quick] [--json]
// [--strict] [--data <folder>] [--seed <n>]
// Exit code 0 if the study ran, whatever its figures, or if its data is missing; 1 if it or a study
// of `all` failed; with --strict, 3 if a figure missed its target or the study was not run; 130
// after Ctrl-C.
import { parseArgs } from 'node:util';
import {
  LONG_STUDY_NAMES,
  loadStudies,
  loadStudy,
  measuresTime,
  mediumFor,
  STUDY_NAMES,
} from './catalogue.ts';
import { findFolder } from './data/folder.ts';
import { type How, MISSED, runEverything } from './everything.ts';
import { mergePublished, readPublished, writePublished } from './published.ts';
import { fingerprintOf, writeSamples } from './raw.ts';
import { rewritePages } from './report/quoted.ts';
import { showValue } from './report/verdict.ts';
import { gatherEntries, writeReport } from './report/write.ts';
import { describeContext, writeResult } from './results.ts';
import {
  type Cell,
  DEFAULT_SEED,
  missedTargets,
  NotRun,
  type Study,
  type StudyOptions,
} from './study.ts';
import { endInOrder, endWithParent, makeTemporary, mediumOf } from './temporary.ts';

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

async function printList(): Promise<void> {
  for (const { name, about } of await loadStudies())
    console.log(`${name.padEnd(16)} ${measuresTime(name) ? 'times ' : 'counts'} ${about}`);
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

/** A study that shares the machine with others cannot judge times. Only counts have one right value. */
function refuseJudgedTimes(name: string, cells: readonly Cell[]): void {
  const judged = cells.find(({ target = '= ' }) => !target.startsWith('= '));
  if (judged !== undefined && !measuresTime(name))
    throw new Error(`"${judged.name}" is judged, so ${name} has to be one of the timed studies`);
}

/** Runs one study and records how it ended. Rethrows the error if it failed. */
async function runStudy(study: Study, { quick, data, json, strict, ...how }: How): Promise<void> {
  const seed = how.seed ?? study.seed ?? DEFAULT_SEED;
  const started = performance.now();
  const code = fingerprintOf([]);
  const context = () => {
    const seconds = Math.round((performance.now() - started) / 100) / 10;
    const files = mediumOf();
    return describeContext({ quick, seed, seeded: study.seeded ?? null, seconds, code, files });
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
    refuseJudgedTimes(study.name, found);
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
  await runEverything(others.length === 0 ? STUDY_NAMES : asked, how, () => printReport(quick));
} else {
  endWithParent();
  endInOrder();
  Object.assign(process.env, makeTemporary(mediumFor(name)));
  await runStudy(await loadStudy(name), how);
}
