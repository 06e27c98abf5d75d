import type { ClaimEntry } from '../contract/ledgers.ts';
import { type Survey, unclassified } from '../protocol/boundary.ts';
import type { OpenContinuation } from '../runtime/continuation.ts';
import { shortTask } from './history.ts';
import { type Html, html } from './html.ts';
import { badge, moment } from './layout.ts';

/** What an operator has to look after. */
export interface OperationsPage {
  readonly unsettled: readonly ClaimEntry[];
  readonly continuations: readonly OpenContinuation[];
  /** The boundary of each adapter, or why it could not be surveyed. */
  readonly boundaries: readonly (readonly [adapter: string, Survey | string])[];
  readonly nowMs: number;
}

/** Attempts without a verdict, work that was released and not completed, and the boundaries. */
export function operationsPage(options: OperationsPage): Html {
  const { unsettled, continuations, boundaries, nowMs } = options;
  return html`<h1>Operations</h1>
<section><h2>Attempts without a verdict</h2>${unsettledTable(unsettled, nowMs)}</section>
<section><h2>Released and not completed</h2>${continuationTable(continuations, nowMs)}</section>
<section><h2>Boundaries</h2>${boundaries.map(([name, found]) => boundary(name, found))}</section>`;
}

function unsettledTable(unsettled: readonly ClaimEntry[], nowMs: number): Html {
  if (unsettled.length === 0) return html`<p class="empty">Every claim has its verdict.</p>`;
  const rows = unsettled.map(({ claim: { record }, leaseExpired }) => {
    const { occurrence, task, adapter, claimedAt } = record;
    const state = leaseExpired ? badge('warn', 'can be recovered') : badge('plain', 'running');
    return html`<tr><td>${state}</td><td>${adapter}</td><td><a href="/history/${occurrence}">${shortTask(task)}</a></td>
<td>${moment(Date.parse(claimedAt), nowMs)}</td></tr>`;
  });
  return html`${table(['State', 'Adapter', 'Task', 'Claimed'], rows)}
<p class="aside">Run <code>effectmatch recover</code>. What it cannot settle needs <code>effectmatch resolve</code>, signed by an operator.</p>`;
}

function continuationTable(open: readonly OpenContinuation[], nowMs: number): Html {
  if (open.length === 0) return html`<p class="empty">All released work was completed.</p>`;
  const rows = open.map(
    ({ continuation, task, occurrence, releasedAt }) => html`<tr><td>${continuation}</td>
<td><a href="/history/${occurrence}">${shortTask(task)}</a></td><td>${moment(Date.parse(releasedAt), nowMs)}</td></tr>`,
  );
  return table(['Work', 'Task', 'Released'], rows);
}

function table(heads: readonly string[], rows: readonly Html[]): Html {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${heads.join(', ')}"><table class="plain">
<thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead><tbody>${rows}</tbody></table></div>`;
}

/** What is open, and the statements that close it. */
function boundary(name: string, found: Survey | string): Html {
  if (typeof found === 'string')
    return html`<div class="card"><h3>${name} ${badge('warn', 'not surveyed')}</h3><p>${found}</p></div>`;
  const open = unclassified(found);
  const state = open.length === 0 ? badge('good', 'closed') : badge('bad', `${open.length} open`);
  const fixes = (found.remedies ?? []).flatMap(({ fix }) => fix);
  return html`<div class="card"><h3>${name} ${state}</h3>
<p class="aside">${found.outlets.length} outlets; executes as ${found.executor}</p>
${open.length > 0 && html`<ul>${open.map(({ outlet, by }) => html`<li><code>${outlet}</code> ${by}</li>`)}</ul>`}
${fixes.length > 0 && html`<pre class="command">${fixes.map((statement) => `${statement};`).join('\n')}</pre>`}</div>`;
}
