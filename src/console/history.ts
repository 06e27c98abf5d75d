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

/** Shows recent verdicts: a chart of `terminals`, then `rows`, newest first. */
export function history(
  terminals: readonly Terminal[],
  rows: readonly HistoryRow[],
  nowMs: number,
): Html {
  const counts = Object.keys(MEANINGS).map((kind) => {
    const count = terminals.filter((terminal) => terminal.kind === kind).length;
    return html`<li><b>${count}</b> ${kind}</li>`;
  });
  const more = terminals.length - rows.length;
  return html`<h1>History</h1>
<ul class="counts" aria-label="verdicts">${counts}</ul>
${verdictChart(terminals, nowMs)}
${
  rows.length === 0
    ? html`<p class="empty">Nothing has been executed yet.</p>`
    : html`<ol class="list" aria-label="verdicts, newest first">${rows.map((row) => verdictRow(row, nowMs))}</ol>`
}
${more > 0 && html`<p class="aside"><code>effectmatch journal</code> lists ${more} older verdicts.</p>`}`;
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
  if (terminal.kind === 'rejected') return `${terminal.detail} (${terminal.reason})`;
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
