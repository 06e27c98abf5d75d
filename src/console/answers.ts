import type { Context, Hono } from 'hono';
import { EffectMatchError } from '../errors.ts';
import type { Console, Env } from './app.ts';
import type { Said } from './said.ts';
import { demandVisible } from './visible.ts';

/** Handles the forms of a request. A form alone cannot approve; only a signed license can. */
export function addAnswers(app: Hono<Env>, site: Console): void {
  app.post('/requests/:id/license', (c) =>
    answer(c, async (id, form) => {
      const { license } = form;
      const text = license instanceof File ? await license.text() : String(license ?? '');
      const { first } = await site.requests.answer(id, parseJson(text));
      const words = 'Signed. A second person must sign too.';
      return {
        notice: good(first === undefined ? 'Approved. The verdict appears below.' : words),
      };
    }),
  );
  app.post('/requests/:id/decline', (c) =>
    answer(c, async (id, form) => {
      const { name: by } = c.get('session').person;
      const { decline, reason } = form;
      if (decline === undefined)
        await site.requests.decline(id, { by, reason: String(reason ?? '') });
      else await site.requests.declineSigned(id, parseJson(String(decline)));
      return { notice: good('Declined. The agent is told why.') };
    }),
  );
  app.post('/requests/:id/ask', (c) =>
    answer(c, async (id, form) => {
      const { name } = c.get('session').person;
      await site.requests.askBack(id, { by: name, text: String(form.text ?? '') });
      return { notice: good('Question sent. The request stays open.') };
    }),
  );
  app.post('/requests/:id/assign', (c) =>
    answer(c, async (id, form) => {
      const { assignedTo } = await site.requests.assign(id, String(form.to ?? ''));
      return { notice: good(`Handed to ${assignedTo}.`) };
    }),
  );
  app.post('/requests/:id/renew', (c) =>
    answer(c, async (id) => {
      const { difference } = await site.requests.renew(id);
      return { notice: good('Proposed again from the state as it is now.'), difference };
    }),
  );
  app.post('/bulk/:operation/decline', (c) => declineChosen(c, site));
  const { acceptKey } = site;
  if (acceptKey === undefined) return;
  app.post('/keys', async (c) => {
    const { key, to } = await c.req.parseBody();
    return c.json({ to: await acceptKey(String(key), String(to)) });
  });
}

type Form = Record<string, string | File | (string | File)[]>;

const good = (text: string) => ({ tone: 'good', text }) as const;

/** Runs a form's action, then shows on the request page what was done or refused. */
async function answer(
  c: Context<Env>,
  work: (id: string, form: Form) => Promise<Said>,
): Promise<Response> {
  const id = c.req.param('id') ?? '';
  let said: Said;
  try {
    said = await work(id, await c.req.parseBody());
  } catch (error) {
    if (!(error instanceof EffectMatchError) || error.code === 'ERR_EM_NOT_FOUND') throw error;
    said = { notice: { tone: 'bad', text: `${error.code}: ${error.message}` } };
  }
  // The script that signs several requests counts the result of each.
  if (c.req.header('accept') === 'application/json') return c.json(said.notice);
  c.get('session').said = said;
  return c.redirect(`/requests/${encodeURIComponent(id)}`, 303);
}

/** Declines the selected requests. Requests that someone else answered meanwhile do not change. */
async function declineChosen(c: Context<Env>, site: Console): Promise<Response> {
  const form = await c.req.parseBody({ all: true });
  const { person } = c.get('session');
  const reason = String(form.reason ?? '');
  const chosen = [form.id ?? []].flat().map(String);
  const declined = await Promise.allSettled(
    chosen.map(async (id) => {
      await demandVisible(site, person, id);
      return await site.requests.decline(id, { by: person.name, reason });
    }),
  );
  const count = declined.filter(({ status }) => status === 'fulfilled').length;
  const tone = count === chosen.length && count > 0 ? 'good' : 'bad';
  c.get('session').said = { notice: { tone, text: `${count} of ${chosen.length} declined.` } };
  return c.redirect('/', 303);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new EffectMatchError('ERR_EM_INPUT_INVALID', 'what was sent is not JSON');
  }
}
