import { given } from '../contract/options.ts';
import { EffectMatchError } from '../errors.ts';
import { isName } from '../protocol/record.ts';
import { showText } from '../protocol/render-text.ts';
import { type ApprovalRequest, isRequestState, type RequestState } from '../requests/request.ts';
import { headline } from './changes.ts';
import { type Html, html } from './html.ts';
import { badge, moment, stateBadge, subjectName } from './layout.ts';
import { listVisible, seesAll } from './visible.ts';
import type { Shown, Visit } from './visit.ts';

/** Selects the requests that the inbox shows. An empty name selects all. */
interface InboxFilter {
  readonly state: RequestState | 'all';
  readonly by: string;
  readonly adapter: string;
}

const PAGE = 50;
const FILTERS: readonly (readonly [InboxFilter['state'], string])[] = [
  ['pending', 'Waiting'],
  ['stale', 'Stale'],
  ['approved', 'Approved'],
  ['committed', 'Committed'],
  ['rejected', 'Rejected'],
  ['diverged', 'Diverged'],
  ['indeterminate', 'Indeterminate'],
  ['declined', 'Declined'],
  ['expired', 'Expired'],
  ['all', 'All'],
];

/** Quotes what an agent says, because nothing verifies it. */
export function quoted(text: string): Html {
  return html`<q>${text}</q>`;
}

/** Lists the requests that match the filter, newest first. */
export async function inboxPage(visit: Visit): Promise<Shown> {
  const { c, unconfigured } = visit;
  const filter = readFilter(c);
  const { state, by, adapter } = filter;
  const { requests, next } = await listVisible(visit, {
    ...given({ state: state === 'all' ? undefined : state, after: c.req.query('after') }),
    ...(by && { by }),
    ...(adapter && { adapter }),
    limit: PAGE,
  });
  const content = html`<h1>Inbox</h1>
${unconfigured !== undefined && firstSteps(unconfigured)}
${filterBar(visit, filter, requests)}
${bulkLinks(requests)}
${requests.length === 0 ? emptyInbox(visit, filter) : html`<ol class="list" data-live>${requests.map((request) => row(request, filter, visit))}</ol>`}
${next !== undefined && html`<p class="more"><a href="/?${new URLSearchParams({ ...filter, after: next }).toString()}">Older requests</a></p>`}`;
  return { title: 'Inbox', section: 'inbox', content };
}

function readFilter({ req }: Visit['c']): InboxFilter {
  const { state = 'pending', by = '', adapter = '' } = req.query();
  if (state !== 'all' && !isRequestState(state))
    throw new EffectMatchError('ERR_EM_INPUT_INVALID', 'there is no such state');
  if (![by, adapter].every((name) => name === '' || isName(name)))
    throw new EffectMatchError('ERR_EM_INPUT_INVALID', 'there is no such name');
  return { state, by, adapter };
}

/** How to begin, for a console without a configuration. */
function firstSteps(folder: string): Html {
  return html`<section class="card start"><h2>No configuration yet</h2>
<p>There is no <code>effectmatch.config.ts</code> in <code>${folder}</code>. This inbox works, but no agent can ask for anything until a configuration names a database, its approvers and its agents.</p>
<h3>Look around first</h3>
<p>The demo is a small shop whose agents ask for changes. You can sign them in this browser.</p>
<pre class="command">npx effectmatch serve --demo</pre>
<h3>Protect a database</h3>
<p>Stop this command with Ctrl-C. Then write a configuration for an SQLite file, a PostgreSQL or a MariaDB database, with a key for yourself as its approver, and start the console again:</p>
<pre class="command">npx effectmatch init books.db --approver alice
npx effectmatch serve</pre>
<p>The configuration has an example of <code>agents</code> in a comment. Name yours there, and give each a token with <code>effectmatch token new NAME</code>.</p>
<p class="aside">Nothing was written to that folder. This console keeps its own files in a temporary folder and removes them when it ends.</p></section>`;
}

