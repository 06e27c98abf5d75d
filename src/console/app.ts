import { existsSync, readFileSync } from 'node:fs';
import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import { type Clock, systemClock } from '../contract/clock.ts';
import { EffectMatchError, type ErrorCode } from '../errors.ts';
import type { Policy } from '../protocol/frame.ts';
import { EventStream } from '../requests/event-stream.ts';
import type { Requests } from '../requests/requests.ts';
import type { Runtime } from '../runtime/runtime.ts';
import {
  type ConsoleSession,
  ConsoleSessions,
  isSameWord,
  type Person,
  SECURITY_HEADERS,
} from './access.ts';
import { type Html, html } from './html.ts';
import { addLogin, type ConsoleLogin, pathOf } from './login.ts';
import { addPages } from './pages.ts';
import { show, visitOf } from './visit.ts';

/** Options of {@link createConsole}. */
export interface ConsoleOptions {
  readonly runtime: Runtime;
  readonly requests: Requests;
  /** The adapters whose boundaries the console shows. */
  readonly adapters: readonly string[];
  /** The console's origin, such as `http://127.0.0.1:8080`. Other host names are refused. */
  readonly origin: string;
  /** Issuer names by public key. A browser that holds one of these keys can sign. */
  readonly issuers: Readonly<Record<string, string>>;
  /**
   * The user whom the one-time link signs in. Unsigned answers, such as declining, are recorded
   * under this name.
   */
  readonly user: string;
  /** Operator names by public key. A browser that holds one of these keys can resolve. */
  readonly operators?: Readonly<Record<string, string>>;
  /** The configured agents, offered as a filter. If it is empty, the inbox says how to add one. */
  readonly agents?: readonly string[];
  /** Who may approve what, shown next to each request. */
  readonly policy?: Policy;
  /** Who else may sign in, and how. Without it, only the link signs anyone in. */
  readonly login?: ConsoleLogin | undefined;
  readonly clock?: Clock;
  /** The event stream that refreshes pages, if the API shares it. A new one by default. */
  readonly events?: EventStream;
  /**
   * Accepts a new public key as an approver's and returns the path to continue at. For trials only:
   * anyone who is signed in could make themselves an approver.
   */
  readonly acceptKey?: ((publicKey: string, to: string) => Promise<string>) | undefined;
  /** The folder in which no configuration was found. The inbox then says how to begin. */
  readonly unconfigured?: string | undefined;
}

/** The variables that handlers read from the Hono context. */
export interface Env {
  Variables: { session: ConsoleSession; lastEvent: number };
}

/** The options with their defaults applied, as the pages use them. */
export type Console = ConsoleOptions &
  Required<Pick<ConsoleOptions, 'clock' | 'events' | 'policy' | 'operators'>>;

/** The console as a request handler. It holds no key, so it cannot approve anything. */
export interface ConsoleApp extends AsyncDisposable {
  fetch(request: Request): Response | Promise<Response>;
  /** Creates a one-time address that signs the user in and opens the page `to`. */
  createLink(to?: string): string;
}

/** Browsers send a `__Host-` cookie only over https, and only to the host that set it. */
const COOKIES = { secure: '__Host-effectmatch', local: 'effectmatch_session' };
const MAX_LOGIN = 64 * 1024;
const MAX_BODY = 64 * 1024 * 1024;
const ASSETS = ['console.css', 'console.js', 'signer.js', 'icon.svg'] as const;
const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
};

/** Creates the console of a deployment. Dispose of it before disposing of `requests`. */
export function createConsole(options: ConsoleOptions): ConsoleApp {
  const { clock = systemClock, origin, user, requests } = options;
  const { events = new EventStream(requests) } = options;
  const { policy = { version: 1, issuers: {} }, operators = {} } = options;
  const site: Console = { ...options, clock, events, policy, operators };
  const sessions = new ConsoleSessions(user, clock);
  const app = new Hono<Env>();
  guard(app, site, sessions);
  addPages(app, site);
  return {
    fetch: (request) => app.fetch(request),
    createLink: (to = '/') => {
      const link = `${origin}/enter/${sessions.createEntry()}`;
      return to === '/' ? link : `${link}?${new URLSearchParams({ to }).toString()}`;
    },
    [Symbol.asyncDispose]: async () => {
      if (options.events === undefined) await events.close();
    },
  };
}

