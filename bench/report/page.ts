import type { WrittenCell } from '../results.ts';
import { type Markup, markup, NOTHING } from './markup.ts';
import { classOf, type Point, plotCounts, plotGrowth, plotOverview, plotRatios } from './plots.ts';
import { STYLE } from './style.ts';
import {
  cellsOf,
  countVerdicts,
  describeRun,
  type Entry,
  listBad,
  showValue,
  stateOf,
  VERDICTS,
  verdictOf,
} from './verdict.ts';

/** The whole report as one page that needs nothing beside itself. */
export function renderPage(entries: readonly Entry[]): string {
  const bad = listBad(entries);
  const page = markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>EffectMatch: evaluation</title>
<style>${STYLE}</style>
</head>
<body>
<h1>EffectMatch: evaluation</h1>
<p>Every figure beside the paper’s, where it has one. How to reproduce them and what they do not say: docs/evaluation.md.</p>
${summarise(entries)}
${plotOverview(entries)}
<h2>Figures that do not match: ${bad.length}</h2>
${bad.length === 0 ? markup`<p>None among the studies that were run.</p>` : tableOf(bad.map(({ study, cell }) => ({ ...cell, name: `${study}: ${cell.name}` })))}
${entries.map(renderStudy)}
</body>
</html>
`;
  return page.text;
}

function summarise(entries: readonly Entry[]): Markup {
  const rows = entries.map((entry) => {
    const counts = countVerdicts(entry);
    return markup`<tr><td>${entry.name}</td><td>${stateOf(entry)}</td>${VERDICTS.map((verdict) => markup`<td class="number">${counts.get(verdict) ?? 0}</td>`)}</tr>\n`;
  });
  return markup`<table><thead><tr><th>study</th><th>state</th>${VERDICTS.map((verdict) => markup`<th>${verdict}</th>`)}</tr></thead><tbody>${rows}</tbody></table>`;
}

function renderStudy(entry: Entry): Markup {
  const cells = cellsOf(entry);
  return markup`<section>
<h2>${entry.name}</h2>
<p>${entry.about}</p>
<p class="${entry.result !== undefined && 'failed' in entry.result ? 'bad' : 'state'}">${stateOf(entry)}</p>
${entry.result === undefined ? NOTHING : markup`<p class="context">${describeRun(entry.result)}</p>`}
${plotsOf(entry.name, cells)}
${cells.length === 0 ? NOTHING : tableOf(cells)}
</section>
`;
}

function tableOf(cells: readonly WrittenCell[]): Markup {
  const rows = cells.map((cell) => {
    const { name, value, unit, paper, target } = cell;
    return markup`<tr class="${classOf(cell)}"><td>${name}</td><td class="number">${showValue(value)} ${unit}</td><td class="number">${paper === undefined ? '' : showValue(paper)}</td><td class="number">${target ?? ''}</td><td>${verdictOf(cell)}</td></tr>\n`;
  });
  return markup`<table><thead><tr><th>figure</th><th>ours</th><th>paper</th><th>target</th><th>verdict</th></tr></thead><tbody>${rows}</tbody></table>`;
}

const RATIO = /^STATE (.+): held over direct$/;
const COMPARISON = /^comparison of (\d+) effects$/;

function plotsOf(study: string, cells: readonly WrittenCell[]): Markup {
  switch (study) {
    case 'public-outcomes':
      return plotCounts(
        'Wrong commits',
        cells.filter(({ name }) => name.endsWith('wrong commit')),
      );
    case 'recovery':
      return plotCounts(
        'Runs',
        cells.filter(({ paper }) => paper !== undefined),
      );
    case 'cost': {
      const ratios = cells.flatMap((cell) => {
        const [, task] = RATIO.exec(cell.name) ?? [];
        return task === undefined ? [] : [{ ...cell, name: task }];
      });
      const { points, paper } = growthOf(cells);
      return markup`${plotRatios('Held over direct', ratios, 3.6)}${plotGrowth('Comparison by effects', points, paper)}`;
    }
    default:
      return NOTHING;
  }
}

function growthOf(cells: readonly WrittenCell[]): {
  readonly points: readonly Point[];
  readonly paper: Point | undefined;
} {
  const found = cells.flatMap(({ name, value, paper }) => {
    const [, effects] = COMPARISON.exec(name) ?? [];
    return effects === undefined || value === null ? [] : [{ x: Number(effects), y: value, paper }];
  });
  const published = found.find(({ paper }) => paper !== undefined);
  return {
    points: found,
    paper: published?.paper === undefined ? undefined : { x: published.x, y: published.paper },
  };
}
