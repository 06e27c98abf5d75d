import type { Terminal } from '../protocol/terminal.ts';
import { type Html, html } from './html.ts';

const KINDS: readonly Terminal['kind'][] = ['committed', 'rejected', 'diverged', 'indeterminate'];
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MAX_BARS = 48;
const [WIDTH, HEIGHT] = [720, 110];

/** How many verdicts there were over time, by kind: hours at first, then days. */
export function verdictChart(terminals: readonly Terminal[], nowMs: number): Html {
  const times = terminals.map(({ recordedAt }) => Date.parse(recordedAt));
  if (times.length === 0) return html``;
  const oldest = Math.min(...times);
  const unit = nowMs - oldest <= MAX_BARS * HOUR_MS ? HOUR_MS : DAY_MS;
  const end = Math.floor(nowMs / unit);
  const first = Math.max(Math.floor(oldest / unit), end - MAX_BARS + 1);
  const bars = Array.from({ length: end - first + 1 }, () => new Map<string, number>());
  for (const [index, { kind }] of terminals.entries()) {
    const bar = bars[Math.floor((times[index] ?? 0) / unit) - first];
    bar?.set(kind, (bar.get(kind) ?? 0) + 1);
  }
  const word = unit === HOUR_MS ? 'hour' : 'day';
  const totals = bars.map((bar) => [...bar.values()].reduce((sum, count) => sum + count, 0));
  const most = Math.max(1, ...totals);
  const label = `verdicts per ${word}, up to ${most}`;
  const drawn = bars.map((bar, index) => drawBar(bar, index, { bars: bars.length, most }));
  const keys = KINDS.map((kind) => html`<li class="${kind}">${kind}</li>`);
  return html`<figure class="chart"><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${label}">${drawn}
<line x1="0" x2="${WIDTH}" y1="${HEIGHT}" y2="${HEIGHT}" class="axis"/></svg>
<figcaption>Verdicts per ${word} since ${new Date(first * unit).toISOString().slice(0, 16)}Z, at most ${most} <ul class="legend">${keys}</ul></figcaption></figure>`;
}

function drawBar(
  bar: ReadonlyMap<string, number>,
  index: number,
  { bars, most }: { bars: number; most: number },
): Html {
  const step = WIDTH / Math.max(bars, 12);
  let top = HEIGHT;
  const parts = KINDS.flatMap((kind) => {
    const count = bar.get(kind) ?? 0;
    if (count === 0) return [];
    const height = (count / most) * (HEIGHT - 6);
    top -= height;
    return [
      html`<rect class="${kind}" x="${(index * step + 1).toFixed(1)}" y="${top.toFixed(1)}" width="${(step - 2).toFixed(1)}" height="${height.toFixed(1)}"><title>${count} ${kind}</title></rect>`,
    ];
  });
  return html`${parts}`;
}
