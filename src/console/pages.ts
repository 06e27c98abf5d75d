import { existsSync, readFileSync } from 'node:fs';
import type { Context, Hono } from 'hono';
import { EffectMatchError } from '../errors.ts';
import type { Survey } from '../protocol/boundary.ts';
import { isName, type OccurrenceId } from '../protocol/record.ts';
import type { Terminal } from '../protocol/terminal.ts';
import { type ApprovalRequest, isFinal, isRequestState } from '../requests/request.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Person, Said } from './access.ts';
import { addAnswers } from './answers.ts';
import type { Console, Env } from './app.ts';
import { bulkPage } from './bulk.ts';
import { history, occurrencePage } from './history.ts';
import { html } from './html.ts';
import { type InboxFilter, inbox } from './inbox.ts';
import { operationsPage } from './operations.ts';
import { fileOf, requestPage } from './request-page.ts';
import { addWorkflowPages } from './workflows.ts';

const PAGE = 50;
const JOURNAL_ROWS = 2000;
const EARLIER = 100;
const BULK_READ = 500;

/** Every page, what it needs, and what its forms do. */
export function addPages(app: Hono<Env>, site: Console): void {
  app.get('/', (c) => showInbox(c, site));
  app.get('/requests/:id', (c) => showRequest(c, site));
  app.get('/requests/:id/proposal.json', async (c) => {
    const { id, proposal } = await site.requests.get(c.req.param('id'));
    return download(fileOf(id), proposal);
  });
  app.get('/requests/:id/license.json', async (c) => {
    const { first } = await site.requests.get(c.req.param('id'));
    if (first === undefined) throw notFound('license that waits for a second signature');
    return download('license.json', first);
  });
  addAnswers(app, site);
  // Looking is what finds out that a request is stale; the page then hears of it as of any change.
  app.get('/requests/:id/check', async (c) => {
    await current(site, c.req.param('id'));
    return c.body(null, 204);
  });
  app.get('/bulk/:operation', (c) => showBulk(c, site));
  app.get('/history', async (c) => {
    const rows = await site.runtime.ledgers.journal({ last: true, limit: JOURNAL_ROWS });
    const verdicts = rows.flatMap((row): readonly Terminal[] =>
      row.kind === 'terminal' ? [row.record] : [],
    );
    const content = history(verdicts.reverse(), site.clock.now());
    return await site.show(c, { title: 'History', section: 'history' }, content);
  });
  app.get('/history/:occurrence', (c) => showOccurrence(c, site));
  app.get('/history/:occurrence/receipt.json', async (c) => {
    const occurrence = c.req.param('occurrence') as OccurrenceId;
    const receipt = await site.runtime.receipt(occurrence);
    if (receipt === undefined) throw notFound('receipt');
    return download(`${occurrence}.receipt.json`, receipt);
  });
  app.get('/operations', (c) => showOperations(c, site));
  app.post('/operations/recover', (c) => recover(c, site));
  addWorkflowPages(app, site);
  app.get('/verifier.html', () => {
    const keys = html`${site.runtime.receiptKeys.join('\n')}`.text;
    return savedPage('verifier.html', (text) => text.replace('<!--KEYS-->', () => keys));
  });
  app.get('/signer.html', () => savedPage('signer.html'));
  app.get('/events', (c) => {
    // Without a body nothing would end the listener.
    if (c.req.method === 'HEAD') return c.body(null, 204);
    const opened = site.events.open({
      name: c.get('session').person.name,
      signal: c.req.raw.signal,
      write: ({ id }) => `event: request\ndata: ${id}\n\n`,
    });
    return opened ?? c.text('too many pages listen; reload this one instead', 503);
  });
}

async function showInbox(c: Context<Env>, site: Console): Promise<Response> {
  const state = c.req.query('state') ?? 'pending';
  if (state !== 'all' && !isRequestState(state))
    throw new EffectMatchError('ERR_EM_INPUT_INVALID', 'there is no such state');
  const [by = '', adapter = ''] = [c.req.query('by'), c.req.query('adapter')];
  if (![by, adapter].every((name) => name === '' || isName(name)))
    throw new EffectMatchError('ERR_EM_INPUT_INVALID', 'that is not the name of anything');
  const after = c.req.query('after');
  const filter: InboxFilter = { state, by, adapter };
  const requests = await site.requests.list({
    ...(state !== 'all' && { state }),
    ...(by && { by }),
    ...(adapter && { adapter }),
    ...(after && { after }),
    limit: PAGE,
  });
  const last = requests.length === PAGE ? requests.at(-1)?.id : undefined;
  const rest = { ...filter, ...(last !== undefined && { after: last }) };
  const next = last === undefined ? undefined : `/?${new URLSearchParams(rest).toString()}`;
  const content = inbox({ requests, filter, nowMs: site.clock.now(), next });
  const notice = takeSaid(c)?.notice;
  return await site.show(c, { title: 'Inbox', section: 'inbox', notice }, content);
}

async function showRequest(c: Context<Env>, site: Console): Promise<Response> {
  const request = await current(site, c.req.param('id') ?? '');
  const part = Math.max(1, Math.trunc(Number(c.req.query('part') ?? 1)) || 1);
  const find = (c.req.query('find') ?? '').slice(0, 200);
  const order = c.req.query('order') === 'proposed' ? 'proposed' : 'extreme';
  const view = { part, find, order } as const;
  const session = c.get('session');
  const { formToken, person } = session;
  const said = takeSaid(c);
  const nowMs = site.clock.now();
  const difference = said?.difference;
  const issuers = keysOf(person, site.issuers);
  const { policy } = site;
  const earlier = await earlierOf(site, request);
  const content = requestPage({
    ...{ request, formToken, person, issuers, policy, earlier, nowMs, view, difference },
  });
  const title = request.operation ?? `Change in ${request.adapter}`;
  return await site.show(c, { title, section: 'inbox', notice: said?.notice }, content);
}

