// npm run bench -- list | <study> [--quick] [--json] [--data <folder>]
// Exit code 0 when the study ran, whatever its figures, or when its data is absent; 1 when it failed.
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { ablationsStudy } from './studies/ablations.ts';
import { backendsStudy } from './studies/backends.ts';
import { boundaryStudy } from './studies/boundary.ts';
import { compareStudy } from './studies/compare.ts';
import { coreCostStudy } from './studies/core-cost.ts';
import { informationStudy } from './studies/information.ts';
import { integratedStudy } from './studies/integrated.ts';
import { mechanismMatrixStudy } from './studies/mechanism-matrix.ts';
import { mariadbStudy, topologiesStudy } from './studies/not-run.ts';
import { pgCostStudy } from './studies/pg-cost.ts';
import { publicOutcomesStudy } from './studies/public-outcomes.ts';
import { recoveryStudy } from './studies/recovery.ts';
import { sqliteCostStudy } from './studies/sqlite-cost.ts';
import { type Cell, NotRun, type Study, type StudyOptions } from './study.ts';

const STUDIES: readonly Study[] = [
  compareStudy,
  coreCostStudy,
  sqliteCostStudy,
  pgCostStudy,
  boundaryStudy,
  integratedStudy,
  publicOutcomesStudy,
  ablationsStudy,
  mechanismMatrixStudy,
  informationStudy,
  recoveryStudy,
  backendsStudy,
  mariadbStudy,
  topologiesStudy,
];
const USAGE = `Usage: npm run bench -- list
       npm run bench -- <study> [--quick] [--json] [--data <folder>]

  --quick  fewer repetitions: shows that it runs, not what it costs
  --json   the last line printed is one JSON object with every figure
  --data   the folder with the public task data; EFFECTMATCH_DATA or ../shared/data unless told
`;

function printList(): void {
  for (const study of STUDIES) console.log(`${study.name.padEnd(16)} ${study.about}`);
}

function printTable(cells: readonly Cell[]): void {
  const width = Math.max(...cells.map((cell) => cell.name.length));
  for (const { name, value, unit, target, paper, ok } of cells) {
    const shown = Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
    const notes = [target && `target ${target}: ${ok ? 'met' : 'MISSED'}`, paper !== undefined && `paper ${paper}`];
    console.log(
      `${name.padEnd(width)}  ${shown.padStart(9)} ${unit.padEnd(8)} ${notes.filter(Boolean).join(', ')}`.trimEnd(),
    );
  }
}

async function runStudy(study: Study, how: Omit<StudyOptions, 'progress'>, json: boolean): Promise<void> {
  const started = performance.now();
  const cells = await study.run({ ...how, progress: (line) => process.stderr.write(`… ${line}\n`) }).catch(asNotRun);
  if (cells instanceof NotRun) {
    console.log(json ? JSON.stringify({ study: study.name, notRun: cells.message }) : `NOT RUN: ${cells.message}`);
    return;
  }
  const { quick } = how;
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  const file = `bench/results/${study.name}.json`;
  mkdirSync('bench/results', { recursive: true });
  const context = {
    node: process.version,
    cpu: cpus()[0]?.model,
    cores: cpus().length,
    at: new Date().toISOString(),
    quick,
  };
  writeFileSync(file, `${JSON.stringify({ study: study.name, context, cells }, null, 2)}\n`);
  if (!json) {
    printTable(cells);
    console.log(
      `\n${study.name}: ${seconds} s${quick ? ', quick: too few repetitions to quote' : ''}; written to ${file}`,
    );
  } else {
    console.log(JSON.stringify({ study: study.name, cells }));
  }
}

function asNotRun(error: unknown): NotRun {
  if (error instanceof NotRun) return error;
  throw error;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean' },
    json: { type: 'boolean' },
    data: { type: 'string' },
    help: { type: 'boolean' },
  },
});
const [name] = positionals;
const study = STUDIES.find((candidate) => candidate.name === name);
if (values.help || name === undefined) console.log(USAGE);
else if (name === 'list') printList();
else if (study === undefined) {
  console.error(`There is no study "${name}". These exist:`);
  printList();
  process.exitCode = 1;
} else await runStudy(study, { quick: values.quick ?? false, data: values.data }, values.json ?? false);
