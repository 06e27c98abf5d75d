// Goal: people sign with passkeys, alone or as the second person, and sign in with them, while a
// server that wants something else signed gets nothing. Method: Chromium with its own virtual
// authenticator, a real host, and pages that ask for what they should not.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { createConsole } from '../../src/console/app.ts';
import { verifyDecline } from '../../src/crypto/signed-decision.ts';
import type { SignedLicense } from '../../src/index.ts';
import { openRequests } from '../../src/requests/index.ts';
import { openRig } from '../adapters/http/rig.ts';
import { openChromium, skipWithoutChromium } from '../chromium.ts';
import { skipWithout } from '../integration.ts';
import { pay } from '../requests/office.ts';
import { findBarriers } from './axe.ts';
import { addAuthenticator, buildSigner, Site } from './site.ts';

/** What a server could say about an occurrence that is to be resolved. */
const FALSE_CLAIMS: readonly (readonly [from: RegExp, to: string])[] = [
  [/"nonce":"[^"]{4}/, '"nonce":"0000'],
  [/"acme"/, '"evil"'],
];

describe('passkeys in the console', {
  skip: skipWithoutChromium() || skipWithout('console'),
}, () => {
  let browser: Browser;
  let page: Page;
  let site: Site;
  let authenticator: Awaited<ReturnType<typeof addAuthenticator>>;
  let passkey = '';

  before(async () => {
    buildSigner();
    [browser, site] = await Promise.all([openChromium(), Site.open()]);
    page = await browser.newPage();
    authenticator = await addAuthenticator(page);
    await site.start({});
    await site.enter(page);
  });
  after(async () => {
    await browser?.close();
    await site?.[Symbol.asyncDispose]();
  });

  async function open(payee: string): Promise<string> {
    const { id } = await site.host.requests.ask({ by: 'agent', run: 'run', ...pay(payee) });
    await page.goto(`${site.origin}/requests/${id}`);
    return id;
  }

  test('a passkey is registered, and its public half names this page', async () => {
    await open('nobody');
    await page.getByRole('button', { name: 'Register a passkey' }).click();
    passkey = await page.locator('#new-passkey').innerText();
    assert.match(passkey, /^passkey:es256:[\w-]{86}:[\w-]+@http:\/\/localhost:\d+$/);
  });

  test('what is read is signed with the passkey, verified by the host alone, and executed', async () => {
    await site.start({ [passkey]: 'bob' }, { key: passkey });
    await site.enter(page);
    const id = await open('globex');
    await page.getByRole('button', { name: 'Read and sign as bob with a passkey' }).click();
    const shown = await page.locator('dialog pre').first().innerText();
    assert.equal(shown, (await site.host.requests.get(id)).rendering);
    await page.getByRole('button', { name: 'Sign', exact: true }).click();
    await page.getByText('committed: what became durable').waitFor();
    assert.deepEqual(site.office.payments(), [{ payee: 'globex', amount: 10 }]);
  });

  test('without verifying the user there is no signature, and one made so is refused', async () => {
    const id = await open('initech');
    await authenticator.verifies(false);
    await page.getByRole('button', { name: 'Read and sign as bob with a passkey' }).click();
    await page.getByRole('button', { name: 'Sign', exact: true }).click();
    await page.getByText('Not signed: the passkey was not confirmed in time').waitFor();
    // A page that does not ask for verification gets an assertion that does not count.
    const license = await signedOnPage('discouraged');
    await assert.rejects(site.host.requests.answer(id, license), {
      code: 'ERR_EM_LICENSE_REFUSED',
      message: /signature-invalid/,
    });
    await authenticator.verifies(true);
    const verified = await signedOnPage('required');
    assert.equal((await site.host.requests.answer(id, verified)).state, 'approved');
  });

  /** Has the browser sign the newest pending request, by a script of the test's. */
  async function signedOnPage(userVerification: string): Promise<SignedLicense> {
    const [request] = await site.host.requests.list({ state: 'pending', limit: 1 });
    assert.ok(request);
    const { writeLicense } = await import('../../src/crypto/license.ts');
    const { issuerKeyId } = await import('../../src/crypto/issuer-key.ts');
    const { digestRecord } = await import('../../src/crypto/digest.ts');
    const { licenseRecord } = await import('../../src/protocol/license.ts');
    const { readPasskeyText } = await import('../../src/crypto/passkey-text.ts');
    const { draft, approved } = request.proposal;
    const drawNonce = () => 'f'.repeat(31) + (userVerification === 'required' ? '1' : '2');
    const signer = { issuer: 'bob', key: issuerKeyId(passkey), nowMs: Date.now(), drawNonce };
    const license = writeLicense(draft, signer, { expiresIn: '10m' });
    const challenge = digestRecord(licenseRecord, license);
    const { credential = '' } = readPasskeyText(passkey) ?? {};
    const parts = await page.evaluate(`(async () => {
      const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
      const base64url = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)))
        .replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
      const { response } = await navigator.credentials.get({ publicKey: {
        challenge: bytes('${Buffer.from(challenge, 'hex').toString('base64')}'),
        allowCredentials: [{ type: 'public-key', id: bytes('${Buffer.from(credential, 'base64url').toString('base64')}') }],
        userVerification: '${userVerification}',
      } });
      const { authenticatorData, clientDataJSON, signature } = response;
      return [authenticatorData, clientDataJSON, signature].map(base64url);
    })()`);
    const signature = ['passkey', ...(parts as readonly string[])].join('.');
    return { license, approved, signature };
  }

  test('the second person reads the same text and signs it too', async () => {
    await site.start({ [passkey]: 'bob' }, { key: passkey, second: ['alice'] });
    await site.enter(page);
    const id = await open('umbrella');
    await page.getByRole('button', { name: 'Read and sign as bob with a passkey' }).click();
    await page.getByRole('button', { name: 'Sign', exact: true }).click();
    await page.getByText('A second person must sign too').waitFor();
    assert.equal(await page.getByRole('button', { name: /Read and sign/ }).count(), 0);
    const { first } = await site.host.requests.get(id);
    await site.host.requests.answer(id, site.office.alice.countersign(first));
    await page.getByText('committed: what became durable').waitFor();
  });

  test('as the second person, a license of another request or outcome is not signed', async () => {
    const { alice } = site.office;
    await site.start({ [passkey]: 'bob' }, { key: passkey }, {});
    await site.enter(page);
    const other = await site.host.requests.ask({ by: 'agent', run: 'x', ...pay('other') });
    const id = await open('stark');
    const { proposal } = await site.host.requests.get(id);
    const signed = alice.sign(proposal, { expiresIn: '10m' });
    const moved = alice.sign(other.proposal, { expiresIn: '10m' });
    const text = JSON.stringify(signed);
    const falsified = [JSON.stringify(moved), text.replace('"is":10', '"is":9999')];
    assert.notEqual(falsified[1], text);
    // Otherwise the page would be refreshed from the server in between.
    await page.route('**/events', (route) => route.abort());
    for (const body of [...falsified, text]) {
      await page.route('**/license.json', (route) => route.fulfill({ body }));
      await page.reload();
      await page.getByRole('button', { name: /Read and sign as bob/ }).waitFor();
      await page.evaluate(`(() => {
        document.querySelector('#signer').dataset.first = 'alice';
        document.querySelector('#signer').replaceChildren();
        document.dispatchEvent(new Event('refreshed'));
      })()`);
      await page.getByRole('button', { name: /Read and sign as bob/ }).click();
      if (body === text) break;
      await page.getByText(/Not signed: /).waitFor();
      assert.equal(await page.locator('dialog').count(), 0);
    }
    await page.getByText('alice signed this. The license expires at').waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.unroute('**/license.json');
    await page.unroute('**/events');
  });

  test('a passkey signs a "no" as well, which then counts as its issuer\'s', async () => {
    const id = await open('disputed');
    await page.getByLabel('Reason (sent to the agent)').fill('the invoice is disputed');
    await page.getByRole('button', { name: 'Decline and sign as bob with a passkey' }).click();
    await page.getByText('Declined. The agent is told why.').waitFor();
    const { state, decline, detail } = await site.host.requests.get(id);
    assert.deepEqual([state, detail, decline?.issuer], ['declined', decline?.reason, 'bob']);
    assert.ok(decline && verifyDecline([passkey], decline));
  });

  test('an operator reads what may have happened, and resolves it with a passkey', async () => {
    await using rig = await openRig();
    await using runtime = await rig.start({ operators: { omar: { key: passkey } } });
    const license = await rig.approve(runtime);
    rig.faults.arm('drop-before');
    const { occurrence, kind } = await runtime.execute(license, {});
    assert.equal(kind, 'indeterminate');
    const store = join(site.office.folder, 'remote.db');
    await using requests = await openRequests({ runtime, store });
    await using app = createConsole({
      ...{ runtime, requests, adapters: [], origin: site.origin, issuers: {}, user: 'omar' },
      operators: { [passkey]: 'omar' },
    });
    const own = site.app;
    site.app = app;
    await site.enter(page);
    await page.goto(`${site.origin}/operations`);
    assert.deepEqual(await findBarriers(page), []);
    await page.getByRole('link', { name: 'Resolve' }).click();
    await page.getByRole('button', { name: 'Read and sign as omar' }).waitFor();
    assert.deepEqual(await findBarriers(page), []);
    await page.getByLabel('What did you find?').selectOption('did-not-happen');
    await page.getByRole('button', { name: 'Read and sign as omar' }).click();
    await page.getByText('Not signed: describe your evidence').waitFor();
    await page.getByLabel('What is your evidence?').fill('the statement shows no such payment');
    // A server that shows another outcome, or the license of another occurrence, gets nothing.
    for (const [from, to] of FALSE_CLAIMS) {
      await page.route('**/claim.json', async (route) => {
        const text = await (await route.fetch()).text();
        const body = text.replace(from, to);
        assert.notEqual(body, text);
        await route.fulfill({ body });
      });
      await page.getByRole('button', { name: 'Read and sign as omar' }).click();
      await page.getByText(/Not signed: the server sent /).waitFor();
      await page.unroute('**/claim.json');
    }
    await page.getByRole('button', { name: 'Read and sign as omar' }).click();
    await page.locator('dialog').getByText('It did not happen').waitFor();
    await page.getByRole('button', { name: 'Sign', exact: true }).click();
    await page.getByText('It did not happen, says omar').waitFor();
    await page.getByText('the statement shows no such payment').waitFor();
    assert.equal((await runtime.ledgers.resolution(occurrence))?.operator, 'omar');
    site.app = own;
    await site.enter(page);
  });

  test('a passkey that was taken out of the configuration signs nothing any longer', async () => {
    await site.start({ [passkey]: 'bob' }, { key: passkey });
    await site.enter(page);
    const id = await open('wayne');
    const license = await signedOnPage('required');
    await site.start({});
    await assert.rejects(site.host.requests.answer(id, license), {
      code: 'ERR_EM_LICENSE_REFUSED',
      message: /signature-invalid/,
    });
    await site.enter(page);
    await page.goto(`${site.origin}/requests/${id}`);
    assert.equal(await page.getByRole('button', { name: /Read and sign/ }).count(), 0);
  });

  test('a person signs in with a passkey of their own, once per page, and signs out everywhere', async () => {
    const login = await browser.newContext();
    const visitor = await login.newPage();
    await addAuthenticator(visitor);
    const people = { carol: { passkey: passkey.replace(/:[\w-]+@/, ':AAAA@'), issuers: ['bob'] } };
    await site.start({ [passkey]: 'bob' }, { key: passkey }, { login: { people } });
    await visitor.goto(`${site.origin}/history`);
    await visitor.getByRole('button', { name: 'Register a passkey for signing in' }).click();
    const own = await visitor.locator('#login pre').innerText();
    await site.start(
      { [passkey]: 'bob' },
      { key: passkey },
      {
        login: { people: { carol: { passkey: own, issuers: ['bob'], may: [] } } },
      },
    );
    await visitor.goto(`${site.origin}/history`);
    assert.equal(new URL(visitor.url()).pathname, '/login');
    assert.deepEqual(await findBarriers(visitor), []);
    const sending = visitor.waitForRequest('**/login/passkey');
    await visitor.getByRole('button', { name: 'Sign in with a passkey' }).click();
    const sent = await sending;
    await visitor.waitForURL(`${site.origin}/history`);
    const { 'content-type': type = '', origin = '' } = await sent.allHeaders();
    const again = { data: sent.postDataBuffer(), headers: { 'content-type': type, origin } };
    const replayed = await visitor.request.post(sent.url(), again);
    assert.equal(replayed.status(), 403, 'an assertion signs in once');
    const { id } = await site.host.requests.ask({ by: 'agent', run: 'reader', ...pay('reader') });
    await visitor.goto(`${site.origin}/requests/${id}`);
    assert.equal(await visitor.getByText('Your decision').count(), 0);
    await visitor.getByText('carol', { exact: true }).click();
    await visitor.getByRole('button', { name: 'Sign out everywhere' }).click();
    await visitor.goto(`${site.origin}/`);
    assert.equal(new URL(visitor.url()).pathname, '/login');
    await login.close();
  });
});
