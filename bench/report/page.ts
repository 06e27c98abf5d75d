import type { WrittenCell } from '../results.ts';
import { describeBreadth } from './breadth.ts';
import { type EntryGroup, groupEntries } from './groups.ts';
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
  sourcesOf,
  stateOf,
  TONES,
  toneOf,
  VERDICTS,
  verdictOf,
} from './verdict.ts';

/** Renders the whole report as one self-contained page. */
export function renderPage(entries: readonly Entry[]): string {
  const bad = listBad(entries);
  const groups = groupEntries(entries);
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
<p>An agent’s change is committed only if its observed effects equal the approved ones. Every figure stands beside the paper’s, where it has one, and links to its raw records; <code>docs/evaluation.md</code> says how to reproduce them, and what they do not say.</p>
${renderHeadlines(entries)}
</header>
${summarise(groups)}
${outcomes.map((entry) => markup`${plotOutcomes(entry)}${cellsOf(entry).length === 0 ? NOTHING : renderSources(entry)}`)}
<h2 id="mismatches">Figures that do not match: ${bad.length}</h2>
${bad.length === 0 ? markup`<p>None among the studies that were run.</p>` : renderBad(bad)}
${renderBreadth(entries)}
${groups.map(renderGroup)}
</body>
</html>
`;
  return page.text;
}

function renderHeadlines(entries: readonly Entry[]): Markup {
  const tiles = headlines(entries).map(
    ({ figure, words, tone, at }) =>
      markup`<a class="tile ${tone}" href="#${at}"><b>${figure}</b><span>${words}</span></a>`,
  );
  return markup`<div class="tiles">${tiles}</div>`;
}

/** One row per study: its name, how it last ended, and its figures by verdict. */
function summarise(groups: readonly EntryGroup[]): Markup {
  const lists = groups.map(
    ({ id, title, entries }) =>
      markup`<div><h3><a href="#${id}">${title}</a></h3><ul class="studies">${entries.map(summariseStudy)}</ul></div>\n`,
  );
  const keys = VERDICTS.map(
    (verdict, index) => markup`<span class="key ${TONES[index] ?? 'plain'}">${verdict}</span>`,
  );
  return markup`<p class="legend">${keys}</p><nav class="groups" id="studies">${lists}</nav>`;
}

function summariseStudy(entry: Entry): Markup {
  const counts = countVerdicts(entry);
  const parts = VERDICTS.map((verdict, index) => {
    const count = counts.get(verdict) ?? 0;
    const tone = TONES[index] ?? 'plain';
    return count === 0
      ? NOTHING
      : markup`<i class="${tone}" style="flex-grow:${count}" title="${verdict}: ${count}">${count}</i>`;
  });
  const isEmpty = cellsOf(entry).length === 0;
  const bar = isEmpty
    ? markup`<span class="state">${shortStateOf(entry)}</span>`
    : markup`<span class="bar" title="${shortStateOf(entry)}">${parts}</span>`;
  return markup`<li><a href="#${entry.name}">${entry.name}</a>${bar}</li>\n`;
}

function renderGroup({ id, title, words, entries }: EntryGroup): Markup {
  return markup`<h2 class="part" id="${id}">${title}</h2><p>${words}</p>\n${entries.map((entry) => renderStudy(entry, entries))}`;
}

function renderBreadth(entries: readonly Entry[]): Markup {
  const known = entries.map(({ name }) => name);
  const rows = describeBreadth(entries).map(
    ({ block, studies, cases, repetitions, paper, ours }) =>
      markup`<tr><td>${block}</td><td>${studies.map((study, index) => markup`${index > 0 ? ', ' : ''}${known.includes(study) ? linkTo(study) : study}`)}</td><td>${cases}</td><td>${repetitions}</td><td class="number">${paper}</td><td class="number">${ours}</td></tr>\n`,
  );
  return markup`<h2 id="breadth">Populations</h2>
<p>What the paper ran, and how many of these runs are in the raw records here. Quick runs have fewer.</p>
<div class="wide"><table><thead><tr><th>block</th><th>study</th><th>tasks or cases</th><th>repetitions</th><th class="number">paper, executions</th><th class="number">here, executions</th></tr></thead><tbody>${rows}</tbody></table></div>`;
}

function renderStudy(entry: Entry, entries: readonly Entry[]): Markup {
  const cells = cellsOf(entry);
  const hasFailed = entry.result !== undefined && 'failed' in entry.result;
  return markup`<section id="${entry.name}">
<h3>${entry.name}</h3>
<p>${capitalise(entry.about)}.</p>
${renderPlots(entry, entries)}
${renderSources(entry)}
<p class="${hasFailed ? 'bad' : 'context'}">${stateOf(entry)}${entry.result === undefined ? NOTHING : markup` · ${describeRun(entry.result)}`}</p>
${cells.length === 0 ? NOTHING : markup`<details><summary>All ${cells.length} figures</summary>${tableOf(cells.map((cell) => ({ cell })))}</details>`}
</section>
`;
}

/** The plots of a study, unless they stand elsewhere or its long run draws the same with more runs. */
function renderPlots(entry: Entry, entries: readonly Entry[]): Markup {
  if (entry.name === 'public-outcomes')
    return markup`<p class="context">Figures 1 and 2, at the top of the page.</p>`;
  const longer = entries.find(({ name }) => name === `${entry.name}-long`);
  if (longer === undefined || cellsOf(longer).length === 0) return plotsOf(entry);
  return markup`<p class="context">The figure of ${linkTo(longer.name)} shows the same with more runs.</p>`;
}

function capitalise(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}

/** Shows the source of the figures: the command, the result file and the raw records. */
function renderSources(entry: Entry): Markup {
  const { command, files } = sourcesOf(entry);
  const links = files.map(({ words, path }) => markup` · <a href="${path}">${words}</a>`);
  return markup`<p class="context"><code>${command}</code>${links}</p>`;
}

/** The figures that need attention, each with what the same work costs at least. */
function renderBad(bad: ReturnType<typeof listBad>): Markup {
  const hasFloors = bad.some(({ floor }) => floor !== undefined);
  const words = markup`<p class="context">A floor is the same figure of a path written by hand, in the same pairs, with the same flushes and round trips. A bare one keeps a claim and a marker and checks next to nothing; the others have everything that the contract demands of any such path.</p>`;
  return markup`${hasFloors ? words : NOTHING}${tableOf(bad)}`;
}

/** What a floor has beside the least that a path needs. */
const OWED = /floor with what (?:protection|certification) needs/;

function renderFloor({ name, value, unit }: WrittenCell): Markup {
  const words = OWED.exec(name)?.[0].replace('floor ', '') ?? 'bare';
  return markup`${showValue(value)} ${unit}<br/><small title="${name}">${words}</small>`;
}

interface ShownFigure {
  readonly cell: WrittenCell;
  readonly study?: string;
  readonly floor?: WrittenCell | undefined;
}

/** A table of figures. Those of a study that stands elsewhere link to it. */
function tableOf(figures: readonly ShownFigure[]): Markup {
  const hasFloors = figures.some(({ floor }) => floor !== undefined);
  const rows = figures.map(({ cell, study, floor }) => {
    const { name, value, unit, paper, target } = cell;
    const place = study === undefined ? NOTHING : markup`${linkTo(study)}: `;
    const least = floor === undefined ? NOTHING : renderFloor(floor);
    return markup`<tr class="${toneOf(cell)}"><td>${place}${name}</td><td class="number">${showValue(value)} ${unit}</td><td class="number">${paper === undefined ? '' : showValue(paper)}</td><td class="number">${showTarget(target)}</td>${hasFloors ? markup`<td class="number">${least}</td>` : NOTHING}<td>${verdictOf(cell)}</td></tr>\n`;
  });
  const floors = hasFloors ? markup`<th class="number">floor</th>` : NOTHING;
  return markup`<div class="wide"><table><thead><tr><th>figure</th><th class="number">ours</th><th class="number">paper</th><th class="number">target</th>${floors}<th>verdict</th></tr></thead><tbody>${rows}</tbody></table></div>`;
}

function linkTo(study: string): Markup {
  return markup`<a href="#${study}">${study}</a>`;
}

/** A target as it is printed: at most as ≤, at least as ≥. */
function showTarget(target = ''): string {
  return target.replace('<=', '≤').replace('>=', '≥');
}
