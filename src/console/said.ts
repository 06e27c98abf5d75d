import type { Context } from 'hono';
import type { Env } from './app.ts';

/** What was done or refused, and what changed if a request was proposed again. */
export interface Said {
  readonly notice: { readonly tone: 'good' | 'bad'; readonly text: string };
  /** Lines of the proposal: `-` of the earlier one, `+` of the new one. */
  readonly difference?: readonly string[];
}

/** Takes the notice for a newly opened page. A page that refreshes itself keeps the one it has. */
export function takeSaid(c: Context<Env>): Said | undefined {
  if (c.req.header('effectmatch-refresh') !== undefined) return undefined;
  const session = c.get('session');
  const { said } = session;
  session.said = undefined;
  return said;
}
