import { claimRecord } from '../protocol/binding.ts';
import { acknowledgementRecord } from '../protocol/continuation.ts';
import { declineRecord, requestIdSchema } from '../protocol/decline.ts';
import { licenseRecord } from '../protocol/license.ts';
import { approvedRecord } from '../protocol/manifest.ts';
import { markerRecord } from '../protocol/marker.ts';
import { permitRecord } from '../protocol/permit.ts';
import {
  digestSchema,
  instantSchema,
  labelSchema,
  nameSchema,
  occurrenceSchema,
} from '../protocol/record.ts';
import { resolutionRecord } from '../protocol/resolution.ts';
import {
  choice,
  closed,
  dictionary,
  integer,
  list,
  optional,
  plain,
  type Schema,
  text,
  variants,
} from '../protocol/schema.ts';
import { shadowRecord } from '../protocol/shadow.ts';
import { terminalRecord } from '../protocol/terminal.ts';
import { REQUEST_STATES } from '../requests/request.ts';
import { problemSchema } from './problem.ts';

const object = dictionary(text(), plain);
export const stateSchema = choice(...REQUEST_STATES);

/** What an agent asks for: an operation with its input, an action, or a manifest with its action. */
export const askSchema = closed({
  run: text(1, 256),
  operation: optional(nameSchema),
  input: optional(plain),
  adapter: optional(nameSchema),
  action: optional(plain),
  set: optional(object),
  manifest: optional(object),
  reason: optional(text(0, 4000)),
  key: optional(text(0, 256)),
});

/** A request, without its proposal. */
export const requestSchema = closed({
  id: requestIdSchema,
  state: stateSchema,
  by: nameSchema,
  run: text(1, 256),
  adapter: nameSchema,
  operation: optional(nameSchema),
  reason: optional(text()),
  generation: integer(1),
  askedAt: instantSchema,
  expiresAt: instantSchema,
  mode: choice('on-approval', 'on-call', 'on-task'),
  link: optional(text()),
  answeredBy: optional(text()),
  messages: optional(
    list(
      closed({
        from: choice('approver', 'agent'),
        by: text(),
        at: instantSchema,
        text: text(),
      }),
    ),
  ),
  assignedTo: optional(text()),
  decline: optional(declineRecord.schema),
  detail: optional(text()),
  occurrence: optional(occurrenceSchema),
  terminal: optional(terminalRecord.schema),
  results: optional(list(plain)),
  /** What a person is asked to approve, truncated to a few thousand characters. */
  rendering: optional(text()),
});

export const proposalSchema = closed({
  /** The license without the parts that the approver decides. */
  draft: object,
  approved: approvedRecord.schema,
  rendering: text(),
  note: optional(object),
});

export const signedLicenseSchema = closed({
  license: licenseRecord.schema,
  approved: approvedRecord.schema,
  signature: text(1, 16_384),
  /** Another person's signature over the same license, if one is required. */
  second: optional(object),
});

export const executionRequestSchema = closed({
  license: signedLicenseSchema,
  action: plain,
  /** Which execution of the license, counted from 1, if it allows several. */
  use: optional(integer(1, 1000)),
  /** The application's revision of the task state, if the approval is bound to one. */
  revision: optional(text(0, 4096)),
  /** How long to wait for an attempt that runs elsewhere; 25 by default. */
  waitSeconds: optional(integer(0, 50)),
});

/**
 * A verdict, whether it existed before, and how the observed outcome differs from the approved one.
 */
export const verdictSchema = closed({
  terminal: terminalRecord.schema,
  earlier: choice(true, false),
  /** The differences as text, if there are any. */
  difference: optional(text()),
  results: optional(list(plain)),
});

export const shownTerminalSchema = closed({
  terminal: terminalRecord.schema,
  difference: optional(text()),
});

