import { showText } from '../protocol/render-text.ts';
import type { ApprovalRequest } from '../requests/request.ts';
import { headline } from './changes.ts';
import { type Html, html } from './html.ts';
import { quoted } from './inbox.ts';
import { badge, moment, tokenField } from './layout.ts';
import { keysOf } from './request-page.ts';
import { rankUnusual } from './unusual.ts';
import { listVisible } from './visible.ts';
import type { Shown, Visit } from './visit.ts';

const READ = 500;
const MAX_SHOWN = 50;

/** Lists the requests for one operation, unusual ones first. Each is signed separately. */
export async function bulkPage(visit: Visit): Promise<Shown> {
  const { c, formToken, person } = visit;
  const operation = c.req.param('operation') ?? '';
  const found = await listVisible(visit, { state: 'pending', limit: READ });
  const requests = found.requests.filter((request) => request.operation === operation);
  const ranked = rankUnusual(
    requests.slice(0, MAX_SHOWN),
    ({ proposal }) => proposal.approved.effects,
  );
  const rows = ranked.map(({ item, unusual }) => bulkRow(item, unusual, visit));
  const data = JSON.stringify(keysOf(visit));
  const content = html`<p class="crumbs"><a href="/">Inbox</a></p>
<div class="title"><h1>${operation}</h1>${rows.length > 0 && badge('warn', `${rows.length} waiting`)}</div>
${
  rows.length === 0
    ? html`<p class="empty">Nothing is waiting. <a href="/">Back to the inbox</a></p>`
    : html`<p class="aside">Unusual requests come first. Each one you select gets its own license.</p>
<form id="bulk-form" method="post" action="/bulk/${operation}/decline">
${tokenField(visit)}
<ol class="list bulk">${rows}</ol>
<section class="card" aria-labelledby="answer"><h2 id="answer">Your decision on the selected requests</h2>
<div id="bulk" data-form="${formToken}" data-user="${person.name}" data-issuers="${data}"></div>
<h3>Decline</h3>
<label>Reason (sent to the agents) <textarea name="reason" rows="2" required maxlength="4000"></textarea></label>
<button class="danger">Decline selected</button></section></form>`
}`;
  return { title: operation, section: 'inbox', content };
}

function bulkRow(request: ApprovalRequest, unusual: string | undefined, visit: Visit): Html {
  const { id, by, reason = '', askedAt, proposal, first } = request;
  const said = reason.split('\n')[0] ?? '';
  const mark =
    unusual !== undefined &&
    html` ${badge('warn', 'unusual')} <span class="aside">${unusual}</span>`;
  return html`<li class="row"><span class="head"><input type="checkbox" name="id" value="${id}" aria-label="select ${id.slice(0, 12)}"${unusual === undefined && html` data-usual`} data-first="${first?.license.issuer}">
<a href="/requests/${id}">${id.slice(0, 12)}</a>${mark}</span>
<span class="aside when">${by} asked ${moment(askedAt, visit)}</span>
<span class="what">${headline(proposal.approved.effects)}</span>
<span class="said">${said && quoted(showText(said))}</span></li>`;
}
