import { z } from 'zod';
import type { ApprovedEffect, Cell, Requirement, StateRead } from './effect.ts';
import { defineRecord, labelSchema, nameSchema } from './record.ts';
import type { Registration } from './registration.ts';
import { plainSchema } from './value.ts';

const columnSchema = z.string().min(1).max(256);
const targetSchema = z.string().min(1).max(512);
const rowSchema = z.record(columnSchema, plainSchema);

const cellSchema = z.union([
  z.strictObject({ is: plainSchema }),
  z.strictObject({ generated: z.string().min(1).max(128) }),
  z.strictObject({ oneOf: z.array(plainSchema).min(1).max(1000) }),
  z.strictObject({ between: z.tuple([plainSchema, plainSchema]) }),
  z.strictObject({ matches: z.string().min(1).max(256) }),
  z.strictObject({ any: z.literal(true) }),
  z.strictObject({
    now: z.strictObject({
      withinMs: z.int().min(0).max(86_400_000),
      unit: z.enum(['iso', 's', 'ms']),
    }),
  }),
]) as unknown as z.ZodType<Cell>;

const approvedEffectSchema = z.strictObject({
  op: z.enum(['insert', 'update', 'delete']),
  target: targetSchema,
  key: z.record(columnSchema, cellSchema).exactOptional(),
  before: z.record(columnSchema, cellSchema).exactOptional(),
  after: z.record(columnSchema, cellSchema).exactOptional(),
  count: z.int().min(1).max(10_000_000),
}) as unknown as z.ZodType<ApprovedEffect>;

const requirementSchema = z.strictObject({
  target: targetSchema,
  key: rowSchema,
  row: rowSchema.nullable(),
}) as unknown as z.ZodType<Requirement>;

const stateReadSchema = z.strictObject({
  target: targetSchema,
  key: rowSchema,
  columns: z.array(columnSchema).min(1).max(1000).exactOptional(),
}) as unknown as z.ZodType<StateRead>;

const effectsSchema = z.array(approvedEffectSchema).max(1_000_000);
const requiresSchema = z.array(requirementSchema).max(10_000);
const watchSchema = z.array(stateReadSchema).max(10_000);

/** Manifest M: what the application or approver states, before the backend has normalised it. */
export const manifestRecord = defineRecord(
  'manifest',
  1,
  256 * 1024 * 1024,
  z.strictObject({
    version: z.literal(1),
    adapter: nameSchema,
    task: labelSchema,
    planRevision: z.int().min(0),
    effects: effectsSchema,
    requires: requiresSchema,
    watch: watchSchema,
  }),
);
/** M: what an application states should come out. */
export type Manifest = ReturnType<typeof manifestRecord.parse>;

const registrationSchema = z.strictObject({
  profile: z.enum(['relation-write', 'row-event', 'net-state', 'registered-fields']),
  values: z.enum(['plain', 'digest']),
  targets: z
    .array(
      z.strictObject({
        name: targetSchema,
        columns: z.array(columnSchema).max(2000),
        key: z.array(columnSchema).max(64),
        volatile: z.array(columnSchema).max(2000),
      }),
    )
    .max(10_000),
  capability: z.enum(['MEDIATED', 'OPAQUE']).exactOptional(),
}) as unknown as z.ZodType<Registration>;

/**
 * Approved outcome A = canon_p(M). Carries the registration so that it renders and compares without
 * the backend, and a salt, so that its digest does not betray its values.
 */
export const approvedRecord = defineRecord(
  'approved',
  1,
  256 * 1024 * 1024,
  z.strictObject({
    version: z.literal(1),
    adapter: nameSchema,
    registration: registrationSchema,
    effects: effectsSchema,
    requires: requiresSchema,
    watch: watchSchema,
    salt: z.string().regex(/^[0-9a-f]{32}$/),
  }),
);
/** A, the approved outcome: normalised effects, requirements, and what is registered. */
export type Approved = ReturnType<typeof approvedRecord.parse>;
