import type { ApprovedEffect, Cell, Requirement, StateRead } from './effect.ts';
import { defineRecord, labelSchema, nameSchema } from './record.ts';
import type { Registration } from './registration.ts';
import {
  choice,
  closed,
  dictionary,
  form,
  integer,
  list,
  nullable,
  oneField,
  optional,
  pair,
  plain,
  type Schema,
  text,
} from './schema.ts';
import { settingsSchema } from './settings.ts';

const columnSchema = text(1, 256);
const targetSchema = text(1, 512);
const rowSchema = dictionary(columnSchema, plain);

const cellSchema: Schema<Cell> = oneField({
  is: plain,
  generated: text(1, 128),
  oneOf: list(plain, 1, 1000),
  between: pair(plain),
  matches: text(1, 256),
  any: choice(true),
  now: closed({ withinMs: integer(0, 86_400_000), unit: choice('iso', 's', 'ms') }),
});

const approvedEffectSchema: Schema<ApprovedEffect> = closed({
  op: choice('insert', 'update', 'delete'),
  target: targetSchema,
  key: optional(dictionary(columnSchema, cellSchema)),
  before: optional(dictionary(columnSchema, cellSchema)),
  after: optional(dictionary(columnSchema, cellSchema)),
  count: integer(1, 10_000_000),
});

const requirementSchema: Schema<Requirement> = closed({
  target: targetSchema,
  key: rowSchema,
  row: nullable(rowSchema),
});

const stateReadSchema: Schema<StateRead> = closed({
  target: targetSchema,
  key: rowSchema,
  columns: optional(list(columnSchema, 1, 1000)),
});

const effectsSchema = list(approvedEffectSchema, 0, 1_000_000);
const requiresSchema = list(requirementSchema, 0, 10_000);
const watchSchema = list(stateReadSchema, 0, 10_000);

/** Manifest M: what the application or approver states, before the backend normalises it. */
export const manifestRecord = defineRecord(
  'manifest',
  1,
  256 * 1024 * 1024,
  closed({
    version: choice(1),
    adapter: nameSchema,
    task: labelSchema,
    planRevision: integer(0),
    effects: effectsSchema,
    requires: requiresSchema,
    watch: watchSchema,
    settings: optional(settingsSchema),
  }),
);
/** M: the outcome that an application states. */
export type Manifest = ReturnType<typeof manifestRecord.parse>;

const registrationSchema: Schema<Registration> = closed({
  profile: choice('relation-write', 'row-event', 'net-state', 'registered-fields'),
  values: choice('plain', 'digest'),
  targets: list(
    closed({
      name: targetSchema,
      columns: list(columnSchema, 0, 2000),
      key: list(columnSchema, 0, 64),
      volatile: list(columnSchema, 0, 2000),
    }),
    0,
    10_000,
  ),
  capability: optional(choice('MEDIATED', 'OPAQUE')),
  boundary: optional(choice('managed')),
});

/**
 * Approved outcome A = canon_p(M). Carries the registration, so that it can be rendered and
 * compared without the backend, and a salt, so that its digest does not reveal its values.
 */
export const approvedRecord = defineRecord(
  'approved',
  1,
  256 * 1024 * 1024,
  closed({
    version: choice(1),
    adapter: nameSchema,
    registration: registrationSchema,
    effects: effectsSchema,
    requires: requiresSchema,
    watch: watchSchema,
    /** Settings that the runtime applies to the session before the action runs. */
    settings: optional(settingsSchema),
    salt: form(/^[0-9a-f]{32}$/, '32 hex digits'),
  }),
);
/** A, the approved outcome: normalised effects, requirements, and what is registered. */
export type Approved = ReturnType<typeof approvedRecord.parse>;