/** Adds the checks that every request must pass before it reaches a page. */
function guard(app: Hono<Env>, site: Console, sessions: ConsoleSessions): void {
  const { origin, login } = site;
  const { host } = new URL(origin);
  app.use(async (c, next) => {
    await next();
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) c.res.headers.set(name, value);
  });
  app.onError(async (error, c) => {
    const known = error instanceof EffectMatchError ? error : undefined;
    if (known?.code === 'ERR_EM_NOT_FOUND') return await showMissing(c, site, known.message);
    const status = known === undefined ? 500 : statusOf(known.code);
    const words = known === undefined ? 'The server failed.' : `${known.code}: ${known.message}`;
    return c.html(bare('Something went wrong', words), status);
  });
  app.notFound(async (c) => await showMissing(c, site, 'there is no page at this address'));
  // Check the host to stop DNS rebinding: another name for this address must not reach the pages.
  app.use(async (c, next) => {
    if (c.req.header('host') === host) return await next();
    const place = `${origin}${c.req.path}`;
    return c.html(bare('Wrong address', html`<p>Open <a href="${place}">${place}</a></p>`), 421);
  });
  for (const name of ASSETS) addAsset(app, name);
  const cookie = sessionCookie(origin);
  const welcome = (c: Context<Env>, secret: string, to: string) => {
    cookie.set(c, secret);
    // If the link was opened from another site, the browser would not send a strict cookie after a
    // redirect. This page opens the next one itself.
    c.header('refresh', `0; url=${to}`);
    return c.html(bare('Signed in', html`<a href="${to}">Continue</a>`));
  };
  addEntry(app, sessions, welcome);
  if (login !== undefined) {
    app.use('/login/passkey', limitBody(MAX_LOGIN));
    addLogin(app, login, {
      ...site,
      page: bare,
      welcome: (c, person: Person, to) => welcome(c, sessions.open(person), to),
    });
  }
  demandSession(app, sessions, { cookie, hasLogin: login !== undefined });
  // After the session check: bodyLimit buffers bodies of unknown length, and strangers must not
  // fill the memory.
  app.use(limitBody(MAX_BODY));
  demandOwnForm(app, origin);
  app.post('/logout', async (c) => {
    const { everywhere } = await c.req.parseBody();
    sessions.close(cookie.read(c), everywhere !== undefined);
    cookie.remove(c);
    return c.html(bare('Signed out', html`<a href="/">Sign in again</a>`));
  });
}

function limitBody(maxSize: number): ReturnType<typeof bodyLimit> {
  const words = `Send at most ${maxSize} bytes.`;
  return bodyLimit({ maxSize, onError: (c) => c.html(bare('Too large', words), 413) });
}

/** Adds the link that signs in the user of this machine. */
function addEntry(
  app: Hono<Env>,
  sessions: ConsoleSessions,
  welcome: (c: Context<Env>, secret: string, to: string) => Response | Promise<Response>,
): void {
  app.get('/enter/:entry', (c) => {
    // Link previews must not use up the link.
    if (c.req.method === 'HEAD') return c.body(null, 405);
    const secret = sessions.enter(c.req.param('entry'));
    if (secret === undefined) return c.html(bare('This link was used', instructions()), 401);
    return welcome(c, secret, pathOf(c.req.query('to')));
  });
}

/** The session cookie. Scripts cannot read it, and requests from other sites do not carry it. */
function sessionCookie(origin: string) {
  const secure = origin.startsWith('https:');
  const name = secure ? COOKIES.secure : COOKIES.local;
  return {
    read: (c: Context<Env>) => getCookie(c, name),
    set: (c: Context<Env>, secret: string) =>
      setCookie(c, name, secret, { httpOnly: true, sameSite: 'Strict', path: '/', secure }),
    remove: (c: Context<Env>) => deleteCookie(c, name, { path: '/', secure }),
  };
}

