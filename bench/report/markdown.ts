import type { WrittenCell } from '../results.ts';
import {
  cellsOf,
  countVerdicts,
  describeRun,
  type Entry,
  listBad,
  showValue,
  sourcesOf,
  stateOf,
  VERDICTS,
  verdictOf,
} from './verdict.ts';

/** Escapes text for Markdown, including tables. */
function plain(text: string): string {
  return text.replace(/[\r\n]+/g, ' ').replace(/[\\`*_{}[\]<>|#&~]/g, '\\$&');
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [
    line(head),
    line(head.map(() => '---')),
    ...rows.map((cells) => line(cells.map(plain))),
  ].join('\n');
}

function rowOf(cell: WrittenCell): readonly string[] {
  const { name, value, unit, paper, target } = cell;
  return [
    name,
    `${showValue(value)} ${unit}`.trim(),
    paper === undefined ? '' : showValue(paper),
    target ?? '',
    verdictOf(cell),
  ];
}

/** The command, and links to the figures and raw records. */
function renderSources(entry: Entry): string {
  const { command, files } = sourcesOf(entry);
  const links = files.map(({ words, path }) => `[${words}](${path})`);
  return [`\`${command}\``, ...links].join(' · ');
}

/** The whole report as Markdown. */
export function renderMarkdown(entries: readonly Entry[]): string {
  const bad = listBad(entries);
  const parts = [
    '# EffectMatch: evaluation',
    'Every figure beside the paper’s, where it has one. How to reproduce them and what they do not say: `docs/evaluation.md`.',
    table(
      ['study', 'state', ...VERDICTS],
      entries.map((entry) => {
        const counts = countVerdicts(entry);
        return [
          entry.name,
          stateOf(entry),
          ...VERDICTS.map((verdict) => String(counts.get(verdict) ?? 0)),
        ];
      }),
    ),
    `## Figures that do not match: ${bad.length}`,
    bad.length === 0
      ? 'None among the studies that were run.'
      : table(
          ['study', 'figure', 'ours', 'paper', 'target', 'verdict'],
          bad.map(({ study, cell }) => [study, ...rowOf(cell)]),
        ),
    ...entries.flatMap((entry) => [
      `## ${plain(entry.name)}`,
      plain(entry.about),
      `State: ${plain(stateOf(entry))}`,
      ...(entry.result === undefined ? [] : [plain(describeRun(entry.result))]),
      renderSources(entry),
      ...(cellsOf(entry).length === 0
        ? []
        : [table(['figure', 'ours', 'paper', 'target', 'verdict'], cellsOf(entry).map(rowOf))]),
    ]),
  ];
  return `${parts.join('\n\n')}\n`;
}
