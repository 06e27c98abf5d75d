import { showText } from '../protocol/render-text.ts';
import type { ApprovalRequest, RequestMessage } from '../requests/request.ts';
import { type Html, html } from './html.ts';
import { badge, moment, tokenField } from './layout.ts';
import type { Visit } from './visit.ts';

/** Shows the approvers' questions and the agent's unverified replies, with a form to ask more. */
export function talkCard(
  { id, by, messages = [] }: ApprovalRequest,
  visit: Visit,
  canAsk: boolean,
): Html {
  if (messages.length === 0 && !canAsk) return html``;
  const said = messages.map((message) => messageItem(message, visit));
  return html`<section class="card unverified"><h2>Questions ${messages.length > 0 && badge('plain', 'not verified')}</h2>
${messages.length > 0 && html`<ol class="talk">${said}</ol>`}
${
  canAsk &&
  html`<form method="post" action="/requests/${id}/ask">${tokenField(visit)}
<label>Question for ${by} <textarea name="text" rows="2" required maxlength="4000"></textarea></label>
<button>Ask</button></form>`
}</section>`;
}

function messageItem({ from, by, at, text }: RequestMessage, visit: Visit): Html {
  const lines = text
    .split('\n')
    .map((line) => html`<span class="text-line">${showText(line)}</span>`);
  return html`<li class="${from}"><b>${by}</b> <span class="aside">${moment(at, visit)}</span>${lines}</li>`;
}

/** A form that hands a request to another approver. */
export function handForm(
  { id, assignedTo }: ApprovalRequest,
  { token, names }: { token: Html; names: readonly string[] },
): Html {
  const others = names.filter((name) => name !== assignedTo);
  if (names.length < 2) return html``;
  const options = others.map((name) => html`<option>${name}</option>`);
  return html`<h3>Hand to another approver</h3>
<form class="hand" method="post" action="/requests/${id}/assign">${token}
<select name="to" aria-label="approver">${options}</select> <button>Hand over</button></form>`;
}
