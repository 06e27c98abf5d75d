import type { WrittenCell } from '../results.ts';
import { type Markup, markup, NOTHING } from './markup.ts';
import { countVerdicts, type Entry, showValue, VERDICTS, verdictOf } from './verdict.ts';

const WIDTH = 860;
const LABELS = 400;
const ROW = 20;

const CLASSES = ['good', 'bad', 'fair', 'bad', 'plain'] as const;
/** The class in which a verdict is drawn and set. */
export function classOf(cell: WrittenCell): string {
  return CLASSES[VERDICTS.indexOf(verdictOf(cell))] ?? 'plain';
}

/** How many figures of each study match, meet their target, or do not. */
export function plotOverview(entries: readonly Entry[]): Markup {
  const most = Math.max(1, ...entries.map((entry) => total(countVerdicts(entry))));
  const scale = (WIDTH - LABELS) / most;
  const rows = entries.map((entry, row) => {
    let x = LABELS;
    const counts = countVerdicts(entry);
    const bars = VERDICTS.map((verdict, index) => {
      const width = (counts.get(verdict) ?? 0) * scale;
      const bar = markup`<rect class="${CLASSES[index] ?? 'plain'}" x="${round(x)}" y="${row * ROW + 3}" width="${round(width)}" height="${ROW - 6}"><title>${verdict}: ${counts.get(verdict) ?? 0}</title></rect>`;
      x += width;
      return bar;
    });
    return markup`${label(entry.name, row)}${bars}`;
  });
  return frame(
    'Figures of each study. Green: matches the paper; blue: meets its target; grey: only reported; red: does not match',
    rows,
    entries.length * ROW,
  );
}

function total(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

/** Counts as bars, the paper's as a stroke across each. */
export function plotCounts(title: string, cells: readonly WrittenCell[]): Markup {
  if (cells.length === 0) return NOTHING;
  const most = Math.max(1, ...cells.flatMap(({ value, paper }) => [value ?? 0, paper ?? 0]));
  const at = (value: number) => round((value / most) * (WIDTH - LABELS - 60));
  const rows = cells.map((cell, row) => {
    const { name, value, paper } = cell;
    const y = row * ROW;
    const stroke =
      paper === undefined
        ? NOTHING
        : markup`<line class="paper" x1="${LABELS + at(paper)}" x2="${LABELS + at(paper)}" y1="${y + 1}" y2="${y + ROW - 1}"/>`;
    return markup`${label(name, row)}<rect class="${classOf(cell)}" x="${LABELS}" y="${y + 4}" width="${at(value ?? 0)}" height="${ROW - 8}"/>${stroke}<text x="${LABELS + at(Math.max(value ?? 0, paper ?? 0)) + 6}" y="${y + 14}">${showValue(value)}</text>`;
  });
  return frame(`${title}: bars are ours, strokes the paper’s`, rows, cells.length * ROW);
}

/** Ratios as points, ours full and the paper's hollow, with the bound that is aimed at. */
export function plotRatios(title: string, cells: readonly WrittenCell[], bound: number): Markup {
  if (cells.length === 0) return NOTHING;
  const most =
    Math.max(bound, ...cells.flatMap(({ value, paper }) => [value ?? 0, paper ?? 0])) * 1.05;
  const at = (value: number) => round(LABELS + (value / most) * (WIDTH - LABELS - 20));
  const height = cells.length * ROW;
  const rows = cells.map(({ name, value, paper }, row) => {
    const y = row * ROW + ROW / 2;
    const ours =
      value === null
        ? NOTHING
        : markup`<circle class="ours" cx="${at(value)}" cy="${y}" r="5"><title>${showValue(value)}</title></circle>`;
    const theirs =
      paper === undefined
        ? NOTHING
        : markup`<circle class="theirs" cx="${at(paper)}" cy="${y}" r="5"><title>${paper}</title></circle>`;
    return markup`${label(name, row)}<line class="rule" x1="${LABELS}" x2="${WIDTH}" y1="${y}" y2="${y}"/>${theirs}${ours}`;
  });
  const line = markup`<line class="bound" x1="${at(bound)}" x2="${at(bound)}" y1="0" y2="${height}"/><text x="${at(bound) + 4}" y="${height + 14}">target ${bound}</text><text x="${LABELS}" y="${height + 14}">0</text>`;
  return frame(
    `${title}: full points are ours, hollow ones the paper’s`,
    [...rows, line],
    height + 20,
  );
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** A measured line on logarithmic axes, and the one point that the paper has. */
export function plotGrowth(
  title: string,
  points: readonly Point[],
  paper: Point | undefined,
): Markup {
  if (points.length < 2 || points.some(({ x, y }) => !(x > 0 && y > 0))) return NOTHING;
  const all = paper === undefined ? points : [...points, paper];
  const [height, left] = [260, 70];
  const across = axis(
    all.map(({ x }) => x),
    left,
    WIDTH - 20,
  );
  const up = axis(
    all.map(({ y }) => y),
    height - 30,
    15,
  );
  const path = points.map(({ x, y }) => `${across.at(x)},${up.at(y)}`).join(' ');
  const marks = [
    ...across.decades.map(
      (value) =>
        markup`<line class="rule" x1="${across.at(value)}" x2="${across.at(value)}" y1="15" y2="${height - 30}"/><text text-anchor="middle" x="${across.at(value)}" y="${height - 12}">${value}</text>`,
    ),
    ...up.decades.map(
      (value) =>
        markup`<line class="rule" x1="${left}" x2="${WIDTH - 20}" y1="${up.at(value)}" y2="${up.at(value)}"/><text x="0" y="${up.at(value) + 4}">${value} ms</text>`,
    ),
    markup`<polyline class="ours-line" points="${path}"/>`,
    ...points.map(
      ({ x, y }) =>
        markup`<circle class="ours" cx="${across.at(x)}" cy="${up.at(y)}" r="4"><title>${x}: ${showValue(y)} ms</title></circle>`,
    ),
    paper === undefined
      ? NOTHING
      : markup`<circle class="theirs" cx="${across.at(paper.x)}" cy="${up.at(paper.y)}" r="5"><title>paper: ${paper.y} ms</title></circle>`,
  ];
  return frame(`${title}: the line is ours, the hollow point the paper’s`, marks, height);
}

function axis(values: readonly number[], from: number, to: number) {
  const low = Math.floor(Math.log10(Math.min(...values)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))));
  return {
    at: (value: number) => round(from + ((Math.log10(value) - low) / (high - low)) * (to - from)),
    decades: Array.from({ length: high - low + 1 }, (_, index) =>
      Number((10 ** (low + index)).toPrecision(1)),
    ),
  };
}

function label(name: string, row: number): Markup {
  const short = name.length > 62 ? `${name.slice(0, 61)}…` : name;
  return markup`<text x="0" y="${row * ROW + 14}">${short}<title>${name}</title></text>`;
}

function frame(title: string, content: readonly Markup[], height: number): Markup {
  return markup`<figure><figcaption>${title}</figcaption><svg role="img" aria-label="${title}" viewBox="0 0 ${WIDTH} ${Math.max(height, 1)}">${content}</svg></figure>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
