import { checkpointRecord } from './checkpoint.ts';
import { acknowledgementRecord } from './continuation.ts';
import { defineRecord, digestSchema, occurrenceSchema } from './record.ts';
import { choice, closed, form, integer, list, type Schema, variants } from './schema.ts';
import { shadowRecord } from './shadow.ts';
import { terminalRecord } from './terminal.ts';

/** The payload type of an envelope: an in-toto statement. */
export const STATEMENT_PAYLOAD_TYPE = 'application/vnd.in-toto+json';
/** The in-toto type of every version 1 statement. */
export const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1';
export const RECEIPT_TYPE = 'urn:effectmatch:receipt:v1';
export const CHECKPOINT_TYPE = 'urn:effectmatch:checkpoint:v1';
/** A separate type, so that a shadow is never mistaken for a receipt. */
export const SHADOW_TYPE = 'urn:effectmatch:shadow:v1';

/** States that dependent work of an occurrence has completed. */
export const COMPLETION_TYPE = 'urn:effectmatch:completion:v1';

/** Room for the fields around a terminal, so that every recorded terminal fits in a receipt. */
const AROUND_BYTES = 4096;

/**
 * What a receipt states: how one attempt ended, exactly as stored (values that a deployment does
 * not store are digests here too), the terminal's digest, the license under which it ran, and its
 * place in the journal.
 */
export const receiptRecord = defineRecord(
  'receipt',
  1,
  terminalRecord.maxBytes + AROUND_BYTES,
  closed({
    version: choice(1),
    terminal: terminalRecord.schema,
    /** Digest of the terminal, which other records use to refer to it. */
    digest: digestSchema,
    /** Digest of the license. */
    lineage: digestSchema,
    /** Number of the journal row that holds the terminal. */
    position: integer(1),
  }),
);
/** The content of a receipt: a terminal with its digest, lineage and place in the journal. */
export type Receipt = ReturnType<typeof receiptRecord.parse>;

const subjectOf = <T extends string>(name: Schema<T>) =>
  list(closed({ name, digest: closed({ sha256: digestSchema }) }), 1, 1);

/**
 * An in-toto statement about one terminal, checkpoint, shadow or completion. Tools that know
 * in-toto but not EffectMatch can find the subject: its digest is the plain SHA-256 of the
 * canonical text, without a domain label.
 */
export const statementRecord = defineRecord(
  'statement',
  1,
  receiptRecord.maxBytes + AROUND_BYTES,
  variants('predicateType', {
    [RECEIPT_TYPE]: {
      _type: choice(STATEMENT_TYPE),
      subject: subjectOf(occurrenceSchema),
      predicate: receiptRecord.schema,
    },
    [CHECKPOINT_TYPE]: {
      _type: choice(STATEMENT_TYPE),
      subject: subjectOf(form(/^checkpoint-[1-9]\d{0,15}$/, 'the name of a checkpoint')),
      predicate: checkpointRecord.schema,
    },
    [SHADOW_TYPE]: {
      _type: choice(STATEMENT_TYPE),
      subject: subjectOf(occurrenceSchema),
      predicate: closed({ shadow: shadowRecord.schema, position: integer(1) }),
    },
    [COMPLETION_TYPE]: {
      _type: choice(STATEMENT_TYPE),
      subject: subjectOf(occurrenceSchema),
      predicate: closed({ completion: acknowledgementRecord.schema, position: integer(1) }),
    },
  }),
);
/** An in-toto statement, which an envelope carries. */
export type Statement = ReturnType<typeof statementRecord.parse>;

/** The name of a checkpoint as the subject of a statement. */
export function checkpointName(throughSeq: number): string {
  return `checkpoint-${throughSeq}`;
}
