import type { JournalEntry, Ledgers } from '../contract/ledgers.ts';
import { canonical } from '../protocol/canon.ts';
import type { Diff } from '../protocol/diff.ts';
import { type Approved, approvedRecord } from '../protocol/manifest.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import { renderTerminal } from '../protocol/render-terminal.ts';
import { diffOfTerminal, type Terminal } from '../protocol/terminal.ts';
import { isRequestId } from '../requests/wanted.ts';
import { changesOfDiff, changeTables, summarise } from './changes.ts';
import { verdictChart } from './charts.ts';
import { type Html, html, preformatted } from './html.ts';
import { type BadgeTone, badge, moment } from './layout.ts';

const TONES: Readonly<Record<Terminal['kind'], BadgeTone>> = {
  committed: 'good',
  rejected: 'bad',
  diverged: 'bad',
  indeterminate: 'warn',
};

const HISTORY_SHOWN = 200;

/** What was decided lately, newest first. */
export function history(terminals: readonly Terminal[], nowMs: number): Html {
  const counts = Object.keys(TONES).map((kind) => {
    const count = terminals.filter((terminal) => terminal.kind === kind).length;
    return html`<li><b>${count}</b> ${kind}</li>`;
  });
  const rows = terminals.slice(0, HISTORY_SHOWN).map((terminal) => {
    const { kind, occurrence, task, adapter, recordedAt } = terminal;
    const why = 'reason' in terminal ? terminal.reason : '';
    return html`<tr><td>${badge(TONES[kind], kind)}</td><td>${adapter}</td>
<td><a href="/history/${occurrence}">${shortTask(task)}</a></td><td>${why}</td><td>${moment(Date.parse(recordedAt), nowMs)}</td></tr>`;
  });
  return html`<h1>History</h1>
<ul class="counts" aria-label="verdicts shown">${counts}</ul>
${verdictChart(terminals, nowMs)}
${
  rows.length === 0
    ? html`<p class="empty">Nothing was executed yet.</p>`
    : html`<div class="scroll" tabindex="0" role="region" aria-label="verdicts"><table class="plain">
<thead><tr><th scope="col">Verdict</th><th scope="col">Adapter</th><th scope="col">Task</th><th scope="col">Reason</th><th scope="col">When</th></tr></thead>
<tbody>${rows}</tbody></table></div>`
}`;
}

/** What one occurrence has in the ledger. */
export interface OccurrencePage {
  readonly occurrence: OccurrenceId;
  readonly terminal: Terminal | undefined;
  readonly holder: Awaited<ReturnType<Ledgers['holder']>>;
  readonly rows: readonly JournalEntry[];
  readonly nowMs: number;
}

/** One occurrence from its claim to the release of dependent work. */
export function occurrencePage(options: OccurrencePage): Html {
  const { occurrence, terminal, holder, rows, nowMs } = options;
  const approved = holder && approvedRecord.parseText(holder.approvedText);
  const diff = terminal && diffOfTerminal(terminal);
  const state =
    terminal === undefined ? badge('warn', 'open') : badge(TONES[terminal.kind], terminal.kind);
  return html`<p class="crumbs"><a href="/history">History</a></p>
<div class="title"><h1>Change in ${terminal?.adapter ?? holder?.claim.record.adapter ?? 'nothing'}</h1>${state}</div>
<p class="aside">${taskLine(terminal?.task ?? holder?.claim.record.task ?? '')} · <code>${occurrence}</code></p>
<div class="columns"><div class="wide">
${terminal !== undefined && html`<section class="verdict ${terminal.kind}"><h2>What happened</h2>${preformatted(renderTerminal(terminal))}</section>`}
${approved && changesSection(approved, diff)}
</div><aside class="narrow">
<section class="card"><h2>Timeline</h2><ol class="timeline">${rows.map((row) => timelineRow(row, nowMs))}</ol></section>
${
  terminal !== undefined &&
  html`<section class="card"><h2>Receipt</h2><p class="aside">Signed by this deployment. Anyone can check it without this server, with <code>effectmatch verify</code> or with a page that you save.</p>
<p><a href="/history/${occurrence}/receipt.json" download>Download the receipt</a></p>
<p><a href="/verifier.html" download>Download the verifier</a></p></section>`
}
</aside></div>`;
}

const SHOWN = 100;

/** What was approved and what really happened, in one view: what differs comes first. */
function changesSection(approved: Approved, diff: Diff | undefined): Html {
  const { effects, registration } = approved;
  if (diff === undefined) {
    const shown = effects.slice(0, SHOWN).map((effect) => ({ effect }));
    return html`<section><h2>What was approved</h2><p class="summary">${summarise(effects)}</p>${changeTables(shown, registration)}</section>`;
  }
  const { extra, missing, altered } = diff;
  const other = [...missing, ...altered.map((pair) => pair.approved)].map(textOf);
  const same = effects.filter((effect) => !other.includes(textOf(effect)));
  const matched = same.slice(0, SHOWN).map((effect) => ({ effect, mark: 'matched' as const }));
  const counts = html`<b>${extra.length}</b> extra · <b>${missing.length}</b> missing · <b>${altered.length}</b> altered · <b>${same.length}</b> as approved`;
  return html`<section><h2>Approved and observed</h2><p class="summary">${counts}</p>
${changeTables([...changesOfDiff(diff), ...matched], registration)}</section>`;
}

function textOf({ count: _count, ...effect }: { readonly count: number }): string {
  return canonical(effect);
}

/** The id of a request is long and says little; other tasks have names. */
export function shortTask(task: string): string {
  return isRequestId(task) ? task.slice(0, 12) : task;
}

function taskLine(task: string): Html {
  if (!isRequestId(task)) return html`task ${task}`;
  return html`<a href="/requests/${task}">request ${shortTask(task)}</a>`;
}

function timelineRow(entry: JournalEntry, nowMs: number): Html {
  const { kind, record } = entry;
  const at = timeOf(record);
  const word = 'state' in record ? `${kind}: ${record.state}` : kind;
  const detail =
    'kind' in record ? record.kind : 'continuation' in record ? record.continuation : '';
  return html`<li><b>${word}</b> ${String(detail)} <span class="aside">${at === undefined ? '' : moment(at, nowMs)} · row ${entry.seq}</span></li>`;
}

function timeOf(record: object): number | undefined {
  const names = ['recordedAt', 'claimedAt', 'consumedAt', 'at', 'voidedAt'];
  for (const name of names) {
    const text: unknown = Reflect.get(record, name);
    if (typeof text === 'string') return Date.parse(text);
  }
  return undefined;
}
