// Goal: only the people of the configuration sign in, each in the browser in which they began, and
// nothing that a stranger can send opens or takes over a session. Method: a real identity provider
// (oidc-provider) for the way that works, and one of the test's for tokens that must not count.
import assert from 'node:assert/strict';
import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { z } from 'zod';
import type { ConsoleOptions } from '../../src/console/app.ts';
import { createConsole } from '../../src/console/app.ts';
import { defineOperation, generated, insert } from '../../src/index.ts';
import { skipWithout } from '../integration.ts';
import { OfficeClock, openOffice, pay } from '../requests/office.ts';
import { listen, startProvider } from './provider.ts';

const ORIGIN = 'http://127.0.0.1:8080';

const settle = defineOperation({
  name: 'settle',
  adapter: 'books',
  input: z.strictObject({ payee: z.string() }),
  approve: ({ payee }) => ({
    effects: [insert('payment', { id: generated('id'), payee, amount: 5 })],
  }),
  action: ({ payee }) => ({
    sql: 'insert into payment (payee, amount) values (?, 5)',
    values: [payee],
  }),
});

type Fetch = (request: Request) => Response | Promise<Response>;

/** What a browser keeps of one host. */
class Jar {
  readonly cookies = new Map<string, string>();
  readonly set: string[] = [];

  take({ headers }: Response): void {
    for (const line of headers.getSetCookie()) {
      this.set.push(line);
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (/max-age=0|expires=thu, 01 jan 1970/i.test(line)) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
  }

  get header(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  }
}

/** A browser that follows what it is told, with a jar for each host. */
class Browser {
  readonly console = new Jar();
  readonly #provider = new Jar();
  readonly #fetch: Fetch;

  constructor(app: Fetch) {
    this.#fetch = app;
  }

  async get(path: string, headers: Record<string, string> = {}): Promise<Response> {
    const own = { host: '127.0.0.1:8080', cookie: this.console.header };
    const answer = await this.#fetch(
      new Request(`${ORIGIN}${path}`, { headers: { ...own, ...headers } }),
    );
    this.console.take(answer);
    return answer;
  }

  /** Goes to the provider as this person and returns the address that it sends the browser to. */
  async consent(place: string, login: string): Promise<URL> {
    let [url, form] = [place, undefined as string | undefined];
    for (let step = 0; step < 12 && !url.startsWith(ORIGIN); step += 1) {
      const answer = await fetch(url, {
        redirect: 'manual',
        headers: {
          cookie: this.#provider.header,
          ...(form && { 'content-type': 'application/x-www-form-urlencoded' }),
        },
        ...(form && { method: 'POST', body: form }),
      });
      this.#provider.take(answer);
      const to = answer.headers.get('location');
      const text = await answer.text();
      form = undefined;
      if (to !== null) url = new URL(to, url).href;
      else {
        const prompt = /name="prompt" value="(\w+)"/.exec(text)?.[1] ?? '';
        form = new URLSearchParams({ prompt, login, password: 'x' }).toString();
        url = new URL(/action="([^"]+)"/.exec(text)?.[1] ?? '', url).href;
      }
    }
    return new URL(url);
  }
}

