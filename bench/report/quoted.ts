import { readFileSync, writeFileSync } from 'node:fs';
import { findPublished, type PublishedStudy } from '../published.ts';
import type { WrittenCell } from '../results.ts';
import { findFloor } from './floor.ts';
import { QUOTED_GRIDS } from './quoted-grids.ts';
import {
  listEscapes,
  listKills,
  listPeers,
  listSummary,
  summariseFigures,
} from './quoted-lists.ts';
import { isBad, showValue, verdictOf } from './verdict.ts';

/** The pages whose tables are generated from published figures. */
export const QUOTING_PAGES = [
  ...['README.md', 'docs/evaluation.md', 'docs/studies.md', 'docs/comparison.md'],
];

const BLOCK = /(<!-- figures: ([\w-]+) -->\n)[\s\S]*?(<!-- end of figures -->)/g;

/** Figures within a line of text. */
const SENTENCE = /(<!-- figures: sentence -->)[^\n]*?(<!-- end of figures -->)/g;

/** Returns the page with its tables and sentences regenerated. */
export function renewTables(page: string, published: readonly PublishedStudy[]): string {
  const sentence = summariseFigures(published);
  const told = page.replace(SENTENCE, (_, head: string, foot: string) => head + sentence + foot);
  return told.replace(BLOCK, (_, head: string, name: string, foot: string) => {
    const grid = QUOTED_GRIDS[name];
    const render = grid === undefined ? TABLES[name] : () => table(grid(published));
    if (render === undefined) throw new Error(`there is no table of figures called ${name}`);
    return `${head}\n${render(published)}\n\n${foot}`;
  });
}

/** Rewrites every page that quotes figures. */
export function rewritePages(published: readonly PublishedStudy[]): readonly string[] {
  for (const file of QUOTING_PAGES)
    writeFileSync(file, renewTables(readFileSync(file, 'utf8'), published));
  return QUOTING_PAGES;
}

const TABLES: {
  readonly [name: string]: (published: readonly PublishedStudy[]) => string;
} = {
  ...{ runs: listRuns, missed: listMissed, measured: listMeasured, counts: listCounts },
  summary: (published) => table(listSummary(published)),
  peers: (published) => table(listPeers(published)),
  escapes: (published) => table(listEscapes(published)),
  kills: (published) => table(listKills(published)),
};

