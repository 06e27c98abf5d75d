import type { JournalEntry, Ledgers } from '../contract/ledgers.ts';
import { canonical } from '../protocol/canon.ts';
import type { Diff } from '../protocol/diff.ts';
import { type Approved, approvedRecord } from '../protocol/manifest.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import { renderTerminal } from '../protocol/render-terminal.ts';
import { showText } from '../protocol/render-text.ts';
import type { Finding, Resolution } from '../protocol/resolution.ts';
import { diffOfTerminal, type Terminal } from '../protocol/terminal.ts';
import { isRequestId } from '../requests/wanted.ts';
import type { Person } from './access.ts';
import { changesOfDiff, changeTables, summarise } from './changes.ts';
import { shortTask, verdictBadge } from './history.ts';
import { type Html, html, preformatted } from './html.ts';
import { badge, moment } from './layout.ts';

/** What one occurrence has in the ledger. */
export interface OccurrencePage {
  readonly occurrence: OccurrenceId;
  readonly terminal: Terminal | undefined;
  readonly holder: Awaited<ReturnType<Ledgers['holder']>>;
  readonly resolution: Resolution | undefined;
  /** What the operator relied on, if it is kept. */
  readonly evidence: string | undefined;
  readonly rows: readonly JournalEntry[];
  readonly person: Person;
  readonly formToken: string;
  /** Public keys of operators, and whose they are. */
  readonly operators: Readonly<Record<string, string>>;
  readonly nowMs: number;
}

/** One occurrence from its claim to the release of dependent work. */
export function occurrencePage(options: OccurrencePage): Html {
  const { occurrence, terminal, holder, rows, nowMs, resolution } = options;
  const approved = holder && approvedRecord.parseText(holder.approvedText);
  const diff = terminal && diffOfTerminal(terminal);
  const state = terminal === undefined ? badge('warn', 'open') : verdictBadge(terminal.kind);
  const adapter = terminal?.adapter ?? holder?.claim.record.adapter ?? 'nothing';
  const isUnclear = terminal?.kind === 'indeterminate' && resolution === undefined;
  return html`<p class="crumbs"><a href="/history">History</a></p>
<div class="title"><h1>${holder?.license.operation ?? `Change in ${adapter}`}</h1>${state}${resolution && badge('plain', 'resolved')}</div>
<p class="aside">${taskLine(terminal?.task ?? holder?.claim.record.task ?? '')} · <code>${occurrence}</code></p>
<div class="columns"><div class="wide">
${terminal !== undefined && html`<section class="verdict ${terminal.kind}"><h2>What happened</h2>${preformatted(renderTerminal(terminal))}</section>`}
${resolution && resolvedSection(resolution, options)}
${approved && changesSection(approved, diff)}
</div><aside class="narrow">
${isUnclear && resolveCard(options)}
<section class="card"><h2>Timeline</h2><ol class="timeline">${rows.map((row) => timelineRow(row, nowMs))}</ol></section>
${
  terminal !== undefined &&
  html`<section class="card"><h2>Receipt</h2><p class="aside">Signed by this deployment. Anyone can check it without this server, with <code>effectmatch verify</code> or with a page that you save.</p>
<p><a href="/history/${occurrence}/receipt.json" download>Download the receipt</a></p>
<p><a href="/verifier.html" download>Download the verifier</a></p></section>`
}
</aside></div>`;
}

const FOUND: Readonly<Record<Finding, string>> = {
  happened: 'It happened, as approved',
  'did-not-happen': 'It did not happen',
  'happened-otherwise': 'Something else happened',
};

/** What an operator decided. The verdict stays what it is. */
function resolvedSection({ finding, operator, at }: Resolution, options: OccurrencePage): Html {
  const { evidence, nowMs } = options;
  return html`<section class="verdict resolved"><h2>${FOUND[finding]}, says ${operator}</h2>
<p class="aside">Signed ${moment(Date.parse(at), nowMs)}. It releases nothing: what has to be done next needs a new license.</p>
${evidence === undefined ? html`<p class="aside">Of the evidence only the digest is kept.</p>` : preformatted(evidence.split('\n').map(showText).join('\n'))}</section>`;
}

/** Lets an operator say what became of an effect that no evidence established. */
function resolveCard({ occurrence, operators, person, formToken }: OccurrencePage): Html {
  const choices = Object.entries(FOUND).map(
    ([finding, words]) => html`<option value="${finding}">${words}</option>`,
  );
  return html`<section class="card" aria-labelledby="resolve"><h2 id="resolve">Resolve</h2>
<p class="aside">No evidence established what became of this. Find it out, then record it with your signature. That sends nothing and releases nothing.</p>
${
  person.canOperate &&
  html`<label>What did you find? <select id="finding">${choices}</select></label>
<label>What do you rely on? It is kept. <textarea id="evidence" rows="4" maxlength="100000" placeholder="A query and its result, a statement, a letter"></textarea></label>
<div id="resolver" data-occurrence="${occurrence}" data-form="${formToken}" data-user="${person.name}" data-issuers="${JSON.stringify(operators)}"></div>`
}
<details><summary>Sign with a key file</summary>
<pre class="command">effectmatch resolve ${occurrence} \\
  --finding did-not-happen \\
  --evidence statement.txt --key OPERATOR.key.json</pre></details></section>`;
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
  const other = new Set([...missing, ...altered.map((pair) => pair.approved)].map(textOf));
  const same = effects.filter((effect) => !other.has(textOf(effect)));
  const matched = same.slice(0, SHOWN).map((effect) => ({ effect, mark: 'matched' as const }));
  const counts = html`<b>${extra.length}</b> extra · <b>${missing.length}</b> missing · <b>${altered.length}</b> altered · <b>${same.length}</b> as approved`;
  return html`<section><h2>Approved and observed</h2><p class="summary">${counts}</p>
${changeTables([...changesOfDiff(diff), ...matched], registration)}</section>`;
}

function textOf({ count: _count, ...effect }: { readonly count: number }): string {
  return canonical(effect);
}

function taskLine(task: string): Html {
  if (!isRequestId(task)) return html`task ${task}`;
  return html`<a href="/requests/${task}">request ${shortTask(task)}</a>`;
}

/** What each kind of row says. */
const STEPS: Readonly<Record<JournalEntry['kind'], string>> = {
  claim: 'Claimed: the license is spent',
  permit: 'Permit used: from here on it may have happened',
  void: 'Voided by recovery: it can no longer happen',
  terminal: 'Verdict',
  acknowledgement: 'Dependent work',
  resolution: "Operator's decision",
  shadow: 'Shadow',
};

function timelineRow(entry: JournalEntry, nowMs: number): Html {
  const { kind, record, seq } = entry;
  const at = timeOf(record);
  return html`<li><b>${STEPS[kind]}</b> ${detailOf(entry)} <span class="aside">${at === undefined ? '' : moment(at, nowMs)} · row ${seq}</span></li>`;
}

function detailOf({ kind, record }: JournalEntry): string {
  if (kind === 'terminal') return record.kind;
  if (kind === 'acknowledgement') return `${record.continuation} ${record.state}`;
  return kind === 'resolution' ? record.finding : '';
}

function timeOf(record: object): number | undefined {
  const names = ['recordedAt', 'claimedAt', 'consumedAt', 'at', 'voidedAt'];
  for (const name of names) {
    const text: unknown = Reflect.get(record, name);
    if (typeof text === 'string') return Date.parse(text);
  }
  return undefined;
}