describe('signing in with OpenID Connect', { skip: skipWithout('console') }, () => {
  const office = openOffice();
  let host: Awaited<ReturnType<typeof office.start>>;
  let provider: Awaited<ReturnType<typeof startProvider>>;
  before(async () => {
    host = await office.start({ operations: { settle } });
    provider = await startProvider(ORIGIN);
  });
  after(async () => {
    await host[Symbol.asyncDispose]();
    provider[Symbol.dispose]();
    office[Symbol.dispose]();
  });

  const PEOPLE = {
    'alice@example.com': { issuers: ['alice'] },
    'mallory@example.com': {},
    'rita@example.com': { may: [] },
    'olga@example.com': { may: ['answer', 'operate'], operations: ['settle'] },
  } as const;

  function open(more: Partial<ConsoleOptions> = {}) {
    const { runtime, requests } = host;
    const login = { people: PEOPLE, oidc: provider.config };
    const parts = { runtime, requests, adapters: ['books'], origin: ORIGIN, user: 'local' };
    const { clock } = office;
    const issuers = { [office.alice.publicKey]: 'alice' };
    return createConsole({ ...parts, issuers, clock, login, ...more });
  }

  async function signIn(browser: Browser, login: string, to = '/'): Promise<Response> {
    const begun = await browser.get(`/login/oidc?to=${encodeURIComponent(to)}`);
    assert.equal(begun.status, 302);
    const back = await browser.consent(begun.headers.get('location') ?? '', login);
    return await browser.get(back.pathname + back.search);
  }

  test('a person signs in, lands where they wanted to go, and answers under their name', async () => {
    await using app = open();
    const { id } = await host.requests.ask({ by: 'agent', run: 'login', ...pay('globex') });
    const browser = new Browser(app.fetch);
    const asked = await browser.get(`/requests/${id}`);
    assert.equal(asked.headers.get('location'), `/login?to=%2Frequests%2F${id}`);
    const entered = await signIn(browser, 'alice', `/requests/${id}`);
    assert.equal(entered.status, 200);
    assert.equal(entered.headers.get('refresh'), `0; url=/requests/${id}`);
    const cookie = browser.console.set.find((line) => line.startsWith('effectmatch_session'));
    assert.match(cookie ?? '', /HttpOnly/);
    assert.match(cookie ?? '', /SameSite=Strict/);
    const page = await (await browser.get(`/requests/${id}`)).text();
    assert.match(page, /alice@example.com/);
    assert.match(page, /Your decision/);
  });

  test('people who are not listed, whose address is not verified, or who may only read', async () => {
    await using app = open();
    const refusals = [
      ['eve', /not one of the people who may sign in/],
      ['mallory', /has not verified this email/],
    ] as const;
    for (const [login, why] of refusals) {
      const browser = new Browser(app.fetch);
      const answer = await signIn(browser, login);
      assert.equal(answer.status, 403, login);
      assert.match(await answer.text(), why);
      assert.equal((await browser.get('/')).status, 302);
    }
    const reader = new Browser(app.fetch);
    await signIn(reader, 'rita');
    const { id } = await host.requests.ask({ by: 'agent', run: 'reader', ...pay('initech') });
    const page = await (await reader.get(`/requests/${id}`)).text();
    assert.doesNotMatch(page, /Your decision/);
    const form = /name="form" value="([^"]+)"/.exec(page)?.[1] ?? '';
    const body = new URLSearchParams({ form, reason: 'no' });
    const headers = { host: '127.0.0.1:8080', origin: ORIGIN, cookie: reader.console.header };
    const sent = new Request(`${ORIGIN}/requests/${id}/decline`, { method: 'POST', body, headers });
    assert.equal((await app.fetch(sent)).status, 403);
    assert.equal((await host.requests.get(id)).state, 'pending');
  });

  test('what a person may not see does not exist for them: pages, files, forms, lists, events', async () => {
    await using app = open();
    const { requests, runtime } = host;
    const hidden = await requests.ask({ by: 'agent', run: 'hidden', ...pay('hidden payee') });
    const input = { payee: 'shown payee' };
    const asked = { by: 'agent', run: 'shown', operation: 'settle', input };
    const shown = await requests.ask(asked);
    for (const { id, proposal } of [
      await requests.ask({ by: 'agent', run: 'hidden', ...pay('hidden verdict') }),
      await requests.ask({ ...asked, input: { payee: 'shown verdict' } }),
    ]) {
      await requests.answer(id, office.alice.sign(proposal, { expiresIn: '10m' }));
      await requests.execute(id);
    }
    const verdicts = await requests.list({ state: 'committed' });
    const at = (payee: string) =>
      verdicts.find(({ rendering }) => rendering.includes(payee))?.occurrence;
    const browser = new Browser(app.fetch);
    await signIn(browser, 'olga');
    const events = await browser.get('/events');
    const texts = await Promise.all(
      ['/', '/?state=all', '/history', '/operations', '/bulk/settle'].map(
        async (path) => await (await browser.get(path)).text(),
      ),
    );
    for (const text of texts)
      assert.doesNotMatch(text, /hidden payee|hidden verdict|initech|globex/);
    assert.match(texts[0] ?? '', /shown payee[\s\S]*/);
    assert.match(texts[0] ?? '', /<span class="count">1<\/span>/);
    assert.match(texts[2] ?? '', /shown verdict/);
    const form = /name="form" value="([^"]+)"/.exec(texts[0] ?? '')?.[1] ?? '';
    const post = async (path: string, fields: Record<string, string>) => {
      const headers = { host: '127.0.0.1:8080', origin: ORIGIN, cookie: browser.console.header };
      const body = new URLSearchParams({ form, ...fields });
      return await app.fetch(new Request(`${ORIGIN}${path}`, { method: 'POST', body, headers }));
    };
    for (const part of ['', '/proposal.json', '/license.json', '/check'])
      assert.equal((await browser.get(`/requests/${hidden.id}${part}`)).status, 404, part);
    for (const place of ['', '/month-end'])
      assert.equal((await browser.get(`/operations/workflows${place}`)).status, 404, place);
    for (const part of ['license', 'decline', 'ask', 'assign', 'renew'])
      assert.equal((await post(`/requests/${hidden.id}/${part}`, {})).status, 404, part);
    for (const part of ['', '/receipt.json', '/claim.json']) {
      const path = `/history/${at('hidden verdict')}${part}`;
      assert.equal((await browser.get(path)).status, 404, part);
      assert.equal((await browser.get(path.replace(/occ_\w+/, `${at('shown')}`))).status, 200);
    }
    const decided = await post(`/operations/resolve/${at('hidden verdict')}`, {});
    assert.equal(decided.status, 404);
    await post('/bulk/settle/decline', { id: hidden.id, reason: 'no' });
    assert.equal((await requests.get(hidden.id)).state, 'pending');
    assert.equal((await browser.get(`/requests/${shown.id}`)).status, 200);
    await requests.withdraw(hidden.id);
    await requests.withdraw(shown.id);
    let heard = '';
    for await (const chunk of events.body as ReadableStream<Uint8Array>) {
      heard += new TextDecoder().decode(chunk);
      if (heard.includes(shown.id)) break;
    }
    assert.doesNotMatch(heard, new RegExp(hidden.id));
    assert.deepEqual(await runtime.ledgers.unsettled(), []);
  });

  test('an answer of the provider counts once, in the browser that asked for it', async () => {
    await using app = open();
    const browser = new Browser(app.fetch);
    const begun = await browser.get('/login/oidc');
    const back = await browser.consent(begun.headers.get('location') ?? '', 'alice');
    const path = back.pathname + back.search;
    const other = new Browser(app.fetch);
    assert.equal((await other.get(path)).status, 403, 'no sign-in was begun there');
    await other.get('/login/oidc');
    assert.equal((await other.get(path)).status, 403, 'the state is of another browser');
    back.searchParams.set('state', 'x'.repeat(43));
    const tried = new Browser(app.fetch);
    tried.console.cookies.set(
      'effectmatch_login',
      browser.console.cookies.get('effectmatch_login') ?? '',
    );
    assert.equal((await tried.get(back.pathname + back.search)).status, 403);
    assert.equal((await browser.get(path)).status, 403, 'an attempt is used up by a wrong state');
    assert.equal((await signIn(browser, 'alice')).status, 200);
    assert.equal((await browser.get(path)).status, 403);
  });

  test('a session has a new secret, ends when it is not used, and can be ended everywhere', async () => {
    const clock = new OfficeClock();
    await using app = open({ clock });
    const browser = new Browser(app.fetch);
    browser.console.cookies.set('effectmatch_session', 'planted');
    await signIn(browser, 'alice');
    assert.notEqual(browser.console.cookies.get('effectmatch_session'), 'planted');
    const [second, unused] = [new Browser(app.fetch), new Browser(app.fetch)];
    await signIn(second, 'alice');
    await signIn(unused, 'alice');
    for (let hour = 0; hour < 3; hour += 1) {
      clock.advance(3_500_000);
      for (const one of [browser, second]) assert.equal((await one.get('/')).status, 200);
    }
    assert.equal((await unused.get('/')).status, 302, 'it was not used for more than an hour');
    const page = await (await second.get('/')).text();
    const form = /name="form" value="([^"]+)"/.exec(page)?.[1] ?? '';
    const headers = { host: '127.0.0.1:8080', origin: ORIGIN, cookie: second.console.header };
    const body = new URLSearchParams({ form, everywhere: 'yes' });
    await app.fetch(new Request(`${ORIGIN}/logout`, { method: 'POST', body, headers }));
    for (const one of [browser, second]) assert.equal((await one.get('/')).status, 302);
  });

  test('what a stranger sends to the sign-in is bounded, and only its own page may send it', async () => {
    await using app = open();
    const post = (body: URLSearchParams, origin: string) =>
      app.fetch(
        new Request(`${ORIGIN}/login/passkey`, {
          ...{ method: 'POST', body, headers: { host: '127.0.0.1:8080', origin } },
        }),
      );
    const large = new URLSearchParams({ word: 'x'.repeat(100_000) });
    assert.equal((await post(large, ORIGIN)).status, 413);
    const form = new URLSearchParams({ word: 'x', assertion: 'passkey.AA.AA.AA' });
    assert.equal((await post(form, 'https://evil.example')).status, 403);
    assert.equal((await post(form, ORIGIN)).status, 403);
    const signer = new Request(`${ORIGIN}/login`, { headers: { host: 'evil.example' } });
    assert.equal((await app.fetch(signer)).status, 421);
  });

  test('nothing leads away from the console', async () => {
    await using app = open();
    for (const to of [
      '//evil.example',
      '/\\evil.example',
      'https://evil.example',
      '/%0d%0aSet-Cookie:x',
      'javascript:1',
    ]) {
      const browser = new Browser(app.fetch);
      const answer = await signIn(browser, 'alice', to);
      const next = answer.headers.get('refresh') ?? '';
      assert.match(next, /^0; url=\/(?![/\\])/, to);
      assert.doesNotMatch(next, /evil/, to);
    }
  });

  test('a configuration in which a person could not sign in, or would sign unread, is refused', () => {
    const passkey = `passkey:eddsa:${office.alice.publicKey.slice(8)}:QUJD@${'https://a.example'}`;
    const wrong: readonly (readonly [ConsoleOptions['login'], RegExp])[] = [
      [{ people: {} }, /no one could sign in/],
      [{ people: { zoe: {} } }, /has no way to sign in/],
      [{ people: { zoe: { passkey: 'passkey:x' } } }, /not an approver key/],
      [{ people: { zoe: { passkey, issuers: ['nobody'] } } }, /who is not configured/],
      [{ people: { zoe: { passkey, adapters: ['boks'] } } }, /"boks", which is not configured/],
      [{ people: { zoe: { passkey } } }, /signs licenses; register another/],
      [{ people: { zoe: { passkey, role: 1 } as never } }, /unknown option "role"/],
    ];
    for (const [login, why] of wrong) {
      const issuers = { [office.alice.publicKey]: 'alice', [passkey]: 'bob' };
      assert.throws(() => open({ login: login ?? {}, issuers }), {
        code: 'ERR_EM_CONFIG_INVALID',
        message: why,
      });
    }
  });
});

