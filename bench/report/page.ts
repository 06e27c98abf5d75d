import type { WrittenCell } from '../results.ts';
import { describeBreadth } from './breadth.ts';
import { type Markup, markup, NOTHING } from './markup.ts';
import { plotOutcomes, plotsOf } from './study-plots.ts';
import { STYLE } from './style.ts';
import { headlines } from './summary.ts';
import {
  cellsOf,
  countVerdicts,
  describeRun,
  type Entry,
  listBad,
  shortStateOf,
  showValue,
  stateOf,
  TONES,
  toneOf,
  VERDICTS,
  verdictOf,
} from './verdict.ts';

/** The whole report as one page that needs nothing beside itself. */
export function renderPage(entries: readonly Entry[]): string {
  const bad = listBad(entries);
  const outcomes = entries.filter(({ name }) => name === 'public-outcomes');
  const page = markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>EffectMatch: evaluation</title>
<style>${STYLE}</style>
</head>
<body>
<header>
<h1>EffectMatch: evaluation</h1>
<p>Every figure with the paper’s, where it has one. How to reproduce them and what they do not say: docs/evaluation.md.</p>
${renderHeadlines(entries)}
</header>
${summarise(entries)}
${outcomes.map(plotOutcomes)}
<h2 id="mismatches">Figures that do not match: ${bad.length}</h2>
${bad.length === 0 ? markup`<p>None among the studies that were run.</p>` : tableOf(bad.map(({ study, cell }) => ({ ...cell, name: `${study}: ${cell.name}` })))}
${renderBreadth(entries)}
${entries.map(renderStudy)}
</body>
</html>
`;
  return page.text;
}

function renderHeadlines(entries: readonly Entry[]): Markup {
  const tiles = headlines(entries).map(
    ({ figure, words, tone }) =>
      markup`<div class="tile ${tone}"><b>${figure}</b><span>${words}</span></div>`,
  );
  return markup`<div class="tiles">${tiles}</div>`;
}

/** One row per study: its name, how it last ended, and its figures by verdict. */
function summarise(entries: readonly Entry[]): Markup {
  const rows = entries.map((entry) => {
    const counts = countVerdicts(entry);
    const all = cellsOf(entry).length;
    const parts = VERDICTS.map((verdict, index) => {
      const count = counts.get(verdict) ?? 0;
      const tone = TONES[index] ?? 'plain';
      return count === 0
        ? NOTHING
        : markup`<i class="${tone}" style="flex-grow:${count}" title="${verdict}: ${count}">${count}</i>`;
    });
    const bar = all === 0 ? NOTHING : markup`<span class="bar">${parts}</span>`;
    return markup`<li><a href="#${entry.name}">${entry.name}</a><span class="state">${shortStateOf(entry)}</span>${bar}</li>\n`;
  });
  const keys = VERDICTS.map(
    (verdict, index) => markup`<span class="key ${TONES[index] ?? 'plain'}">${verdict}</span>`,
  );
  return markup`<p class="legend">${keys}</p><ul class="studies">${rows}</ul>`;
}

function renderBreadth(entries: readonly Entry[]): Markup {
  const rows = describeBreadth(entries).map(
    ({ block, cases, repetitions, paper, ours }) =>
      markup`<tr><td>${block}</td><td>${cases}</td><td>${repetitions}</td><td class="number">${paper}</td><td class="number">${ours}</td></tr>\n`,
  );
  return markup`<h2 id="breadth">Populations</h2>
<p>What the paper ran, and how many runs of it the raw records here have. A run that was not made, or only tried quickly, counts as it is.</p>
<div class="wide"><table><thead><tr><th>block</th><th>tasks or cases</th><th>repetitions</th><th>paper, executions</th><th>here, executions</th></tr></thead><tbody>${rows}</tbody></table></div>`;
}

function renderStudy(entry: Entry): Markup {
  const cells = cellsOf(entry);
  const hasFailed = entry.result !== undefined && 'failed' in entry.result;
  const isOpen = entry.name !== 'public-outcomes';
  return markup`<section id="${entry.name}">
<h2>${entry.name}</h2>
<p>${entry.about}</p>
<p class="${hasFailed ? 'bad' : 'state'}">${stateOf(entry)}</p>
${entry.result === undefined ? NOTHING : markup`<p class="context">${describeRun(entry.result)}</p>`}
${renderSources(entry)}
${isOpen ? plotsOf(entry) : NOTHING}
${cells.length === 0 ? NOTHING : markup`<details><summary>All ${cells.length} figures</summary>${tableOf(cells)}</details>`}
</section>
`;
}

/** Where the figures come from: the command, the figures as a file, and the raw records. */
function renderSources({ name, result, raw }: Entry): Markup {
  if (result === undefined)
    return markup`<p class="context"><code>npm run bench -- ${name}</code></p>`;
  const quick = result.context.quick ? ' --quick' : '';
  const file = `${name}${result.context.quick ? '-quick' : ''}`;
  const records =
    raw === undefined || raw.records.length === 0
      ? NOTHING
      : markup` · <a href="../results/raw/${file}.jsonl">${raw.records.length} raw records</a>`;
  const samples =
    raw?.samples === undefined
      ? NOTHING
      : markup` · <a href="../results/raw/${file}-samples.jsonl">samples of ${raw.samples} figures</a>`;
  return markup`<p class="context"><code>npm run bench -- ${name}${quick} --seed ${result.context.seed}</code> · <a href="../results/${file}.json">figures</a>${records}${samples}</p>`;
}

function tableOf(cells: readonly WrittenCell[]): Markup {
  const rows = cells.map((cell) => {
    const { name, value, unit, paper, target } = cell;
    return markup`<tr class="${toneOf(cell)}"><td>${name}</td><td class="number">${showValue(value)} ${unit}</td><td class="number">${paper === undefined ? '' : showValue(paper)}</td><td class="number">${target ?? ''}</td><td>${verdictOf(cell)}</td></tr>\n`;
  });
  return markup`<div class="wide"><table><thead><tr><th>figure</th><th>ours</th><th>paper</th><th>target</th><th>verdict</th></tr></thead><tbody>${rows}</tbody></table></div>`;
}
