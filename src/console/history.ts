import type { ClaimEntry } from '../contract/ledgers.ts';
import { EffectMatchError } from '../errors.ts';
import { approvedRecord } from '../protocol/manifest.ts';
import { showText } from '../protocol/render-text.ts';
import type { Terminal } from '../protocol/terminal.ts';
import { isRequestId } from '../requests/wanted.ts';
import { headline } from './changes.ts';
import { verdictChart } from './charts.ts';
import { type Html, html } from './html.ts';
import { badge, moment, pageLinks, pageNumber, stateBadge, subjectName } from './layout.ts';
import { isVerdict, MEANINGS } from './verdict.ts';
import { visibleVerdicts } from './visible.ts';
import type { Shown, Visit } from './visit.ts';

/** Lists do not parse outcomes longer than this. */
const MAX_TEXT = 64 * 1024;

const PER_PAGE = 50;
/** How many rows of the journal the pages about verdicts read. */
export const JOURNAL_ROWS = 2000;

type VerdictKind = Terminal['kind'] | 'all';

/** Shows recent verdicts: a chart of all of them, then one page of a kind, newest first. */
export async function historyPage(visit: Visit): Promise<Shown> {
  const { ledgers } = visit.runtime;
  const kind = visit.c.req.query('kind') ?? 'all';
  if (kind !== 'all' && !isVerdict(kind))
    throw new EffectMatchError('ERR_EM_INPUT_INVALID', 'there is no such verdict');
  const part = pageNumber(visit);
  const rows = await ledgers.journal({ last: true, limit: JOURNAL_ROWS });
  const resolved = new Set(
    rows.flatMap(({ kind, record }) => (kind === 'resolution' ? [record.occurrence] : [])),
  );
  const verdicts = await visibleVerdicts(visit, rows);
  const chosen = ofKind(verdicts, kind);
  const shown = await Promise.all(
    chosen.slice((part - 1) * PER_PAGE, part * PER_PAGE).map(async (terminal) => {
      const { occurrence } = terminal;
      const isResolved = resolved.has(occurrence);
      return verdictRow(visit, { terminal, isResolved, holder: await ledgers.holder(occurrence) });
    }),
  );
  const none = kind === 'all' ? 'Nothing has been executed yet.' : `No verdict is ${kind}.`;
  const parts = Math.ceil(chosen.length / PER_PAGE);
  const content = html`<h1>History</h1>
${verdictChart(verdicts, visit.nowMs)}
${verdicts.length > 0 && kindLinks(verdicts, kind)}
${
  shown.length === 0
    ? html`<p class="empty">${none}</p>`
    : html`<ol class="list" aria-label="verdicts, newest first">${shown}</ol>`
}
${pageLinks({ part, parts }, '/history', { kind }, ['← newer', 'older →'])}`;
  return { title: 'History', section: 'history', content };
}

function ofKind(terminals: readonly Terminal[], kind: VerdictKind): readonly Terminal[] {
  return kind === 'all' ? terminals : terminals.filter((terminal) => terminal.kind === kind);
}

/** Links that show the verdicts of one kind, each with their number. */
function kindLinks(terminals: readonly Terminal[], current: VerdictKind): Html {
  const kinds = ['all', ...Object.keys(MEANINGS)] as readonly VerdictKind[];
  const links = kinds.map((kind) => {
    const { length } = ofKind(terminals, kind);
    const mark = kind === current && html` aria-current="true"`;
    return html`<a href="/history?kind=${kind}"${mark}>${length} ${kind === 'all' ? 'verdicts' : kind}</a>`;
  });
  return html`<div class="filters"><nav aria-label="Verdict">${links}</nav></div>`;
}

/** A verdict, with the claim it settles, if there was one. */
interface HistoryRow {
  readonly terminal: Terminal;
  readonly holder: ClaimEntry | undefined;
  /** Whether an operator has resolved it. */
  readonly isResolved: boolean;
}

function verdictRow(visit: Visit, { terminal, holder, isResolved }: HistoryRow): Html {
  const { kind, occurrence, task, adapter, recordedAt } = terminal;
  const operation = holder?.license.operation;
  const [why = ''] = reasonOf(terminal).split('\n');
  return html`<li><a class="row" href="/history/${occurrence}">
<span class="head">${stateBadge(kind)}${isResolved && badge('plain', 'resolved')} <b>${subjectName({ operation, adapter })}</b>
${operation !== undefined && html`<span class="aside">in ${adapter}</span>`}</span>
<span class="aside when">${!isRequestId(task) && `${shortTask(task)} · `}${holder && `approved by ${holder.license.issuer} · `}${moment(recordedAt, visit)}</span>
<span class="what">${approvedIn(holder)}</span>
<span class="said">${MEANINGS[kind]}${why && `: ${showText(why)}`}</span>
</a></li>`;
}

function reasonOf(terminal: Terminal): string {
  if (terminal.kind === 'rejected') return terminal.detail;
  return terminal.kind === 'indeterminate' ? terminal.gap : '';
}

/** A short form of what was approved. */
function approvedIn(holder: ClaimEntry | undefined): Html {
  if (holder === undefined) return html`<span class="aside">refused before it began</span>`;
  const { approvedText } = holder;
  if (approvedText.length > MAX_TEXT) return html`<span class="aside">many changes</span>`;
  return headline(approvedRecord.parseText(approvedText).effects);
}

/** Shortens request ids, which mean little to a reader. Other tasks have names. */
export function shortTask(task: string): string {
  return isRequestId(task) ? task.slice(0, 12) : showText(task);
}
