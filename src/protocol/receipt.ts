import { checkpointRecord } from './checkpoint.ts';
import { acknowledgementRecord } from './continuation.ts';
import { defineRecord, digestSchema, occurrenceSchema } from './record.ts';
import { choice, closed, form, integer, list, type Schema, variants } from './schema.ts';
import { shadowRecord } from './shadow.ts';
import { terminalRecord } from './terminal.ts';

/** What an envelope carries: an in-toto statement. */
export const STATEMENT_PAYLOAD_TYPE = 'application/vnd.in-toto+json';
/** The type that in-toto gives to every statement of its first version. */
export const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1';
export const RECEIPT_TYPE = 'urn:effectmatch:receipt:v1';
export const CHECKPOINT_TYPE = 'urn:effectmatch:checkpoint:v1';
/** A separate type, so that a shadow is never taken for a receipt. */
export const SHADOW_TYPE = 'urn:effectmatch:shadow:v1';

/** Dependent work of an occurrence has completed. */
export const COMPLETION_TYPE = 'urn:effectmatch:completion:v1';

/** Room for the fields around a terminal, so that whatever could be recorded can be receipted. */
const AROUND_BYTES = 4096;

/**
 * What a receipt says: how one attempt ended, exactly as it is stored (values that a deployment
 * does not store are digests here too), the terminal's content address, the license under which it
 * ran, and its place in the journal.
 */
export const receiptRecord = defineRecord(
  'receipt',
  1,
  terminalRecord.maxBytes + AROUND_BYTES,
  closed({
    version: choice(1),
    terminal: terminalRecord.schema,
    /** Digest of the terminal, by which other records refer to it. */
    digest: digestSchema,
    /** Digest of the license. */
    lineage: digestSchema,
    /** Number of the journal row that holds the terminal. */
    position: integer(1),
  }),
);
/** A terminal with its digest, its lineage and its place in the journal, as a receipt states it. */
export type Receipt = ReturnType<typeof receiptRecord.parse>;

const subjectOf = <T extends string>(name: Schema<T>) =>
  list(closed({ name, digest: closed({ sha256: digestSchema }) }), 1, 1);

/**
 * An in-toto statement about one terminal, checkpoint, shadow or completion. The subject is named so
 * that tools that know in-toto and not EffectMatch can find it: its digest is the plain SHA-256 of
 * the canonical text, without a label.
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
/** An in-toto statement about a terminal or a checkpoint: what an envelope carries. */
export type Statement = ReturnType<typeof statementRecord.parse>;

/** The name under which a checkpoint is the subject of a statement. */
export function checkpointName(throughSeq: number): string {
  return `checkpoint-${throughSeq}`;
}
