import type { SignedLicense } from '../protocol/license.ts';
import { type Note, renderNote } from '../protocol/note.ts';
import { renderLicense } from '../protocol/render-license.ts';
import { showText } from '../protocol/render-text.ts';
import { diffOfTerminal } from '../protocol/terminal.ts';
import { type ApprovalRequest, isFinal } from '../requests/request.ts';
import { headline } from './changes.ts';
import { type Html, html, preformatted } from './html.ts';
import { badge, moment, scrolling, stateBadge, subjectName, tokenField } from './layout.ts';
import { limitsCard } from './limits.ts';
import { outcome } from './outcome.ts';
import { signerDigest } from './saved-pages.ts';
import { handForm, talkCard } from './talk.ts';
import { comparedSection, verdictSection } from './verdict.ts';
import type { Shown, Visit } from './visit.ts';

const EARLIER_READ = 100;
const EARLIER_SHOWN = 5;

/** Shows everything a person needs to decide about a request, and its verdict. */
export async function requestPage(visit: Visit): Promise<Shown> {
  const { c, person, policy, said } = visit;
  const request = await recheck(visit, c.req.param('id') ?? '');
  const { id, state, by, askedAt, expiresAt, answeredBy, detail } = request;
  const { assignedTo, terminal, proposal } = request;
  const diff = terminal && diffOfTerminal(terminal);
  const { canAnswer } = person;
  const signers = [...new Set(Object.values(keysOf(visit)))];
  const isOpen = state === 'pending';
  const deadline = isOpen && html` · expires ${moment(expiresAt, visit)}`;
  const content = html`<p class="crumbs"><a href="/">Inbox</a></p>
<div class="title"><h1>${subjectName(request)}</h1>${stateBadge(state)}</div>
<p class="aside">${by} asked ${moment(askedAt, visit)}${deadline}${answeredBy !== undefined && ` · answered by ${answeredBy}`}${isOpen && assignedTo !== undefined && ` · for ${assignedTo}`} · <code>${id}</code></p>
${detail !== undefined && terminal === undefined && html`<p class="detail">${detailWords(state, detail)}</p>`}
${said?.difference && differenceCard(said.difference)}
<div class="columns">
<div class="wide">
${terminal && verdictSection(terminal, verdictLinks(request))}
${diff === undefined ? outcome(request, visit) : comparedSection(proposal.approved, diff)}
${isOpen && sayings(request)}
${await earlierCard(request, visit)}
</div>
<aside class="narrow">
${request.first !== undefined && firstSigned(request.first, visit)}
${isOpen && canAnswer && answerForms(request, visit)}
${canAnswer && (state === 'stale' || state === 'expired') && renewForm(request, visit)}
${isOpen && limitsCard(proposal, policy, signers)}
${!isOpen && sayings(request)}
${talkCard(request, visit, isOpen && canAnswer)}
${terms(request)}
</aside>
</div>`;
  return { title: subjectName(request), section: 'inbox', content };
}

/** Rechecks a request against the backend; if that fails, returns its last known state. */
export async function recheck(
  { requests }: Pick<Visit, 'requests'>,
  id: string,
): Promise<ApprovalRequest> {
  const known = await requests.get(id);
  return await requests.recheck(id).catch(() => known);
}

/** The keys of the person's issuers; all keys if the issuers are not known. */
export function keysOf({ person: { issuers }, issuers: keys }: Visit): Visit['issuers'] {
  if (issuers === undefined) return keys;
  return Object.fromEntries(Object.entries(keys).filter(([, name]) => issuers.includes(name)));
}

/** How a proposal differs from the one it replaced. */
function differenceCard(lines: readonly string[]): Html {
  const isSame = !lines.some((line) => /^[-+]/.test(line));
  return html`<section class="card difference"><h2>Difference from the earlier proposal</h2>
${isSame && html`<p>The changes are the same.</p>`}${lines.length > 0 && preformatted(lines.join('\n'))}
<p class="aside">What you sign is bound to the state and the rules as they are now.</p></section>`;
}

/** Why a request is closed or stale. The detail of a stale one begins with the reason's code. */
function detailWords(state: ApprovalRequest['state'], detail: string): string {
  if (state === 'declined') return `Declined: ${showText(detail)}`;
  if (state !== 'stale') return showText(detail);
  return `No longer valid: ${showText(detail.replace(/^[a-z-]+: /, ''))}`;
}

/** Links to more about what happened. */
function verdictLinks({ occurrence, terminal }: ApprovalRequest): Html {
  const place = `/history/${occurrence}`;
  return html`<p><a href="${place}">Timeline and receipt</a>${terminal?.kind === 'indeterminate' && html` · <a href="${place}#resolve">Resolve it</a>`}</p>`;
}

/** Shows who signed first while the request waits for the second signature. */
function firstSigned({ license }: SignedLicense, visit: Visit): Html {
  const { issuer, expiresAt } = license;
  const second = visit.policy.issuers[issuer]?.second ?? ['another person'];
  return html`<section class="card"><h2>Signed by ${issuer}</h2>
<p class="aside">A second signature is required, by ${second.join(' or ')}. The license expires ${moment(expiresAt, visit)}.</p></section>`;
}

