import type { Caller } from '../access/callers.ts';
import { EffectMatchError, errorsOf } from '../errors.ts';
import { declineRecord, requestIdSchema } from '../protocol/decline.ts';
import { nameSchema } from '../protocol/record.ts';
import { closed, type Infer, integer, list, text } from '../protocol/schema.ts';
import type { ApprovalRequest, Ask } from '../requests/request.ts';
import type { Requests } from '../requests/requests.ts';
import { Created, endpoint } from './endpoint.ts';
import { ApiRefusal } from './problem.ts';
import {
  askSchema,
  envelopeSchema,
  pageOf,
  proposalSchema,
  requestSchema,
  signedLicenseSchema,
  stateSchema,
} from './shapes.ts';

const group = 'requests';
const id = { about: 'The request.', schema: requestIdSchema };
const PAGE = 50;
const MAX_RENDERING = 4000;
const MAX_MESSAGE = 4000;
/** Large, because an outcome may have a hundred thousand changes. */
const MAX_LICENSE = 64 * 1024 * 1024;

const message = closed({ text: text(1, MAX_MESSAGE) });
const assignment = closed({ to: nameSchema });

/** What agents and approvers do with requests. An agent reaches only its own. */
export const REQUEST_ENDPOINTS = [
  endpoint({
    id: 'ask',
    route: 'POST /v1/requests',
    group,
    scopes: ['ask'],
    summary: 'Ask for a change',
    about: `Give an \`operation\` with its \`input\`; an \`adapter\` with an \`action\`, which is
rehearsed; or a \`manifest\` with the \`action\` that carries it out. The same question in one
\`run\` is one request, however often it is asked.`,
    body: { schema: askSchema, about: 'What is asked for.' },
    answer: requestSchema,
    created: 'The request waits for a person. If it was asked before, the status is 200.',
    refusals: [422],
    async run({ served: { requests }, caller, body }) {
      const asked = { ...body, by: caller.name } as unknown as Ask;
      demandAllowed(caller, body);
      const isKnown = await requests.isKnown(asked);
      const request = presentRequest(await requests.ask(asked));
      return isKnown ? request : new Created(request);
    },
  }),
  endpoint({
    id: 'listRequests',
    route: 'GET /v1/requests',
    group,
    scopes: ['read'],
    summary: 'List requests, newest first',
    query: {
      state: { about: 'Only requests in this state.', schema: stateSchema },
      by: { about: 'Only requests of this agent.', schema: nameSchema },
      adapter: { about: 'Only requests for this adapter.', schema: nameSchema },
      limit: { about: 'At most this many (default: 50).', schema: integer(1, 500) },
      after: { about: 'The `next` of the previous page.', schema: requestIdSchema },
    },
    answer: pageOf(requestSchema, requestIdSchema),
    async run({ served: { requests }, caller, query }) {
      const { limit = PAGE, by, ...rest } = query;
      const asker = caller.kind === 'agent' ? caller.name : by;
      const found = await requests.page({ ...rest, limit, ...(asker && { by: asker }) });
      return { items: found.requests.map(presentRequest), ...(found.next && { next: found.next }) };
    },
  }),
  endpoint({
    id: 'getRequest',
    route: 'GET /v1/requests/{id}',
    group,
    scopes: ['read'],
    summary: 'See where a request stands, or wait for it',
    parameters: { id },
    query: {
      waitSeconds: {
        about: 'How long to wait until nothing more happens to it (default: 0).',
        schema: integer(0, 50),
      },
    },
    answer: requestSchema,
    refusals: [404],
    async run({ served: { requests }, caller, path, query, signal }) {
      await demandOwn(requests, caller, path.id);
      const waitMs = (query.waitSeconds ?? 0) * 1000;
      return presentRequest(await requests.wait(path.id, { waitMs, signal }));
    },
  }),
  endpoint({
    id: 'getProposal',
    route: 'GET /v1/requests/{id}/proposal',
    group,
    scopes: ['answer'],
    summary: 'Get what an approver signs',
    about: 'It is the file that `effectmatch approve` and `effectmatch decline` take.',
    parameters: { id },
    answer: proposalSchema,
    refusals: [404],
    async run({ served: { requests }, path }) {
      return (await requests.recheck(path.id)).proposal;
    },
  }),
  endpoint({
    id: 'getRequestReceipt',
    route: 'GET /v1/requests/{id}/receipt',
    group,
    scopes: ['read'],
    summary: 'Get the receipt of what became of a request',
    parameters: { id },
    answer: envelopeSchema,
    refusals: [404],
    async run({ served: { requests, runtime }, caller, path }) {
      const { occurrence } = await demandOwn(requests, caller, path.id);
      const receipt = occurrence && (await runtime.receipt(occurrence));
      if (receipt === undefined) throw notFound(`${path.id} has no verdict yet`);
      return receipt;
    },
  }),
  endpoint({
    id: 'answer',
    route: 'POST /v1/requests/{id}/license',
    group,
    scopes: ['answer'],
    summary: 'Approve a request with a signed license',
    about: `The first license that fits counts. One that does not fit, or would be refused, leaves
the request open. The token only lets you send it: the signature approves.`,
    parameters: { id },
    body: {
      schema: signedLicenseSchema,
      isDocument: true,
      maxBytes: MAX_LICENSE,
      about: 'What `effectmatch approve` writes.',
    },
    answer: requestSchema,
    refusals: [404, 409, 422],
    async run({ served: { requests }, path, text: license }) {
      return presentRequest(await requests.answer(path.id, license));
    },
  }),
  endpoint({
    id: 'getLicense',
    route: 'GET /v1/requests/{id}/license',
    group,
    scopes: ['answer'],
    summary: 'Get the license that waits for a second signature',
    about: 'Sign it with `effectmatch approve` and send it back.',
    parameters: { id },
    answer: signedLicenseSchema,
    refusals: [404],
    async run({ served: { requests }, path }) {
      const { first } = await requests.get(path.id);
      if (first === undefined) throw notFound(`${path.id} does not wait for a second signature`);
      return first;
    },
  }),
  endpoint({
    id: 'decline',
    route: 'POST /v1/requests/{id}/decline',
    group,
    scopes: ['answer'],
    summary: 'Decline a request with a signed decline',
    parameters: { id },
    body: { schema: declineRecord.schema, about: 'What `effectmatch decline --out` writes.' },
    answer: requestSchema,
    refusals: [404, 409, 422],
    async run({ served: { requests }, path, body }) {
      return presentRequest(await requests.declineSigned(path.id, body));
    },
  }),
  endpoint({
    id: 'askBack',
    route: 'POST /v1/requests/{id}/questions',
    group,
    scopes: ['answer'],
    summary: 'Ask the agent a question before answering',
    about: 'The request stays open. The question is in its `messages`.',
    parameters: { id },
    body: { schema: message, about: 'The question.' },
    answer: requestSchema,
    refusals: [404, 409],
    async run({ served: { requests }, caller: { name: by }, path, body }) {
      return presentRequest(await requests.askBack(path.id, { by, ...body }));
    },
  }),
  endpoint({
    id: 'reply',
    route: 'POST /v1/requests/{id}/replies',
    group,
    scopes: ['ask'],
    summary: 'Reply to what an approver asked',
    about: 'The approver sees it marked as unverified. The request stays open.',
    parameters: { id },
    body: { schema: message, about: 'The reply.' },
    answer: requestSchema,
    refusals: [404, 409],
    async run({ served: { requests }, caller, path, body }) {
      return presentRequest(await requests.forAgent(caller.name).reply(path.id, body.text));
    },
  }),
  endpoint({
    id: 'assign',
    route: 'POST /v1/requests/{id}/assignment',
    group,
    scopes: ['answer'],
    summary: 'Hand a request to another approver',
    about: 'It only says whom the request is for: others who may approve it still can.',
    parameters: { id },
    body: { schema: assignment, about: 'Whom it is for.' },
    answer: requestSchema,
    refusals: [404, 409],
    async run({ served: { requests }, path, body }) {
      return presentRequest(await requests.assign(path.id, body.to));
    },
  }),
  endpoint({
    id: 'withdraw',
    route: 'POST /v1/requests/{id}/withdraw',
    group,
    scopes: ['ask'],
    summary: 'Withdraw a request',
    parameters: { id },
    answer: requestSchema,
    refusals: [404, 409],
    async run({ served: { requests }, caller, path }) {
      await demandOwn(requests, caller, path.id);
      return presentRequest(await requests.withdraw(path.id));
    },
  }),
  endpoint({
    id: 'renew',
    route: 'POST /v1/requests/{id}/renew',
    group,
    scopes: ['ask', 'answer'],
    summary: 'Propose a request again, from the state as it is now',
    about: 'A license for the earlier proposal can no longer be used.',
    parameters: { id },
    answer: closed({ request: requestSchema, difference: list(text()) }),
    refusals: [404, 409, 422],
    async run({ served: { requests }, caller, path }) {
      await demandOwn(requests, caller, path.id);
      const { request, difference } = await requests.renew(path.id);
      return { request: presentRequest(request), difference };
    },
  }),
];

