import type { JournalEntry } from '../contract/ledgers.ts';
import { approvedRecord } from '../protocol/manifest.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import { showText } from '../protocol/render-text.ts';
import type { Finding, Resolution } from '../protocol/resolution.ts';
import { diffOfTerminal } from '../protocol/terminal.ts';
import { isRequestId } from '../requests/wanted.ts';
import { shortTask } from './history.ts';
import { type Html, html, preformatted } from './html.ts';
import { badge, moment, stateBadge, subjectName } from './layout.ts';
import { comparedSection, verdictSection } from './verdict.ts';
import { missing } from './visible.ts';
import type { Shown, Visit } from './visit.ts';

const TIMELINE_ROWS = 50;

/** Shows one occurrence, from its claim to the release of dependent work. */
export async function occurrencePage(visit: Visit): Promise<Shown> {
  const occurrence = visit.c.req.param('occurrence') as OccurrenceId;
  const { ledgers } = visit.runtime;
  const [holder, terminal, resolution, found] = await Promise.all([
    ledgers.holder(occurrence),
    ledgers.terminal(occurrence),
    ledgers.resolution(occurrence),
    ledgers.journal({ occurrence, limit: TIMELINE_ROWS }),
  ]);
  const rows = found.filter(({ record }) => record.occurrence === occurrence);
  if (holder === undefined && rows.length === 0) throw missing('occurrence');
  const evidence = resolution && (await ledgers.document(resolution.evidence));
  const approved = holder && approvedRecord.parseText(holder.approvedText);
  const diff = terminal && diffOfTerminal(terminal);
  const state = terminal === undefined ? badge('warn', 'open') : stateBadge(terminal.kind);
  const adapter = terminal?.adapter ?? holder?.claim.record.adapter ?? 'nothing';
  const isUnclear = terminal?.kind === 'indeterminate' && resolution === undefined;
  const content = html`<p class="crumbs"><a href="/history">History</a></p>
<div class="title"><h1>${subjectName({ operation: holder?.license.operation, adapter })}</h1>${state}${resolution && badge('plain', 'resolved')}</div>
<p class="aside">${taskLine(terminal?.task ?? holder?.claim.record.task ?? '')} · <code>${occurrence}</code></p>
<div class="columns"><div class="wide">
${terminal && verdictSection(terminal)}
${resolution && resolvedSection(resolution, evidence, visit)}
${approved && comparedSection(approved, diff)}
</div><aside class="narrow">
${isUnclear && resolveCard(occurrence, visit)}
<section class="card"><h2>Timeline</h2><ol class="timeline">${rows.map(timelineRow)}</ol></section>
${
  terminal !== undefined &&
  html`<section class="card"><h2>Receipt</h2><p class="aside">Signed by this deployment. Anyone can check it without this server, with <code>effectmatch verify</code> or the verifier page.</p>
<p><a href="/history/${occurrence}/receipt.json" download>Download the receipt</a></p>
<p><a href="/verifier.html" download>Download the verifier page</a></p></section>`
}
</aside></div>`;
  const title = `Change in ${holder?.claim.record.adapter ?? 'nothing'}`;
  return { title, section: 'history', content };
}

const FOUND: Readonly<Record<Finding, string>> = {
  happened: 'It happened, as approved',
  'did-not-happen': 'It did not happen',
  'happened-otherwise': 'Something else happened',
};

/** An operator's resolution, and its evidence if the ledger kept the text. */
function resolvedSection(
  { finding, operator, at }: Resolution,
  evidence: string | undefined,
  visit: Visit,
): Html {
  return html`<section class="verdict resolved"><h2>${FOUND[finding]}, says ${operator}</h2>
<p class="aside">Signed ${moment(at, visit)}. It releases nothing: the next step needs a new license.</p>
${evidence === undefined ? html`<p class="aside">Only the digest of the evidence is kept.</p>` : preformatted(evidence.split('\n').map(showText).join('\n'))}</section>`;
}

/** Lets an operator sign what happened if the evidence does not show it. */
function resolveCard(occurrence: OccurrenceId, { operators, person, formToken }: Visit): Html {
  const choices = Object.entries(FOUND).map(
    ([finding, words]) => html`<option value="${finding}">${words}</option>`,
  );
  return html`<section class="card" aria-labelledby="resolve"><h2 id="resolve">Resolve</h2>
<p class="aside">The evidence does not show whether this happened. Find out, and record it with your signature. That sends nothing and releases nothing.</p>
${
  person.canOperate &&
  html`<label>What did you find? <select id="finding">${choices}</select></label>
<label>What is your evidence? It is kept. <textarea id="evidence" rows="4" maxlength="100000" placeholder="For example a query and its result"></textarea></label>
<div id="resolver" data-occurrence="${occurrence}" data-form="${formToken}" data-user="${person.name}" data-issuers="${JSON.stringify(operators)}"></div>`
}
<details><summary>Sign with a key file</summary>
<pre class="command">effectmatch resolve ${occurrence} \\
  --finding did-not-happen \\
  --evidence statement.txt --key OPERATOR.key.json</pre></details></section>`;
}

function taskLine(task: string): Html {
  if (!isRequestId(task)) return html`task ${shortTask(task)}`;
  return html`<a href="/requests/${task}">request ${shortTask(task)}</a>`;
}

const STEPS: Readonly<Record<JournalEntry['kind'], string>> = {
  claim: 'Claimed: the license is spent',
  permit: 'Permit used: from here on it may have happened',
  void: 'Voided by recovery: it can no longer happen',
  terminal: 'Verdict',
  acknowledgement: 'Dependent work',
  resolution: "Operator's decision",
  shadow: 'Shadow',
};

function timelineRow(entry: JournalEntry): Html {
  const { kind, record, seq } = entry;
  const at = timeOf(record);
  return html`<li><b>${STEPS[kind]}</b> ${detailOf(entry)} <span class="aside">${at && `${exactTime(at)} · `}row ${seq}</span></li>`;
}

function exactTime(at: string): string {
  return `${at.slice(0, 19).replace('T', ' ')} UTC`;
}

function detailOf({ kind, record }: JournalEntry): string {
  if (kind === 'terminal') return record.kind;
  if (kind === 'acknowledgement') return `${record.continuation} ${record.state}`;
  return kind === 'resolution' ? record.finding : '';
}

function timeOf(record: object): string | undefined {
  const names = ['recordedAt', 'claimedAt', 'consumedAt', 'at', 'voidedAt'];
  for (const name of names) {
    const text: unknown = Reflect.get(record, name);
    if (typeof text === 'string') return text;
  }
  return undefined;
}
