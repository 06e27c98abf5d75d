import {
  defineRecord,
  digestSchema,
  executionSchema,
  instantSchema,
  labelSchema,
  nameSchema,
  nonceSchema,
  occurrenceSchema,
} from './record.ts';
import { choice, closed, list, text } from './schema.ts';

/** B_A: one per (issuer, nonce). Every store derives the same occurrence ids. */
export const bindingRecord = defineRecord(
  'binding',
  1,
  256 * 1024,
  closed({
    version: choice(1),
    issuer: nameSchema,
    nonce: nonceSchema,
    license: digestSchema,
    occurrences: list(occurrenceSchema, 1, 1000),
  }),
);
/** B_A: the occurrences that one signed license grants. */
export type Binding = ReturnType<typeof bindingRecord.parse>;

/** This execution spends the occurrence, at t_c. Final even if the process dies next. */
export const claimRecord = defineRecord(
  'claim',
  1,
  64 * 1024,
  closed({
    version: choice(1),
    occurrence: occurrenceSchema,
    execution: executionSchema,
    license: digestSchema,
    binding: digestSchema,
    approved: digestSchema,
    adapter: nameSchema,
    identity: digestSchema,
    /** The backend instance: recovery must not settle this claim against another database. */
    backend: text(1, 256),
    frame: digestSchema,
    task: labelSchema,
    taskState: digestSchema,
    continuations: list(nameSchema, 0, 64),
    claimedAt: instantSchema,
  }),
);
/** States which execution spent an occurrence, and on what basis. */
export type ClaimRecord = ReturnType<typeof claimRecord.parse>;