/** What became of the last requests for the same operation. */
async function earlierOf({ requests }: Console, request: ApprovalRequest) {
  const { operation, adapter, id } = request;
  if (operation === undefined) return [];
  const found = await requests.list({ adapter, limit: EARLIER });
  return found.filter(
    (other) => other.operation === operation && other.id !== id && isFinal(other.state),
  );
}

async function showBulk(c: Context<Env>, site: Console): Promise<Response> {
  const operation = c.req.param('operation') ?? '';
  const { formToken, person } = c.get('session');
  const found = await site.requests.list({ state: 'pending', limit: BULK_READ });
  const requests = found.filter((request) => request.operation === operation).slice(0, PAGE);
  const content = bulkPage({
    ...{ operation, requests, formToken, person, nowMs: site.clock.now() },
    issuers: keysOf(person, site.issuers),
  });
  return await site.show(c, { title: operation, section: 'inbox' }, content);
}

/** The keys that a person may have; every one if it is not known which. */
function keysOf({ issuers }: Person, keys: Console['issuers']): Console['issuers'] {
  if (issuers === undefined) return keys;
  return Object.fromEntries(Object.entries(keys).filter(([, name]) => issuers.includes(name)));
}

/** Where it stands now; if the backend cannot be asked, where it stood last. */
async function current({ requests }: Console, id: string): Promise<ApprovalRequest> {
  const known = await requests.get(id);
  return await requests.recheck(id).catch(() => known);
}

/** A page that refreshes itself keeps what it says; only a new page may take it. */
function takeSaid(c: Context<Env>): Said | undefined {
  if (c.req.header('effectmatch-refresh') !== undefined) return undefined;
  const session = c.get('session');
  const { said } = session;
  session.said = undefined;
  return said;
}

async function showOccurrence(c: Context<Env>, site: Console): Promise<Response> {
  const occurrence = c.req.param('occurrence') as OccurrenceId;
  const { ledgers } = site.runtime;
  const [holder, terminal, found] = await Promise.all([
    ledgers.holder(occurrence),
    ledgers.terminal(occurrence),
    ledgers.journal({ occurrence, limit: PAGE }),
  ]);
  const rows = found.filter(({ record }) => record.occurrence === occurrence);
  if (holder === undefined && rows.length === 0) throw notFound('occurrence');
  const nowMs = site.clock.now();
  const content = occurrencePage({ occurrence, holder, terminal, rows, nowMs });
  const title = `Change in ${holder?.claim.record.adapter ?? 'nothing'}`;
  return await site.show(c, { title, section: 'history' }, content);
}

async function showOperations(c: Context<Env>, site: Console): Promise<Response> {
  const { runtime, adapters } = site;
  const rows = await runtime.ledgers.journal({ last: true, limit: JOURNAL_ROWS });
  const { formToken, person } = c.get('session');
  const content = operationsPage({
    ...{ formToken, person },
    shadows: rows.flatMap((row) => (row.kind === 'shadow' ? [row.record] : [])).reverse(),
    unsettled: await runtime.ledgers.unsettled({ includeLeased: true }),
    continuations: await runtime.continuations(),
    boundaries: await Promise.all(
      adapters.map(async (name) => [name, await surveyOf(runtime, name)] as const),
    ),
    nowMs: site.clock.now(),
  });
  const notice = takeSaid(c)?.notice;
  return await site.show(c, { title: 'Operations', section: 'operations', notice }, content);
}

/** Settles interrupted attempts. Safe beside everything that runs. */
async function recover(c: Context<Env>, { runtime }: Console): Promise<Response> {
  const results = await runtime.recover();
  const of = (kind: string) => results.filter((result) => result.kind === kind).length;
  const text = `${of('settled')} settled, ${of('running')} still running, ${of('unresolved')} need a person.`;
  const tone = of('unresolved') === 0 ? 'good' : 'bad';
  c.get('session').said = { notice: { tone, text } };
  return c.redirect('/operations', 303);
}

/** A page to be saved and opened without this server. */
function savedPage(name: string, change = (text: string) => text): Response {
  const file = new URL(`./assets/${name}`, import.meta.url);
  if (!existsSync(file)) throw notFound('page: the package was not built');
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'content-disposition': `attachment; filename="effectmatch-${name}"`,
  };
  return new Response(change(readFileSync(file, 'utf8')), { headers });
}

async function surveyOf(runtime: Runtime, adapter: string): Promise<Survey | string> {
  try {
    return await runtime.survey(adapter);
  } catch (error) {
    return error instanceof EffectMatchError ? error.message : 'it could not be surveyed';
  }
}

function download(name: string, content: unknown): Response {
  const headers = {
    'content-type': 'application/json',
    'content-disposition': `attachment; filename="${name}"`,
  };
  return new Response(JSON.stringify(content), { headers });
}

function notFound(what: string): EffectMatchError<'ERR_EM_NOT_FOUND'> {
  return new EffectMatchError('ERR_EM_NOT_FOUND', `there is no such ${what}`);
}
