// What a person waits for in a real browser: the inbox, a new request on the screen, and the signature
// under a large proposal.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createAdaptorServer } from '@hono/node-server';
import type { Page } from 'playwright-core';
import { type ConsoleApp, createConsole } from '../../../src/console/app.ts';
import { insert, update } from '../../../src/protocol/draft.ts';
import { openChromium, skipWithoutChromium } from '../../../test/chromium.ts';
import { type Cell, figure, median } from '../../study.ts';
import { fillInbox, openSite, paying, type Site } from './site.ts';

/** How much is measured. */
export interface ScreenOptions {
  readonly pending: number;
  readonly changes: number;
  readonly events: number;
}

const PATIENCE_MS = 600_000;

/** Figures of Chromium on this machine; none where it is not installed. */
export async function measureScreen(
  folder: string,
  options: ScreenOptions,
): Promise<readonly Cell[]> {
  if (skipWithoutChromium() !== false) return [];
  const built = spawnSync(process.execPath, ['scripts/build-signer.mjs'], { encoding: 'utf8' });
  if (built.status !== 0) throw new Error(built.stderr);
  let app: ConsoleApp | undefined;
  const fetch = (request: Request) => app?.fetch(request) ?? new Response(null, { status: 503 });
  const server = createAdaptorServer({ fetch }) as Server;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://localhost:${(server.address() as AddressInfo).port}`;
  const browser = await openChromium();
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const serve = (site: Site, issuers: Readonly<Record<string, string>>) => {
    const { runtime, requests } = site;
    const parts = { runtime, requests, adapters: [], origin, issuers, user: 'bench' };
    app = createConsole(parts);
    return app;
  };
  const at = (name: string) => {
    mkdirSync(join(folder, name));
    return join(folder, name);
  };
  try {
    const cells: Cell[] = [];
    const [inbox, large] = [at('inbox'), at('large')];
    await using site = await openSite(inbox, 1);
    await fillInbox(site, inbox, options.pending);
    await using first = serve(site, {});
    cells.push(...(await measureInbox(page, first, site, { ...options, origin })));
    const key = await makeKey(page, site, origin);
    await using signed = await openSite(large, 1, key);
    await using second = serve(signed, { [key]: 'bench' });
    return [...cells, ...(await measureSigning(page, second, signed, { ...options, origin }))];
  } finally {
    await browser.close();
    server.close();
    server.closeAllConnections();
  }
}

type At = ScreenOptions & { readonly origin: string };

async function measureInbox(
  page: Page,
  app: ConsoleApp,
  { requests }: Site,
  { pending, events, origin }: At,
): Promise<readonly Cell[]> {
  await page.goto(app.createLink());
  await page.waitForURL(`${origin}/`);
  const rendered: number[] = [];
  for (let index = 0; index < 5; index += 1) {
    await page.goto(`${origin}/`);
    const entry = `performance.getEntriesByType('navigation')[0].loadEventEnd`;
    rendered.push(
      Number(
        await page.evaluate(`new Promise((done) => requestAnimationFrame(() =>
      setTimeout(() => done(${entry}))))`),
      ),
    );
  }
  const effects = [update('invoice', { id: 1 }, { status: ['open', 'paid'] })];
  const seen: number[] = [];
  for (let index = 0; index < events; index += 1) {
    const ask = { by: 'agent', run: `screen ${index}`, manifest: { adapter: 'books', effects } };
    const { id } = await requests.ask({ ...ask, action: paying(1) });
    const started = performance.now();
    await page.locator(`a[href="/requests/${id}"]`).waitFor();
    seen.push(performance.now() - started);
  }
  return [
    figure(`inbox of ${pending}: on the screen of Chromium`, median(rendered), 'ms'),
    figure('event to screen, p50', median(seen), 'ms'),
  ];
}

/** Has the browser make a key, on a page of this console, and returns its public half. */
async function makeKey(page: Page, { requests }: Site, origin: string): Promise<string> {
  const [request] = await requests.list({ state: 'pending', limit: 1 });
  await page.goto(`${origin}/requests/${request?.id}`);
  await page.getByRole('button', { name: 'Create a browser key' }).click();
  return await page.locator('#signer pre').first().innerText();
}

async function measureSigning(
  page: Page,
  app: ConsoleApp,
  { requests }: Site,
  { changes, origin }: At,
): Promise<readonly Cell[]> {
  const effects = Array.from({ length: changes }, (_, index) =>
    insert('payment', { id: index + 1, payee: `payee ${index}`, amount: index }),
  );
  const ask = { by: 'agent', run: 'r', manifest: { adapter: 'books', effects } };
  const { id } = await requests.ask({ ...ask, action: { sql: 'select 1' } });
  await page.goto(app.createLink());
  await page.waitForURL(`${origin}/`);
  let since = performance.now();
  const lap = () => {
    const now = performance.now();
    const ms = now - since;
    since = now;
    return ms;
  };
  await page.goto(`${origin}/requests/${id}`);
  const sign = page.getByRole('button', { name: 'Read and sign as bench' });
  await sign.waitFor();
  const shown = lap();
  await sign.click();
  await page.locator('dialog pre').first().waitFor();
  const read = lap();
  const answered = new Promise<void>((resolve) => requests.watch(resolve));
  lap();
  await page.getByRole('button', { name: 'Sign', exact: true }).click();
  const refused = page.locator('.problem, .notice.bad').first();
  await Promise.race([answered, refused.waitFor()]);
  if ((await refused.count()) > 0) throw new Error(await refused.innerText());
  const of = `${changes} changes in Chromium`;
  return [
    figure(`${of}: first page`, shown, 'ms'),
    figure(`${of}: text to sign`, read, 'ms'),
    figure(`${of}: signed and taken`, lap(), 'ms'),
  ];
}
