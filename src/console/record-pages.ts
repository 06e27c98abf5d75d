import type { Context, Hono } from 'hono';
import type { ClaimEntry, JournalEntry } from '../contract/ledgers.ts';
import { EffectMatchError } from '../errors.ts';
import type { Survey } from '../protocol/boundary.ts';
import { approvedRecord } from '../protocol/manifest.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import type { Terminal } from '../protocol/terminal.ts';
import type { Recovered } from '../runtime/recover.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Person } from './access.ts';
import type { Console, Env } from './app.ts';
import {
  chosenVerdicts,
  type HistoryRow,
  type HistoryView,
  history,
  VERDICTS_PER_PAGE,
} from './history.ts';
import { html } from './html.ts';
import { pageNumber } from './layout.ts';
import { occurrencePage } from './occurrence.ts';
import { operationsPage } from './operations.ts';
import { takeSaid } from './said.ts';
import { download } from './saved-pages.ts';
import { type Subject, sees, seesAll } from './sight.ts';
import { isVerdict } from './verdict.ts';
import { missing } from './visible.ts';
import { recentRuns } from './workflows.ts';

const JOURNAL_ROWS = 2000;
const TIMELINE_ROWS = 50;
const HISTORY_SHOWN = 100;

/** Adds the history and operations pages, with the operator's actions. */
export function addRecordPages(app: Hono<Env>, site: Console): void {
  app.use('/history/:occurrence/*', async (c, next) => {
    await demandVisible(site, c.get('session').person, c.req.param('occurrence'));
    return await next();
  });
  app.get('/history', (c) => showHistory(c, site));
  app.get('/history/:occurrence', (c) => showOccurrence(c, site));
  app.get('/history/:occurrence/receipt.json', async (c) => {
    const occurrence = c.req.param('occurrence') as OccurrenceId;
    const receipt = await site.runtime.receipt(occurrence);
    if (receipt === undefined) throw missing('receipt');
    return download(`${occurrence}.receipt.json`, receipt);
  });
  // What an operator's signature covers. The signing page checks that the parts belong together.
  app.get('/history/:occurrence/claim.json', async (c) => {
    const holder = await site.runtime.ledgers.holder(c.req.param('occurrence') as OccurrenceId);
    if (holder === undefined) throw missing('occurrence');
    const { claim, license, approvedText } = holder;
    const { execution } = claim.record;
    return c.json({ execution, license, approved: approvedRecord.parseText(approvedText) });
  });
  app.get('/operations', (c) => showOperations(c, site));
  app.post('/operations/recover', (c) => recover(c, site));
  app.post('/operations/resolve/:occurrence', (c) => resolve(c, site));
}

/** Reports an occurrence that the person may not see as missing. */
async function demandVisible({ runtime }: Console, { sight }: Person, id: string): Promise<void> {
  if (seesAll(sight)) return;
  const holder = await runtime.ledgers.holder(id as OccurrenceId);
  if (holder === undefined || !sees(sight, subjectOf(holder))) throw missing('occurrence');
}

function subjectOf({ claim, license }: ClaimEntry): Subject {
  return { adapter: claim.record.adapter, operation: license.operation };
}

async function showHistory(c: Context<Env>, site: Console): Promise<Response> {
  const { ledgers } = site.runtime;
  const rows = await ledgers.journal({ last: true, limit: JOURNAL_ROWS });
  const resolved = new Set(
    rows.flatMap(({ kind, record }) => (kind === 'resolution' ? [record.occurrence] : [])),
  );
  const verdicts = await visibleVerdicts(site, c.get('session').person, rows);
  const view = historyView(c, site.clock.now());
  const start = (view.part - 1) * VERDICTS_PER_PAGE;
  const chosen = chosenVerdicts(verdicts, view).slice(start, start + VERDICTS_PER_PAGE);
  const shown: readonly HistoryRow[] = await Promise.all(
    chosen.map(async (terminal) => ({
      terminal,
      isResolved: resolved.has(terminal.occurrence),
      holder: await ledgers.holder(terminal.occurrence),
    })),
  );
  const content = history(verdicts, shown, view);
  return await site.show(c, { title: 'History', section: 'history' }, content);
}

function historyView(c: Context<Env>, nowMs: number): HistoryView {
  const kind = c.req.query('kind') ?? 'all';
  if (kind !== 'all' && !isVerdict(kind))
    throw new EffectMatchError('ERR_EM_INPUT_INVALID', 'there is no such verdict');
  return { kind, part: pageNumber(c.req.query('part')), nowMs };
}

/** The verdicts that the person may see, newest first. */
async function visibleVerdicts(
  { runtime: { ledgers } }: Console,
  { sight }: Person,
  rows: readonly JournalEntry[],
): Promise<readonly Terminal[]> {
  const all = rows.flatMap(({ kind, record }) => (kind === 'terminal' ? [record] : [])).reverse();
  const { adapters, operations } = sight;
  const own = all.filter(({ adapter }) => sees({ adapters }, { adapter }));
  if (operations === undefined) return own;
  const few = own.slice(0, HISTORY_SHOWN);
  const holders = await Promise.all(few.map(({ occurrence }) => ledgers.holder(occurrence)));
  return few.filter((_, index) => {
    const holder = holders[index];
    return holder !== undefined && sees(sight, subjectOf(holder));
  });
}

