import type { ClaimEntry } from '../contract/ledgers.ts';
import { type Survey, unclassified } from '../protocol/boundary.ts';
import { showText } from '../protocol/render-text.ts';
import { renderShadow, type Shadow } from '../protocol/shadow.ts';
import type { Terminal } from '../protocol/terminal.ts';
import type { OpenContinuation } from '../runtime/continuation.ts';
import type { Person } from './access.ts';
import { verdictChart } from './charts.ts';
import { shortTask } from './history.ts';
import { type Html, html } from './html.ts';
import { badge, moment, table } from './layout.ts';

/** What the operations page shows. */
export interface OperationsPage {
  /** Unsettled claims. Those with a verdict are indeterminate. */
  readonly unsettled: readonly (ClaimEntry & { readonly terminal: Terminal | undefined })[];
  readonly continuations: readonly OpenContinuation[];
  /** The boundary of each adapter, or why it could not be surveyed. */
  readonly boundaries: readonly (readonly [adapter: string, Survey | string])[];
  /** The last verdicts, for the chart. */
  readonly verdicts: readonly Terminal[];
  /** Decisions about shadowed changes, newest first. */
  readonly shadows: readonly Shadow[];
  /** The newest runs of workflows. */
  readonly workflows: Html;
  readonly formToken: string;
  readonly person: Person;
  readonly nowMs: number;
}

/** Shows attempts without a verdict, work released but not completed, and the boundaries. */
export function operationsPage(options: OperationsPage): Html {
  const { unsettled, continuations, boundaries, shadows, verdicts, nowMs } = options;
  const open = unsettled.filter(({ terminal }) => terminal === undefined);
  const unclear = unsettled.filter(({ terminal }) => terminal !== undefined);
  const calm = [
    ...(open.length === 0 ? ['Every attempt has a verdict.'] : []),
    ...(unclear.length === 0 ? ['No verdict is indeterminate.'] : []),
    ...(continuations.length === 0 ? ['All released work is complete.'] : []),
  ];
  return html`<h1>Operations</h1>
${calm.length > 0 && html`<ul class="calm">${calm.map((words) => html`<li>${words}</li>`)}</ul>`}
${open.length > 0 && html`<section><h2>Attempts without a verdict</h2>${unsettledTable(open, nowMs)}</section>`}
${unclear.length > 0 && html`<section><h2>Indeterminate</h2>${unclearTable(unclear, nowMs)}</section>`}
${unsettled.length > 0 && recoverForm(options)}
${shadows.length > 0 && html`<section><h2>Shadowed changes</h2>${shadowSection(shadows, nowMs)}</section>`}
${continuations.length > 0 && html`<section><h2>Released but not completed</h2>${continuationTable(continuations, nowMs)}</section>`}
${options.workflows}
${boundaries.length > 0 && html`<section><h2>Boundaries</h2>${boundaries.map(([name, found]) => boundary(name, found))}</section>`}
${verdictChart(verdicts, nowMs)}`;
}

function unsettledTable(unsettled: OperationsPage['unsettled'], nowMs: number): Html {
  const rows = unsettled.map(({ claim: { record }, leaseExpired }) => {
    const { occurrence, task, adapter, claimedAt } = record;
    const state = leaseExpired ? badge('warn', 'can be recovered') : badge('plain', 'running');
    return html`<tr><td>${state}</td><td>${adapter}</td><td><a href="/history/${occurrence}">${shortTask(task)}</a></td>
<td>${moment(Date.parse(claimedAt), nowMs)}</td></tr>`;
  });
  return table(['State', 'Adapter', 'Task', 'Claimed'], rows);
}

/** Indeterminate verdicts, each with a link to resolve it. */
function unclearTable(unclear: OperationsPage['unsettled'], nowMs: number): Html {
  const rows = unclear.map(({ claim: { record }, terminal }) => {
    const { occurrence, task, adapter, claimedAt } = record;
    const why = terminal?.kind === 'indeterminate' ? showText(terminal.gap) : '';
    return html`<tr><td>${badge('warn', 'indeterminate')}</td><td>${adapter}</td><td>${shortTask(task)}</td><td>${why}</td>
<td>${moment(Date.parse(claimedAt), nowMs)}</td><td><a href="/history/${occurrence}#resolve">Resolve</a></td></tr>`;
  });
  return table(['State', 'Adapter', 'Task', 'Why', 'Claimed', ''], rows);
}

/** Recovery is safe at any time. An operator must resolve whatever it cannot settle. */
function recoverForm({ formToken, person }: OperationsPage): Html {
  const form = html`<form method="post" action="/operations/recover"><input type="hidden" name="form" value="${formToken}">
<button class="primary">Recover</button></form>`;
  return html`<section class="recover">${person.canOperate && form}
<p class="aside">Recovery decides by evidence alone and repeats nothing. An operator resolves what it cannot settle.</p></section>`;
}

const SHADOWS_SHOWN = 20;

/** Counts the shadows that would have committed, and lists why the others would not. */
function shadowSection(shadows: readonly Shadow[], nowMs: number): Html {
  const good = shadows.filter(({ would }) => would === 'commit').length;
  const others = shadows.filter(({ would }) => would !== 'commit');
  const rows = others.slice(0, SHADOWS_SHOWN).map((shadow) => {
    const [why = ''] = renderShadow(shadow).split('\n');
    return html`<tr><td>${badge(shadow.would === 'reject' ? 'bad' : 'plain', shadow.would)}</td><td>${shadow.adapter}</td><td>${shortTask(shadow.task)}</td><td>${why}</td><td>${moment(Date.parse(shadow.recordedAt), nowMs)}</td></tr>`;
  });
  return html`<p>Of ${shadows.length} shadowed changes ${good} would have committed${others.length > 0 && `; these ${others.length} would not, or it is not known`}.</p>
${rows.length > 0 && table(['Would', 'Adapter', 'Task', 'Why', 'When'], rows)}`;
}

function continuationTable(open: readonly OpenContinuation[], nowMs: number): Html {
  const rows = open.map(
    ({ continuation, task, occurrence, releasedAt }) => html`<tr><td>${continuation}</td>
<td><a href="/history/${occurrence}">${shortTask(task)}</a></td><td>${moment(Date.parse(releasedAt), nowMs)}</td></tr>`,
  );
  return table(['Work', 'Task', 'Released'], rows);
}

/** A statement to copy. Hidden characters in names are spelt out, and the statement then fails. */
function showStatement(statement: string): string {
  return `${statement.split('\n').map(showText).join('\n')};`;
}

/** An adapter's open outlets, and the statements that close them. */
function boundary(name: string, found: Survey | string): Html {
  if (typeof found === 'string')
    return html`<div class="card"><h3>${name} ${badge('warn', 'not surveyed')}</h3><p>${showText(found)}</p></div>`;
  const open = unclassified(found);
  const state = open.length === 0 ? badge('good', 'closed') : badge('bad', `${open.length} open`);
  const fixes = (found.remedies ?? []).flatMap(({ fix }) => fix);
  return html`<div class="card"><h3>${name} ${state}</h3>
<p class="aside">${found.outlets.length} outlets checked. Executes as ${found.executor}.</p>
${open.length > 0 && html`<ul>${open.map(({ outlet, by }) => html`<li><code>${showText(outlet)}</code> ${showText(by)}</li>`)}</ul>`}
${fixes.length > 0 && html`<p>This closes what is open:</p><pre class="command">${fixes.map(showStatement).join('\n')}</pre>`}</div>`;
}
