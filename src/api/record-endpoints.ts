import { errorsOf } from '../errors.ts';
import { unclassified } from '../protocol/boundary.ts';
import {
  digestSchema,
  nameSchema,
  type OccurrenceId,
  occurrenceSchema,
} from '../protocol/record.ts';
import { renderDiff } from '../protocol/render.ts';
import { resolutionRecord } from '../protocol/resolution.ts';
import { choice, closed, form, integer, list, optional, text } from '../protocol/schema.ts';
import { shadowRecord } from '../protocol/shadow.ts';
import { diffOfTerminal, type Terminal } from '../protocol/terminal.ts';
import { endpoint, ok, type Served } from './endpoint.ts';
import {
  boundarySchema,
  deliverySchema,
  envelopeSchema,
  executionSchema,
  journalRowSchema,
  occurrenceShape,
  openContinuationSchema,
  pageOf,
  recoveredSchema,
  releaseSchema,
  resolvingSchema,
  shownTerminalSchema,
  verdictSchema,
} from './shapes.ts';

const WAIT_SECONDS = 25;
const PAGE = 100;
const MAX_LICENSE = 64 * 1024 * 1024;
const occurrence = { about: 'The occurrence.', schema: occurrenceSchema };
const continuation = { about: 'The continuation that the license names.', schema: nameSchema };
const beginning = form(/^occ_[0-9a-f]{4,40}$/, 'occ_ and 4 to 40 hex digits');
const someOccurrence = closed({ occurrence: optional(occurrenceSchema) });
const lineage = closed({ lineage: digestSchema });
const page = {
  after: { about: 'The `next` of the page before.', schema: integer(0) },
  limit: { about: 'At most so many; 100 unless said.', schema: integer(1, 500) },
};

