import { defineRecord, digestSchema, instantSchema } from './record.ts';
import { choice, closed, integer } from './schema.ts';

/**
 * Covers journal rows 1..throughSeq: a chain over their digests, in order, that continues the
 * previous checkpoint's.
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
/** The digest chain over the journal up to one row. */
export type Checkpoint = ReturnType<typeof checkpointRecord.parse>;
