import type { ClaimEntry } from '../contract/ledgers.ts';
import { approvedRecord } from '../protocol/manifest.ts';
import { showText } from '../protocol/render-text.ts';
import type { Terminal } from '../protocol/terminal.ts';
import { isRequestId } from '../requests/wanted.ts';
import { headline } from './changes.ts';
import { verdictChart } from './charts.ts';
import { type Html, html } from './html.ts';
import { badge, moment } from './layout.ts';
import { MEANINGS, verdictBadge } from './verdict.ts';

/** Lists do not parse outcomes longer than this. */
const MAX_TEXT = 64 * 1024;

/** A verdict, with the claim it settles, if there was one. */
export interface HistoryRow {
  readonly terminal: Terminal;
  readonly holder: ClaimEntry | undefined;
  /** Whether an operator has resolved it. */
  readonly isResolved: boolean;
}

/** Which verdicts the page shows. */
export interface HistoryView {
  readonly kind: Terminal['kind'] | 'all';
  /** The page number, starting at 1. */
  readonly part: number;
  readonly nowMs: number;
}

/** The number of verdicts on one page. */
export const VERDICTS_PER_PAGE = 50;

/** The verdicts of a view, before they are split into pages. */
export function chosenVerdicts(
  terminals: readonly Terminal[],
  { kind }: HistoryView,
): readonly Terminal[] {
  return kind === 'all' ? terminals : terminals.filter((terminal) => terminal.kind === kind);
}

/** Shows recent verdicts: a chart of all `terminals`, then the `rows` of one page, newest first. */
export function history(
  terminals: readonly Terminal[],
  rows: readonly HistoryRow[],
  view: HistoryView,
): Html {
  const { kind, nowMs } = view;
  const none = kind === 'all' ? 'Nothing has been executed yet.' : `No verdict is ${kind}.`;
  return html`<h1>History</h1>
${verdictChart(terminals, nowMs)}
${terminals.length > 0 && kindLinks(terminals, kind)}
${
  rows.length === 0
    ? html`<p class="empty">${none}</p>`
    : html`<ol class="list" aria-label="verdicts, newest first">${rows.map((row) => verdictRow(row, nowMs))}</ol>`
}
${pageLinks(chosenVerdicts(terminals, view).length, view)}`;
}

/** Links that show the verdicts of one kind, each with their number. */
function kindLinks(terminals: readonly Terminal[], current: HistoryView['kind']): Html {
  const kinds = ['all', ...Object.keys(MEANINGS)] as readonly HistoryView['kind'][];
  const links = kinds.map((kind) => {
    const { length } = chosenVerdicts(terminals, { kind, part: 1, nowMs: 0 });
    const mark = kind === current && html` aria-current="true"`;
    return html`<a href="/history?kind=${kind}"${mark}>${length} ${kind === 'all' ? 'verdicts' : kind}</a>`;
  });
  return html`<div class="filters"><nav aria-label="Verdict">${links}</nav></div>`;
}

function pageLinks(count: number, { kind, part }: HistoryView): Html {
  const parts = Math.ceil(count / VERDICTS_PER_PAGE);
  if (parts <= 1) return html``;
  const link = (to: number, label: string) =>
    to >= 1 && to <= parts && html`<a href="/history?kind=${kind}&amp;part=${to}">${label}</a>`;
  return html`<p class="pages">${link(part - 1, '← newer')} page ${part} of ${parts} ${link(part + 1, 'older →')}</p>`;
}

function verdictRow({ terminal, holder, isResolved }: HistoryRow, nowMs: number): Html {
  const { kind, occurrence, task, adapter, recordedAt } = terminal;
  const operation = holder?.license.operation;
  const [why = ''] = reasonOf(terminal).split('\n');
  return html`<li><a class="row" href="/history/${occurrence}">
<span class="head">${verdictBadge(kind)}${isResolved && badge('plain', 'resolved')} <b>${operation ?? `Change in ${adapter}`}</b>
${operation !== undefined && html`<span class="aside">in ${adapter}</span>`}</span>
<span class="aside when">${!isRequestId(task) && `${shortTask(task)} · `}${holder && `approved by ${holder.license.issuer} · `}${moment(Date.parse(recordedAt), nowMs)}</span>
<span class="what">${approvedIn(holder)}</span>
<span class="said">${MEANINGS[kind]}${why && `: ${showText(why)}`}</span>
</a></li>`;
}

function reasonOf(terminal: Terminal): string {
  if (terminal.kind === 'rejected') return terminal.detail;
  return terminal.kind === 'indeterminate' ? terminal.gap : '';
}

/** A short form of what was approved. */
function approvedIn(holder: ClaimEntry | undefined): Html {
  if (holder === undefined) return html`<span class="aside">refused before it began</span>`;
  const { approvedText } = holder;
  if (approvedText.length > MAX_TEXT) return html`<span class="aside">many changes</span>`;
  return headline(approvedRecord.parseText(approvedText).effects);
}

/** Shortens request ids, which mean little to a reader. Other tasks have names. */
export function shortTask(task: string): string {
  return isRequestId(task) ? task.slice(0, 12) : showText(task);
}