function table(rows: readonly (readonly string[])[]): string {
  const [head = [], ...others] = rows;
  const lines = [head, head.map(() => '---'), ...others];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** Lists the studies behind the figures, and counts their verdicts. */
function listRuns(published: readonly PublishedStudy[]): string {
  const rows = published.map(({ study, run, cells }) => {
    const verdicts = cells.map(verdictOf);
    const count = (...wanted: readonly string[]) =>
      String(verdicts.filter((verdict) => wanted.includes(verdict)).length);
    return [
      `\`${study}\``,
      run === null ? 'taken over from an older run' : run.at.slice(0, 10),
      run?.seconds === undefined ? '' : String(Math.round(run.seconds)),
      run?.files ?? '',
      count('matches the paper'),
      count('DIFFERS FROM THE PAPER'),
      count('meets its target'),
      count('MISSES ITS TARGET'),
    ];
  });
  const counts = ['as the paper', 'not as the paper', 'target met', 'target missed'];
  const head = ['study', 'run', 'seconds', 'files', ...counts];
  return table([head, ...rows]);
}

/** Lists every figure that misses its target or differs from the paper. */
function listMissed(published: readonly PublishedStudy[]): string {
  const rows = published.flatMap(({ study, cells }) =>
    cells
      .filter((cell) => isBad(verdictOf(cell)))
      .map(({ name, value, unit, target = '' }) => [
        `\`${study}\``,
        name.replaceAll('|', ','),
        `${showValue(value)} ${unit}`.trim(),
        target,
        ...showFloor(cells, name),
      ]),
  );
  const head = ['study', 'figure', 'ours', 'target', 'floor', 'the floor is'];
  return rows.length === 0 ? 'None.' : table([head, ...rows]);
}

/** The floor of a figure and its name; both are empty if the study has none. */
function showFloor(cells: readonly WrittenCell[], figure: string): readonly [string, string] {
  const floor = findFloor(cells, figure);
  return floor === undefined
    ? ['', '']
    : [`${showValue(floor.value)} ${floor.unit}`.trim(), floor.name];
}

/** Studies whose counts stand in one table. */
const COUNTING = ['integrated', 'topologies', 'backends', 'backends-mariadb', 'information'];

/** Lists the counts that the paper has too. */
function listCounts(published: readonly PublishedStudy[]): string {
  const rows = COUNTING.flatMap((name) =>
    (published.find(({ study }) => study === name)?.cells ?? [])
      .filter(({ paper, target }) => paper !== undefined && target === `= ${paper}`)
      .map((cell) => [
        `\`${name}\``,
        cell.name,
        showValue(cell.value),
        showValue(cell.paper ?? null),
      ]),
  );
  return table([['study', 'count', 'ours', 'paper'], ...rows]);
}

interface MeasuredRow {
  readonly what: string;
  readonly study: string;
  /** Names of figures whose values are added, or a text to show instead. */
  readonly without: readonly string[] | string;
  readonly within: readonly string[];
  /** The divisor of the values, for example to show microseconds as milliseconds. */
  readonly per?: number;
}

const HIDDEN = ['hidden extra write', 'missing row', 'altered value'];
const faultsOf = (condition: string) =>
  HIDDEN.map((fault) => `(a) ${condition}: ${fault}, wrong commit`);

const MEASURED: readonly MeasuredRow[] = [
  {
    what: 'hidden extra, missing or altered writes that become durable, in 27 runs of 3 database tasks',
    study: 'public-outcomes',
    without: faultsOf('direct'),
    within: faultsOf('EffectMatch'),
  },
  {
    what: 'dropped writes that become durable, in 206 tool tasks run three times',
    study: 'public-outcomes',
    without: ['(c) direct: omit, wrong commit'],
    within: ['(c) EffectMatch: omit, wrong commit'],
  },
  {
    what: 'clean runs of the same tasks that commit, of 618',
    study: 'public-outcomes',
    without: ['(c) direct: clean, right state'],
    within: ['(c) EffectMatch: clean, right state'],
  },
  {
    what: 'killed between commit and verdict: dependent work released once, of 90',
    study: 'recovery',
    without: '',
    within: ['exit after state save, before terminal: released once, after our recovery'],
  },
  {
    what: 'five changed rows on SQLite, ms',
    study: 'sqlite-cost',
    without: ['plain durable transaction, median'],
    within: ['protected execution, median'],
    per: 1000,
  },
  {
    what: 'five changed rows on PostgreSQL with fresh surveys of the boundary, relative to a plain transaction',
    study: 'pg-cost',
    without: '1',
    within: ['1 client: certified, SQLite ledger over direct'],
  },
  {
    what: 'time added on PostgreSQL with 1,000,000 rows, relative to 1,000 rows',
    study: 'pg-cost',
    without: '',
    within: ['time added at 1000000 rows over 1000'],
  },
  {
    what: 'throughput of 32 clients that share two cores with the server, relative to direct access',
    study: 'pg-cost',
    without: '1',
    within: ['32 clients: certified, SQLite ledger, of direct'],
  },
];

function listMeasured(published: readonly PublishedStudy[]): string {
  const rows = MEASURED.map(({ what, study, without, within, per = 1 }) => {
    const show = (names: readonly string[]) => {
      const found = names.map((name) => findPublished(published, study, name)?.value ?? null);
      if (found.some((value) => value === null)) return 'not run';
      const sum = found.reduce<number>((total, value) => total + (value ?? 0), 0);
      return showValue(sum / per);
    };
    const before = typeof without === 'string' ? without : show(without);
    return [what, before, show(within), `\`npm run bench -- ${study}\``];
  });
  return table([['what', 'without', 'with EffectMatch', 'reproduce'], ...rows]);
}
