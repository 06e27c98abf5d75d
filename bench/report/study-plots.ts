import type { WrittenCell } from '../results.ts';
import {
  type Bar,
  type BarGroup,
  type PlotTone,
  plotBars,
  plotMatrix,
  plotPlane,
  type Square,
} from './charts.ts';
import { plotCompare, plotCost, plotDatabase, plotTimes } from './cost-plots.ts';
import { engineName } from './engines.ts';
import { type Markup, markup, NOTHING } from './markup.ts';
import { plotTrace } from './trace-plot.ts';
import { cellsOf, type Entry, showValue, toneOf } from './verdict.ts';

/** The plots of a study, from its figures and raw records. Some studies need only their table. */
export function plotsOf(entry: Entry): Markup {
  const draw = PLOTS[entry.name];
  return draw === undefined || cellsOf(entry).length === 0 ? NOTHING : draw(entry);
}

const PLOTS: { readonly [study: string]: (entry: Entry) => Markup } = {
  'public-outcomes': plotOutcomes,
  ablations: plotAblations,
  'more-ablations': plotAblations,
  'live-agents': plotAgents,
  integrated: plotCounts,
  topologies: plotCounts,
  backends: plotCounts,
  'backends-mariadb': plotCounts,
  trace: (entry) => markup`${plotTrace(entry)}${plotCounts(entry)}`,
  concurrency: plotRaces,
  'concurrency-long': plotRaces,
  agents: plotTimes,
  server: plotTimes,
  'held-tasks': plotTimes,
  workflows: plotTimes,
  'core-cost': plotDatabase,
  'sqlite-cost': plotDatabase,
  'mechanism-matrix': plotMechanisms,
  boundary: plotBoundary,
  recovery: plotRecovery,
  crashes: plotCrashes,
  'crashes-long': plotCrashes,
  cost: plotCost,
  'pg-cost': plotDatabase,
  'mariadb-cost': plotDatabase,
  compare: plotCompare,
  escapes: plotEscapes,
  information: plotInformation,
  peers: plotPeers,
};

const CONDITIONS = ['direct', 'EffectMatch', 'call-level rules', 'error-reject', 'no comparison'];
const WRONG_COMMIT = /^\(([abc])\) (?!own tools)([^:]+): (.+), wrong commit$/;
const CLEAN_STATE = /^\(([abc])\) (?!own tools)([^:]+): (clean), right state$/;
const PARTS: { readonly [part: string]: string } = {
  a: '3 database tasks',
  b: '12 business tasks',
  c: '206 business tasks',
};

/** Plots the wrong results that were committed, and the clean runs that ended right. */
export function plotOutcomes(entry: Entry): Markup {
  const wrong = plotBars(
    'Wrong results that became durable, in runs; one scale per population. Bars are ours, strokes the paper’s',
    CONDITIONS,
    outcomeGroups(entry, WRONG_COMMIT),
  );
  const clean = plotBars(
    'Clean runs of the same tasks that end with the approved state',
    CONDITIONS,
    outcomeGroups(entry, CLEAN_STATE),
  );
  return markup`${wrong}${clean}`;
}

/** The figures with such names, grouped by population and fault. */
function outcomeGroups(entry: Entry, names: RegExp): readonly BarGroup[] {
  const groups = new Map<string, Bar[]>();
  for (const { name, value, paper } of cellsOf(entry)) {
    const [, part = '', condition = '', fault = ''] = names.exec(name) ?? [];
    const series = CONDITIONS.indexOf(condition);
    if (series < 0 || value === null) continue;
    const group = `${PARTS[part]}: ${fault}`;
    groups.set(group, [...(groups.get(group) ?? []), { series, value, paper }]);
  }
  return [...groups].map(([name, bars]) => ({
    name,
    population: name.split(':')[0] ?? '',
    bars: bars.sort((a, b) => a.series - b.series),
  }));
}

/** Arranges figures whose names contain a row and a column in a grid. */
function gridOf(
  cells: readonly WrittenCell[],
  place: (cell: WrittenCell) => readonly [row: string, column: string] | undefined,
  square: (cell: WrittenCell) => Square,
) {
  const columns: string[] = [];
  const rows = new Map<string, Map<string, Square>>();
  for (const cell of cells) {
    const placed = place(cell);
    if (placed === undefined) continue;
    const [row, column] = placed;
    if (!columns.includes(column)) columns.push(column);
    const squares = rows.get(row) ?? new Map<string, Square>();
    rows.set(row, squares.set(column, square(cell)));
  }
  return {
    columns,
    rows: [...rows].map(([name, squares]) => ({
      name,
      squares: columns.map((column) => squares.get(column)),
    })),
  };
}

