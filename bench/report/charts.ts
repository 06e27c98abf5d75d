import { type Markup, markup, NOTHING } from './markup.ts';

/** The width of every figure. A narrow screen scrolls the figure and not the page. */
const WIDTH = 860;
const LABELS = 250;
const SQUARE_LINES = 3;
const FOOT = 34;
/** A grid with so few columns is a list: its labels are sentences and need more room. */
const LIST_COLUMNS = 2;
const LIST_LABELS = 500;
const WIDEST = 180;
/** The height of a row with two lines of text. */
const TWO_LINES = 34;

/** The meaning of a value, as the class that colours it. */
export type PlotTone = 'good' | 'fair' | 'bad' | 'warn' | 'plain';

export interface Bar {
  /** The position in the legend, which decides the colour. */
  readonly series: number;
  readonly value: number;
  readonly paper: number | undefined;
}

/** The bars of one fault. Populations differ in size, so each one has its own scale. */
export interface BarGroup {
  readonly name: string;
  readonly population: string;
  readonly bars: readonly Bar[];
}

/** Draws values as bars in groups, such as faults, with a stroke for the paper's count. */
export function plotBars(
  title: string,
  legend: readonly string[],
  groups: readonly BarGroup[],
): Markup {
  const largest = new Map<string, number>();
  for (const { population, bars } of groups) {
    const counts = bars.flatMap(({ value, paper }) => [value, paper ?? 0]);
    largest.set(population, Math.max(1, largest.get(population) ?? 0, ...counts));
  }
  if (largest.size === 0) return NOTHING;
  let y = 0;
  const drawn = groups.map((group) => {
    const most = largest.get(group.population) ?? 1;
    const at = (value: number) => round((value / most) * (WIDTH - LABELS - 60));
    const top = y;
    const rows = group.bars.map((bar) => {
      const row = oneBar(bar, y, at, legend[bar.series] ?? '');
      y += 13;
      return row;
    });
    const label = rowLabel(group.name, (top + y) / 2);
    y += 9;
    return markup`${label}${rows}<line class="rule" x1="0" x2="${WIDTH}" y1="${y - 5}" y2="${y - 5}"/>`;
  });
  return frame(title, [markup`<g>${drawn}</g>`], y, legend);
}

function oneBar(bar: Bar, y: number, at: (value: number) => number, name: string): Markup {
  const { series, value, paper } = bar;
  const stroke =
    paper === undefined
      ? NOTHING
      : markup`<line class="paper" x1="${LABELS + at(paper)}" x2="${LABELS + at(paper)}" y1="${y}" y2="${y + 12}"/>`;
  const end = LABELS + at(Math.max(value, paper ?? 0)) + 6;
  const told = paper === undefined ? `${name}: ${value}` : `${name}: ${value}, paper ${paper}`;
  return markup`<rect class="s${series}" x="${LABELS}" y="${y + 1}" width="${Math.max(at(value), 1)}" height="10"><title>${told}</title></rect>${stroke}<text class="small" x="${end}" y="${y + 10}">${showMark(value)}</text>`;
}

export interface Square {
  readonly text: string;
  readonly tone: PlotTone;
  readonly told: string;
}

/** Draws a grid of judged cells, such as crashes or scenarios by condition. */
export function plotMatrix(
  title: string,
  columns: readonly string[],
  rows: readonly { readonly name: string; readonly squares: readonly (Square | undefined)[] }[],
): Markup {
  if (rows.length === 0) return NOTHING;
  const labels = columns.length <= LIST_COLUMNS ? LIST_LABELS : LABELS;
  const wide = Math.min((WIDTH - labels) / columns.length, WIDEST);
  const linesOf = (text = '') => breakText(text, lettersIn(wide)).length;
  const most = Math.max(
    ...rows.flatMap(({ squares }) => squares.map((square) => linesOf(square?.text))),
    ...rows.map(({ name }) => (name.length > labelLetters(labels) ? 2 : 1)),
  );
  const high = 12 + 12 * Math.min(most, SQUARE_LINES);
  const lines = Math.max(...columns.map(linesOf));
  const head = columns.some((column) => column !== '') ? 10 + 12 * lines : 4;
  const heads = columns.map(
    (column, index) =>
      markup`<text class="small" text-anchor="middle" x="${round(labels + (index + 0.5) * wide)}" y="${head - 2 - 6 * lines}">${wrap(column, wide, labels + (index + 0.5) * wide, lines)}</text>`,
  );
  const drawn = rows.map(({ name, squares }, row) => {
    const y = head + row * high;
    const cells = squares.map((square, index) =>
      square === undefined ? NOTHING : oneSquare(square, labels + index * wide, y, wide, high),
    );
    return markup`${rowLabel(name, y + high / 2, high, labels)}${cells}`;
  });
  return frame(title, [...heads, ...drawn], head + rows.length * high);
}