function demandSession(
  app: Hono<Env>,
  sessions: ConsoleSessions,
  { cookie, hasLogin }: { cookie: ReturnType<typeof sessionCookie>; hasLogin: boolean },
): void {
  app.use(async (c, next) => {
    const session = sessions.find(cookie.read(c));
    if (session === undefined && hasLogin && c.req.method === 'GET' && c.req.path !== '/events') {
      const { pathname, search } = new URL(c.req.url);
      return c.redirect(`/login?${new URLSearchParams({ to: pathname + search }).toString()}`, 302);
    }
    if (session === undefined) return c.html(bare('Not signed in', instructions()), 401);
    c.set('session', session);
    return await next();
  });
}

/** Accepts a form only from a page of this session, and only if the person has the right. */
function demandOwnForm(app: Hono<Env>, origin: string): void {
  app.on('POST', '*', async (c, next) => {
    const from = c.req.header('origin') ?? c.req.header('referer') ?? '';
    const form = await c.req.parseBody();
    const isOwn = from === origin || from.startsWith(`${origin}/`);
    const { formToken, person } = c.get('session');
    if (!isOwn || !isSameWord(String(form.form ?? ''), formToken))
      return c.html(bare('Refused', 'This form did not come from a page of your session.'), 403);
    if (!mayPost(person, c.req.path))
      return c.html(bare('Refused', 'You may read this but not answer it.'), 403);
    return await next();
  });
}

function mayPost({ canAnswer, canOperate }: Person, path: string): boolean {
  if (path === '/logout') return true;
  return path.startsWith('/operations') ? canOperate : canAnswer;
}

function instructions(): Html {
  return html`<p>Open the link that <code>effectmatch serve</code> printed; each link works once. Press Enter in its terminal to print another.</p>`;
}

function addAsset(app: Hono<Env>, name: (typeof ASSETS)[number]): void {
  const file = new URL(`./assets/${name}`, import.meta.url);
  // The build bundles the signer. Without it, pages offer only the command line.
  const content = existsSync(file) ? readFileSync(file) : '';
  const type = TYPES[name.split('.')[1] ?? ''] ?? '';
  app.get(`/assets/${name}`, (c) => c.body(content, 200, { 'content-type': type }));
}

/** The 404 page. It includes the navigation if the person is signed in. */
async function showMissing(c: Context<Env>, site: Console, what: string): Promise<Response> {
  const said = `${what.charAt(0).toUpperCase()}${what.slice(1)}.`;
  const ways = html`<p>${said}</p>
<p class="aside">The address may be incomplete, or belong to another deployment.</p>
<ul class="ways"><li><a href="/">Inbox</a>: what is waiting for a decision</li>
<li><a href="/?state=all">All requests</a>, newest first</li>
<li><a href="/history">History</a>: what was executed</li></ul>`;
  if (c.get('session') === undefined) return c.html(bare('Not found', ways), 404);
  c.status(404);
  const content = html`<h1>Not found</h1>${ways}`;
  return await show(visitOf(c, site), { title: 'Not found', section: undefined, content });
}

/** A page without navigation, for people who are not signed in. */
function bare(title: string, words: string | Html): string {
  return html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · EffectMatch</title><link rel="stylesheet" href="/assets/console.css">
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml"></head>
<body class="bare"><main><p class="brand"><img src="/assets/icon.svg" alt="" width="20" height="20">EffectMatch</p><h1>${title}</h1>${typeof words === 'string' ? html`<p>${words}</p>` : words}</main></body></html>
`.text;
}

function statusOf(code: ErrorCode): 400 | 403 | 404 | 409 | 503 {
  if (code === 'ERR_EM_ACCESS_REFUSED') return 403;
  if (code === 'ERR_EM_NOT_FOUND') return 404;
  if (code === 'ERR_EM_REQUEST_CLOSED') return 409;
  return code === 'ERR_EM_INPUT_INVALID' ? 400 : 503;
}
