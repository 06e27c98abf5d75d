import type { Context } from 'hono';
import type { Person, Said } from './access.ts';
import type { Console, Env } from './app.ts';
import type { Html } from './html.ts';
import { type Section, wholePage } from './layout.ts';
import { countVisible } from './visible.ts';

/** A visit to the console: the deployment, who is looking, and the time. */
export interface Visit extends Console {
  readonly c: Context<Env>;
  readonly person: Person;
  /** Proves that a form comes from a page of this session. */
  readonly formToken: string;
  readonly nowMs: number;
  /** What the last form did, if this page is to show it. */
  readonly said: Said | undefined;
}

/** What a page shows inside the layout. */
export interface Shown {
  readonly title: string;
  readonly section: Section | undefined;
  readonly content: Html;
}

/** The visit that a request makes. */
export function visitOf(c: Context<Env>, site: Console, said?: Said): Visit {
  const { person, formToken } = c.get('session');
  return { ...site, c, person, formToken, nowMs: site.clock.now(), said };
}

/** Takes the notice for a newly opened page. A page that refreshes itself keeps the one it has. */
export function takeSaid(c: Context<Env>): Said | undefined {
  if (c.req.header('effectmatch-refresh') !== undefined) return undefined;
  const session = c.get('session');
  const { said } = session;
  session.said = undefined;
  return said;
}

/** Shows a page in the console's layout, with the number of waiting requests. */
export async function show(visit: Visit, shown: Shown): Promise<Response> {
  return visit.c.html(wholePage(visit, shown, await countVisible(visit)));
}