function oneSquare(square: Square, x: number, y: number, wide: number, high: number): Markup {
  const { text, tone, told } = square;
  return markup`<rect class="cell ${tone}" x="${round(x + 1)}" y="${y + 1}" width="${round(wide - 2)}" height="${high - 2}" rx="3"><title>${told}</title></rect><text class="small" text-anchor="middle" x="${round(x + wide / 2)}" y="${y + high / 2 + 4}">${wrap(text, wide, x + wide / 2, SQUARE_LINES)}</text>`;
}

/** Breaks text into as many lines as needed; what exceeds the last one that fits is cut off. */
function wrap(text: string, wide: number, x: number, most = 2): Markup {
  const fits = lettersIn(wide);
  const broken = breakText(text, fits);
  if (broken.length === 1) return markup`${shorten(text, fits)}`;
  const shown = [...broken.slice(0, most - 1), broken.slice(most - 1).join(' ')];
  const lines = shown.filter((line) => line !== '');
  return markup`${lines.map((line, index) => markup`<tspan x="${round(x)}" dy="${index === 0 ? -6 * (lines.length - 1) : 12}">${shorten(line, fits)}</tspan>`)}`;
}

/** Breaks text at spaces, or else after hyphens, into lines of at most so many letters. */
function breakText(text: string, fits: number): readonly string[] {
  const lines: string[] = [];
  let rest = text;
  while (rest.length > fits) {
    const space = rest.lastIndexOf(' ', fits);
    const end = space > 0 ? space : rest.lastIndexOf('-', fits - 1) + 1;
    if (end <= 0) break;
    lines.push(rest.slice(0, end));
    rest = rest.slice(end).trimStart();
  }
  return [...lines, rest];
}

function lettersIn(wide: number): number {
  return Math.floor((wide - 8) / 5.9);
}

/** Letters of a row's label that fit on one line. They are larger than those in a square. */
function labelLetters(wide: number): number {
  return Math.floor(wide / 6.5);
}

export interface Spread {
  readonly series: number;
  readonly samples: readonly number[];
  /** The paper's median of the same. */
  readonly paper?: number | undefined;
}

/** Draws distributions on a logarithmic axis: 5th to 95th percentile, quartiles and median. */
export function plotSpreads(
  title: string,
  unit: string,
  legend: readonly string[],
  rows: readonly { readonly name: string; readonly spreads: readonly Spread[] }[],
): Markup {
  const all = rows.flatMap((row) => row.spreads.flatMap(({ samples }) => samples));
  if (all.length === 0 || all.some((value) => !(value > 0))) return NOTHING;
  const published = rows.flatMap((row) => row.spreads.flatMap(({ paper }) => paper ?? []));
  const axis = logarithmic([...all, ...published], LABELS, WIDTH - 30);
  let y = 4;
  const drawn = rows.map(({ name, spreads }) => {
    const isLong = name.length > labelLetters(LABELS);
    const high = Math.max(spreads.length * 11, isLong ? TWO_LINES - 9 : 0);
    const first = y + (high - spreads.length * 11) / 2;
    const boxes = spreads.map((spread, index) =>
      oneSpread(spread, first + index * 11, axis.at, legend[spread.series] ?? '', unit),
    );
    const label = rowLabel(name, y + high / 2, isLong ? TWO_LINES : 0);
    y += high + 7;
    return markup`${label}${boxes}`;
  });
  const grid = axis.marks.map(
    (mark) =>
      markup`<line class="rule" x1="${axis.at(mark)}" x2="${axis.at(mark)}" y1="0" y2="${y}"/><text class="small" text-anchor="middle" x="${axis.at(mark)}" y="${y + 14}">${showMark(mark)} ${unit}</text>`,
  );
  return frame(`${title} (${unit}, logarithmic)`, [...grid, ...drawn], y + 20, legend);
}

