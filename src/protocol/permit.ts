import { z } from 'zod';
import {
  defineRecord,
  digestSchema,
  executionSchema,
  instantSchema,
  occurrenceSchema,
} from './record.ts';

/**
 * B_G: this candidate or request, this A, this E, this certificate, this claim. One use, at t_g.
 */
export const permitRecord = defineRecord(
  'permit',
  1,
  64 * 1024,
  z.strictObject({
    version: z.literal(1),
    occurrence: occurrenceSchema,
    execution: executionSchema,
    claim: digestSchema,
    certificate: digestSchema,
    approved: digestSchema,
    bound: z.union([
      /**
       * PROMOTABLE: the held candidate, what was observed in it, and the adapter's fingerprint of
       * its evidence.
       */
      z.strictObject({
        candidate: z.string().min(1).max(256),
        observed: digestSchema,
        evidence: z.string().max(256),
      }),
      /** MEDIATED and OPAQUE: the request. */
      z.strictObject({ request: digestSchema }),
    ]),
    consumedAt: instantSchema,
  }),
);
/** B_G: the right to promote one candidate, or to send one request, once. */
export type PermitRecord = ReturnType<typeof permitRecord.parse>;