/** What a token says and how it is signed, where that is not as it should be. */
interface Wrong {
  readonly head?: object;
  readonly claims?: object;
  readonly signer?: (data: Buffer) => Buffer;
}

test('tokens of another key, algorithm, client, provider, sign-in or time do not count', async (t) => {
  using office = openOffice();
  await using host = await office.start();
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'k' };
  const ownSigner = (key: KeyObject) => (data: Buffer) => sign('sha256', data, key);
  const state = { wrong: {} as Wrong, nonce: '' };
  let origin = '';
  const token = () => {
    const { head, claims, signer = ownSigner(privateKey) } = state.wrong;
    const nowS = Math.floor(Date.now() / 1000);
    const said = {
      ...{ iss: origin, aud: 'em', sub: '1', exp: nowS + 60, iat: nowS, nonce: state.nonce },
      ...{ email: 'alice@example.com', email_verified: true, ...claims },
    };
    const parts = [{ alg: 'RS256', kid: 'k', ...head }, said];
    const data = parts
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    return `${data}.${signer(Buffer.from(data)).toString('base64url')}`;
  };
  const { server, origin: found } = await listen((request, response) => {
    const documents: Record<string, () => object> = {
      '/.well-known/openid-configuration': () => ({
        issuer: origin,
        authorization_endpoint: `${origin}/auth`,
        token_endpoint: `${origin}/token`,
        jwks_uri: `${origin}/jwks`,
      }),
      '/jwks': () => ({ keys: [jwk] }),
      '/token': () => ({ id_token: token() }),
    };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(documents[request.url ?? '']?.() ?? {}));
  });
  origin = found;
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { runtime, requests } = host;
  const login = { people: { 'alice@example.com': {} }, oidc: { issuer: origin, clientId: 'em' } };
  const parts = { runtime, requests, adapters: [], origin: ORIGIN, user: 'local', issuers: {} };
  await using app = createConsole({ ...parts, login });
  const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  const pem = publicKey.export({ type: 'spki', format: 'pem' });
  const mac = (data: Buffer) => createHmac('sha256', pem).update(data).digest();
  const attempts: readonly (readonly [string, Wrong, number])[] = [
    ['as it should be', {}, 200],
    ['unsigned', { head: { alg: 'none' }, signer: () => Buffer.alloc(0) }, 403],
    ['signed with the public key as a secret', { head: { alg: 'HS256' }, signer: mac }, 403],
    ['of another key', { signer: ownSigner(other) }, 403],
    ['of another key id', { head: { kid: 'other' } }, 403],
    ['for another algorithm', { head: { alg: 'ES256' } }, 403],
    ['for another client', { claims: { aud: 'other' } }, 403],
    ['for another party', { claims: { aud: ['em', 'other'], azp: 'other' } }, 403],
    ['of another provider', { claims: { iss: 'https://evil.example' } }, 403],
    ['of another sign-in', { claims: { nonce: 'other' } }, 403],
    ['that has expired', { claims: { exp: Math.floor(Date.now() / 1000) - 120 } }, 403],
    ['without an end', { claims: { exp: undefined } }, 403],
    ['without a verified address', { claims: { email_verified: 'true' } }, 403],
  ];
  for (const [what, wrong, status] of attempts) {
    const browser = new Browser(app.fetch);
    const begun = await browser.get('/login/oidc');
    const asked = new URL(begun.headers.get('location') ?? '').searchParams;
    assert.equal(asked.get('code_challenge_method'), 'S256');
    state.nonce = asked.get('nonce') ?? '';
    state.wrong = wrong;
    const query = new URLSearchParams({ code: 'c', state: asked.get('state') ?? '' });
    assert.equal((await browser.get(`/login/callback?${query}`)).status, status, what);
  }
  const mixed = new Browser(app.fetch);
  const begun = await mixed.get('/login/oidc');
  const asked = new URL(begun.headers.get('location') ?? '').searchParams;
  const query = { code: 'c', state: asked.get('state') ?? '', iss: 'https://evil.example' };
  assert.equal((await mixed.get(`/login/callback?${new URLSearchParams(query)}`)).status, 403);
});