function answerForms(request: ApprovalRequest, visit: Visit): Html {
  const { formToken, person, policy, acceptKey } = visit;
  const { id, first } = request;
  const token = tokenField(visit);
  const known = JSON.stringify(keysOf(visit));
  const what = first === undefined ? 'proposal' : 'license';
  const file = first === undefined ? fileOf(id) : 'license.json';
  const out = first === undefined ? 'license.json' : 'signed-twice.json';
  const digest = signerDigest();
  return html`<section class="card" aria-labelledby="answer"><h2 id="answer">Your decision</h2>
<h3>Approve</h3>
<p class="aside">This server has no key. Only your signature approves.</p>
<div id="signer" data-request="${id}" data-form="${formToken}" data-user="${person.name}" data-first="${first?.license.issuer}" data-issuers="${known}"${acceptKey && html` data-accepts="yes"`}></div>
<details><summary>Sign with a key file</summary>
<ol class="steps">
<li><a href="/requests/${id}/${what}.json" download>Download the ${what}</a></li>
<li><pre class="command">effectmatch approve ${file} \\
  --key YOUR.key.json --out ${out}</pre>
<p class="aside">or use the <a href="/signer.html" download>offline signer</a>, one page that you save${digest && html`; its SHA-256 is <code class="digest">${digest}</code>`}</p></li>
<li><form method="post" action="/requests/${id}/license" enctype="multipart/form-data">${token}
<label>Upload the license <input type="file" name="license" accept="application/json" required></label>
<button class="primary">Approve with this license</button></form></li>
</ol></details>
<h3>Decline</h3>
<form id="decline" method="post" action="/requests/${id}/decline">${token}
<label>Reason (sent to the agent) <textarea name="reason" rows="2" required maxlength="4000"></textarea></label>
<button class="danger">Decline</button> <span id="signed-decline"></span></form>
${handForm(request, { token, names: Object.keys(policy.issuers) })}
</section>`;
}

/** Shows how earlier requests for the same operation ended. */
async function earlierCard(request: ApprovalRequest, visit: Visit): Promise<Html> {
  const { operation, adapter } = request;
  if (operation === undefined) return html``;
  const found = await visit.requests.list({ adapter, limit: EARLIER_READ });
  const earlier = found.filter(
    (other) => other.operation === operation && other.id !== request.id && isFinal(other.state),
  );
  if (earlier.length === 0) return html``;
  const counts = [...Map.groupBy(earlier, ({ state }) => state)].map(
    ([state, list]) => html`<li><b>${list.length}</b> ${state}</li>`,
  );
  const rows = earlier.slice(0, EARLIER_SHOWN).map(
    ({ id, state, by, askedAt, proposal }) => html`<tr><td>${stateBadge(state)}</td>
<td><a href="/requests/${id}">${id.slice(0, 12)}</a></td><td>${headline(proposal.approved.effects)}</td><td>${by}</td><td>${moment(askedAt, visit)}</td></tr>`,
  );
  return html`<section><h2>Earlier requests for ${operation}</h2><ul class="counts">${counts}</ul>
${scrolling('earlier requests', html`<table class="plain"><tbody>${rows}</tbody></table>`)}</section>`;
}

/** The file name of a downloaded proposal. */
export function fileOf(id: string): string {
  return `${id.slice(0, 12)}.json`;
}

function renewForm({ id, state }: ApprovalRequest, visit: Visit): Html {
  const why =
    state === 'stale'
      ? 'The data or the rules have changed since this was proposed.'
      : 'No one answered it, or used the license, in time.';
  return html`<section class="card"><h2>Propose again</h2><p class="aside">${why}</p>
<form method="post" action="/requests/${id}/renew">
${tokenField(visit)}<button>Propose again</button></form></section>`;
}

/** Shows the action, which the license binds, and the agent's reason, which nothing verifies. */
function sayings({ proposal: { note = {} }, by, terminal }: ApprovalRequest): Html {
  const { action, reason, warnings = [] } = note;
  const lines = (part: Note) =>
    renderNote(part, { full: true })
      .replace(/^.*:\n/, '')
      .replace(/^ {2}\| /gm, '');
  return html`${reason !== undefined && html`<section class="card unverified"><h2>${by} says ${badge('plain', 'not verified')}</h2><p>${showText(reason)}</p></section>`}
${warnings.length > 0 && html`<section class="card"><h2>Warnings</h2><pre>${lines({ warnings })}</pre></section>`}
${action !== undefined && html`<section class="card"><h2>${terminal === undefined ? 'What would run' : 'What ran'}</h2><pre>${lines({ action })}</pre><p class="aside">The license covers only this action, and only the changes above may result.</p></section>`}`;
}

/** The exact text that a signature covers. */
function terms({ proposal: { draft, approved } }: ApprovalRequest): Html {
  const text = renderLicense(draft, approved);
  return html`<details class="card"><summary>Exact text of the license</summary>${preformatted(text)}</details>`;
}
