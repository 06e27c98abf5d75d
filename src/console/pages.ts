import type { Context, Hono } from 'hono';
import { EffectMatchError } from '../errors.ts';
import { isName } from '../protocol/record.ts';
import { type ApprovalRequest, isFinal, isRequestState } from '../requests/request.ts';
import type { Person } from './access.ts';
import { addAnswers } from './answers.ts';
import type { Console, Env } from './app.ts';
import { bulkPage } from './bulk.ts';
import { type InboxFilter, inbox } from './inbox.ts';
import { pageNumber } from './layout.ts';
import { addRecordPages } from './record-pages.ts';
import { fileOf, requestPage } from './request-page.ts';
import { takeSaid } from './said.ts';
import { addSavedPages, download } from './saved-pages.ts';
import { sees, seesAll } from './sight.ts';
import { demandVisible, listVisible } from './visible.ts';
import { addWorkflowPages } from './workflows.ts';

const PAGE = 50;
const EARLIER = 100;
const BULK_READ = 500;

/** Adds every page and the handlers of its forms. */
export function addPages(app: Hono<Env>, site: Console): void {
  // Read this first, so that a page does not miss events while it is rendered and sent.
  app.use(async (c, next) => {
    c.set('lastEvent', await site.events.last());
    return await next();
  });
  app.use('/requests/:id/*', async (c, next) => {
    await demandVisible(site, c.get('session').person, c.req.param('id'));
    return await next();
  });
  app.get('/', (c) => showInbox(c, site));
  app.get('/requests/:id', (c) => showRequest(c, site));
  app.get('/requests/:id/proposal.json', async (c) => {
    const { id, proposal } = await site.requests.get(c.req.param('id'));
    return download(fileOf(id), proposal);
  });
  app.get('/requests/:id/license.json', async (c) => {
    const { first } = await site.requests.get(c.req.param('id'));
    if (first !== undefined) return download('license.json', first);
    throw new EffectMatchError('ERR_EM_NOT_FOUND', 'this request waits for no second signature');
  });
  addAnswers(app, site);
  // The check may find that the request is stale. The page learns that through its event stream.
  app.get('/requests/:id/check', async (c) => {
    await current(site, c.req.param('id'));
    return c.body(null, 204);
  });
  app.get('/bulk/:operation', (c) => showBulk(c, site));
  addRecordPages(app, site);
  addWorkflowPages(app, site);
  addSavedPages(app, site);
  app.get('/events', (c) => {
    // A HEAD response has no body, so nothing would ever close the listener.
    if (c.req.method === 'HEAD') return c.body(null, 204);
    const { name, sight } = c.get('session').person;
    const opened = site.events.open({
      name,
      signal: c.req.raw.signal,
      after: Number(c.req.header('last-event-id') ?? c.req.query('after') ?? c.get('lastEvent')),
      wants: (event) => sees(sight, event),
      write: ({ seq, id }) => `id: ${seq}\nevent: request\ndata: ${id}\n\n`,
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
  const { person } = c.get('session');
  const { requests, next: last } = await listVisible(site.requests, person, {
    ...(state !== 'all' && { state }),
    ...(by && { by }),
    ...(adapter && { adapter }),
    ...(after && { after }),
    limit: PAGE,
  });
  const rest = { ...filter, ...(last !== undefined && { after: last }) };
  const next = last === undefined ? undefined : `/?${new URLSearchParams(rest).toString()}`;
  const { adapters: visible = site.adapters } = person.sight;
  const known = seesAll(person.sight) ? (site.agents ?? []) : [];
  const agents = [...new Set([...known, ...requests.map((request) => request.by)])].sort();
  const content = inbox({
    requests,
    filter,
    next,
    agents,
    adapters: visible,
    nowMs: site.clock.now(),
    hasAgents: site.agents?.length !== 0,
    unconfigured: site.unconfigured,
  });
  const notice = takeSaid(c)?.notice;
  return await site.show(c, { title: 'Inbox', section: 'inbox', notice }, content);
}

async function showRequest(c: Context<Env>, site: Console): Promise<Response> {
  const request = await current(site, c.req.param('id') ?? '');
  const part = pageNumber(c.req.query('part'));
  const find = (c.req.query('find') ?? '').slice(0, 200);
  const order = c.req.query('order') === 'proposed' ? 'proposed' : 'extreme';
  const { formToken, person } = c.get('session');
  const said = takeSaid(c);
  const content = requestPage({
    request,
    formToken,
    person,
    view: { part, find, order },
    difference: said?.difference,
    policy: site.policy,
    nowMs: site.clock.now(),
    issuers: keysOf(person, site.issuers),
    acceptsKeys: site.acceptKey !== undefined,
    earlier: await earlierOf(site, request),
  });
  const title = request.operation ?? `Change in ${request.adapter}`;
  return await site.show(c, { title, section: 'inbox', notice: said?.notice }, content);
}

/** Recent finished requests for the same operation. */
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
  const query = { state: 'pending', limit: BULK_READ } as const;
  const found = await listVisible(site.requests, person, query);
  const requests = found.requests.filter((request) => request.operation === operation);
  const content = bulkPage({
    operation,
    requests: requests.slice(0, PAGE),
    formToken,
    person,
    issuers: keysOf(person, site.issuers),
    nowMs: site.clock.now(),
  });
  const notice = takeSaid(c)?.notice;
  return await site.show(c, { title: operation, section: 'inbox', notice }, content);
}

/** The keys of the person's issuers; all keys if the issuers are not known. */
function keysOf({ issuers }: Person, keys: Console['issuers']): Console['issuers'] {
  if (issuers === undefined) return keys;
  return Object.fromEntries(Object.entries(keys).filter(([, name]) => issuers.includes(name)));
}

/** Rechecks a request against the backend; if that fails, returns its last known state. */
async function current({ requests }: Console, id: string): Promise<ApprovalRequest> {
  const known = await requests.get(id);
  return await requests.recheck(id).catch(() => known);
}