function oneSpread(
  { series, samples, paper }: Spread,
  y: number,
  at: (value: number) => number,
  name: string,
  unit: string,
): Markup {
  const sorted = [...samples].sort((a, b) => a - b);
  const of = (q: number) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 1;
  const [low, left, middle, right, high] = [0.05, 0.25, 0.5, 0.75, 0.95].map((q) => at(of(q)));
  const told = `${name}: median ${of(0.5).toPrecision(3)}, p95 ${of(0.95).toPrecision(3)} ${unit}, ${samples.length} samples`;
  const width = Math.max((right ?? 0) - (left ?? 0), 1);
  const mark =
    paper === undefined
      ? NOTHING
      : markup`<circle class="paper" cx="${at(paper)}" cy="${y + 5}" r="4"><title>${name}: paper ${paper} ${unit}</title></circle>`;
  return markup`<g class="l${series}"><title>${told}</title><line x1="${low ?? 0}" x2="${high ?? 0}" y1="${y + 5}" y2="${y + 5}"/><rect class="s${series}" x="${left ?? 0}" y="${y + 1}" width="${round(width)}" height="8"/><line class="middle" x1="${middle ?? 0}" x2="${middle ?? 0}" y1="${y}" y2="${y + 10}"/>${mark}</g>`;
}

/** Draws what a whole consists of: one bar per row, one part per series. */
export function plotParts(
  title: string,
  unit: string,
  legend: readonly string[],
  rows: readonly { readonly name: string; readonly parts: readonly number[] }[],
): Markup {
  const sum = (parts: readonly number[]) => parts.reduce((total, part) => total + part, 0);
  const most = Math.max(...rows.map(({ parts }) => sum(parts)));
  if (rows.length === 0 || !(most > 0)) return NOTHING;
  const at = (value: number) => round((value / most) * (WIDTH - LABELS - 70));
  const drawn = rows.map(({ name, parts }, row) => {
    const y = row * 24;
    const bars = parts.map((part, series) => {
      const told = `${legend[series]}: ${part.toPrecision(3)} ${unit}`;
      const left = at(sum(parts.slice(0, series)));
      return markup`<rect class="s${series}" x="${LABELS + left}" y="${y + 3}" width="${at(part)}" height="17"><title>${told}</title></rect>`;
    });
    const end = LABELS + at(sum(parts)) + 6;
    return markup`${rowLabel(name, y + 11)}${bars}<text class="small" x="${end}" y="${y + 16}">${sum(parts).toPrecision(3)} ${unit}</text>`;
  });
  return frame(title, drawn, rows.length * 24, legend);
}