/** Executing actions, and reading what is recorded about them. */
export const RECORD_ENDPOINTS = [
  endpoint({
    id: 'ensure',
    method: 'POST',
    path: '/v1/executions',
    group: 'executions',
    scopes: ['execute'],
    summary: 'Execute an action under a license, once',
    about: `Sent again, it returns the verdict that is recorded: there is one effect and one verdict.
A verdict of any kind is an answer, also \`rejected\`. While another process executes it, the answer
is 409 with \`retry\`.`,
    body: { schema: executionSchema, about: 'License and action.', maxBytes: MAX_LICENSE },
    answers: { 200: { about: 'The verdict.', schema: verdictSchema } },
    refusals: [409, 503],
    async run({ served: { runtime }, body, signal }) {
      const { license, action, use, revision, waitSeconds = WAIT_SECONDS } = body;
      const { results, earlier, ...terminal } = await runtime.ensure(license, action, {
        waitMs: waitSeconds * 1000,
        signal,
        ...(use !== undefined && { use }),
        ...(revision !== undefined && { revision }),
      });
      const shown = showTerminal(terminal as Terminal);
      return ok({ ...shown, earlier, ...(results && { results }) });
    },
  }),
  endpoint({
    id: 'findOccurrences',
    method: 'GET',
    path: '/v1/occurrences',
    group: 'records',
    scopes: ['audit'],
    summary: 'Find occurrences by the beginning of their id',
    query: {
      prefix: { about: 'The beginning of an id; needed.', schema: beginning },
    },
    answers: {
      200: { about: 'At most ten ids.', schema: closed({ items: list(occurrenceSchema) }) },
    },
    async run({ served: { runtime }, query: { prefix } }) {
      if (prefix === undefined) throw invalid('give the beginning of an id as ?prefix=occ_…');
      return ok({ items: await runtime.ledgers.search(prefix) });
    },
  }),
  endpoint({
    id: 'getOccurrence',
    method: 'GET',
    path: '/v1/occurrences/{occurrence}',
    group: 'records',
    scopes: ['audit'],
    summary: 'Get everything that is recorded about an occurrence',
    parameters: { occurrence },
    answers: { 200: { about: 'What is recorded.', schema: occurrenceShape } },
    refusals: [404],
    async run({ served, path }) {
      return ok(await readOccurrence(served, path.occurrence));
    },
  }),
  endpoint({
    id: 'getTerminal',
    method: 'GET',
    path: '/v1/occurrences/{occurrence}/terminal',
    group: 'records',
    scopes: ['audit'],
    summary: 'Get the verdict about an occurrence, with its differences',
    about: 'Without a verdict the answer is 404, which is a halt and never a permission.',
    parameters: { occurrence },
    answers: { 200: { about: 'The verdict.', schema: shownTerminalSchema } },
    refusals: [404],
    async run({ served: { runtime }, path }) {
      const terminal = await runtime.terminal(path.occurrence);
      if (terminal === undefined) throw notFound(`${path.occurrence} has no verdict`);
      return ok(showTerminal(terminal));
    },
  }),
  endpoint({
    id: 'getReceipt',
    method: 'GET',
    path: '/v1/occurrences/{occurrence}/receipt',
    group: 'records',
    scopes: ['audit'],
    summary: 'Get a signed receipt of the verdict about an occurrence',
    parameters: { occurrence },
    answers: { 200: { about: 'A DSSE envelope.', schema: envelopeSchema } },
    refusals: [404],
    async run({ served: { runtime }, path }) {
      const receipt = await runtime.receipt(path.occurrence);
      if (receipt === undefined) throw notFound(`${path.occurrence} has no verdict`);
      return ok(receipt);
    },
  }),
  endpoint({
    id: 'getReceiptKeys',
    method: 'GET',
    path: '/v1/receipt-keys',
    group: 'records',
    scopes: ['read'],
    summary: 'Get the public keys that verify receipts, newest first',
    answers: { 200: { about: 'The keys.', schema: closed({ items: list(text(1, 256), 1) }) } },
    async run({ served: { runtime } }) {
      return ok({ items: runtime.receiptKeys });
    },
  }),
  endpoint({
    id: 'getJournal',
    method: 'GET',
    path: '/v1/journal',
    group: 'records',
    scopes: ['audit'],
    summary: 'Read the journal, oldest first',
    query: page,
    answers: { 200: { about: 'A page.', schema: pageOf(journalRowSchema, integer(1)) } },
    async run({ served: { runtime }, query: { after = 0, limit = PAGE } }) {
      const items = await runtime.ledgers.journal({ afterSeq: after, limit });
      return ok({ items, ...nextOf(items, limit, ({ seq }) => seq) });
    },
  }),
  endpoint({
    id: 'getShadows',
    method: 'GET',
    path: '/v1/shadows',
    group: 'records',
    scopes: ['audit'],
    summary: 'Read what shadows would have decided, oldest first',
    about: 'A page may have fewer items than `limit` while there are more: follow `next`.',
    query: page,
    answers: {
      200: {
        about: 'A page.',
        schema: pageOf(closed({ seq: integer(1), record: shadowRecord.schema }), integer(1)),
      },
    },
    async run({ served: { runtime }, query: { after = 0, limit = PAGE } }) {
      const rows = await runtime.ledgers.journal({ afterSeq: after, limit });
      const items = rows.flatMap((row) =>
        row.kind === 'shadow' ? [{ seq: row.seq, record: row.record }] : [],
      );
      return ok({ items, ...nextOf(rows, limit, ({ seq }) => seq) });
    },
  }),
  endpoint({
    id: 'getBoundary',
    method: 'GET',
    path: '/v1/adapters/{adapter}/certificate',
    group: 'operations',
    scopes: ['audit'],
    summary: 'Survey an adapter: what a certificate would say now',
    parameters: { adapter: { about: 'The adapter.', schema: nameSchema } },
    answers: { 200: { about: 'Every outlet.', schema: boundarySchema } },
    refusals: [404],
    async run({ served: { runtime, adapters }, path: { adapter } }) {
      if (!adapters.includes(adapter)) throw notFound(`there is no adapter "${adapter}"`);
      const survey = await runtime.survey(adapter);
      const { backend, executor } = survey;
      const outlets = survey.outlets.map(({ outlet, disposition, by }) => {
        return { outlet, disposition, by };
      });
      const certified = unclassified(survey).length === 0;
      return ok({ adapter, certified, backend, executor, outlets });
    },
  }),
  endpoint({
    id: 'getContinuations',
    method: 'GET',
    path: '/v1/continuations',
    group: 'continuations',
    scopes: ['audit'],
    summary: 'List work that was released and has not completed',
    answers: {
      200: { about: 'Oldest first.', schema: closed({ items: list(openContinuationSchema) }) },
    },
    async run({ served: { runtime } }) {
      return ok({ items: await runtime.continuations() });
    },
  }),
  endpoint({
    id: 'release',
    method: 'POST',
    path: '/v1/occurrences/{occurrence}/continuations/{continuation}/release',
    group: 'continuations',
    scopes: ['execute'],
    summary: 'Ask whether dependent work may run',
    about: `\`released\` comes once: the release is durable before the answer, so run the work and then
call \`complete\`. A lost answer therefore leaves work that was released and not run; it is in
\`GET /v1/continuations\`.`,
    parameters: { occurrence, continuation },
    body: { schema: lineage, about: 'The `lineage` of the verdict: the digest of the license.' },
    answers: { 200: { about: 'Released, or halted and why.', schema: releaseSchema } },
    async run({ served: { runtime }, path, body }) {
      const from = { occurrence: path.occurrence, lineage: body.lineage };
      const decided = await runtime.continuation(from, path.continuation).begin();
      const { kind } = decided;
      return ok(kind === 'released' ? { kind } : decided);
    },
  }),
  endpoint({
    id: 'complete',
    method: 'POST',
    path: '/v1/occurrences/{occurrence}/continuations/{continuation}/complete',
    group: 'continuations',
    scopes: ['execute'],
    summary: 'Say that released work is done',
    parameters: { occurrence, continuation },
    body: { schema: lineage, about: 'The `lineage` of the verdict: the digest of the license.' },
    answers: {
      200: {
        about: 'False if it was not released, is halted, or was complete before.',
        schema: closed({ completed: choice(true, false) }),
      },
    },
    async run({ served: { runtime }, path, body }) {
      const from = { occurrence: path.occurrence, lineage: body.lineage };
      const done = await runtime.continuation(from, path.continuation).perform(() => {});
      return ok({ completed: done.kind === 'released' });
    },
  }),
  endpoint({
    id: 'recover',
    method: 'POST',
    path: '/v1/recovery',
    group: 'operations',
    scopes: ['operate'],
    summary: 'Settle interrupted attempts',
    body: { schema: someOccurrence, about: 'All of them, or the one at an occurrence.' },
    answers: {
      200: { about: 'What was found.', schema: closed({ items: list(recoveredSchema) }) },
    },
    async run({ served: { runtime }, body }) {
      return ok({ items: await runtime.recover(body) });
    },
  }),
  endpoint({
    id: 'resolve',
    method: 'POST',
    path: '/v1/occurrences/{occurrence}/resolution',
    group: 'operations',
    scopes: ['operate'],
    summary: "Record an operator's signed decision about an indeterminate occurrence",
    about: 'It sends nothing and releases nothing. The signature decides, not the token.',
    parameters: { occurrence },
    body: { schema: resolvingSchema, about: 'The decision and the evidence it was signed for.' },
    answers: { 200: { about: 'The decision.', schema: resolutionRecord.schema } },
    refusals: [422],
    async run({ served: { runtime }, path, body }) {
      const { resolution, evidence } = body;
      if (resolution.occurrence !== path.occurrence)
        throw invalid('the resolution is about another occurrence');
      return ok(await runtime.resolve(resolution, evidence));
    },
  }),
  endpoint({
    id: 'getDeliveries',
    method: 'GET',
    path: '/v1/deliveries',
    group: 'operations',
    scopes: ['audit'],
    summary: 'Read the log of webhook deliveries, oldest first',
    query: page,
    answers: { 200: { about: 'A page.', schema: pageOf(deliverySchema, integer(1)) } },
    async run({ served: { requests }, query: { after = 0, limit = PAGE } }) {
      const items = await requests.deliveries(after, limit);
      return ok({ items, ...nextOf(items, limit, ({ number }) => number) });
    },
  }),
];

