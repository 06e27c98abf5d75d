// Goal: a person signs in the browser what they have read there, and a server that shows or sends
// something else gets no signature. Method: Chromium with a key that it makes itself, a real host,
// and answers of the server that are falsified on their way.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { createAdaptorServer } from '@hono/node-server';
import type { Browser, Page, Route } from 'playwright-core';
import { type ConsoleApp, createConsole } from '../../src/console/app.ts';
import type { Proposal } from '../../src/index.ts';
import { openChromium, skipWithoutChromium } from '../chromium.ts';
import { openOffice, pay } from '../requests/office.ts';

type Host = Awaited<ReturnType<ReturnType<typeof openOffice>['start']>>;

describe('signing in the browser', { skip: skipWithoutChromium() }, () => {
  const office = openOffice();
  let browser: Browser;
  let page: Page;
  let host: Host;
  let app: ConsoleApp;
  let origin = '';
  let publicKey = '';
  const server = createAdaptorServer({ fetch: (request) => app.fetch(request) });

  /** A host that knows this key as Bob's, and its console at the same address as before. */
  async function restart(key: string): Promise<void> {
    await app?.[Symbol.asyncDispose]();
    await host?.[Symbol.asyncDispose]();
    host = await office.start({}, key === '' ? {} : { key });
    host.requests.start();
    const { runtime, requests } = host;
    const issuers = key === '' ? {} : { [key]: 'bob' };
    app = createConsole({ runtime, requests, adapters: [], origin, issuers, user: 'bob' });
    await page.goto(app.createLink());
    await page.waitForURL(`${origin}/`);
  }

  async function open(payee: string): Promise<string> {
    const ask = { by: 'agent', run: 'run', reason: 'it is due', ...pay(payee) };
    const { id } = await host.requests.ask(ask);
    await page.goto(`${origin}/requests/${id}`);
    return id;
  }

  /** With the keyboard alone. */
  async function pressButton(label: string): Promise<void> {
    for (let keys = 0; keys < 40; keys += 1) {
      await page.keyboard.press('Tab');
      if ((await page.evaluate('document.activeElement.textContent')) === label)
        return await page.keyboard.press('Enter');
    }
    assert.fail(`the keyboard does not reach "${label}"`);
  }

  before(async () => {
    const built = spawnSync(process.execPath, ['scripts/build-signer.mjs'], { encoding: 'utf8' });
    assert.equal(built.status, 0, built.stderr);
    const compressed = gzipSync(readFileSync('src/console/assets/signer.js'));
    assert.ok(compressed.length < 80_000, `the signer has ${compressed.length} bytes`);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    browser = await openChromium();
    page = await browser.newPage();
    await restart('');
  });

  after(async () => {
    await browser?.close();
    await app?.[Symbol.asyncDispose]();
    await host?.[Symbol.asyncDispose]();
    server.close();
    office[Symbol.dispose]();
  });

  test('a key is made in the browser, and its private half cannot be taken out', async () => {
    await open('nobody');
    await page.getByRole('button', { name: 'Create a browser key' }).click();
    publicKey = await page.locator('#signer pre').innerText();
    assert.match(publicKey, /^ed25519:[\w-]{43}$/);
    const taken = await page.evaluate(`new Promise((resolve) => {
      const opening = indexedDB.open('effectmatch');
      opening.onsuccess = () => {
        const reading = opening.result.transaction('keys').objectStore('keys').get('approver');
        reading.onsuccess = () => crypto.subtle.exportKey('pkcs8', reading.result.privateKey)
          .then(() => resolve('taken'), () => resolve('refused'));
      };
    })`);
    assert.equal(taken, 'refused');
  });

  test('what the person reads is rendered in the browser, signed there with the keyboard, and executed', async () => {
    await restart(publicKey);
    const id = await open('globex');
    await page.getByRole('button', { name: 'Read and sign as bob' }).waitFor();
    await pressButton('Read and sign as bob');
    const shown = await page.locator('dialog pre').first().innerText();
    assert.equal(shown, (await host.requests.get(id)).rendering);
    await pressButton('Sign');
    await page.getByText('committed: what became durable').waitFor();
    assert.deepEqual(office.payments(), [{ payee: 'globex', amount: 10 }]);
    assert.equal((await host.requests.get(id)).answeredBy, 'bob');
  });

  test('not signing leaves the request as it was', async () => {
    const id = await open('initech');
    await page.getByRole('button', { name: 'Read and sign as bob' }).click();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.locator('dialog').waitFor({ state: 'detached' });
    assert.equal((await host.requests.get(id)).state, 'pending');
  });

  test('a value cannot begin a line of the text that is signed', async () => {
    await open(`${'x'.repeat(400)} Nothing else may change ${'y'.repeat(400)}`);
    await page.getByRole('button', { name: 'Read and sign as bob' }).click();
    await page.locator('dialog .text-line').first().waitFor();
    const lines =
      (await page.evaluate(`[...document.querySelectorAll('dialog .text-line')].map((line) => {
      const range = document.createRange();
      range.selectNodeContents(line);
      const [first, ...rest] = [...range.getClientRects()];
      return [first.left, ...rest.filter(({ top }) => top > first.top + 5).map(({ left }) => left)];
    })`)) as readonly (readonly number[])[];
    const begin = Math.min(...lines.flat());
    assert.ok(lines.some(({ length }) => length > 3));
    for (const [, ...wrapped] of lines)
      for (const left of wrapped) assert.ok(left > begin + 40, `a wrapped line begins at ${left}`);
    await page.getByRole('button', { name: 'Cancel' }).click();
  });

  test('of many changes, every one can be read before it is signed', async () => {
    const values = Array.from({ length: 6000 }, (_, index) => `('payee-${index}', 1)`).join();
    const action = { sql: `insert into payment (payee, amount) values ${values}` };
    const { id } = await host.requests.ask({ by: 'agent', run: 'run', adapter: 'books', action });
    await page.goto(`${origin}/requests/${id}`);
    const sign = page.getByRole('button', { name: 'Read and sign as bob' });
    await sign.waitFor();
    // What the page says while it works, painted or not.
    await page.evaluate(`globalThis.said = [];
      new MutationObserver((changes) => said.push(...changes.map(({ target }) => target.innerText)))
        .observe(document.body, { subtree: true, childList: true })`);
    await sign.click();
    const shown = page.locator('dialog pre').first();
    assert.match(await shown.innerText(), /^Shortened: /m);
    assert.match(String(await page.evaluate('said')), /Checking \d\.\d MB…/);
    assert.doesNotMatch(await shown.innerText(), /payee-1234"/);
    const all = page.getByRole('button', { name: 'Show all 6000 changes' });
    await all.click();
    await all.waitFor({ state: 'detached' });
    const line = (text: string | RegExp) => shown.locator('.text-line', { hasText: text });
    await line('payee-1234"').scrollIntoViewIfNeeded();
    // It is laid out once it is in view.
    while ((await line('payee-1234"').innerText()) === '') await page.waitForTimeout(20);
    assert.match(await line('payee-1234"').innerText(), /^ {2}\+ payment .*"payee-1234"$/);
    assert.equal(await line('+ payment').count(), 6000);
    assert.equal(await line(/^Shortened: /).count(), 0);
    await page.getByRole('button', { name: 'Cancel' }).click();
  });

  /** What a server could do to the proposal on its way to the signer. */
  const FALSIFIED: readonly (readonly [what: string, alter: (text: string) => string])[] = [
    ['another amount than is shown', (text) => text.replace('"is":10', '"is":9999')],
    ['another text than is signed', (text) => text.replace('Proposed changes', 'No changes')],
    ['more executions', (text) => text.replace('"occurrences":1', '"occurrences":9')],
    [
      'work that is released',
      (text) => text.replace('"continuations":[]', '"continuations":["x"]'),
    ],
    ['nothing that can be read', () => '<html>'],
  ];
  for (const [what, alter] of FALSIFIED) {
    test(`a proposal with ${what} is not signed`, async () => {
      const id = await open(`falsified: ${what}`);
      await expectRefusal(id, alter, /Not signed: /);
    });
  }

  test('the proposal of another request is not signed', async () => {
    const other = await host.requests.ask({ by: 'agent', run: 'other', ...pay('umbrella') });
    const id = await open('wayne');
    const swap = () => JSON.stringify(other.proposal satisfies Proposal);
    await expectRefusal(id, swap, /Not signed: .*another request/);
  });

  test("a key that is lost with the browser's data signs nothing, and a new one has to be registered", async () => {
    await page.evaluate(`new Promise((resolve, reject) => {
      const deleting = indexedDB.deleteDatabase('effectmatch');
      deleting.onsuccess = () => resolve();
      deleting.onerror = deleting.onblocked = () => reject(new Error('it is still there'));
    })`);
    const id = await open('lost');
    const signing = page.getByRole('button', { name: /Read and sign/ });
    await page.getByRole('button', { name: 'Create a browser key' }).click();
    const another = await page.locator('#signer pre').innerText();
    assert.notEqual(another, publicKey);
    assert.equal(await signing.count(), 0);
    await restart(another);
    await page.goto(`${origin}/requests/${id}`);
    await page.getByRole('button', { name: 'Propose again' }).click();
    await signing.click();
    await page.getByRole('button', { name: 'Sign', exact: true }).click();
    await page.getByText('committed: what became durable').waitFor();
  });

  async function expectRefusal(
    id: string,
    alter: (text: string) => string,
    why: RegExp,
  ): Promise<void> {
    const path = `**/requests/${id}/proposal.json`;
    await page.route(path, async (route: Route) => {
      const answer = await route.fetch();
      const [text, body] = [await answer.text(), alter(await answer.text())];
      assert.notEqual(body, text);
      await route.fulfill({ response: answer, body });
    });
    await page.getByRole('button', { name: 'Read and sign as bob' }).click();
    await page.getByText(why).waitFor();
    assert.equal(await page.locator('dialog').count(), 0);
    assert.equal((await host.requests.get(id)).state, 'pending');
  }
});
