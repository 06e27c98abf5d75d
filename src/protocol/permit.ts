import {
  defineRecord,
  digestSchema,
  executionSchema,
  instantSchema,
  occurrenceSchema,
} from './record.ts';
import { choice, closed, either, text } from './schema.ts';

/** B_G: binds one candidate or request to A, E, a certificate and a claim. Used once, at t_g. */
export const permitRecord = defineRecord(
  'permit',
  1,
  64 * 1024,
  closed({
    version: choice(1),
    occurrence: occurrenceSchema,
    execution: executionSchema,
    claim: digestSchema,
    certificate: digestSchema,
    approved: digestSchema,
    bound: either(
      /**
       * PROMOTABLE: the held candidate, what was observed in it, and the adapter's fingerprint of
       * the evidence.
       */
      closed({
        candidate: text(1, 256),
        observed: digestSchema,
        evidence: text(0, 256),
      }),
      /** MEDIATED and OPAQUE: the request. */
      closed({ request: digestSchema }),
    ),
    consumedAt: instantSchema,
  }),
);
/** B_G: the right to promote one candidate, or to send one request, once. */
export type PermitRecord = ReturnType<typeof permitRecord.parse>;