/** Splits a name at the last occurrence of the separator. */
function splitLast(name: string, separator: string): readonly [string, string] | undefined {
  const at = name.lastIndexOf(separator);
  return at < 0 ? undefined : [name.slice(0, at), name.slice(at + separator.length)];
}

/** A count with its expected value. */
function countSquare(cell: WrittenCell, tone: PlotTone = toneOf(cell)): Square {
  const { name, value, target, paper } = cell;
  const wanted = target?.replace('= ', '');
  const isPart = wanted !== undefined && wanted !== '0';
  const text = isPart ? `${showValue(value)} of ${wanted}` : showValue(value);
  const told = paper === undefined ? `${name}: ${text}` : `${name}: ${text}; paper ${paper}`;
  return { text, tone, told };
}

function plotAblations(entry: Entry): Markup {
  const { columns, rows } = gridOf(
    cellsOf(entry),
    ({ name }) => splitLast(name, ': '),
    (cell) => {
      const isAdmitted = cell.name.endsWith('removed, admitted');
      return countSquare(cell, toneOf(cell) === 'bad' ? 'bad' : isAdmitted ? 'warn' : 'good');
    },
  );
  return plotMatrix(
    'One mechanism is removed at a time. Green: the fault is stopped, or the clean run is committed; amber: without the mechanism the fault gets through',
    columns,
    rows,
  );
}

const COUNTED =
  'Counted runs. Green: the paper’s count; blue: our own target; red: neither; grey: only reported';
/** Columns that leave room for their names. */
const FEW_COLUMNS = 6;

/** Shows every count beside what it has to be: in a grid, or in a list if that would be sparse. */
function plotCounts(entry: Entry): Markup {
  const cells = cellsOf(entry);
  const { columns, rows } = gridOf(
    cells,
    ({ name }) => splitLast(name, ': '),
    (cell) => countSquare(cell),
  );
  const isDense = cells.length >= (rows.length * columns.length) / 2;
  if (columns.length <= FEW_COLUMNS && isDense) return plotMatrix(COUNTED, columns, rows);
  const list = cells.map((cell) => {
    const { name, paper } = cell;
    const told = `${name}: paper ${paper}`;
    const published: Square = { text: String(paper), tone: 'plain', told };
    return { name, squares: [countSquare(cell), ...(paper === undefined ? [] : [published])] };
  });
  const hasPaper = cells.some(({ paper }) => paper !== undefined);
  return plotMatrix(COUNTED, hasPaper ? ['here', 'paper'] : ['here'], list);
}

const WRONG_STATE = 'durable is something else';
/** What an episode left, in words that fit over a column. */
const LEFT: { readonly [words: string]: string } = {
  'durable is the initial state': 'initial state',
  'durable is what was approved': 'as approved',
  [WRONG_STATE]: 'something else',
  'the verdict is what the durable state shows': 'verdict true',
};
const EPISODES = /^(.+), (direct|integrated): (.+)$/;

/** Two grids: agents that do their work, beside the paper’s, and scripts that misbehave. */
function plotAgents(entry: Entry): Markup {
  const found = cellsOf(entry).filter(
    ({ name }) => EPISODES.test(name) && !name.startsWith('every '),
  );
  const isOdd = ({ name }: WrittenCell) => / agent that /.test(name);
  const place = ({ name }: WrittenCell): readonly [string, string] => {
    const [, agent = '', path = '', words = ''] = EPISODES.exec(name) ?? [];
    const shown = agent.startsWith(NOT_RUN) ? `${agent.slice(NOT_RUN.length)} (paper)` : agent;
    return isOdd({ name } as WrittenCell)
      ? [shown.replace('scripted agent that ', ''), `${path}: ${LEFT[words] ?? words}`]
      : [`${shown}, ${path}`, words.replace(' by the agent', '')];
  };
  const draw = (title: string, cells: readonly WrittenCell[]) => {
    const { columns, rows } = gridOf(cells, place, (cell) => {
      const isWrong = cell.name.endsWith(WRONG_STATE) && cell.value !== 0;
      return countSquare(cell, isWrong && toneOf(cell) !== 'bad' ? 'warn' : toneOf(cell));
    });
    return plotMatrix(title, columns, rows);
  };
  const good = found.filter((cell) => !isOdd(cell));
  const odd = found.filter(isOdd);
  return markup`${draw('Episodes of agents that do their work. Grey: only reported, or quoted from the paper', good)}${draw('Episodes of scripts that misbehave: what became durable with comparison, and without. Amber: a wrong state was saved', odd)}`;
}

