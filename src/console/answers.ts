import type { Context, Hono } from 'hono';
import { EffectMatchError } from '../errors.ts';
import type { Recovered } from '../runtime/recover.ts';
import type { Said } from './access.ts';
import type { Console, Env } from './app.ts';
import { demandVisible, demandVisibleOccurrence, seesAll, visibleUnsettled } from './visible.ts';
import { type Visit, visitOf } from './visit.ts';

type Form = Readonly<Record<string, unknown>>;

/** What each form of a request does, and what the page then says. */
const ANSWERS: Readonly<
  Record<string, (visit: Visit, id: string, form: Form) => Promise<string | Said>>
> = {
  /** A form alone cannot approve; only a signed license can. */
  async license({ requests }, id, { license }) {
    const text = license instanceof File ? await license.text() : String(license ?? '');
    const { first } = await requests.answer(id, parseJson(text));
    if (first !== undefined) return 'Signed. A second person must sign too.';
    return 'Approved. The verdict appears below.';
  },
  async decline({ requests, person }, id, { decline, reason }) {
    if (decline === undefined)
      await requests.decline(id, { by: person.name, reason: String(reason ?? '') });
    else await requests.declineSigned(id, parseJson(String(decline)));
    return 'Declined. The agent is told why.';
  },
  async ask({ requests, person }, id, { text }) {
    await requests.askBack(id, { by: person.name, text: String(text ?? '') });
    return 'Question sent. The request stays open.';
  },
  async assign({ requests }, id, { to }) {
    const { assignedTo } = await requests.assign(id, String(to ?? ''));
    return `Handed to ${assignedTo}.`;
  },
  async renew({ requests }, id) {
    const { difference } = await requests.renew(id);
    return { notice: good('Proposed again from the current state.'), difference };
  },
};

/** Handles the forms of the pages. */
export function addAnswers(app: Hono<Env>, site: Console): void {
  for (const [name, work] of Object.entries(ANSWERS))
    app.post(`/requests/:id/${name}`, async (c) => {
      const id = c.req.param('id');
      const form = await c.req.parseBody();
      return await answer(c, `/requests/${encodeURIComponent(id)}`, () =>
        work(visitOf(c, site), id, form),
      );
    });
  app.post('/bulk/:operation/decline', (c) => declineChosen(visitOf(c, site)));
  app.post('/operations/recover', (c) => recover(visitOf(c, site)));
  app.post('/operations/resolve/:occurrence', (c) => resolve(visitOf(c, site)));
  const { acceptKey } = site;
  if (acceptKey === undefined) return;
  app.post('/keys', async (c) => {
    const { key, to } = await c.req.parseBody();
    return c.json({ to: await acceptKey(String(key), String(to)) });
  });
}

const good = (text: string) => ({ tone: 'good', text }) as const;

/** Does what a form asks for, then shows on a page what was done or refused. */
async function answer(
  c: Context<Env>,
  place: string,
  work: () => Promise<string | Said>,
): Promise<Response> {
  let said: Said;
  try {
    const done = await work();
    said = typeof done === 'string' ? { notice: good(done) } : done;
  } catch (error) {
    if (!(error instanceof EffectMatchError) || error.code === 'ERR_EM_NOT_FOUND') throw error;
    said = { notice: { tone: 'bad', text: `${error.code}: ${error.message}` } };
  }
  // The script that signs several requests counts the result of each.
  if (c.req.header('accept') === 'application/json') return c.json(said.notice);
  c.get('session').said = said;
  return c.redirect(place, 303);
}

/** Declines the selected requests. Requests that someone else answered meanwhile do not change. */
async function declineChosen(visit: Visit): Promise<Response> {
  const { c, person, requests } = visit;
  const form = await c.req.parseBody({ all: true });
  const reason = String(form.reason ?? '');
  const chosen = [form.id ?? []].flat().map(String);
  const declined = await Promise.allSettled(
    chosen.map(async (id) => {
      await demandVisible(visit, id);
      return await requests.decline(id, { by: person.name, reason });
    }),
  );
  const count = declined.filter(({ status }) => status === 'fulfilled').length;
  const tone = count === chosen.length && count > 0 ? 'good' : 'bad';
  const text = `${count} of ${chosen.length} declined.`;
  return await answer(c, '/', async () => ({ notice: { tone, text } }));
}

/** Settles the interrupted attempts that the person may see. Safe while other attempts run. */
async function recover(visit: Visit): Promise<Response> {
  const { c, runtime, person } = visit;
  const results: Recovered[] = [];
  if (seesAll(person.sight)) results.push(...(await runtime.recover()));
  else
    for (const { claim } of await visibleUnsettled(visit))
      results.push(...(await runtime.recover({ occurrence: claim.record.occurrence })));
  const of = (kind: string) => results.filter((result) => result.kind === kind).length;
  const text = `${of('settled')} settled, ${of('running')} still running, ${of('unresolved')} need a person.`;
  const tone = of('unresolved') === 0 ? 'good' : 'bad';
  return await answer(c, '/operations', async () => ({ notice: { tone, text } }));
}

/** Records an operator's decision. Its signature decides who resolved, not the session. */
async function resolve(visit: Visit): Promise<Response> {
  const { c, runtime } = visit;
  const occurrence = c.req.param('occurrence') ?? '';
  await demandVisibleOccurrence(visit, occurrence);
  const { resolution, evidence } = await c.req.parseBody();
  const decided = readResolution(String(resolution), occurrence);
  return await answer(c, `/history/${encodeURIComponent(occurrence)}`, async () => {
    const { operator } = await runtime.resolve(decided, String(evidence));
    return `Resolved by ${operator}.`;
  });
}

function readResolution(text: string, occurrence: string): unknown {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    // Refused below.
  }
  if (Object(found).occurrence === occurrence) return found;
  throw new EffectMatchError('ERR_EM_INPUT_INVALID', 'it is not a decision about this occurrence');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new EffectMatchError('ERR_EM_INPUT_INVALID', 'what was sent is not JSON');
  }
}