function nextOf<T>(items: readonly T[], limit: number, place: (item: T) => number) {
  const last = items.at(-1);
  return last !== undefined && items.length === limit ? { next: place(last) } : {};
}

function showTerminal(terminal: Terminal) {
  const diff = diffOfTerminal(terminal);
  return { terminal, ...(diff !== undefined && { difference: renderDiff(diff) }) };
}

async function readOccurrence({ runtime }: Served, id: OccurrenceId) {
  const { ledgers } = runtime;
  const holder = await ledgers.holder(id);
  const attempts = await ledgers.attempts(id);
  if (holder === undefined && attempts.length === 0) throw notFound(`${id} does not exist`);
  const terminal = await ledgers.terminal(id);
  const resolution = await ledgers.resolution(id);
  return {
    occurrence: id,
    attempts,
    acknowledgements: await ledgers.acknowledgements(id),
    leased: holder !== undefined && terminal === undefined && !holder.leaseExpired,
    ...(holder !== undefined && { claim: holder.claim.record }),
    ...(terminal !== undefined && showTerminal(terminal)),
    ...(resolution !== undefined && { resolution }),
  };
}

const notFound = errorsOf('ERR_EM_NOT_FOUND');

const invalid = errorsOf('ERR_EM_INPUT_INVALID');
