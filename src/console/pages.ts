import type { Hono } from 'hono';
import { EffectMatchError } from '../errors.ts';
import { approvedRecord } from '../protocol/manifest.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import { addAnswers } from './answers.ts';
import type { Console, Env } from './app.ts';
import { bulkPage } from './bulk.ts';
import { historyPage } from './history.ts';
import { inboxPage } from './inbox.ts';
import { occurrencePage } from './occurrence.ts';
import { operationsPage } from './operations.ts';
import { fileOf, recheck, requestPage } from './request-page.ts';
import { addSavedPages, download } from './saved-pages.ts';
import { demandVisible, demandVisibleOccurrence, missing, sees, seesAll } from './visible.ts';
import { type Shown, show, takeSaid, type Visit, visitOf } from './visit.ts';
import { RUNS_PLACE, runPage, runsPage } from './workflows.ts';

/** The pages by address. */
const PAGES: Readonly<Record<string, (visit: Visit) => Promise<Shown>>> = {
  '/': inboxPage,
  '/requests/:id': requestPage,
  '/bulk/:operation': bulkPage,
  '/history': historyPage,
  '/history/:occurrence': occurrencePage,
  '/operations': operationsPage,
  [RUNS_PLACE]: runsPage,
  [`${RUNS_PLACE}/:run`]: runPage,
};

/** What a person has to be allowed to see before anything below an address is served. */
const DEMANDS: Readonly<Record<string, (visit: Visit) => Promise<void>>> = {
  '/requests/:id/*': (visit) => demandVisible(visit, visit.c.req.param('id') ?? ''),
  '/history/:occurrence/*': (visit) =>
    demandVisibleOccurrence(visit, visit.c.req.param('occurrence') ?? ''),
  [`${RUNS_PLACE}/*`]: async ({ person }) => {
    // A run may involve any adapter, so only people who see everything may see runs.
    if (!seesAll(person.sight)) throw missing('run');
  },
};

/** Adds every page and the handlers of its forms. */
export function addPages(app: Hono<Env>, site: Console): void {
  // Read this first, so that a page does not miss events while it is rendered and sent.
  app.use(async (c, next) => {
    c.set('lastEvent', await site.events.last());
    return await next();
  });
  for (const [path, demand] of Object.entries(DEMANDS))
    app.use(path, async (c, next) => {
      await demand(visitOf(c, site));
      return await next();
    });
  for (const [path, page] of Object.entries(PAGES))
    app.get(path, async (c) => {
      const visit = visitOf(c, site, takeSaid(c));
      return await show(visit, await page(visit));
    });
  addAnswers(app, site);
  addFiles(app, site);
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
    return opened ?? c.text('too many pages are open; reload this one to see changes', 503);
  });
}

/** Adds what the pages' scripts fetch and people save. */
function addFiles(app: Hono<Env>, { requests, runtime }: Console): void {
  app.get('/requests/:id/proposal.json', async (c) => {
    const { id, proposal } = await requests.get(c.req.param('id'));
    return download(fileOf(id), proposal);
  });
  app.get('/requests/:id/license.json', async (c) => {
    const { first } = await requests.get(c.req.param('id'));
    if (first !== undefined) return download('license.json', first);
    throw new EffectMatchError(
      'ERR_EM_NOT_FOUND',
      'this request does not wait for a second signature',
    );
  });
  // The check may find that the request is stale. The page learns that through its event stream.
  app.get('/requests/:id/check', async (c) => {
    await recheck({ requests }, c.req.param('id'));
    return c.body(null, 204);
  });
  app.get('/history/:occurrence/receipt.json', async (c) => {
    const occurrence = c.req.param('occurrence') as OccurrenceId;
    const receipt = await runtime.receipt(occurrence);
    if (receipt === undefined) throw missing('receipt');
    return download(`${occurrence}.receipt.json`, receipt);
  });
  // What an operator's signature covers. The signing page checks that the parts belong together.
  app.get('/history/:occurrence/claim.json', async (c) => {
    const holder = await runtime.ledgers.holder(c.req.param('occurrence') as OccurrenceId);
    if (holder === undefined) throw missing('occurrence');
    const { claim, license, approvedText } = holder;
    const { execution } = claim.record;
    return c.json({ execution, license, approved: approvedRecord.parseText(approvedText) });
  });
}
