// Goal: an approver sees what matters for a decision, asks back, hands over, and answers several
// requests of one operation, each with its own license; an operator recovers and reads what happened.
// Method: Chromium with a browser key on a real host, and axe on every page.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { z } from 'zod';
import { parseIssuerKey } from '../../src/crypto/issuer-key.ts';
import { parseSignedLicense, verifyLicense, verifySecond } from '../../src/crypto/signature.ts';
import { defineOperation, generateApprover, insert } from '../../src/index.ts';
import { policyOf } from '../../src/runtime/policy.ts';
import { openChromium, skipWithoutChromium } from '../chromium.ts';
import { skipWithout } from '../integration.ts';
import { findBarriers } from './axe.ts';
import { openFan } from './fan.ts';
import { buildSigner, Site } from './site.ts';

const payVendor = defineOperation({
  name: 'payVendor',
  adapter: 'books',
  input: z.strictObject({ id: z.int(), payee: z.string(), amount: z.int() }),
  approve: (input) => ({ effects: [insert('payment', input)] }),
  action: ({ id, payee, amount }) => ({
    sql: 'insert into payment (id, payee, amount) values (?, ?, ?)',
    values: [id, payee, amount],
  }),
});
const LIMITS = {
  amounts: [{ target: 'payment', column: 'amount', max: 10_000 }],
  maxEffects: 3000,
};

