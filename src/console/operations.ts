import type { ClaimEntry } from '../contract/ledgers.ts';
import { EffectMatchError } from '../errors.ts';
import { type Survey, unclassified } from '../protocol/boundary.ts';
import { showText } from '../protocol/render-text.ts';
import { renderShadow, type Shadow } from '../protocol/shadow.ts';
import type { Terminal } from '../protocol/terminal.ts';
import type { OpenContinuation } from '../runtime/continuation.ts';
import { verdictChart } from './charts.ts';
import { JOURNAL_ROWS, shortTask } from './history.ts';
import { type Html, html } from './html.ts';
import { badge, moment, table, tokenField } from './layout.ts';
import { sees, seesAll, visibleOccurrences, visibleUnsettled, visibleVerdicts } from './visible.ts';
import type { Shown, Visit } from './visit.ts';
import { recentRuns } from './workflows.ts';

/** An unsettled claim. One with a verdict is indeterminate. */
type Unsettled = ClaimEntry & { readonly terminal: Terminal | undefined };

/** Shows attempts without a verdict, work released but not completed, and the boundaries. */
export async function operationsPage(visit: Visit): Promise<Shown> {
  const { runtime, adapters, nowMs } = visit;
  const { ledgers } = runtime;
  const { sight } = visit.person;
  const rows = await ledgers.journal({ last: true, limit: JOURNAL_ROWS });
  const unsettled: readonly Unsettled[] = await Promise.all(
    (await visibleUnsettled(visit)).map(async (entry) => {
      return { ...entry, terminal: await ledgers.terminal(entry.claim.record.occurrence) };
    }),
  );
  const open = unsettled.filter(({ terminal }) => terminal === undefined);
  const unclear = unsettled.filter(({ terminal }) => terminal !== undefined);
  const shadows = rows
    .flatMap(({ kind, record }) => (kind === 'shadow' && sees(sight, record) ? [record] : []))
    .reverse();
  const continuations = await visibleOccurrences(visit, await runtime.continuations());
  const visible = adapters.filter((adapter) => sees({ adapters: sight.adapters }, { adapter }));
  const boundaries = await Promise.all(
    visible.map(async (name) => boundary(name, await surveyOf(visit, name))),
  );
  const calm = [
    ...(open.length === 0 ? ['Every attempt has a verdict.'] : []),
    ...(unclear.length === 0 ? ['No verdict is indeterminate.'] : []),
    ...(continuations.length === 0 ? ['All released work is complete.'] : []),
  ];
  const content = html`<h1>Operations</h1>
${calm.length > 0 && html`<ul class="calm">${calm.map((words) => html`<li>${words}</li>`)}</ul>`}
${open.length > 0 && html`<section><h2>Attempts without a verdict</h2>${unsettledTable(open, visit)}</section>`}
${unclear.length > 0 && html`<section><h2>Indeterminate</h2>${unclearTable(unclear, visit)}</section>`}
${unsettled.length > 0 && recoverForm(visit)}
${shadows.length > 0 && html`<section><h2>Shadowed changes</h2>${shadowSection(shadows, visit)}</section>`}
${continuations.length > 0 && html`<section><h2>Released but not completed</h2>${continuationTable(continuations, visit)}</section>`}
${seesAll(sight) && (await recentRuns(visit))}
${boundaries.length > 0 && html`<section><h2>Boundaries</h2>${boundaries}</section>`}
${verdictChart(await visibleVerdicts(visit, rows), nowMs)}`;
  return { title: 'Operations', section: 'operations', content };
}

async function surveyOf({ runtime }: Visit, adapter: string): Promise<Survey | string> {
  try {
    return await runtime.survey(adapter);
  } catch (error) {
    return error instanceof EffectMatchError ? error.message : 'it could not be surveyed';
  }
}

function unsettledTable(unsettled: readonly Unsettled[], visit: Visit): Html {
  const rows = unsettled.map(({ claim: { record }, leaseExpired }) => {
    const { occurrence, task, adapter, claimedAt } = record;
    const state = leaseExpired ? badge('warn', 'can be recovered') : badge('plain', 'running');
    return html`<tr><td>${state}</td><td>${adapter}</td><td><a href="/history/${occurrence}">${shortTask(task)}</a></td>
<td>${moment(claimedAt, visit)}</td></tr>`;
  });
  return table(['State', 'Adapter', 'Task', 'Claimed'], rows);
}

/** Indeterminate verdicts, each with a link to resolve it. */
function unclearTable(unclear: readonly Unsettled[], visit: Visit): Html {
  const rows = unclear.map(({ claim: { record }, terminal }) => {
    const { occurrence, task, adapter, claimedAt } = record;
    const why = terminal?.kind === 'indeterminate' ? showText(terminal.gap) : '';
    return html`<tr><td>${badge('warn', 'indeterminate')}</td><td>${adapter}</td><td>${shortTask(task)}</td><td>${why}</td>
<td>${moment(claimedAt, visit)}</td><td><a href="/history/${occurrence}#resolve">Resolve</a></td></tr>`;
  });
  return table(['State', 'Adapter', 'Task', 'Why', 'Claimed', ''], rows);
}

/** Recovery is safe at any time. An operator must resolve whatever it cannot settle. */
function recoverForm(visit: Visit): Html {
  const form = html`<form method="post" action="/operations/recover">${tokenField(visit)}
<button class="primary">Recover</button></form>`;
  return html`<section class="recover">${visit.person.canOperate && form}
<p class="aside">Recovery decides by evidence alone and repeats nothing. An operator resolves what it cannot settle.</p></section>`;
}

const SHADOWS_SHOWN = 20;

/** Counts the shadows that would have committed, and lists why the others would not. */
function shadowSection(shadows: readonly Shadow[], visit: Visit): Html {
  const good = shadows.filter(({ would }) => would === 'commit').length;
  const others = shadows.filter(({ would }) => would !== 'commit');
  const rows = others.slice(0, SHADOWS_SHOWN).map((shadow) => {
    const [why = ''] = renderShadow(shadow).split('\n');
    return html`<tr><td>${badge(shadow.would === 'reject' ? 'bad' : 'plain', shadow.would)}</td><td>${shadow.adapter}</td><td>${shortTask(shadow.task)}</td><td>${why}</td><td>${moment(shadow.recordedAt, visit)}</td></tr>`;
  });
  return html`<p>Of ${shadows.length} shadowed changes ${good} would have committed${others.length > 0 && `; these ${others.length} would not, or it is not known`}.</p>
${rows.length > 0 && table(['Would', 'Adapter', 'Task', 'Why', 'When'], rows)}`;
}

function continuationTable(open: readonly OpenContinuation[], visit: Visit): Html {
  const rows = open.map(
    ({ continuation, task, occurrence, releasedAt }) => html`<tr><td>${continuation}</td>
<td><a href="/history/${occurrence}">${shortTask(task)}</a></td><td>${moment(releasedAt, visit)}</td></tr>`,
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