function filterBar(
  { person: { sight }, agents = [], adapters: all }: Visit,
  { state, by, adapter }: InboxFilter,
  requests: readonly ApprovalRequest[],
): Html {
  const { adapters = all } = sight;
  const known = seesAll(sight) ? agents : [];
  const asking = [...new Set([...known, ...requests.map((request) => request.by)])].sort();
  const links = FILTERS.map(([name, label]) => {
    const rest = new URLSearchParams({ ...(by && { by }), ...(adapter && { adapter }) });
    rest.set('state', name);
    const current = name === state && html` aria-current="true"`;
    return html`<a href="/?${rest.toString()}"${current}>${label}</a>`;
  });
  return html`<div class="filters"><nav aria-label="State">${links}</nav>
<form action="/" method="get"><input type="hidden" name="state" value="${state}">
<label>agent ${choiceOf('by', asking, by)}</label>
<label>adapter ${choiceOf('adapter', adapters, adapter)}</label>
<button>Filter</button></form></div>`;
}

/** A select box with `names` and "any". It also lists `chosen` if that is not one of them. */
function choiceOf(name: string, names: readonly string[], chosen: string): Html {
  const all = chosen === '' || names.includes(chosen) ? names : [...names, chosen];
  const options = all.map(
    (one) => html`<option${one === chosen && html` selected`}>${one}</option>`,
  );
  return html`<select name="${name}"><option value="">any</option>${options}</select>`;
}

/** Links to the bulk page of each operation that has several waiting requests. */
function bulkLinks(requests: readonly ApprovalRequest[]): Html {
  const pending = requests.filter(({ state }) => state === 'pending');
  const groups = [...Map.groupBy(pending, ({ operation }) => operation ?? '')];
  const links = groups.flatMap(([operation, list]) =>
    operation === '' || list.length < 2
      ? []
      : [
          html`<a class="chip" href="/bulk/${operation}">Answer ${list.length} × ${operation} together</a> `,
        ],
  );
  return links.length === 0 ? html`` : html`<p class="chips">${links}</p>`;
}

/** Badges with what an approver should know before opening the request. */
function marks({ first, assignedTo, messages = [], state }: ApprovalRequest): Html {
  if (state !== 'pending') return html``;
  const last = messages.at(-1);
  return html`${first && badge('plain', `signed by ${first.license.issuer}, needs a second signature`)}
${assignedTo !== undefined && badge('plain', `for ${assignedTo}`)}
${last && badge('plain', last.from === 'agent' ? 'agent replied' : 'question asked')}`;
}

function emptyInbox({ agents, unconfigured }: Visit, { state, by, adapter }: InboxFilter): Html {
  if (by !== '' || adapter !== '')
    return html`<p class="empty">No matching requests. <a href="/?state=${state}">Show every agent and adapter</a></p>`;
  if (state !== 'pending') return html`<p class="empty">No matching requests.</p>`;
  const lacksAgents = agents?.length === 0 && unconfigured === undefined;
  return html`<p class="empty">Nothing is waiting. New requests appear here automatically.</p>
${lacksAgents && html`<p class="empty">No agents are configured: add <code>agents</code> to the configuration (docs/mcp.md), then <code>effectmatch token new NAME</code></p>`}`;
}

function row(request: ApprovalRequest, filter: InboxFilter, visit: Visit): Html {
  const { id, state, by, operation, adapter, reason = '', detail, askedAt, expiresAt } = request;
  const waits = state === 'pending' && html` · expires ${moment(expiresAt, visit)}`;
  const first = (text: string) => showText(text.split('\n')[0] ?? '');
  const said = detail !== undefined ? first(detail) : reason && quoted(first(reason));
  return html`<li><a class="row" href="/requests/${id}">
<span class="head">${state !== filter.state && stateBadge(state)} <b>${subjectName(request)}</b>
${operation !== undefined && html`<span class="aside">in ${adapter}</span>`} ${marks(request)}</span>
<span class="aside when">${by} asked ${moment(askedAt, visit)}${waits}</span>
<span class="what">${headline(request.proposal.approved.effects)}</span>
<span class="said">${said}</span>
</a></li>`;
}
