import type { Context, Hono } from 'hono';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import type { Clock } from '../contract/clock.ts';
import { misnamedOption, type OptionNames } from '../contract/options.ts';
import { digestText } from '../crypto/digest.ts';
import { parsePasskey, verifyAssertion } from '../crypto/passkey.ts';
import { readPasskeyText } from '../crypto/passkey-text.ts';
import { errorsOf } from '../errors.ts';
import { isSameWord, type Person, randomWord, Secrets } from './access.ts';
import type { Env } from './app.ts';
import type { ConsoleConfig, PersonConfig } from './configuration.ts';
import { type Html, html } from './html.ts';
import { type OidcAttempt, OidcClient } from './oidc.ts';

/** Who may sign in, and how. */
export type ConsoleLogin = Pick<ConsoleConfig, 'people' | 'oidc'>;

/** What the sign-in pages need from the console. */
interface LoginParts {
  readonly origin: string;
  readonly clock: Clock;
  /** Issuer names by public key. */
  readonly issuers: Readonly<Record<string, string>>;
  readonly adapters: readonly string[];
  /** Opens a session and shows a page that continues to `to`. */
  welcome(c: Context<Env>, person: Person, to: string): Response | Promise<Response>;
  page(title: string, content: Html): string;
}

/** A sign-in that one browser has started. */
interface Begun {
  readonly to: string;
  /** The challenge for a passkey. */
  readonly word: string;
  readonly oidc?: OidcAttempt;
}

const COOKIE = 'effectmatch_login';
const BEGUN_MS = 600_000;
const PERSON: OptionNames<PersonConfig> = {
  may: true,
  issuers: true,
  passkey: true,
  adapters: true,
  operations: true,
};

/** The digest label of sign-in challenges. License digests have another label. */
const LOGIN_DOMAIN = 'effectmatch/console-login/v1';

/** Adds the sign-in pages. Call it before adding the session check. */
export function addLogin(app: Hono<Env>, login: ConsoleLogin, parts: LoginParts): void {
  checkPeople(login, parts);
  const { oidc } = login;
  const { origin, clock } = parts;
  const client = oidc && new OidcClient(oidc, `${origin}/login/callback`, clock);
  const begun = new BegunLogins(clock, origin.startsWith('https:'));
  app.get('/login', (c) => {
    const to = pathOf(c.req.query('to'));
    const word = begun.begin(c, { to });
    return c.html(parts.page('Sign in', loginPage(login, { to, word })));
  });
  app.get('/login/oidc', async (c) => {
    if (client === undefined) return c.notFound();
    const { url, attempt } = await client.begin();
    begun.begin(c, { to: pathOf(c.req.query('to')), oidc: attempt });
    return c.redirect(url, 302);
  });
  app.get('/login/callback', async (c) => {
    const found = begun.take(c);
    if (client === undefined || found?.oidc === undefined)
      throw refused('this sign-in was not started here, or it took too long');
    const name = await client.finish(new URL(c.req.url).searchParams, found.oidc);
    return await parts.welcome(c, personNamed(login, name), found.to);
  });
  app.post('/login/passkey', async (c) => {
    if (c.req.header('origin') !== origin) throw refused('the form is not from this page');
    const found = begun.take(c);
    const form = await c.req.parseBody();
    if (found === undefined || !isSameWord(String(form.word ?? ''), found.word))
      throw refused('this sign-in was not started here, or it took too long');
    const name = signerOf(login, found.word, String(form.assertion ?? ''));
    return await parts.welcome(c, personNamed(login, name), found.to);
  });
}

/** Sign-ins in progress. A cookie with the same lifetime ties each one to a browser. */
class BegunLogins {
  readonly #isSecure: boolean;
  readonly #begun: Secrets<Begun>;

  constructor(clock: Clock, isSecure: boolean) {
    this.#begun = new Secrets(clock);
    this.#isSecure = isSecure;
  }