/** A request as the API returns it. The proposal may be large and has a separate endpoint. */
function presentRequest(request: ApprovalRequest): unknown {
  const { proposal: _, first: _first, rendering, ...shown } = request;
  return { ...shown, rendering: rendering.slice(0, MAX_RENDERING).toWellFormed() };
}

/** Finds a request. For an agent, other agents' requests do not exist. */
async function demandOwn(requests: Requests, caller: Caller, request: string) {
  if (caller.kind === 'operator') return await requests.get(request);
  return await requests.forAgent(caller.name).get(request);
}

/** Throws unless the configuration lets the agent ask for this. */
function demandAllowed({ agent }: Caller, body: Infer<typeof askSchema>): void {
  const { operation, adapter, manifest } = body;
  if (operation !== undefined) {
    if (agent?.operations.includes(operation) !== true) throw forbidden('operation', operation);
    return;
  }
  const named = manifest === undefined ? adapter : manifest.adapter;
  if (typeof named !== 'string')
    throw new EffectMatchError('ERR_EM_INPUT_INVALID', 'name an operation or an adapter');
  if (agent?.sql.includes(named) !== true) throw forbidden('adapter', named);
}

function forbidden(what: string, name: string): ApiRefusal {
  const message = `the configuration does not let this agent ask for the ${what} "${name}"`;
  return new ApiRefusal(403, 'ERR_EM_ACCESS_REFUSED', message);
}

const notFound = errorsOf('ERR_EM_NOT_FOUND');
