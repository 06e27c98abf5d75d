import type { ApprovedEffect, CellRow } from '../protocol/effect.ts';
import { renderRequirement, renderStateRead } from '../protocol/render.ts';
import { summariseColumns } from '../protocol/render-summary.ts';
import {
  openRendering,
  type Rendering,
  renderCell,
  renderTarget,
} from '../protocol/render-text.ts';
import { type ApprovalRequest, isFinal } from '../requests/request.ts';
import { changeTables, summarise } from './changes.ts';
import { type Html, html, preformatted } from './html.ts';
import { pageLinks, pageNumber } from './layout.ts';
import { extentOf } from './numbers.ts';
import type { Visit } from './visit.ts';

/** Selects the changes to show. */
interface OutcomeView {
  /** Show only changes that contain this text in their target or a value. */
  readonly find: string;
  /** `extreme` shows the largest amounts first. */
  readonly order: 'extreme' | 'proposed';
}

/** The number of changes on one page. */
const PER_PAGE = 100;
/** Larger groups of changes are summarised by column. */
const MANY = 20;

/** Shows the changes as tables. Large outcomes get a summary, a search form and pages. */
export function outcome(request: ApprovalRequest, visit: Visit): Html {
  const part = pageNumber(visit);
  const { find: words = '', order: wish } = visit.c.req.query();
  const find = words.slice(0, 200);
  const order = wish === 'proposed' ? 'proposed' : 'extreme';
  const view: OutcomeView = { find, order };
  const place = `/requests/${request.id}`;
  const { effects, registration, requires, watch } = request.proposal.approved;
  const chosen = choose(effects, view);
  const parts = Math.ceil(chosen.length / PER_PAGE);
  const shown = chosen.slice((part - 1) * PER_PAGE, part * PER_PAGE).map((effect) => ({ effect }));
  const title = isFinal(request.state) ? 'What was asked for' : 'What would change';
  const others = registration.targets.map(({ name }) => name);
  return html`<section aria-labelledby="outcome"><h2><span id="outcome">${title}</span> <span class="summary">${summarise(effects)}</span></h2>
${effects.length > MANY && [columnSummary(effects), searchBar(place, view)]}
${find !== '' && html`<p class="aside">${chosen.length} of ${effects.length} changes contain “${find}”.</p>`}
${changeTables(shown, registration)}
${pageLinks({ part, parts }, place, { ...(find && { find }), order }, ['← previous', 'next →'])}
<p class="aside">Nothing else may change in ${others.join(', ')}.</p>
${conditions('Must hold when it runs', requires, renderRequirement)}
${conditions('Must not change before it runs', watch, renderStateRead)}
</section>`;
}

/** Lists what the approval depends on besides the old values of the changes. */
function conditions<T>(
  title: string,
  items: readonly T[],
  render: (item: T, rendering: Rendering) => string,
): Html {
  if (items.length === 0) return html``;
  const lines = items
    .slice(0, CONDITIONS_SHOWN)
    .map((item) => html`<li><code>${render(item, openRendering({}))}</code></li>`);
  const more = items.length - lines.length;
  return html`<h3>${title}</h3><ul class="conditions">${lines}</ul>
${more > 0 && html`<p class="aside">And ${more} more.</p>`}`;
}
const CONDITIONS_SHOWN = 20;

function choose(effects: readonly ApprovedEffect[], { find, order }: OutcomeView) {
  const found = find === '' ? effects : effects.filter((effect) => mentions(effect, find));
  if (order === 'proposed' || found.length <= MANY) return found;
  const measured = found.map((effect) => ({ effect, extent: extentOf(effect) }));
  return measured.sort((a, b) => b.extent - a.extent).map(({ effect }) => effect);
}

/** Searches values in the form in which they are shown. */
function mentions({ target, key, before, after }: ApprovedEffect, find: string): boolean {
  const wanted = find.toLowerCase();
  const rendering: Rendering = { full: true, cut: false };
  const hasIt = (row: CellRow = {}) =>
    Object.values(row).some((cell) => renderCell(cell, rendering).toLowerCase().includes(wanted));
  return target.toLowerCase().includes(wanted) || [key, before, after].some(hasIt);
}

/** Summarises each column: the number of distinct values, the extremes and the sum. */
function columnSummary(effects: readonly ApprovedEffect[]): Html {
  const groups = Map.groupBy(effects, ({ op, target }) => `${op} ${target}`);
  const large = [...groups.values()].filter(({ length }) => length > MANY);
  const parts = large.map((group) => {
    const [{ op, target } = { op: '', target: '' }] = group;
    const lines = summariseColumns(group, openRendering({}));
    return html`<h3>${renderTarget(target)}: ${op} of ${group.length} rows, by column</h3>${preformatted(lines.join('\n'))}`;
  });
  return html`<div class="card">${parts}</div>`;
}

function searchBar(place: string, { find, order }: OutcomeView): Html {
  const option = (value: OutcomeView['order'], label: string) =>
    html`<option value="${value}"${value === order && html` selected`}>${label}</option>`;
  return html`<form class="search" role="search" action="${place}" method="get">
<label>Find <input name="find" value="${find}" maxlength="200"></label>
<label>Order <select name="order">${option('extreme', 'largest first')}${option('proposed', 'as proposed')}</select></label>
<button>Show</button></form>`;
}
