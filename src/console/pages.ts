import type { Context, Hono } from 'hono';
import { EffectMatchError } from '../errors.ts';
import type { Survey } from '../protocol/boundary.ts';
import { isName, type OccurrenceId } from '../protocol/record.ts';
import type { Terminal } from '../protocol/terminal.ts';
import { type ApprovalRequest, isRequestState } from '../requests/request.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Person, Said } from './access.ts';
import type { Console, Env } from './app.ts';
import { history, occurrencePage } from './history.ts';
import { type InboxFilter, inbox } from './inbox.ts';
import { operationsPage } from './operations.ts';
import { fileOf, requestPage } from './request-page.ts';

const PAGE = 50;
const HISTORY_ROWS = 400;

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
  app.post('/requests/:id/license', (c) =>
    answer(c, async (id, form) => {
      const { license } = form;
      const text = license instanceof File ? await license.text() : String(license ?? '');
      const { first } = await site.requests.answer(id, parseJson(text));
      const words = 'Signed. A second person has to sign it too.';
      return { notice: good(first === undefined ? 'Approved. It is executed now.' : words) };
    }),
  );
  app.post('/requests/:id/decline', (c) =>
    answer(c, async (id, form) => {
      const { name } = c.get('session').person;
      await site.requests.decline(id, { by: name, reason: String(form.reason ?? '') });
      return { notice: good('Declined. The agent is told why.') };
    }),
  );
  app.post('/requests/:id/renew', (c) =>
    answer(c, async (id) => {
      const { difference } = await site.requests.renew(id);
      return { notice: good('Proposed again from the state as it is now.'), difference };
    }),
  );
  app.get('/history', async (c) => {
    const rows = await site.runtime.ledgers.journal({ last: true, limit: HISTORY_ROWS });
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
  app.get('/events', (c) => {
    // Without a body nothing would end the listener.
    if (c.req.method === 'HEAD') return c.body(null, 204);
    const opened = site.events.open(c.req.raw.signal);
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
  return await site.show(c, { title: 'Inbox', section: 'inbox' }, content);
}

async function showRequest(c: Context<Env>, site: Console): Promise<Response> {
  const request = await current(site, c.req.param('id') ?? '');
  const part = Math.max(1, Math.trunc(Number(c.req.query('part') ?? 1)) || 1);
  const session = c.get('session');
  const { formToken, person } = session;
  // A page that refreshes itself keeps what it says; only a new page may take it.
  const isNew = c.req.header('effectmatch-refresh') === undefined;
  const said = isNew ? session.said : undefined;
  if (isNew) session.said = undefined;
  const nowMs = site.clock.now();
  const difference = said?.difference;
  const issuers = keysOf(person, site.issuers);
  const content = requestPage({ request, formToken, person, issuers, nowMs, part, difference });
  const title = request.operation ?? `Change in ${request.adapter}`;
  return await site.show(c, { title, section: 'inbox', notice: said?.notice }, content);
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

type Form = Record<string, string | File | (string | File)[]>;

const good = (text: string) => ({ tone: 'good', text }) as const;

/** Does what a form asks for; the page of the request then says what was done or refused. */
async function answer(
  c: Context<Env>,
  work: (id: string, form: Form) => Promise<Said>,
): Promise<Response> {
  const id = c.req.param('id') ?? '';
  const session = c.get('session');
  try {
    session.said = await work(id, await c.req.parseBody());
  } catch (error) {
    if (!(error instanceof EffectMatchError) || error.code === 'ERR_EM_NOT_FOUND') throw error;
    session.said = { notice: { tone: 'bad', text: `${error.code}: ${error.message}` } };
  }
  return c.redirect(`/requests/${encodeURIComponent(id)}`, 303);
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
  const content = operationsPage({
    unsettled: await runtime.ledgers.unsettled({ includeLeased: true }),
    continuations: await runtime.continuations(),
    boundaries: await Promise.all(
      adapters.map(async (name) => [name, await surveyOf(runtime, name)] as const),
    ),
    nowMs: site.clock.now(),
  });
  return await site.show(c, { title: 'Operations', section: 'operations' }, content);
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

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new EffectMatchError('ERR_EM_INPUT_INVALID', 'the file is not a license: it is not JSON');
  }
}

function notFound(what: string): EffectMatchError<'ERR_EM_NOT_FOUND'> {
  return new EffectMatchError('ERR_EM_NOT_FOUND', `there is no such ${what}`);
}