const RACE = /^([^:]+): (.+)$/;
/** Races and writers name the same backends differently. */
const RACED: { readonly [backend: string]: string } = {
  'sqlite-wal': 'SQLite',
  postgres: 'PostgreSQL',
};

function plotRaces(entry: Entry): Markup {
  const { columns, rows } = gridOf(
    cellsOf(entry),
    ({ name }) => {
      const [, backend, words] = RACE.exec(name) ?? [];
      if (backend === undefined || words === undefined) return undefined;
      return [words, RACED[backend] ?? backend];
    },
    (cell) => countSquare(cell),
  );
  return plotMatrix('Races for one license, and writers of one row, by backend', columns, rows);
}

const CELL = /^(.+) \| ([^|]+): ([^:]+)$/;
const WRONG = /commit|advance|duplicate|accept/;

function plotMechanisms(entry: Entry): Markup {
  const { columns, rows } = gridOf(
    cellsOf(entry),
    ({ name }) => {
      const [, row, column] = CELL.exec(name) ?? [];
      return row === undefined || column === undefined ? undefined : [row, column];
    },
    (cell) => {
      const [, , , label = ''] = CELL.exec(cell.name) ?? [];
      const good = label === 'exact' || label === 'reject' ? 'good' : 'fair';
      const tone = WRONG.test(label) ? 'warn' : good;
      const isMissed = toneOf(cell) === 'bad';
      const text = isMissed ? `${label}: ${showValue(cell.value)} ${cell.target}` : label;
      return { text, tone: isMissed ? 'bad' : tone, told: `${cell.name}: ${cell.value} runs` };
    },
  );
  return plotMatrix(
    'How each scenario ends. Green: right; blue: stopped for a person; amber: a wrong result stands or is built on; red: not as expected',
    columns,
    rows,
  );
}

const CONSTRUCTION = /^([^:]+): (.+): (passes|is refused)$/;

function plotBoundary(entry: Entry): Markup {
  const found = cellsOf(entry).flatMap((cell) => {
    const [, group = '', name = '', end = ''] = CONSTRUCTION.exec(cell.name) ?? [];
    return name === '' ? [] : [{ group, name, end, cell }];
  });
  const groups = [...new Set(found.map(({ group }) => group))];
  const rows = groups.map((group) => ({
    name: group,
    squares: found
      .filter((one) => one.group === group)
      .map(({ name, end, cell }): Square => {
        const tone = toneOf(cell) === 'bad' ? 'bad' : 'good';
        return { text: name, tone: end === 'passes' ? tone : flip(tone), told: cell.name };
      }),
  }));
  const most = Math.max(1, ...rows.map(({ squares }) => squares.length));
  const columns = Array.from({ length: most }, () => '');
  return plotMatrix(
    'The boundary map. Green: certified and committed; blue: refused, as it must be; red: not as expected',
    columns,
    rows,
  );
}

function flip(tone: PlotTone): PlotTone {
  return tone === 'bad' ? 'bad' : 'fair';
}

function plotRecovery(entry: Entry): Markup {
  const own = cellsOf(entry).filter(({ name }) => !name.startsWith('own tools'));
  const { columns, rows } = gridOf(
    own,
    ({ name }) => splitLast(name, ': '),
    (cell) => {
      const wanted = toneOf(cell);
      const square = countSquare(cell, wanted !== 'bad' && cell.value === 0 ? 'plain' : wanted);
      // A count here need not be all of the runs, so its target is not what it is a part of.
      return { ...square, text: showValue(cell.value) };
    },
  );
  return plotMatrix(
    'Killed at a step, then asked by fresh processes: runs with the approved state, a verdict and a release. A complete run has 90 for each scenario on public tasks and 5 on every other backend. Green: the paper’s count; blue: our own target; grey: none, as it must be',
    columns,
    rows,
  );
}

