// Tables in the docs in which every cell is one figure, or several separated by slashes.
import { findPublished, type PublishedStudy } from '../published.ts';
import { showValue } from './verdict.ts';

interface QuotedGrid {
  readonly study: string;
  readonly head: readonly string[];
  /** The row's label, then the names of the figures in each column. */
  readonly rows: readonly (readonly [words: string, ...columns: (readonly string[])[]])[];
}

const FAULTS = {
  a: ['hidden extra write', 'missing row', 'altered value'],
  b: ['omit', 'duplicate', 'alter value', 'extra field'],
  c: ['omit', 'duplicate'],
};

type Part = keyof typeof FAULTS;

function wrongIn(part: Part, condition: string): readonly string[] {
  return FAULTS[part].map((fault) => `(${part}) ${condition}: ${fault}, wrong commit`);
}

function rightIn(part: Part, condition: string): readonly string[] {
  return [`(${part}) ${condition}: clean, right state`];
}

const OUTCOMES: QuotedGrid = {
  study: 'public-outcomes',
  head: ['', 'direct', 'call-level rules / error-reject', 'EffectMatch', 'no comparison'],
  rows: [
    [
      '(a) 3 MCPMark tasks: clean, of 9',
      ...['direct', 'call-level rules', 'EffectMatch'].map((one) => rightIn('a', one)),
      [],
    ],
    [
      `${FAULTS.a.join(' / ')}, wrong commits`,
      ...['direct', 'call-level rules', 'EffectMatch'].map((one) => wrongIn('a', one)),
      [],
    ],
    [
      '(b) 12 STATE tasks: clean, of 36',
      ...['direct', 'error-reject', 'EffectMatch'].map((one) => rightIn('b', one)),
      [],
    ],
    [
      `${FAULTS.b.join(' / ')}, wrong commits`,
      ...['direct', 'error-reject', 'EffectMatch'].map((one) => wrongIn('b', one)),
      [],
    ],
    [
      'harmless duplicates, of 27: blocked; committed',
      [],
      ['(b) error-reject: harmless duplicate, blocked'],
      ['(b) EffectMatch: harmless duplicate, committed'],
      [],
    ],
    [
      '(c) 206 STATE tasks: clean, of 618',
      ...['direct', 'error-reject', 'EffectMatch', 'no comparison'].map((one) => rightIn('c', one)),
    ],
    [
      `${FAULTS.c.join(' / ')}, wrong commits`,
      ...['direct', 'error-reject', 'EffectMatch', 'no comparison'].map((one) => wrongIn('c', one)),
    ],
  ],
};

const ENDS = ['correct state', 'terminal', 'released', 'released once, after our recovery'];

const RECOVERY: QuotedGrid = {
  study: 'recovery',
  head: ['of 90', ...ENDS],
  rows: [
    'normal',
    'exit after staging',
    'exit after state save, before terminal',
    'exit after terminal',
    'omit first write, exit after staging',
    'omit first write, exit after terminal',
  ].map((scenario) => [scenario, ...ENDS.map((end) => [`${scenario}: ${end}`])]),
};

/** Fills a grid with the published values. A cell without figures stays empty. */
function fill(grid: QuotedGrid, published: readonly PublishedStudy[]): string[][] {
  const shownValue = (name: string) => {
    const found = findPublished(published, grid.study, name);
    return found === undefined ? 'not run' : showValue(found.value);
  };
  return grid.rows.map(([words, ...columns]) => [
    words,
    ...columns.map((names) => names.map(shownValue).join(' / ')),
  ]);
}

/** The grids by the name of their table in the docs. */
export const QUOTED_GRIDS: {
  readonly [name: string]: (published: readonly PublishedStudy[]) => string[][];
} = {
  outcomes: (published) => [[...OUTCOMES.head], ...fill(OUTCOMES, published)],
  recovery: (published) => [[...RECOVERY.head], ...fill(RECOVERY, published)],
};