  /** Starts a sign-in and returns the challenge for a passkey. */
  begin(c: Context<Env>, what: Pick<Begun, 'to' | 'oidc'>): string {
    const word = randomWord();
    const secret = this.#begun.keep({ ...what, word }, BEGUN_MS);
    // Lax, because the browser must send the cookie when the provider redirects back here.
    const cookie = { httpOnly: true, sameSite: 'Lax', path: '/login' } as const;
    setCookie(c, COOKIE, secret, { ...cookie, secure: this.#isSecure, maxAge: BEGUN_MS / 1000 });
    return word;
  }

  /** Returns and forgets the browser's sign-in, so that it can be used only once. */
  take(c: Context<Env>): Begun | undefined {
    const found = this.#begun.take(getCookie(c, COOKIE));
    deleteCookie(c, COOKIE, { path: '/login', secure: this.#isSecure });
    return found;
  }
}

function loginPage({ oidc, people = {} }: ConsoleLogin, begun: Pick<Begun, 'to' | 'word'>): Html {
  const keys = Object.values(people).flatMap(({ passkey = [] }) => [passkey].flat());
  const credentials = keys.map((text) => readPasskeyText(text)?.credential ?? '').join(' ');
  const link = `/login/oidc?${new URLSearchParams({ to: begun.to }).toString()}`;
  return html`<p>Sign in to read and answer requests. To approve one you also need your signing key.</p>
${oidc && html`<p><a class="button primary" href="${link}">Sign in with ${new URL(oidc.issuer).host}</a></p>`}
<div id="login" data-word="${begun.word}" data-to="${begun.to}" data-credentials="${credentials}"></div>
<script src="/assets/signer.js" type="module"></script>`;
}

/** Returns the person whose passkey signed the challenge. */
function signerOf({ people = {} }: ConsoleLogin, word: string, assertion: string): string {
  const challenge = digestText(LOGIN_DOMAIN, word);
  const found = Object.entries(people).find(([, { passkey = [] }]) =>
    [passkey].flat().some((text) => verifyAssertion(parsePasskey(text), challenge, assertion)),
  );
  if (found === undefined)
    throw refused('this passkey belongs to none of the people who may sign in');
  return found[0];
}

function personNamed({ people = {} }: ConsoleLogin, name: string): Person {
  const person = Object.hasOwn(people, name) ? people[name] : undefined;
  if (person === undefined)
    throw refused(`${name.slice(0, 200)} is not one of the people who may sign in`);
  const { may = ['answer'], issuers, adapters, operations } = person;
  const rights = { canAnswer: may.includes('answer'), canOperate: may.includes('operate') };
  return { name, ...rights, issuers: issuers ?? [], sight: { adapters, operations } };
}

/** Allows only paths within the console, so that a sign-in link cannot redirect elsewhere. */
export function pathOf(wish: string | undefined): string {
  return wish !== undefined && /^\/(?![/\\])[\w/?=&%.~-]*$/.test(wish) ? wish : '/';
}

/**
 * Checks the configured people. A sign-in passkey signs without showing any text, so it must not be
 * a passkey that signs licenses.
 */
function checkPeople(
  { people = {}, oidc }: ConsoleLogin,
  { issuers, adapters }: Pick<LoginParts, 'issuers' | 'adapters'>,
): void {
  const names = Object.values(issuers);
  const signing = Object.keys(issuers).map((text) => readPasskeyText(text)?.credential);
  for (const [name, person] of Object.entries(people)) {
    const misnamed = misnamedOption(person, PERSON);
    if (misnamed !== undefined) throw invalid(`${name}: ${misnamed}`);
    const stray = person.issuers?.find((issuer) => !names.includes(issuer));
    if (stray !== undefined)
      throw invalid(`${name} has the issuer "${stray}", who is not configured`);
    const hidden = person.adapters?.find((adapter) => !adapters.includes(adapter));
    if (hidden !== undefined)
      throw invalid(`${name} sees the adapter "${hidden}", which is not configured`);
    const passkeys = [person.passkey ?? []].flat();
    for (const text of passkeys) {
      parsePasskey(text);
      if (signing.includes(readPasskeyText(text)?.credential))
        throw invalid(`${name} signs in with a passkey that signs licenses; register another`);
    }
    if (oidc === undefined && passkeys.length === 0)
      throw invalid(`${name} has no way to sign in; give a passkey, or configure \`oidc\``);
  }
  if (Object.keys(people).length === 0) throw invalid('`people` is empty: no one could sign in');
}

const invalid = errorsOf('ERR_EM_CONFIG_INVALID', "the console's people: ");
const refused = errorsOf('ERR_EM_ACCESS_REFUSED', 'not signed in: ');