describe('deciding in the console', {
  skip: skipWithoutChromium() || skipWithout('console'),
}, () => {
  let browser: Browser;
  let page: Page;
  let site: Site;
  let key = '';
  const folder = mkdtempSync(join(tmpdir(), 'deciding-'));

  before(async () => {
    buildSigner();
    [browser, site] = await Promise.all([openChromium(), Site.open()]);
    page = await browser.newPage();
    site.operations = { payVendor };
    await site.start({});
    await site.enter(page);
    const { id } = await ask(1, 'nobody', 10);
    await page.goto(`${site.origin}/requests/${id}`);
    await page.getByRole('button', { name: 'Create a browser key' }).click();
    key = await page.locator('#signer pre').first().innerText();
    const bob = {
      key,
      may: ['books'],
      sources: ['contract', 'rehearsed'],
      limits: LIMITS,
    } as const;
    const policy = policyOf({ issuers: { bob, carol: bob }, adapters: { books: {} } });
    await site.start({ [key]: 'bob' }, bob, { policy });
    await site.host.requests.withdraw(id);
    await site.enter(page);
  });
  after(async () => {
    await browser?.close();
    await site?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  async function ask(id: number, payee: string, amount: number) {
    const input = { id, payee, amount };
    return await site.host.requests.ask({
      ...{ by: 'billing', run: `run ${id}`, reason: `for ${payee}` },
      ...{ operation: 'payVendor', input },
    });
  }

  test('limits stand beside the value, and what goes beyond them is said before signing', async () => {
    const { id } = await ask(2, 'globex', 350);
    await page.goto(`${site.origin}/requests/${id}`);
    const limits = await page.locator('.card', { hasText: 'Limits' }).innerText();
    assert.match(limits, /bob\s*within/i);
    assert.match(limits, /payment\.amount: 350 of 10,000/);
    const beyond = await ask(3, 'initech', 10_001);
    await page.goto(`${site.origin}/requests/${beyond.id}`);
    const refused = await page.locator('.card', { hasText: 'Limits' }).innerText();
    assert.match(refused, /may not sign this[\s\S]*the limit is 10000/i);
    await site.host.requests.decline(beyond.id, { by: 'bob', reason: 'too much' });
    await page.goto(`${site.origin}/requests/${id}`);
    await page.getByText('Earlier requests for payVendor').waitFor();
  });

  test('an approver asks back and hands over; the request stays open and says so', async () => {
    const { id } = await ask(4, 'hooli', 20);
    await page.goto(`${site.origin}/requests/${id}`);
    await page.getByLabel('Question for billing').fill('<b>which invoice?</b>');
    await page.getByRole('button', { name: 'Ask', exact: true }).click();
    await page.getByText('Question sent. The request stays open').waitFor();
    assert.equal(await page.locator('.talk b b').count(), 0);
    await site.host.requests.forAgent('billing').reply(id, 'number 4711');
    await page.getByText('number 4711').waitFor();
    await page.getByRole('combobox', { name: 'approver' }).selectOption('carol');
    await page.getByRole('button', { name: 'Hand over' }).click();
    await page.getByText('Handed to carol.').waitFor();
    await page.goto(`${site.origin}/`);
    await page.getByText('for carol').waitFor();
    assert.equal((await site.host.requests.get(id)).state, 'pending');
    await site.host.requests.withdraw(id);
  });

  test('several of one operation are read together, unusual ones first, each with its license', async () => {
    const amounts = Array.from({ length: 50 }, (_, index) => (index === 30 ? 9000 : 100 + index));
    for (const [index, amount] of amounts.entries()) await ask(100 + index, `p${index}`, amount);
    const [stale] = await site.host.requests.list({ state: 'pending', limit: 1 });
    await page.goto(`${site.origin}/`);
    await page.getByRole('link', { name: /Answer \d+ × payVendor together/ }).click();
    const first = await page.locator('.bulk li').first().innerText();
    assert.match(first, /unusual/);
    assert.match(first, /9000/);
    const boxes = page.locator('input[name=id]');
    assert.equal(await boxes.count(), 50);
    await page.getByRole('button', { name: 'Select the 49 usual ones' }).click();
    assert.equal(await page.locator('input[name=id]:checked').count(), 49);
    await boxes.first().check();
    // One of them is answered by another person while this one reads.
    const [other] = await site.host.requests.list({ state: 'pending', limit: 1 });
    assert.equal(other?.id, stale?.id);
    await page.getByRole('button', { name: 'Read and sign as bob' }).click();
    await page.locator('dialog').waitFor();
    assert.equal(await page.locator('dialog pre:not(.unsigned)').count(), 50);
    await site.host.requests.decline(other?.id ?? '', { by: 'carol', reason: 'not this one' });
    await page.getByRole('button', { name: 'Sign', exact: true }).click();
    await page.getByText('49 of 50 signed.').waitFor();
    await page.getByText(/ERR_EM_REQUEST_CLOSED.*declined, answered by carol/).waitFor();
    // The page shows what is left, with what came of it above and nothing that is out of date.
    await page.getByText('1 waiting').waitFor();
    await page.getByText('49 of 50 signed.').waitFor();
    const outdated = page.locator('.changed, .badge:text("50 waiting"), nav .count:text("50")');
    assert.equal(await outdated.count(), 0);
    const done = async () =>
      site.office.payments().filter(({ payee }) => /^p\d/.test(String(payee)));
    for (let tries = 0; tries < 100 && (await done()).length < 49; tries += 1)
      await page.waitForTimeout(50);
    assert.equal((await done()).length, 49);
    const answered = await site.host.requests.list({ adapter: 'books', limit: 100 });
    const occurrences = new Set(answered.flatMap(({ occurrence }) => occurrence ?? []));
    assert.equal(occurrences.size, 49);
  });

  test('of a large outcome the columns are summed up, extremes come first, and values are found', async () => {
    const values = Array.from({ length: 300 }, (_, n) => `('payee ${n}', ${n === 123 ? 4321 : 5})`);
    const sql = `insert into payment (payee, amount) values ${values.join()}`;
    const asked = { by: 'billing', run: 'large', adapter: 'books', action: { sql } };
    const { id } = await site.host.requests.ask(asked);
    await page.goto(`${site.origin}/requests/${id}`);
    assert.match(await page.locator('tbody tr').first().innerText(), /4321/);
    await page.getByText('insert of 300 rows, by column').waitFor();
    await page.getByLabel('Find').fill('payee 77');
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await page.getByText('1 of 300 changes contain “payee 77”.').waitFor();
    assert.equal(await page.locator('.changes tbody tr').count(), 1);
    await site.host.requests.withdraw(id);
  });

  test('a change of the state is noticed while the page is open, and proposing again shows it', async () => {
    const requests = site.host.requests;
    const action = { sql: 'update budget set left = left - 30 where id = 1 returning left' };
    const { id } = await requests.ask({ by: 'billing', run: 'stale', adapter: 'books', action });
    await page.goto(`${site.origin}/requests/${id}`);
    site.office.db.exec('update budget set left = 90 where id = 1');
    await page.evaluate(`fetch('/requests/${id}/check')`);
    await page.getByText(/^No longer valid: ~ budget id=1 .*: left is 90 now$/).waitFor();
    await page.getByRole('button', { name: 'Propose again' }).click();
    await page.getByText('Difference from the earlier proposal').waitFor();
    const shown = await page.locator('.difference').innerText();
    assert.match(shown, /- .*budget id=1 .*100 -> 70[\s\S]*\+ .*budget id=1 .*90 -> 60/);
  });

  test('every page passes axe, at 360 pixels, in light and dark, and is used with the keyboard', async () => {
    const { requests } = site.host;
    const idOf = async (state: 'pending' | 'committed' | 'declined' | 'withdrawn') =>
      (await requests.list({ state, limit: 1 }))[0]?.id;
    const [done] = await requests.list({ state: 'committed', limit: 1 });
    const ids = [await idOf('pending'), done?.id, await idOf('declined'), await idOf('withdrawn')];
    const paths = [
      ...['/', '/?state=all', '/bulk/payVendor', '/history', `/history/${done?.occurrence}`],
      ...['/operations', '/operations/workflows', '/nothing'],
      ...ids.map((id) => `/requests/${id}`),
    ];
    for (const path of paths) {
      await page.goto(`${site.origin}${path}`);
      assert.deepEqual(await findBarriers(page), [], path);
    }
    await page.goto(`${site.origin}/requests/${ids[0]}`);
    await page.getByRole('button', { name: 'Read and sign as bob' }).click();
    await page.locator('dialog').waitFor();
    assert.deepEqual(await findBarriers(page), [], 'the text to sign');
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.goto(`${site.origin}/`);
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'Skip to content');
  });

  test('the graph of a workflow passes axe, with a run that waits and one that stopped', async () => {
    await using fan = await openFan(site.origin);
    await fan.run();
    const own = site.app;
    site.app = fan.app;
    try {
      await site.enter(page);
      for (const path of ['', '/stops', '/waits']) {
        await page.goto(`${site.origin}/operations/workflows${path}`);
        assert.equal(await page.locator('.graph').count(), path === '' ? 0 : 1);
        assert.deepEqual(await findBarriers(page), [], path);
      }
      await page.goto(`${site.origin}/operations`);
      assert.deepEqual(await findBarriers(page), []);
    } finally {
      site.app = own;
      await site.enter(page);
    }
  });

  test('the verifier works from a saved file, without the server', async () => {
    const [done] = await site.host.requests.list({ state: 'committed', limit: 1 });
    await page.goto(`${site.origin}/history/${done?.occurrence}`);
    const save = async (name: string, file: string) => {
      const downloading = page.waitForEvent('download');
      await page.getByRole('link', { name }).click();
      await (await downloading).saveAs(join(folder, file));
    };
    await save('Download the receipt', 'receipt.json');
    await save('Download the verifier', 'verifier.html');
    // The page in the package names no keys, and nothing stands in for them.
    const packaged = readFileSync('src/console/assets/verifier.html', 'utf8');
    assert.match(packaged, /<textarea id="keys"[^>]*><\/textarea>/);
    const offline = await browser.newContext({ offline: true });
    const saved = await offline.newPage();
    const complaints: string[] = [];
    saved.on('pageerror', (error) => complaints.push(error.message));
    await saved.goto(pathToFileURL(join(folder, 'verifier.html')).href);
    await saved.setInputFiles('#files', join(folder, 'receipt.json'));
    await saved.getByRole('button', { name: 'Verify' }).click();
    await saved.getByText('receipt.json: verified, signed by').waitFor();
    await saved.getByText('committed: what became durable is what was approved').waitFor();
    assert.deepEqual(await findBarriers(saved), []);
    const text = readFileSync(join(folder, 'receipt.json'), 'utf8');
    const envelope = JSON.parse(text);
    const payload = Buffer.from(envelope.payload, 'base64').toString();
    const altered = payload.replace('"committed"', '"rejected"');
    assert.notEqual(altered, payload);
    const forged = { ...envelope, payload: Buffer.from(altered).toString('base64') };
    await saved.setInputFiles('#files', []);
    await saved.locator('#receipt').fill(JSON.stringify(forged));
    await saved.getByRole('button', { name: 'Verify' }).click();
    await saved.getByText(/pasted: not verified: a signature does not match/).waitFor();
    await saved.locator('#keys').fill(`ed25519:${'A'.repeat(42)}E`);
    await saved.locator('#receipt').fill(text);
    await saved.getByRole('button', { name: 'Verify' }).click();
    await saved.getByText(/not signed with a key that you trust/).waitFor();
    assert.deepEqual(complaints, []);
    await offline.close();
  });

  test('a saved page signs with a key file, first and second, without the server', async () => {
    const { requests } = site.host;
    const [carol, dave] = ['carol', 'dave'].map(generateApprover);
    assert.ok(carol && dave);
    const { id, proposal } = await ask(5000, 'offline', 10);
    await page.goto(`${site.origin}/requests/${id}`);
    await page.getByText('Sign with a key file').click();
    const downloading = page.waitForEvent('download');
    await page.getByRole('link', { name: 'offline signer' }).click();
    await (await downloading).saveAs(join(folder, 'signer.html'));
    const write = (name: string, content: object) => {
      writeFileSync(join(folder, name), JSON.stringify(content));
      return join(folder, name);
    };
    const offline = await browser.newContext({ offline: true });
    const saved = await offline.newPage();
    await saved.goto(pathToFileURL(join(folder, 'signer.html')).href);
    assert.deepEqual(await findBarriers(saved), []);
    const sign = async (key: object, file: string) => {
      await saved.setInputFiles('#key', write('key.json', key));
      await saved.setInputFiles('#files', file);
      await saved.getByRole('button', { name: 'Read and sign' }).click();
      assert.equal(await saved.locator('dialog pre').first().innerText(), proposal.rendering);
      await saved.getByRole('button', { name: 'Sign', exact: true }).click();
      const saving = saved.waitForEvent('download');
      await saved.getByRole('link', { name: /^Save / }).click();
      const out = join(folder, `${Object(key).issuer}.json`);
      await (await saving).saveAs(out);
      return out;
    };
    const once = await sign({ version: 1, ...carol }, write('proposal.json', proposal));
    await saved.reload();
    const twice = await sign({ version: 1, ...dave }, once);
    const signed = parseSignedLicense(readFileSync(twice, 'utf8'));
    assert.ok(verifyLicense([parseIssuerKey(carol.publicKey)], signed));
    assert.ok(
      signed.second &&
        verifySecond([parseIssuerKey(dave.publicKey)], signed.license, signed.second),
    );
    const text = JSON.stringify(proposal).replace('"is":10', '"is":9999');
    await saved.reload();
    await saved.setInputFiles('#key', write('key.json', { version: 1, ...carol }));
    await saved.setInputFiles('#files', write('falsified.json', JSON.parse(text)));
    await saved.getByRole('button', { name: 'Read and sign' }).click();
    await saved.getByText(/Not signed: the proposal contradicts itself/).waitFor();
    await offline.close();
    await requests.withdraw(id);
  });

  test('what one person signed, another signs too, several at once', async () => {
    const { office } = site;
    const sources = ['contract'] as const;
    await site.start({ [key]: 'alice' }, { second: ['alice'], sources }, {}, { key });
    const ids: string[] = [];
    for (const number of [6001, 6002, 6003]) {
      const { id, proposal } = await ask(number, `twice-${number}`, 10);
      if (number !== 6003)
        await site.host.requests.answer(id, office.bob.sign(proposal, { expiresIn: '10m' }));
      ids.push(id);
    }
    await site.enter(page);
    await page.goto(`${site.origin}/bulk/payVendor`);
    for (const id of ids) await page.locator(`input[value=${id}]`).check();
    await page.getByRole('button', { name: 'Read and sign as alice' }).click();
    await page.getByText('Another person has already signed 2 of them.').waitFor();
    await page.getByRole('button', { name: 'Sign', exact: true }).click();
    await page.getByText('3 of 3 signed.').waitFor();
    const answered = await Promise.all(ids.map((id) => site.host.requests.wait(id)));
    assert.deepEqual(
      answered.map(({ state, answeredBy }) => [state, answeredBy]),
      [
        ['committed', 'bob, alice'],
        ['committed', 'bob, alice'],
        ['committed', 'alice'],
      ],
    );
  });

  test('what no one answered in time is expired, not refused, and can be proposed again', async () => {
    const { id } = await ask(7001, 'late', 10);
    await page.goto(`${site.origin}/requests/${id}`);
    site.office.clock.advance(25 * 3_600_000);
    await page.evaluate(`fetch('/requests/${id}/check')`);
    await page.locator('h1 + .badge', { hasText: 'expired' }).waitFor();
    const about = await page.locator('.title, .detail, .narrow').allInnerTexts();
    assert.doesNotMatch(about.join('\n'), /declined|refused|rejected/i);
    await page.getByRole('button', { name: 'Propose again' }).click();
    await page.locator('h1 + .badge', { hasText: 'waiting' }).waitFor();
  });
});
