import type { Terminal } from '../protocol/terminal.ts';
import { type Html, html } from './html.ts';

const KINDS: readonly Terminal['kind'][] = ['committed', 'rejected', 'diverged', 'indeterminate'];
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MAX_BARS = 48;
/** Without a minimum, a few verdicts would be drawn as one wide bar. */
const MIN_BARS = 24;
const [WIDTH, HEIGHT] = [1132, 110];
/** The edges of the bars. Labels go to the left and below. */
const [LEFT, BOTTOM, TOP] = [34, 88, 8];

/** Charts verdicts over time by kind: per hour for up to 48 hours, per day beyond that. */
export function verdictChart(terminals: readonly Terminal[], nowMs: number): Html {
  const times = terminals.map(({ recordedAt }) => Date.parse(recordedAt));
  const oldest = times.reduce((a, b) => Math.min(a, b), nowMs);
  if (times.length === 0) return html``;
  const unit = nowMs - oldest <= MAX_BARS * HOUR_MS ? HOUR_MS : DAY_MS;
  const end = Math.floor(nowMs / unit);
  const span = Math.max(MIN_BARS, end - Math.floor(oldest / unit) + 1);
  const first = end - Math.min(span, MAX_BARS) + 1;
  const bars = Array.from({ length: end - first + 1 }, () => new Map<string, number>());
  for (const [index, { kind }] of terminals.entries()) {
    const bar = bars[Math.floor((times[index] ?? 0) / unit) - first];
    bar?.set(kind, (bar.get(kind) ?? 0) + 1);
  }
  const word = unit === HOUR_MS ? 'hour' : 'day';
  const totals = bars.map((bar) => [...bar.values()].reduce((sum, count) => sum + count, 0));
  const most = roundUp(Math.max(1, ...totals));
  const label = `verdicts per ${word}, up to ${Math.max(...totals)}`;
  const drawn = bars.map((bar, index) => drawBar(bar, index, { bars: bars.length, most }));
  const keys = KINDS.map((kind) => html`<li class="${kind}">${kind}</li>`);
  return html`<figure class="chart"><figcaption><span>Verdicts per ${word} (UTC)</span> <ul class="legend">${keys}</ul></figcaption>
<div class="scroll-chart" tabindex="0" role="region" aria-label="chart"><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${label}">${drawScale(most)}${drawn}${drawTimes(first, bars.length, unit)}</svg></div></figure>`;
}

/** Rounds up to 1, 2, 4, 10, 20, 40, 100 and so on, which are easy to halve. */
function roundUp(count: number): number {
  for (let ten = 1; ; ten *= 10)
    for (const step of [1, 2, 4]) if (count <= step * ten) return step * ten;
}

/** Draws the vertical scale: marks at zero, half and full height. */
function drawScale(most: number): readonly Html[] {
  const marks = most === 1 ? [0, 1] : [0, most / 2, most];
  return marks.map((count) => {
    const y = BOTTOM - (count / most) * (BOTTOM - TOP);
    return html`<line x1="${LEFT}" x2="${WIDTH}" y1="${y}" y2="${y}" class="axis"/><text x="${LEFT - 6}" y="${y + 4}" class="tick count-tick">${count}</text>`;
  });
}

const TICKS = 6;

/** Draws the time labels below the bars: hours or dates. */
function drawTimes(first: number, bars: number, unit: number): readonly Html[] {
  const step = Math.ceil(bars / TICKS);
  const places = Array.from({ length: bars }, (_, index) => index).filter(
    (index) => (bars - 1 - index) % step === 0,
  );
  return places.map((index) => {
    const at = new Date((first + index) * unit).toISOString();
    const text = unit === DAY_MS ? at.slice(5, 10) : `${at.slice(11, 13)}:00`;
    const x = LEFT + (index + 0.5) * ((WIDTH - LEFT) / bars);
    return html`<text x="${Math.min(x, WIDTH - 16).toFixed(1)}" y="${HEIGHT - 6}" class="tick">${text}</text>`;
  });
}

function drawBar(
  bar: ReadonlyMap<string, number>,
  index: number,
  { bars, most }: { bars: number; most: number },
): Html {
  const step = (WIDTH - LEFT) / bars;
  let top = BOTTOM;
  const parts = KINDS.flatMap((kind) => {
    const count = bar.get(kind) ?? 0;
    if (count === 0) return [];
    const height = (count / most) * (BOTTOM - TOP);
    top -= height;
    const x = LEFT + index * step + 1;
    return [
      html`<rect class="${kind}" x="${x.toFixed(1)}" y="${top.toFixed(1)}" width="${(step - 2).toFixed(1)}" height="${height.toFixed(1)}"><title>${count} ${kind}</title></rect>`,
    ];
  });
  return html`${parts}`;
}
