import { choice, closed, dictionary, integer, plain, text } from '../protocol/schema.ts';
import { endpoint } from './endpoint.ts';
import { ApiRefusal } from './problem.ts';

const MAX_STREAMS = 20;
const group = 'server';
const alive = closed({ status: choice('alive') });

/** Health, the OpenAPI document, and the stream of events. */
export const SERVER_ENDPOINTS = [
  endpoint({
    id: 'getEvents',
    route: 'GET /v1/events',
    group: 'events',
    scopes: ['read'],
    summary: 'Follow what happens to requests',
    about: `A stream of server-sent events named \`request\`, each with an \`id\`. An agent gets those of
its own requests. Send the last id that you have seen as the header \`last-event-id\` or as
\`after\`, and nothing is left out; without it the stream begins now. A client that does not read is
cut off, and may continue from its last id. The stream ends within 15 seconds after its token has.`,
    query: { after: { about: 'Begin after this event.', schema: integer(0) } },
    type: 'text/event-stream',
    answer: text(),
    refusals: [503],
    async run({ served: { events }, caller, query, headers, signal, isAdmitted }) {
      const { name, kind } = caller;
      const last = headers.get('last-event-id') ?? '';
      const after = query.after ?? (/^\d{1,15}$/.test(last) ? Number(last) : undefined);
      const opened = events.open({
        name: `${kind} ${name}`,
        most: MAX_STREAMS,
        after,
        signal,
        isAdmitted,
        wants: ({ by }) => kind === 'operator' || by === name,
        write: (event) => `id: ${event.seq}\nevent: request\ndata: ${JSON.stringify(event)}\n\n`,
      });
      if (opened !== undefined) return opened;
      const message = 'too many streams are open; poll /v1/requests, or try again later';
      throw new ApiRefusal(503, 'ERR_EM_RATE_LIMITED', message);
    },
  }),
  endpoint({
    id: 'getDocument',
    route: 'GET /openapi.json',
    group,
    summary: 'Get this document',
    answer: dictionary(text(), plain),
    async run({ served: { document } }) {
      return document;
    },
  }),
  endpoint({
    id: 'getHealth',
    route: 'GET /health',
    group,
    summary: 'Whether the process answers',
    answer: alive,
    async run() {
      return { status: 'alive' };
    },
  }),
  endpoint({
    id: 'getReadiness',
    route: 'GET /ready',
    group,
    summary: 'Whether the ledger and the requests can be read',
    answer: closed({ status: choice('ready') }),
    refusals: [503],
    async run({ served: { runtime, requests } }) {
      await Promise.all([
        requests.countWaiting(),
        runtime.ledgers.journal({ last: true, limit: 1 }),
      ]).catch((cause) => {
        throw new ApiRefusal(503, 'ERR_EM_STORE_UNAVAILABLE', 'a store cannot be read', { cause });
      });
      return { status: 'ready' };
    },
  }),
];
