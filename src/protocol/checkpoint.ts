import { defineRecord, digestSchema, instantSchema } from './record.ts';
import { choice, closed, integer } from './schema.ts';

/**
 * Covers journal rows 1..throughSeq: a chain over their digests, in order, continued from the one
 * before.
 */
export const checkpointRecord = defineRecord(
  'checkpoint',
  1,
  4096,
  closed({
    version: choice(1),
    throughSeq: integer(1),
    rows: integer(1),
    chain: digestSchema,
    at: instantSchema,
  }),
);
/** The chain over all journal rows up to one of them. */
export type Checkpoint = ReturnType<typeof checkpointRecord.parse>;
