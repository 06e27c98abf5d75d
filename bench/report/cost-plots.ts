import type { WrittenCell } from '../results.ts';
import { type Line, plotBars, plotLines, plotParts, plotSpreads, type Spread } from './charts.ts';
import { type Markup, markup } from './markup.ts';
import { cellsOf, type Entry } from './verdict.ts';

const SIDES = ['direct', 'held', 'barest path'];

/** The recorded samples of a run, if it has any. */
function samplesOf(record: object, side: string): readonly number[] {
  const found: unknown = Object.entries(record).find(([name]) => name === side)?.[1];
  return Array.isArray(found) ? found.filter((one) => typeof one === 'number') : [];
}

/** Plots the times of the business tasks, of certification and of the comparison. */
export function plotCost(entry: Entry): Markup {
  const rows = (entry.raw?.records ?? []).flatMap((record) => {
    const task = /^state\|(.+)$/.exec(record.run)?.[1];
    if (task === undefined) return [];
    const spreads = ['direct', 'held', 'bare'].map((side, series) => ({
      series,
      samples: samplesOf(record, side),
      paper: cellsOf(entry).find(({ name }) => name === `STATE ${task}: ${side}`)?.paper,
    }));
    return [{ name: task.replace(/^[^/]*\//, '').replaceAll('_', ' '), spreads }];
  });
  const spreads = plotSpreads(
    'Time of a business task: whiskers from the 5th to the 95th percentile, box of the quartiles, median. Circles: the paper’s medians, on its machine',
    'ms',
    SIDES,
    rows,
  );
  return markup`${spreads}${plotCertification(entry)}${plotGrowth(cellsOf(entry))}`;
}

/** Plots executions on PostgreSQL with and without fresh surveys, alone and with other writers. */
function plotCertification(entry: Entry): Markup {
  const found = entry.raw?.records.find(({ run }) => run === 'certification');
  const sides = ['off', 'on'];
  const rows = [
    ['while others write', 'amongWriters'],
    ['no other writer', 'alone'],
  ].flatMap(([name = '', field = '']) => {
    const times: unknown = found?.[field];
    if (typeof times !== 'object' || times === null) return [];
    const paperOf = (side: string) =>
      cellsOf(entry).find((cell) => cell.name === `PostgreSQL: certification ${side}`)?.paper;
    const spreads = sides.map((side, series) => ({
      series,
      samples: samplesOf(times, side),
      paper: field === 'amongWriters' ? paperOf(side) : undefined,
    }));
    return [{ name, spreads }];
  });
  return plotSpreads(
    'Five effects on PostgreSQL, certification off and on. Circles: the paper’s medians, on its machine',
    'ms',
    ['certification off', 'certification on'],
    rows,
  );
}

const COMPARISON = /^comparison of (\d+) effects$/;

function plotGrowth(cells: readonly WrittenCell[]): Markup {
  const found = cells.flatMap(({ name, value, paper }) => {
    const effects = COMPARISON.exec(name)?.[1];
    return effects === undefined || value === null ? [] : [{ x: Number(effects), y: value, paper }];
  });
  const published = found.flatMap(({ x, paper }) => (paper === undefined ? [] : [{ x, y: paper }]));
  const lines: Line[] = [{ name: 'ours', points: found }];
  if (published.length > 0) lines.push({ name: 'paper', points: published });
  return plotLines('Comparison by the number of effects', { x: 'effects', y: 'ms' }, lines);
}

/** Plots the time of a comparison by the number of effects. */
export function plotCompare(entry: Entry): Markup {
  const points = cellsOf(entry).flatMap(({ name, value }) => {
    const effects = /^(\d+) effects$/.exec(name)?.[1];
    return effects === undefined || value === null ? [] : [{ x: Number(effects), y: value }];
  });
  const lines = [{ name: 'from row images to the verdict', points }];
  return plotLines('Comparison by the number of effects', { x: 'effects', y: 'µs' }, lines);
}

/** Names of measured times: of the clock, or of the processor on one side. */
const TIMED = /^(.+?)(?:, (median|client's processor|server's processor))?$/;
const CLOCKS = ['median', "client's processor", "server's processor"];
const FEWEST = 5;
/** Rows of a figure; the table has the others. */
const MOST = 24;
const MICROSECONDS: { readonly [unit: string]: number } = { us: 1, ms: 1000, s: 1_000_000 };

/** Plots the samples behind each measured time, on one axis. */
export function plotTimes(entry: Entry): Markup {
  const rows = new Map<string, Spread[]>();
  for (const one of entry.raw?.samples ?? []) {
    if (STEP.test(one.figure)) continue;
    const unit = cellsOf(entry).find(({ name }) => name === one.figure)?.unit ?? '';
    const scale = MICROSECONDS[unit];
    if (one.statistic !== 'median' || one.of.length < FEWEST || scale === undefined) continue;
    const inMilliseconds = ((one.times ?? 1) * scale) / 1000;
    const samples = one.of.map((value) => value * inMilliseconds);
    if (samples.some((value) => !(value > 0))) continue;
    const [, name = '', of = 'median'] = TIMED.exec(one.figure) ?? [];
    const series = Math.max(0, CLOCKS.indexOf(of));
    rows.set(name, [...(rows.get(name) ?? []), { series, samples }]);
  }
  const shown = [...rows].slice(0, MOST).map(([name, spreads]) => ({ name, spreads }));
  const isSplit = shown.some(({ spreads }) => spreads.some(({ series }) => series > 0));
  return plotSpreads(
    'Measured times: whiskers from the 5th to the 95th percentile, box of the quartiles, median',
    'ms',
    isSplit ? ['until it returns', ...CLOCKS.slice(1)] : [],
    shown,
  );
}

const STEP = /^(?:(.+): )?time to ((?:path|adapter):)?(.+)$/;
/** The steps of an execution in the order in which it reaches them. */
const PATH_STEPS = [
  ...['validated', 'claimed', 'certified', 'stage-opened', 'action-done', 'staged', 'observed'],
  ...['permit-bound', 'gate-passed', 'marker-written', 'commit-returned', 'promoted'],
  ...['terminal-recorded', 'returned'],
];

/** The place of a step on the path. Some studies add words after a comma. */
function placeOf(step: string): number {
  return PATH_STEPS.indexOf(step.split(',')[0] ?? '');
}

/** As many steps as there are colours; the others are added up. */
const STEPS = 7;

/** Plots where the time of an execution goes, from step to step. */
function plotSteps(entry: Entry): Markup {
  const found = cellsOf(entry).flatMap(({ name, value, unit }) => {
    const [, path = 'protected execution', , step] = STEP.exec(name) ?? [];
    const ms = ((value ?? 0) * (MICROSECONDS[unit] ?? 0)) / 1000;
    return step === undefined ? [] : [{ path, step, ms }];
  });
  const add = (list: typeof found) => list.reduce((sum, { ms }) => sum + ms, 0);
  const steps = [...Map.groupBy(found, ({ step }) => step)];
  const largest = steps.sort(([, one], [, other]) => add(other) - add(one)).slice(0, STEPS);
  const named = largest
    .map(([step]) => step)
    .sort((one, other) => placeOf(one) - placeOf(other) || (one < other ? -1 : 1));
  const rows = [...Map.groupBy(found, ({ path }) => path)].map(([name, own]) => ({
    name,
    parts: [
      ...named.map((step) => add(own.filter((one) => one.step === step))),
      add(own.filter(({ step }) => !named.includes(step))),
    ],
  }));
  const legend = [...named.map((step) => `to ${step}`), 'other steps'];
  return plotParts('Where the time of an execution goes: from step to step', 'ms', legend, rows);
}

/** Plots times, where they go, and throughput. */
export function plotDatabase(entry: Entry): Markup {
  return markup`${plotTimes(entry)}${plotSteps(entry)}${plotThroughput(entry)}`;
}

const THROUGHPUT = /^(\d+) clients: (.+)$/;

/** Plots operations per second: a group of bars per path, a bar per number of clients. */
function plotThroughput(entry: Entry): Markup {
  const found = cellsOf(entry).flatMap(({ name, value, unit }) => {
    const [, clients = '', path = ''] = THROUGHPUT.exec(name) ?? [];
    return path === '' || unit !== 'op/s' || value === null ? [] : [{ clients, path, value }];
  });
  const counts = [...new Set(found.map(({ clients }) => clients))];
  const groups = [...Map.groupBy(found, ({ path }) => path)].map(([name, own]) => ({
    name,
    population: '',
    bars: own.map(({ clients, value }) => ({
      series: counts.indexOf(clients),
      value,
      paper: undefined,
    })),
  }));
  const legend = counts.map((clients) => `${clients} clients`);
  return plotBars('Throughput, in operations per second', legend, groups);
}