export const occurrenceShape = closed({
  occurrence: occurrenceSchema,
  claim: optional(claimRecord.schema),
  /** Whether the attempt that holds the claim may still be running. */
  leased: choice(true, false),
  terminal: optional(terminalRecord.schema),
  attempts: list(terminalRecord.schema),
  acknowledgements: list(acknowledgementRecord.schema),
  resolution: optional(resolutionRecord.schema),
  difference: optional(text()),
});

const seq = { seq: integer(1) };
/** One row of the journal. */
export const journalRowSchema = variants('kind', {
  claim: { ...seq, record: claimRecord.schema },
  permit: { ...seq, record: permitRecord.schema },
  void: { ...seq, record: markerRecord.schema },
  terminal: { ...seq, record: terminalRecord.schema },
  acknowledgement: { ...seq, record: acknowledgementRecord.schema },
  resolution: { ...seq, record: resolutionRecord.schema },
  shadow: { ...seq, record: shadowRecord.schema },
});

export const envelopeSchema = closed({
  payloadType: text(1, 256),
  payload: text(),
  signatures: list(closed({ keyid: text(0, 256), sig: text(1, 1024) }), 1, 16),
});

export const resolvingSchema = closed({
  resolution: resolutionRecord.schema,
  evidence: text(1, 1_000_000),
});

export const openContinuationSchema = closed({
  occurrence: occurrenceSchema,
  lineage: digestSchema,
  continuation: nameSchema,
  task: labelSchema,
  releasedAt: instantSchema,
});

export const releaseSchema = variants('kind', {
  released: {},
  halted: { why: nameSchema },
});

export const recoveredSchema = variants('kind', {
  settled: { occurrence: occurrenceSchema, task: labelSchema, terminal: terminalRecord.schema },
  running: { occurrence: occurrenceSchema, task: labelSchema, why: text() },
  unresolved: { occurrence: occurrenceSchema, task: labelSchema, why: text() },
});

export const boundarySchema = closed({
  adapter: nameSchema,
  /** Whether every outlet is observed or denied. Nothing is executed there otherwise. */
  certified: choice(true, false),
  backend: text(),
  executor: text(),
  outlets: list(
    closed({
      outlet: text(),
      disposition: choice('observed', 'denied', 'unclassified'),
      by: text(),
    }),
  ),
});

export const deliverySchema = closed({
  number: integer(1),
  receiver: text(),
  seq: integer(1),
  attempt: integer(1),
  at: instantSchema,
  delivered: choice(true, false),
  result: text(),
});

/** One page of a list. */
export function pageOf<T>(item: Schema<T>, next: Schema<string> | Schema<number>) {
  /** Pass `next` as `after` to get the following page. It is absent on the last page. */
  return closed({ items: list(item), next: optional(next as Schema<string | number>) });
}

/** The shapes that the OpenAPI document lists by name. */
export const NAMED: readonly (readonly [string, Schema<unknown>])[] = [
  ['Ask', askSchema],
  ['Request', requestSchema],
  ['Proposal', proposalSchema],
  ['License', licenseRecord.schema],
  ['SignedLicense', signedLicenseSchema],
  ['ApprovedOutcome', approvedRecord.schema],
  ['Decline', declineRecord.schema],
  ['Execution', executionRequestSchema],
  ['Verdict', verdictSchema],
  ['Terminal', terminalRecord.schema],
  ['Occurrence', occurrenceShape],
  ['Claim', claimRecord.schema],
  ['Permit', permitRecord.schema],
  ['Marker', markerRecord.schema],
  ['JournalRow', journalRowSchema],
  ['Envelope', envelopeSchema],
  ['Resolution', resolutionRecord.schema],
  ['Acknowledgement', acknowledgementRecord.schema],
  ['OpenContinuation', openContinuationSchema],
  ['Release', releaseSchema],
  ['Recovered', recoveredSchema],
  ['Shadow', shadowRecord.schema],
  ['Boundary', boundarySchema],
  ['Delivery', deliverySchema],
  ['Problem', problemSchema],
];
