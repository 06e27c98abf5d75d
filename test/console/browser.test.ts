// Goal: a person with a browser and a key file approves what agents ask for, from the command that
// serves the inbox to the verdict. Method: `effectmatch serve --demo` as a real process, Chromium,
// and `effectmatch approve` as the person would run it. EFFECTMATCH_PICTURES=folder keeps the pictures
// of the approver's guide, which are made on the way.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { openChromium, skipWithoutChromium } from '../chromium.ts';
import { runCommand, startCommand } from '../cli/command.ts';
import { buildSigner } from './site.ts';

/** Starts the command and returns what it prints when it listens. */
async function startServing() {
  const { child, ended } = startCommand(['serve', '--demo']);
  let printed = '';
  child.stdout.setEncoding('utf8');
  for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
    printed += chunk;
    if (printed.includes('Ctrl-C')) break;
  }
  const link = /http:\S+\/enter\/\S+/.exec(printed)?.[0] ?? '';
  const key = /key: (\S+)/.exec(printed)?.[1] ?? '';
  return { child, ended, link, key };
}

describe('the console in a browser', { skip: skipWithoutChromium() }, () => {
  let browser: Browser;
  let served: Awaited<ReturnType<typeof startServing>>;
  let page: Page;
  const complaints: string[] = [];

  before(async () => {
    buildSigner();
    [browser, served] = await Promise.all([openChromium(), startServing()]);
    page = await browser.newPage();
    page.on('console', (message) => {
      if (message.type() === 'error') complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(served.link);
    await page.waitForURL(new URL('/', served.link).href);
  });

  after(async () => {
    await browser?.close();
    served?.child.kill('SIGINT');
    await served?.ended;
  });

  /** Keeps what the browser shows, for the guide. */
  async function picture(name: string, width = 1100): Promise<void> {
    const folder = process.env.EFFECTMATCH_PICTURES;
    if (folder === undefined) return;
    const size = page.viewportSize();
    await page.setViewportSize({ width, height: width < 500 ? 720 : 760 });
    await page.screenshot({ path: join(folder, `${name}.png`) });
    if (size !== null) await page.setViewportSize(size);
  }

  test('a proposal is downloaded, signed with the command line, sent back, and committed', async () => {
    assert.equal(await page.locator('.list li').count(), 8);
    await picture('inbox');
    await picture('phone', 360);
    await page.getByText('Invoice 4711 is due today').click();
    await page.getByRole('button', { name: 'Register a passkey' }).waitFor();
    await picture('request');
    await page.getByText('Sign with a key file').click();
    const downloading = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Download the proposal' }).click();
    const proposal = join(dirname(served.key), 'proposal.json');
    await (await downloading).saveAs(proposal);
    const out = join(dirname(served.key), 'license.json');
    const signed = await runCommand([
      'approve',
      proposal,
      '--key',
      served.key,
      '--yes',
      '--out',
      out,
    ]);
    assert.equal(signed.code, 0, signed.stderr);
    await page.setInputFiles('input[type=file]', out);
    await page.getByRole('button', { name: 'Approve with this license' }).click();
    await page.getByText('committed: what became durable').waitFor();
    await page.getByRole('link', { name: 'Timeline and receipt' }).click();
    assert.equal(await page.locator('.timeline li').count(), 2);
    await picture('verdict');
    await page.goto(new URL('/history', served.link).href);
    await page.getByText('Nothing changed: ').click();
    await page.getByText('1 extra').waitFor();
    await picture('rejected');
  });

  test('declining with the keyboard alone closes the request, and the inbox follows', async () => {
    await page.getByRole('link', { name: 'Inbox' }).first().click();
    const watching = await browser.newPage({ storageState: await page.context().storageState() });
    await watching.goto(page.url());
    assert.equal(await watching.locator('.list li').count(), 7);
    await page.locator('a.row').first().press('Enter');
    const reason = page.getByLabel('Reason (sent to the agent)');
    await reason.focus();
    await page.keyboard.type('too expensive');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByText('Declined. The agent is told why.').waitFor();
    await watching.locator('.list li:nth-child(6):last-child').waitFor();
    await watching.close();
  });

  test('the demo takes a key that the browser makes, and what it signs is committed', async () => {
    await page.goto(new URL('/?by=billing-agent', served.link).href);
    await page.getByText('Invoice 4712 is due.').click();
    const { pathname } = new URL(page.url());
    await page.getByRole('button', { name: 'Create a browser key' }).click();
    await page.getByRole('button', { name: 'Read and sign as ap-team' }).click();
    await page.locator('dialog').waitFor();
    await picture('signing');
    assert.equal(new URL(page.url()).pathname, pathname);
    await page.getByRole('button', { name: 'Sign', exact: true }).click();
    await page.getByText('committed: what became durable').waitFor();
    await page.goto(new URL('/', served.link).href);
    await page.getByRole('link', { name: 'Answer 3 × pay-invoice together' }).click();
    assert.match(await page.locator('.bulk li').first().innerText(), /unusual[\s\S]*9400/);
    await picture('several');
  });

  test('no page is wider than a phone, in light and dark', async () => {
    await page.setViewportSize({ width: 360, height: 740 });
    const first = await page.goto(new URL('/', served.link).href);
    assert.equal(first?.status(), 200);
    const request = await page.locator('a.row').first().getAttribute('href');
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      for (const path of ['/', request ?? '', '/history', '/operations', '/?state=all']) {
        await page.goto(new URL(path, served.link).href);
        const width = await page.evaluate('document.documentElement.scrollWidth');
        assert.equal(width, 360, `${colorScheme} ${path}`);
      }
    }
  });

  test('the browser had nothing to complain about, and Ctrl-C removes the demo', async () => {
    assert.deepEqual(complaints, []);
    await browser.close();
    served.child.kill('SIGINT');
    assert.equal((await served.ended).code, 0);
    assert.equal(existsSync(dirname(served.key)), false);
  });
});
