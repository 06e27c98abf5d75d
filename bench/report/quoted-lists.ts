// Tables in the docs whose rows and columns follow from the names of published figures.
import type { PublishedStudy } from '../published.ts';
import type { WrittenCell } from '../results.ts';
import { engineName } from './engines.ts';
import { showValue } from './verdict.ts';

type Published = readonly PublishedStudy[];
type Rows = readonly (readonly string[])[];

function cellsIn(published: Published, study: string): readonly WrittenCell[] {
  return published.find((one) => one.study === study)?.cells ?? [];
}

/** Adds up the figures with such names; undefined if there are none. */
function sumOf(cells: readonly WrittenCell[], names: RegExp): number | undefined {
  const found = cells.filter(({ name }) => names.test(name));
  if (found.length === 0) return undefined;
  return found.reduce((sum, { value }) => sum + (value ?? Number.NaN), 0);
}

function shown(value: number | undefined): string {
  return value === undefined ? 'not run' : value.toLocaleString('en');
}

/** The long run of a study if it was made, else the one of `all`. */
function longest(published: Published, study: string): readonly WrittenCell[] {
  const long = cellsIn(published, `${study}-long`);
  return long.length > 0 ? long : cellsIn(published, study);
}

const wrongUnder = (condition: string) =>
  new RegExp(`^\\([abc]\\) ${condition}: .+, wrong commit$`);
const rightUnder = (condition: string) =>
  new RegExp(`^\\([abc]\\) ${condition}: clean, right state$`);
const TRIED = /boundary, cases$/;
const GOT_THROUGH = /, unapproved changes that became durable or were sent$/;

/** The main results, for the first page. What was not run has no row. */
export function listSummary(published: Published): Rows {
  const tasks = cellsIn(published, 'public-outcomes');
  const escapes = cellsIn(published, 'escapes');
  const crashes = longest(published, 'crashes');
  const races = longest(published, 'concurrency');
  const both = (names: (condition: string) => RegExp) =>
    ['direct', 'EffectMatch'].map((condition) => shown(sumOf(tasks, names(condition))));
  const kills = shown(sumOf(crashes, /^processes killed$/));
  const contenders = shown(sumOf(races, /^processes that present/));
  const raced = shown(sumOf(races, /: races with one commit/));
  const rows = [
    ['public tasks with a fault: wrong results that became permanent', ...both(wrongUnder)],
    ['the same tasks without a fault: right results that became permanent', ...both(rightUnder)],
    [
      `${shown(sumOf(escapes, TRIED))} attempts to get past the PostgreSQL boundary: those that left something`,
      '',
      shown(sumOf(escapes, GOT_THROUGH)),
    ],
    [
      `${kills} processes killed at every step: verdicts that were wrong or lost`,
      '',
      shown(sumOf(crashes, /^wrong or lost verdicts$/)),
    ],
    [
      `${raced} races of ${contenders} processes for one license: those that did not end in one commit`,
      '',
      shown(missedRaces(races)),
    ],
  ];
  const ran = rows.filter((row) => row.at(-1) !== 'not run');
  return [['', 'without', 'with EffectMatch'], ...ran];
}

/** The same in one sentence, for the README. */
export function summariseFigures(published: Published): string {
  const tasks = cellsIn(published, 'public-outcomes');
  const crashes = longest(published, 'crashes');
  const of = (names: RegExp) => shown(sumOf(tasks, names));
  const [wrong, ours] = [of(wrongUnder('direct')), of(wrongUnder('EffectMatch'))];
  const [right, saved] = [of(rightUnder('direct')), of(rightUnder('EffectMatch'))];
  const kills = shown(sumOf(crashes, /^processes killed$/));
  const findings = shown(sumOf(crashes, /^wrong or lost verdicts$/));
  return `${wrong} wrong results became permanent without EffectMatch and ${ours} with it, and ${saved} of ${right} right ones were saved; after ${kills} killed processes, ${findings} verdicts were wrong or lost`;
}

function missedRaces(cells: readonly WrittenCell[]): number | undefined {
  const races = cells.filter(({ name }) => name.includes(': races with one commit'));
  if (races.length === 0) return undefined;
  return races.reduce(
    (sum, { value, target = '' }) => sum + Number(target.replace('= ', '')) - (value ?? 0),
    0,
  );
}

/** Arranges figures in a grid by two parts of their names. */
function gridBy(head: string, cells: readonly WrittenCell[], names: RegExp): Rows {
  const found = cells.flatMap(({ name, value }) => {
    const [, row, column] = names.exec(name) ?? [];
    return row === undefined || column === undefined ? [] : [{ row, column, value }];
  });
  const columns = [...new Set(found.map(({ column }) => column))];
  const rows = [...Map.groupBy(found, ({ row }) => row)].map(([row, own]) => [
    row,
    ...columns.map((name) => {
      const cell = own.find(({ column }) => column === name);
      return cell === undefined ? '' : showValue(cell.value);
    }),
  ]);
  return rows.length === 0 ? [[head], ['not run']] : [[head, ...columns], ...rows];
}

/** Wrong results under what people use today, by case. */
export function listPeers(published: Published): Rows {
  return gridBy('wrong results, of 5 runs', cellsIn(published, 'peers'), /^(.+): ([^:]+)$/);
}

/** Attempts on the server boundary, by class and ending. */
export function listEscapes(published: Published): Rows {
  const cells = cellsIn(published, 'escapes').filter(({ name }) => !name.includes(', '));
  const ending = /^(.+): (observed|denied|refused|committed)$/;
  return gridBy('server boundary, attempts', cells, ending);
}

/** Kills by backend, and those after which everything was right. */
export function listKills(published: Published): Rows {
  const cells = longest(published, 'crashes');
  const places = cells.flatMap(({ name, value, target = '' }) => {
    const backend = / \| (.+)$/.exec(name)?.[1];
    const kills = Number(target.replace('= ', ''));
    return backend === undefined ? [] : [{ backend, kills, right: value ?? 0 }];
  });
  const rows = [...Map.groupBy(places, ({ backend }) => backend)].map(([backend, own]) => [
    engineName(backend),
    String(own.length),
    shown(own.reduce((sum, { kills }) => sum + kills, 0)),
    shown(own.reduce((sum, { right }) => sum + right, 0)),
  ]);
  const head = ['backend', 'steps', 'processes killed', 'everything right afterwards'];
  return rows.length === 0 ? [['backend'], ['not run']] : [head, ...rows];
}