async function showOccurrence(c: Context<Env>, site: Console): Promise<Response> {
  const occurrence = c.req.param('occurrence') as OccurrenceId;
  const { ledgers } = site.runtime;
  const [holder, terminal, resolution, found] = await Promise.all([
    ledgers.holder(occurrence),
    ledgers.terminal(occurrence),
    ledgers.resolution(occurrence),
    ledgers.journal({ occurrence, limit: TIMELINE_ROWS }),
  ]);
  const rows = found.filter(({ record }) => record.occurrence === occurrence);
  if (holder === undefined && rows.length === 0) throw missing('occurrence');
  const { formToken, person } = c.get('session');
  const said = takeSaid(c);
  const content = occurrencePage({
    occurrence,
    holder,
    terminal,
    resolution,
    rows,
    formToken,
    person,
    operators: site.operators,
    nowMs: site.clock.now(),
    evidence: resolution && (await ledgers.document(resolution.evidence)),
  });
  const title = `Change in ${holder?.claim.record.adapter ?? 'nothing'}`;
  return await site.show(c, { title, section: 'history', notice: said?.notice }, content);
}

async function showOperations(c: Context<Env>, site: Console): Promise<Response> {
  const { runtime, adapters } = site;
  const { ledgers } = runtime;
  const rows = await ledgers.journal({ last: true, limit: JOURNAL_ROWS });
  const { formToken, person } = c.get('session');
  const { sight } = person;
  const open = await visibleUnsettled(site, person);
  const terminals = await Promise.all(
    open.map(({ claim }) => ledgers.terminal(claim.record.occurrence)),
  );
  const visible = adapters.filter((adapter) => sees({ adapters: sight.adapters }, { adapter }));
  const content = operationsPage({
    formToken,
    person,
    shadows: rows
      .flatMap(({ kind, record }) => (kind === 'shadow' && sees(sight, record) ? [record] : []))
      .reverse(),
    unsettled: open.map((entry, index) => ({ ...entry, terminal: terminals[index] })),
    verdicts: await visibleVerdicts(site, person, rows),
    continuations: await visibleContinuations(site, person),
    boundaries: await Promise.all(
      visible.map(async (name) => [name, await surveyOf(runtime, name)] as const),
    ),
    // A run may involve any adapter, so only people who see everything may see runs.
    workflows: seesAll(sight) ? await recentRuns(ledgers, site.clock.now()) : html``,
    nowMs: site.clock.now(),
  });
  const notice = takeSaid(c)?.notice;
  return await site.show(c, { title: 'Operations', section: 'operations', notice }, content);
}

async function visibleUnsettled({ runtime }: Console, { sight }: Person) {
  const unsettled = await runtime.ledgers.unsettled({ includeLeased: true });
  return unsettled.filter((entry) => sees(sight, subjectOf(entry)));
}

async function visibleContinuations({ runtime }: Console, { sight }: Person) {
  const open = await runtime.continuations();
  if (seesAll(sight)) return open;
  const holders = await Promise.all(
    open.map(({ occurrence }) => runtime.ledgers.holder(occurrence)),
  );
  return open.filter((_, index) => {
    const holder = holders[index];
    return holder !== undefined && sees(sight, subjectOf(holder));
  });
}

/** Settles the interrupted attempts that the person may see. Safe while other attempts run. */
async function recover(c: Context<Env>, site: Console): Promise<Response> {
  const results = await recoverVisible(site, c.get('session').person);
  const of = (kind: string) => results.filter((result) => result.kind === kind).length;
  const text = `${of('settled')} settled, ${of('running')} still running, ${of('unresolved')} need a person.`;
  const tone = of('unresolved') === 0 ? 'good' : 'bad';
  c.get('session').said = { notice: { tone, text } };
  return c.redirect('/operations', 303);
}

async function recoverVisible(site: Console, person: Person): Promise<readonly Recovered[]> {
  const { runtime } = site;
  if (seesAll(person.sight)) return await runtime.recover();
  const results: Recovered[] = [];
  for (const { claim } of await visibleUnsettled(site, person))
    results.push(...(await runtime.recover({ occurrence: claim.record.occurrence })));
  return results;
}

/** Records an operator's decision. Its signature decides who resolved, not the session. */
async function resolve(c: Context<Env>, site: Console): Promise<Response> {
  const occurrence = c.req.param('occurrence') ?? '';
  const { person } = c.get('session');
  await demandVisible(site, person, occurrence);
  const { resolution, evidence } = await c.req.parseBody();
  const notice = await site.runtime
    .resolve(readResolution(String(resolution), occurrence), String(evidence))
    .then(({ operator }) => ({ tone: 'good', text: `Resolved by ${operator}.` }) as const)
    .catch((error) => {
      if (!(error instanceof EffectMatchError)) throw error;
      return { tone: 'bad', text: `${error.code}: ${error.message}` } as const;
    });
  c.get('session').said = { notice };
  return c.redirect(`/history/${encodeURIComponent(occurrence)}`, 303);
}

function readResolution(text: string, occurrence: string): unknown {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    // Refused below.
  }
  if (Object(found).occurrence === occurrence) return found;
  throw new EffectMatchError('ERR_EM_INPUT_INVALID', 'it is not a decision about this occurrence');
}

async function surveyOf(runtime: Runtime, adapter: string): Promise<Survey | string> {
  try {
    return await runtime.survey(adapter);
  } catch (error) {
    return error instanceof EffectMatchError ? error.message : 'it could not be surveyed';
  }
}