export interface Line {
  readonly name: string;
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

/** Draws lines on logarithmic axes. A single point, such as the paper's, is a hollow mark. */
export function plotLines(
  title: string,
  axes: { readonly x: string; readonly y: string },
  lines: readonly Line[],
): Markup {
  const all = lines.flatMap(({ points }) => points);
  if (all.length < 2 || all.some(({ x, y }) => !(x > 0 && y > 0))) return NOTHING;
  const [height, left] = [250, 70];
  const xs = all.map(({ x }) => x);
  const ys = all.map(({ y }) => y);
  const across = logarithmic(xs, left, WIDTH - 40);
  const up = logarithmic(ys, height - 30, 10);
  const measured = [...new Set(xs)];
  const columns = measured.length <= MOST_MARKS ? measured : across.marks;
  const grid = [
    ...columns.map(
      (mark) =>
        markup`<line class="rule" x1="${across.at(mark)}" x2="${across.at(mark)}" y1="10" y2="${height - 30}"/><text class="small" text-anchor="middle" x="${across.at(mark)}" y="${height - 16}">${showMark(mark)}</text>`,
    ),
    ...up.marks.map(
      (mark) =>
        markup`<line class="rule" x1="${left}" x2="${WIDTH - 40}" y1="${up.at(mark)}" y2="${up.at(mark)}"/><text class="small" text-anchor="end" x="${left - 6}" y="${up.at(mark) + 4}">${showMark(mark)}</text>`,
    ),
    markup`<text class="small" text-anchor="middle" x="${WIDTH / 2}" y="${height}">${axes.x}</text>`,
  ];
  const drawn = lines.map(({ name, points }, series) => {
    const marks = points.map(
      ({ x, y }) =>
        markup`<circle class="${points.length === 1 ? 'hollow' : 'full'}" cx="${across.at(x)}" cy="${up.at(y)}" r="4"><title>${name}: ${x}, ${y.toPrecision(3)} ${axes.y}</title></circle>`,
    );
    const path = points.map(({ x, y }) => `${across.at(x)},${up.at(y)}`).join(' ');
    return markup`<g class="l${series}"><polyline points="${path}"/>${marks}</g>`;
  });
  const legend = lines.map(({ name }) => name);
  return frame(
    `${title} (${axes.y}; both axes are logarithmic)`,
    [...grid, ...drawn],
    height + 6,
    legend,
  );
}

/** A point in the unit square. A hollow one was not measured here. */
export interface PlanePoint {
  readonly name: string;
  readonly x: number;
  readonly y: number;
  readonly isHollow: boolean;
  /** Decides the colour. */
  readonly series: number;
}

/**
 * Plots one share against another, with the diagonal that no trade-off between the two can cross.
 * Both axes run from 0 to 1 and are labelled in percent.
 */
export function plotPlane(
  title: string,
  axes: { readonly x: string; readonly y: string; readonly diagonal: string },
  points: readonly PlanePoint[],
): Markup {
  if (points.length === 0) return NOTHING;
  const [side, left, top] = [300, 230, 12];
  const across = (share: number) => round(left + share * side);
  const up = (share: number) => round(top + (1 - share) * side);
  const marks = [0, 0.25, 0.5, 0.75, 1].map(
    (share) =>
      markup`<line class="rule" x1="${across(share)}" x2="${across(share)}" y1="${up(0)}" y2="${up(1)}"/><line class="rule" x1="${across(0)}" x2="${across(1)}" y1="${up(share)}" y2="${up(share)}"/><text class="small" text-anchor="middle" x="${across(share)}" y="${up(0) + 16}">${share * 100} %</text><text class="small" text-anchor="end" x="${left - 8}" y="${up(share) + 4}">${share * 100} %</text>`,
  );
  const reach = markup`<polygon class="reach" points="${across(0)},${up(0)} ${across(0)},${up(1)} ${across(1)},${up(0)}"/><line class="edge" x1="${across(0)}" y1="${up(1)}" x2="${across(1)}" y2="${up(0)}"/><text class="small" text-anchor="middle" x="${across(0.31)}" y="${up(0.26)}">${axes.diagonal}</text>`;
  const words = markup`<text class="small" text-anchor="middle" x="${across(0.5)}" y="${up(0) + 34}">${axes.x}</text><text class="small" text-anchor="end" x="${left - 50}" y="${up(0.5)}">${axes.y}</text>`;
  const drawn = points.map(({ name, x, y, isHollow, series }) => {
    const told = `${name}: ${Math.round(x * 100)} %, ${Math.round(y * 100)} %`;
    return markup`<g class="l${series}"><circle class="${isHollow ? 'hollow' : 'dot'}" cx="${across(x)}" cy="${up(y)}" r="6"><title>${told}</title></circle><text class="small" x="${across(x) + 12}" y="${up(y) + 4}">${name}</text></g>`;
  });
  return frame(title, [reach, ...marks, words, ...drawn], top + side + 44);
}

/** An axis between two round values: 1, 2 or 5 times a power of ten. */
function logarithmic(values: readonly number[], from: number, to: number) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const first = Math.floor(Math.log10(least));
  const decades = Math.ceil(Math.log10(most)) - first + 1;
  const steps = Array.from({ length: decades }, (_, index) =>
    [1, 2, 5].map((digit) => Number((digit * 10 ** (first + index)).toPrecision(1))),
  ).flat();
  const low = steps.findLast((step) => step <= least) ?? least;
  const high = steps.find((step) => step >= most && step > low) ?? most;
  const inside = steps.filter((step) => step >= low && step <= high);
  const tens = inside.filter((step) => Number.isInteger(Math.round(Math.log10(step) * 1e9) / 1e9));
  const at = (value: number) =>
    round(from + (Math.log10(value / low) / Math.log10(high / low)) * (to - from));
  return { at, marks: inside.length > MOST_MARKS ? tens : inside };
}

/** More marks than this on one axis would run into each other. */
const MOST_MARKS = 8;

/** A value at an axis or a bar, with thousands apart: 1,000,000. */
function showMark(mark: number): string {
  if (mark >= 1000) return Math.round(mark).toLocaleString('en');
  return String(Number.isInteger(mark) || mark < 1 ? mark : Number(mark.toPrecision(3)));
}

/** The label of a row, on two lines if the row is high enough. */
function rowLabel(name: string, middle: number, high = 0, wide = LABELS): Markup {
  const text =
    high >= TWO_LINES ? wrap(name, 0.95 * wide, 0) : markup`${shorten(name, labelLetters(wide))}`;
  return markup`<text x="0" y="${round(middle + 4)}">${text}<title>${name}</title></text>`;
}

function shorten(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, Math.max(1, length - 1))}…` : text;
}

function frame(
  title: string,
  content: readonly Markup[],
  height: number,
  legend: readonly string[] = [],
): Markup {
  const keys = legend.map((name, series) => markup`<span class="key k${series}">${name}</span>`);
  const key = keys.length === 0 ? NOTHING : markup`<p class="legend">${keys}</p>`;
  return markup`<figure><figcaption>${title}</figcaption>${key}<div class="plot"><svg role="img" aria-label="${title}" viewBox="0 0 ${WIDTH} ${Math.max(round(height), FOOT)}">${content}</svg></div></figure>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
