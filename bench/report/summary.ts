import type { PlotTone } from './charts.ts';
import { cellsOf, countVerdicts, type Entry, type Verdict } from './verdict.ts';

/** One main result of the report. */
export interface Headline {
  readonly figure: string;
  readonly words: string;
  readonly tone: PlotTone;
  /** The part of the page that has the figures behind it. */
  readonly at: string;
}

/** Sums up the figures. A study that was not run adds nothing. */
export function headlines(entries: readonly Entry[]): readonly Headline[] {
  const count = (verdict: Verdict) =>
    entries.reduce((sum, entry) => sum + (countVerdicts(entry).get(verdict) ?? 0), 0);
  const [same, other] = [count('matches the paper'), count('DIFFERS FROM THE PAPER')];
  const [met, missed] = [count('meets its target'), count('MISSES ITS TARGET')];
  const ran = entries.filter((entry) => cellsOf(entry).length > 0).length;
  const quick = entries.filter(({ result }) => result?.context.quick === true).length;
  const reproduced: Headline = {
    figure: `${same} of ${same + other}`,
    words: 'counts of the paper reproduced',
    at: other > 0 ? 'mismatches' : 'studies',
    tone: toneOfCount(same, other),
  };
  return [
    // Quick runs have too few repetitions to be held against the paper's counts.
    ...(same + other > 0 ? [reproduced] : []),
    {
      figure: `${met} of ${met + missed}`,
      words: 'targets of our own met',
      at: missed > 0 ? 'mismatches' : 'studies',
      tone: toneOfCount(met, missed),
    },
    ...compareWrong(entries),
    ...BEYOND.flatMap((one) => countBeyond(entries, one)),
    {
      figure: `${ran} of ${entries.length}`,
      words: quick === 0 ? 'studies run' : `studies run, ${quick} of them only quickly`,
      tone: ran === entries.length && quick === 0 ? 'good' : 'plain',
      at: 'studies',
    },
  ];
}

/** Sums up a study beyond the paper: how much was tried, and how much went wrong. */
interface Beyond {
  readonly study: string;
  readonly tried: RegExp;
  readonly wrong: RegExp;
  readonly words: (wrong: number) => string;
}

const BEYOND: readonly Beyond[] = [
  {
    study: 'crashes',
    tried: /^processes killed$/,
    wrong: /^wrong or lost verdicts$/,
    words: (wrong) => `processes killed; ${wrong} wrong or lost verdicts`,
  },
  {
    study: 'escapes',
    tried: /, cases$/,
    wrong: /, unapproved changes/,
    words: (wrong) => `attempts past the boundary; ${wrong} left something`,
  },
  {
    study: 'concurrency',
    tried: /: races with one commit/,
    wrong: /^durable state or journal not/,
    words: (wrong) => `races for one license with one effect; ${wrong} findings`,
  },
];

function countBeyond(entries: readonly Entry[], beyond: Beyond): readonly Headline[] {
  const own = [`${beyond.study}-long`, beyond.study].flatMap((study) =>
    entries.filter((entry) => entry.name === study && cellsOf(entry).length > 0),
  );
  // As on the pages: the long run, if there is one, else the run of `all`.
  const [entry] = own;
  if (entry === undefined) return [];
  const cells = cellsOf(entry);
  const sum = (names: RegExp) =>
    cells
      .filter(({ name }) => names.test(name))
      .reduce((total, { value }) => total + (value ?? Number.NaN), 0);
  const wrong = sum(beyond.wrong);
  const figure = sum(beyond.tried).toLocaleString('en');
  const tone = wrong === 0 ? 'good' : 'bad';
  return [{ figure, words: beyond.words(wrong), tone, at: entry.name }];
}

function toneOfCount(right: number, wrong: number): PlotTone {
  if (wrong > 0) return 'bad';
  return right === 0 ? 'plain' : 'good';
}

const WRONG = /^\([abc]\) (?!own tools)([^:]+): .+, wrong commit$/;

/** Compares the wrong results that became durable in public tasks, direct and with EffectMatch. */
function compareWrong(entries: readonly Entry[]): readonly Headline[] {
  const cells = entries.filter(({ name }) => name === 'public-outcomes').flatMap(cellsOf);
  const sum = (condition: string) =>
    cells
      .filter(({ name }) => WRONG.exec(name)?.[1] === condition)
      .reduce((total, { value }) => total + (value ?? Number.NaN), 0);
  if (cells.length === 0) return [];
  const [direct, ours] = [sum('direct'), sum('EffectMatch')];
  return [
    {
      figure: `${direct} → ${ours}`,
      words: 'wrong results committed: direct, and under EffectMatch',
      tone: ours === 0 ? 'good' : 'bad',
      at: 'public-outcomes',
    },
  ];
}
