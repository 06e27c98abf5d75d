import { given } from '../contract/options.ts';
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
import { endpoint, type Served } from './endpoint.ts';
import {
  boundarySchema,
  deliverySchema,
  envelopeSchema,
  executionRequestSchema,
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
  after: { about: 'The `next` of the previous page.', schema: integer(0) },
  limit: { about: 'At most this many (default: 100).', schema: integer(1, 500) },
};

/** Executing actions, and reading what is recorded about them. */
export const RECORD_ENDPOINTS = [
  endpoint({
    id: 'ensure',
    route: 'POST /v1/executions',
    group: 'executions',
    scopes: ['execute'],
    summary: 'Execute an action under a license, once',
    about: `Sent again, it returns the verdict that is recorded: there is one effect and one verdict.
A verdict of any kind is an answer, also \`rejected\`. While another process executes it, the answer
is 409 with \`retry\`.`,
    body: { schema: executionRequestSchema, about: 'License and action.', maxBytes: MAX_LICENSE },
    answer: verdictSchema,
    refusals: [409, 503],
    async run({ served: { runtime }, body, signal }) {
      const { license, action, use, revision, waitSeconds = WAIT_SECONDS } = body;
      const { results, earlier, ...terminal } = await runtime.ensure(license, action, {
        waitMs: waitSeconds * 1000,
        signal,
        ...given({ use, revision }),
      });
      const shown = showTerminal(terminal as Terminal);
      return { ...shown, earlier, ...given({ results }) };
    },
  }),
  endpoint({
    id: 'findOccurrences',
    route: 'GET /v1/occurrences',
    group: 'records',
    scopes: ['audit'],
    summary: 'Find occurrences by the beginning of their id',
    query: {
      prefix: { about: 'The beginning of an id; required.', schema: beginning },
    },
    answer: closed({ items: list(occurrenceSchema) }),
    async run({ served: { runtime }, query: { prefix } }) {
      if (prefix === undefined) throw invalid('give the beginning of an id as ?prefix=occ_…');
      return { items: await runtime.ledgers.search(prefix) };
    },
  }),
  endpoint({
    id: 'getOccurrence',
    route: 'GET /v1/occurrences/{occurrence}',
    group: 'records',
    scopes: ['audit'],
    summary: 'Get everything that is recorded about an occurrence',
    parameters: { occurrence },
    answer: occurrenceShape,
    refusals: [404],
    async run({ served, path }) {
      return await readOccurrence(served, path.occurrence);
    },
  }),
  endpoint({
    id: 'getTerminal',
    route: 'GET /v1/occurrences/{occurrence}/terminal',
    group: 'records',
    scopes: ['audit'],
    summary: 'Get the verdict about an occurrence, with its differences',
    about: 'Without a verdict the answer is 404, which is a halt and never a permission.',
    parameters: { occurrence },
    answer: shownTerminalSchema,
    refusals: [404],
    async run({ served: { runtime }, path }) {
      const terminal = await runtime.terminal(path.occurrence);
      if (terminal === undefined) throw notFound(`${path.occurrence} has no verdict`);
      return showTerminal(terminal);
    },
  }),
  endpoint({
    id: 'getReceipt',
    route: 'GET /v1/occurrences/{occurrence}/receipt',
    group: 'records',
    scopes: ['audit'],
    summary: 'Get a signed receipt of the verdict about an occurrence',
    parameters: { occurrence },
    answer: envelopeSchema,
    refusals: [404],
    async run({ served: { runtime }, path }) {
      const receipt = await runtime.receipt(path.occurrence);
      if (receipt === undefined) throw notFound(`${path.occurrence} has no verdict`);
      return receipt;
    },
  }),
  endpoint({
    id: 'getReceiptKeys',
    route: 'GET /v1/receipt-keys',
    group: 'records',
    scopes: ['read'],
    summary: 'Get the public keys that verify receipts, newest first',
    answer: closed({ items: list(text(1, 256), 1) }),
    async run({ served: { runtime } }) {
      return { items: runtime.receiptKeys };
    },
  }),
  endpoint({
    id: 'getJournal',
    route: 'GET /v1/journal',
    group: 'records',
    scopes: ['audit'],
    summary: 'Read the journal, oldest first',
    query: page,
    answer: pageOf(journalRowSchema, integer(1)),
    async run({ served: { runtime }, query: { after = 0, limit = PAGE } }) {
      const items = await runtime.ledgers.journal({ afterSeq: after, limit });
      return { items, ...nextOf(items, limit, ({ seq }) => seq) };
    },
  }),
  endpoint({
    id: 'getShadows',
    route: 'GET /v1/shadows',
    group: 'records',
    scopes: ['audit'],
    summary: 'Read what shadows would have decided, oldest first',
    about: 'A page may have fewer items than `limit` while there are more: follow `next`.',
    query: page,
    answer: pageOf(closed({ seq: integer(1), record: shadowRecord.schema }), integer(1)),
    async run({ served: { runtime }, query: { after = 0, limit = PAGE } }) {
      const rows = await runtime.ledgers.journal({ afterSeq: after, limit });
      const items = rows.flatMap((row) =>
        row.kind === 'shadow' ? [{ seq: row.seq, record: row.record }] : [],
      );
      return { items, ...nextOf(rows, limit, ({ seq }) => seq) };
    },
  }),
  endpoint({
    id: 'getBoundary',
    route: 'GET /v1/adapters/{adapter}/certificate',
    group: 'operations',
    scopes: ['audit'],
    summary: 'Survey an adapter: what a certificate would say now',
    parameters: { adapter: { about: 'The adapter.', schema: nameSchema } },
    answer: boundarySchema,
    refusals: [404],
    async run({ served: { runtime, adapters }, path: { adapter } }) {
      if (!adapters.includes(adapter)) throw notFound(`there is no adapter "${adapter}"`);
      const survey = await runtime.survey(adapter);
      const { backend, executor } = survey;
      const outlets = survey.outlets.map(({ outlet, disposition, by }) => {
        return { outlet, disposition, by };
      });
      const certified = unclassified(survey).length === 0;
      return { adapter, certified, backend, executor, outlets };
    },
  }),
  endpoint({
    id: 'getContinuations',
    route: 'GET /v1/continuations',
    group: 'continuations',
    scopes: ['audit'],
    summary: 'List work that was released and has not completed',
    answer: closed({ items: list(openContinuationSchema) }),
    async run({ served: { runtime } }) {
      return { items: await runtime.continuations() };
    },
  }),
  endpoint({
    id: 'release',
    route: 'POST /v1/occurrences/{occurrence}/continuations/{continuation}/release',
    group: 'continuations',
    scopes: ['execute'],
    summary: 'Ask whether dependent work may run',
    about: `\`released\` comes once: the release is durable before the answer, so run the work and then
call \`complete\`. A lost answer therefore leaves work that was released and not run; it is in
\`GET /v1/continuations\`.`,
    parameters: { occurrence, continuation },
    body: { schema: lineage, about: 'The `lineage` of the verdict: the digest of the license.' },
    answer: releaseSchema,
    async run({ served: { runtime }, path, body }) {
      const from = { occurrence: path.occurrence, lineage: body.lineage };
      const decided = await runtime.continuation(from, path.continuation).begin();
      const { kind } = decided;
      return kind === 'released' ? { kind } : decided;
    },
  }),
  endpoint({
    id: 'complete',
    route: 'POST /v1/occurrences/{occurrence}/continuations/{continuation}/complete',
    group: 'continuations',
    scopes: ['execute'],
    summary: 'Record that released work is done',
    about: '`completed` is false if it was not released, is halted, or was complete before.',
    parameters: { occurrence, continuation },
    body: { schema: lineage, about: 'The `lineage` of the verdict: the digest of the license.' },
    answer: closed({ completed: choice(true, false) }),
    async run({ served: { runtime }, path, body }) {
      const from = { occurrence: path.occurrence, lineage: body.lineage };
      const done = await runtime.continuation(from, path.continuation).perform(() => {});
      return { completed: done.kind === 'released' };
    },
  }),
  endpoint({
    id: 'recover',
    route: 'POST /v1/recovery',
    group: 'operations',
    scopes: ['operate'],
    summary: 'Settle interrupted attempts',
    body: { schema: someOccurrence, about: 'All of them, or the one at an occurrence.' },
    answer: closed({ items: list(recoveredSchema) }),
    async run({ served: { runtime }, body }) {
      return { items: await runtime.recover(body) };
    },
  }),
  endpoint({
    id: 'resolve',
    route: 'POST /v1/occurrences/{occurrence}/resolution',
    group: 'operations',
    scopes: ['operate'],
    summary: "Record an operator's signed decision about an indeterminate occurrence",
    about: 'It sends nothing and releases nothing. The signature decides, not the token.',
    parameters: { occurrence },
    body: { schema: resolvingSchema, about: 'The decision and the evidence it was signed for.' },
    answer: resolutionRecord.schema,
    refusals: [422],
    async run({ served: { runtime }, path, body }) {
      const { resolution, evidence } = body;
      if (resolution.occurrence !== path.occurrence)
        throw invalid('the resolution is about another occurrence');
      return await runtime.resolve(resolution, evidence);
    },
  }),
  endpoint({
    id: 'getDeliveries',
    route: 'GET /v1/deliveries',
    group: 'operations',
    scopes: ['audit'],
    summary: 'Read the log of webhook deliveries, oldest first',
    query: page,
    answer: pageOf(deliverySchema, integer(1)),
    async run({ served: { requests }, query: { after = 0, limit = PAGE } }) {
      const items = await requests.deliveries(after, limit);
      return { items, ...nextOf(items, limit, ({ number }) => number) };
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
    ...given({ claim: holder?.claim.record, resolution }),
    ...(terminal && showTerminal(terminal)),
  };
}

const notFound = errorsOf('ERR_EM_NOT_FOUND');

const invalid = errorsOf('ERR_EM_INPUT_INVALID');
