// node bench/recompute.ts [<study> ...] [--quick]: recomputes the figures of every study that was
// run from its raw records and samples, and compares them with the figures that the study wrote. It
// does not import the runtime. Exit code 1 if a figure differs or a study's records are missing.
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { recomputeEscapes } from './recompute/escapes.ts';
import * as mechanisms from './recompute/mechanisms.ts';
import * as outcomes from './recompute/outcomes.ts';
import { recomputeMorePairs, recomputePairs } from './recompute/pairs.ts';
import type { Figures, ReadRecord } from './recompute/record.ts';
import { type Samples, statisticOf } from './statistics.ts';

const STUDIES: { readonly [study: string]: (records: readonly ReadRecord[]) => Figures } = {
  'public-outcomes': outcomes.recomputeOutcomes,
  information: outcomes.recomputeInformation,
  'live-agents': outcomes.recomputeEpisodes,
  backends: outcomes.recomputeBackends,
  'backends-mariadb': outcomes.recomputeMariadb,
  ablations: recomputePairs,
  'more-ablations': recomputeMorePairs,
  'mechanism-matrix': mechanisms.recomputeMatrix,
  recovery: mechanisms.recomputeRecovery,
  boundary: mechanisms.recomputeTrials,
  integrated: mechanisms.recomputeScenarios,
  trace: mechanisms.recomputeTrace,
  concurrency: mechanisms.recomputeRaces,
  crashes: mechanisms.recomputeCrashes,
  'concurrency-long': mechanisms.recomputeRaces,
  'crashes-long': mechanisms.recomputeCrashes,
  escapes: recomputeEscapes,
  peers: mechanisms.recomputePeers,
  topologies: mechanisms.recomputeTopologies,
  cost: mechanisms.recomputeRight,
};

/** Computes every figure that follows from a study's records and samples. */
export function recompute(
  study: string,
  records: readonly ReadRecord[],
  samples: readonly (Samples & { readonly figure: string })[] = [],
): Figures {
  const counted = STUDIES[study]?.(records) ?? new Map<string, number>();
  const measured = samples.map((one) => [one.figure, statisticOf(one)] as const);
  return new Map([...counted, ...measured]);
}

interface WrittenFigure {
  readonly name: string;
  readonly value: number | null;
}

/** Marks a figure that is quoted from the paper and has no run here. */
const PUBLISHED = 'published, not run here: ';

/** Lists the figures that differ from the records, and those that no record gives. */
export function compareFigures(cells: readonly WrittenFigure[], figures: Figures) {
  const ours = cells.filter(({ name }) => !name.startsWith(PUBLISHED));
  const differing = ours.filter(({ name, value }) => {
    const again = figures.get(name);
    return again !== undefined && again !== value && !(Number.isNaN(again) && value === null);
  });
  const unsupported = ours.filter(({ name }) => !figures.has(name));
  return { differing, unsupported, count: ours.length };
}

function readLines<T>(file: string): readonly T[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line) as T);
}

function checkStudy(folder: string, name: string, quick: boolean): boolean {
  const file = `${name}${quick ? '-quick' : ''}`;
  const written = JSON.parse(readFileSync(join(folder, `${file}.json`), 'utf8')) as {
    readonly cells?: readonly WrittenFigure[];
  };
  if (written.cells === undefined) return true;
  const records = readLines<ReadRecord>(join(folder, 'raw', `${file}.jsonl`));
  const samples = readLines<Samples & { figure: string }>(
    join(folder, 'raw', `${file}-samples.jsonl`),
  );
  const runs = records.filter(({ run }) => run !== 'head' && run !== 'finished');
  const figures = recompute(name, runs, samples);
  const { differing, unsupported, count } = compareFigures(written.cells, figures);
  for (const { name: figure, value } of differing)
    console.error(
      `${name}: ${figure}: the records say ${figures.get(figure)}, the study wrote ${value}`,
    );
  for (const { name: figure } of unsupported)
    console.error(`${name}: ${figure}: no record says anything about it`);
  const agree = count - differing.length - unsupported.length;
  console.log(`${name}: ${agree} of ${count} figures agree`);
  return agree === count;
}

function main(): void {
  const quick = process.argv.includes('--quick');
  const asked = process.argv.slice(2).filter((given) => !given.startsWith('--'));
  const folder = process.env.EFFECTMATCH_BENCH_RESULTS ?? 'bench/results';
  const found = globSync('*.json', { cwd: folder })
    .map((name) => name.replace(/\.json$/, ''))
    .filter((name) => name.endsWith('-quick') === quick)
    .map((name) => name.replace(/-quick$/, ''));
  const chosen = asked.length === 0 ? found.sort() : asked;
  const absent = chosen.filter((name) => !found.includes(name));
  for (const name of absent)
    console.error(`There is no result of ${name}. Run: npm run bench -- ${name}`);
  const agreeing = chosen
    .filter((name) => found.includes(name))
    .filter((name) => checkStudy(folder, name, quick));
  if (chosen.length === 0) console.error('There are no results. Run: npm run bench -- all');
  if (agreeing.length < chosen.length || chosen.length === 0) process.exitCode = 1;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) main();
