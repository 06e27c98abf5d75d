import { showText } from '../protocol/render-text.ts';
import type { ApprovalRequest } from '../requests/request.ts';
import type { Person } from './access.ts';
import { headline } from './changes.ts';
import { type Html, html } from './html.ts';
import { quoted } from './inbox.ts';
import { badge, moment } from './layout.ts';
import { rankUnusual } from './unusual.ts';

/** What the bulk page shows: several requests for one operation. */
export interface BulkPage {
  readonly operation: string;
  readonly requests: readonly ApprovalRequest[];
  readonly formToken: string;
  readonly person: Person;
  /** Issuer names by public key. */
  readonly issuers: Readonly<Record<string, string>>;
  readonly nowMs: number;
}

/** Lists the requests for one operation, unusual ones first. Each is signed separately. */
export function bulkPage(options: BulkPage): Html {
  const { operation, requests, formToken, person, issuers } = options;
  const ranked = rankUnusual(requests, ({ proposal }) => proposal.approved.effects);
  const rows = ranked.map(({ item, unusual }) => bulkRow(item, unusual, options.nowMs));
  const data = JSON.stringify(issuers);
  return html`<p class="crumbs"><a href="/">Inbox</a></p>
<div class="title"><h1>${operation}</h1>${rows.length > 0 && badge('warn', `${rows.length} waiting`)}</div>
${
  rows.length === 0
    ? html`<p class="empty">Nothing is waiting. <a href="/">Back to the inbox</a></p>`
    : html`<p class="aside">Unusual requests come first. Each one you select gets its own license.</p>
<form id="bulk-form" method="post" action="/bulk/${operation}/decline">
<input type="hidden" name="form" value="${formToken}">
<ol class="list bulk">${rows}</ol>
<section class="card" aria-labelledby="answer"><h2 id="answer">Your decision on the selected requests</h2>
<div id="bulk" data-form="${formToken}" data-user="${person.name}" data-issuers="${data}"></div>
<h3>Decline</h3>
<label>Reason (sent to the agents) <textarea name="reason" rows="2" required maxlength="4000"></textarea></label>
<button class="danger">Decline selected</button></section></form>`
}`;
}

function bulkRow(request: ApprovalRequest, unusual: string | undefined, nowMs: number): Html {
  const { id, by, reason = '', askedAt, proposal, first } = request;
  const said = reason.split('\n')[0] ?? '';
  const mark =
    unusual !== undefined &&
    html` ${badge('warn', 'unusual')} <span class="aside">${unusual}</span>`;
  return html`<li class="row"><span class="head"><input type="checkbox" name="id" value="${id}" aria-label="select ${id.slice(0, 12)}"${unusual === undefined && html` data-usual`} data-first="${first?.license.issuer}">
<a href="/requests/${id}">${id.slice(0, 12)}</a>${mark}</span>
<span class="aside when">${by} asked ${moment(Date.parse(askedAt), nowMs)}</span>
<span class="what">${headline(proposal.approved.effects)}</span>
<span class="said">${said && quoted(showText(said))}</span></li>`;
}