/** Steps at which a killed process may already have sent its request. */
const MAYBE_SENT = /^(path:permit-consumed|adapter:connected) /;

function plotCrashes(entry: Entry): Markup {
  const { columns, rows } = gridOf(
    cellsOf(entry),
    ({ name }) => {
      const [step, backend] = splitLast(name, ' | ') ?? [];
      return step === undefined || backend === undefined ? undefined : [step, engineName(backend)];
    },
    (cell) => {
      const tone = MAYBE_SENT.test(cell.name) ? 'fair' : 'good';
      return countSquare(cell, toneOf(cell) === 'bad' ? 'bad' : tone);
    },
  );
  return plotMatrix(
    'Kills by step and backend, and how many of them left everything right. Blue: the request may be on its way, which is left to a person; empty: the backend does not pass this step',
    columns,
    rows,
  );
}

/** Each tier is drawn apart: what its figures begin with, and its title. */
const TIERS = [
  [
    '',
    'Attempts to get past the server boundary, by class and ending. Committed are controls, whose changes are approved',
  ],
  ['managed boundary, ', 'The same attempts behind the managed boundary (only reported)'],
  ['statement gate, ', 'Attempts on the statement gate of the managed boundary'],
] as const;
const ENDING = /^(.+): (observed|denied|refused|committed)$/;

function plotEscapes(entry: Entry): Markup {
  const others = TIERS.map(([prefix]) => prefix).filter((prefix) => prefix !== '');
  const drawn = TIERS.map(([prefix, title]) => {
    const own = cellsOf(entry).filter(({ name }) =>
      prefix === '' ? !others.some((other) => name.startsWith(other)) : name.startsWith(prefix),
    );
    const { columns, rows } = gridOf(
      own,
      ({ name }) => {
        const [, row, ending] = ENDING.exec(name.slice(prefix.length)) ?? [];
        return row === undefined || ending === undefined ? undefined : [row, ending];
      },
      (cell) => countSquare(cell),
    );
    return plotMatrix(title, columns, rows);
  });
  return markup`${drawn}`;
}

function plotPeers(entry: Entry): Markup {
  const { columns, rows } = gridOf(
    cellsOf(entry),
    ({ name }) => splitLast(name, ': '),
    (cell) => {
      const isLeft = cell.value !== 0 && !cell.name.startsWith('EffectMatch');
      const ours = toneOf(cell) === 'bad' ? 'bad' : 'good';
      return countSquare(cell, isLeft ? 'warn' : ours);
    },
  );
  return plotMatrix('Runs of a case that left a wrong result (amber)', columns, rows);
}

const ADMITTED = /^(.+): clean (?:admitted|committed, right state)$/;

/** Plots the share of clean runs that a decider admits against the faults that it prevents. */
function plotInformation(entry: Entry): Markup {
  const cells = cellsOf(entry);
  const valueNamed = (name: string) => cells.find((cell) => cell.name === name)?.value ?? 0;
  const points = cells.flatMap(({ name, value, target }) => {
    const decider = ADMITTED.exec(name)?.[1];
    if (decider === undefined || value === null) return [];
    const said = DECISIONS.reduce((sum, word) => sum + valueNamed(`${decider}: ${word}`), 0);
    const pairs = said > 0 ? said : Number(target?.replace('= ', ''));
    const prevented = cells.find((one) => one.name.startsWith(`${decider}: hidden prevented`));
    const isHollow = decider.startsWith(NOT_RUN);
    const shown = isHollow ? `${decider.slice(NOT_RUN.length)} (paper)` : decider;
    const series = decider === 'EffectMatch' ? CONDITIONS.indexOf('EffectMatch') : isHollow ? 2 : 0;
    const y = (prevented?.value ?? 0) / pairs;
    return [{ name: shown, x: value / pairs, y, isHollow, series }];
  });
  const axes = {
    x: 'clean executions admitted',
    y: 'hidden effects prevented',
    diagonal: 'decided before execution',
  };
  return plotPlane(
    'Pairs that look the same before execution: a decision made beforehand stays on or below the diagonal; comparison does not',
    axes,
    points,
  );
}

const DECISIONS = ['admit', 'deny', 'escalate'];
const NOT_RUN = 'published, not run here: ';
