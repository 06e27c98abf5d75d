// Goal: the whole way of one change on a real server: an agent asks over HTTP, two people who signed
// in with their identity provider read it in their browsers, one passkey signs it, and the receipt is
// verified offline. Method: `effectmatch serve` as a real process on PostgreSQL, oidc-provider, and
// Chromium with a virtual authenticator for each person; the server is killed on the way.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { openDeployment, startServing } from '../api/served.ts';
import { openChromium, skipWithoutChromium } from '../chromium.ts';
import { skipWithout } from '../integration.ts';
import { startProvider } from './provider.ts';
import { addAuthenticator, buildSigner } from './site.ts';

const NAMES = ['alice', 'bob'] as const;
type Name = (typeof NAMES)[number];

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

describe('the whole way', { skip: skipWithoutChromium() || skipWithout('console') }, () => {
  let browser: Browser;
  let provider: Awaited<ReturnType<typeof startProvider>>;
  let site: Awaited<ReturnType<typeof openDeployment>>;
  let server: Awaited<ReturnType<typeof startServing>>;
  let agent = '';
  let port = 0;
  const pages = {} as Record<Name, Page>;

  before(async () => {
    buildSigner();
    port = await freePort();
    const origin = `http://localhost:${port}`;
    [browser, provider, site] = await Promise.all([
      openChromium(),
      startProvider(origin),
      openDeployment('postgres'),
    ]);
    agent = await site.token('billing-agent');
    const people = NAMES.map((name) => [`${name}@example.com`, { issuers: [name] }]);
    const oidc = provider.config;
    const config = { origin, oidc, people: Object.fromEntries(people) };
    // Their keys are made in the browsers below; until then they have keys that nobody holds.
    const keys = {} as Record<Name, string>;
    for (const name of NAMES)
      keys[name] = `ed25519:${Buffer.alloc(32, name).toString('base64url')}`;
    site.configure(config, keys);
    await serve();
    const { id } = await ask(4713);
    for (const name of NAMES) {
      const page = await (await browser.newContext()).newPage();
      pages[name] = page;
      await addAuthenticator(page);
      await signIn(name, `/requests/${id}`);
      await page.getByRole('button', { name: 'Register a passkey' }).click();
      keys[name] = await page.locator('#new-passkey').innerText();
    }
    site.configure(config, keys);
  });
  after(async () => {
    await browser?.close();
    await server?.[Symbol.asyncDispose]();
    await site?.[Symbol.asyncDispose]();
    provider?.[Symbol.dispose]();
  });

  async function serve(): Promise<void> {
    server = await startServing(site.folder, '--port', String(port));
  }

  async function ask(invoice: number) {
    const asked = { run: 'november', operation: 'mark-paid', input: { invoice } };
    const { json } = await server.call('POST', '/v1/requests', agent, asked);
    assert.equal(json.state, 'pending', JSON.stringify(json));
    return json;
  }

  /** The provider asks for a name and for consent, once per browser. */
  async function signIn(name: Name, to: string): Promise<void> {
    const page = pages[name];
    await page.goto(`${server.origin}${to}`);
    await page.getByRole('link', { name: /Sign in with/ }).click();
    const field = page.locator('input[name=login]');
    const own = page.getByText(`${name}@example.com`);
    await field.or(own).first().waitFor();
    if ((await field.count()) > 0) {
      await field.fill(name);
      await page.locator('input[name=password]').fill('any');
      await page.locator('[type=submit]').click();
      await page.locator('[type=submit]').click();
    }
    await page.waitForURL(`${server.origin}${to}`);
  }

  test('killed and started again, the inbox has what was asked, and nothing that was not', async () => {
    server.child.kill('SIGKILL');
    await server.ended;
    await serve();
    for (const name of NAMES) await signIn(name, '/');
    for (const page of Object.values(pages)) assert.equal(await page.locator('a.row').count(), 1);
    const { id, state } = await ask(4713);
    assert.equal(state, 'pending', 'the same question is the same request');
    // New keys are new rules, so what was asked under the old ones is proposed again.
    await pages.alice.goto(`${server.origin}/requests/${id}`);
    await pages.alice.getByRole('button', { name: 'Propose again' }).click();
    await pages.alice.getByText('Proposed again from the current state.').waitFor();
    await pages.alice.getByLabel('Reason (sent to the agent)').fill('not this month');
    await pages.alice.getByRole('button', { name: 'Decline', exact: true }).click();
    await pages.alice.getByText('Declined: not this month').waitFor();
    const { json } = await server.call('GET', `/v1/requests/${id}`, agent);
    assert.deepEqual([json.state, json.answeredBy], ['declined', 'alice@example.com']);
  });

  test('two people read it at once: one signature counts, and the other person is told', async () => {
    const { id } = await ask(4711);
    for (const name of NAMES) {
      const page = pages[name];
      await page.goto(`${server.origin}/`);
      await page.locator(`a[href="/requests/${id}"]`).click();
      await page.getByRole('button', { name: `Read and sign as ${name}` }).click();
      await page.locator('dialog').getByText('"open" -> "paid"').waitFor();
    }
    for (const name of NAMES)
      await pages[name].getByRole('button', { name: 'Sign', exact: true }).click();
    await pages.alice.getByText('committed: what became durable').waitFor();
    await pages.bob.getByText(/ERR_EM_REQUEST_CLOSED.*answered by alice/).waitFor();
    await pages.bob.getByText('committed: what became durable').waitFor();
    assert.deepEqual(await site.paid(), [4711]);
    const { json } = await server.call('GET', `/v1/requests/${id}`, agent);
    assert.deepEqual([json.state, json.answeredBy], ['committed', 'alice']);
  });

  test('the receipt is verified by a saved page, without a network', async () => {
    const page = pages.bob;
    await page.getByRole('link', { name: 'Timeline and receipt' }).click();
    const save = async (link: string, file: string) => {
      const downloading = page.waitForEvent('download');
      await page.getByRole('link', { name: link }).click();
      await (await downloading).saveAs(site.at(file));
      return site.at(file);
    };
    const receipt = await save('Download the receipt', 'receipt.json');
    const verifier = await save('Download the verifier page', 'verifier.html');
    const saved = await (await browser.newContext({ offline: true })).newPage();
    await saved.goto(pathToFileURL(verifier).href);
    await saved.setInputFiles('#files', receipt);
    await saved.getByRole('button', { name: 'Verify' }).click();
    await saved.getByText('receipt.json: verified, signed by').waitFor();
  });

  test('an open boundary is shown with the statement that closes it', async () => {
    const page = pages.alice;
    const isOpen = page.locator('.card', { hasText: /books\s*\d+ open/ });
    await site.run('create table stray (id integer); grant insert on stray to public');
    await page.goto(`${server.origin}/operations`);
    await isOpen.waitFor();
    const fix = await isOpen.locator('pre').innerText();
    assert.match(fix, /stray/);
    await site.run(fix);
    await page.reload();
    await page.getByText(/books\s*closed/).waitFor();
  });

  test('pages of other origins neither frame the console, nor read it, nor send its forms', async () => {
    // Another port of this machine is the same site, so the browser sends the cookie there: what
    // protects are the headers and the word of the session.
    const { id } = await ask(4712);
    const page = await pages.alice.context().newPage();
    const elsewhere = `http://localhost:${new URL(provider.config.issuer).port}/`;
    await page.route(elsewhere, (route) =>
      route.fulfill({
        contentType: 'text/html',
        body: `<iframe src="${server.origin}/"></iframe>
<form method="post" action="${server.origin}/requests/${id}/decline"><input name="reason" value="evil"></form>`,
      }),
    );
    await page.goto(elsewhere);
    const [, frame] = page.frames();
    assert.doesNotMatch((await frame?.content()) ?? '', /EffectMatch/);
    assert.notEqual(frame?.url(), `${server.origin}/`);
    const read = await page.evaluate(
      `fetch('${server.origin}/requests/${id}', { credentials: 'include' }).then(() => 'read', () => 'refused')`,
    );
    assert.equal(read, 'refused');
    await page.evaluate('document.forms[0].submit()');
    await page.getByText('This form did not come from a page of your session.').waitFor();
    const { json } = await server.call('GET', `/v1/requests/${id}`, agent);
    assert.equal(json.state, 'pending');
  });
});
