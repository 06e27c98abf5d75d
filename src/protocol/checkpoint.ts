import { z } from 'zod';
import { defineRecord, digestSchema, instantSchema } from './record.ts';

/**
 * Covers journal rows 1..throughSeq: a chain over their digests, in order, continued from the one
 * before.
 */
export const checkpointRecord = defineRecord(
  'checkpoint',
  1,
  4096,
  z.strictObject({
    version: z.literal(1),
    throughSeq: z.int().min(1),
    rows: z.int().min(1),
    chain: digestSchema,
    at: instantSchema,
  }),
);
/** The chain over all journal rows up to one of them. */
export type Checkpoint = ReturnType<typeof checkpointRecord.parse>;
