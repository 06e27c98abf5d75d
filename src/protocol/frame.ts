import { limitsSchema } from './limits.ts';
import { defineRecord, digestSchema, nameSchema } from './record.ts';
import { choice, closed, dictionary, type Infer, list, optional } from './schema.ts';

const capabilitySchema = choice('PROMOTABLE', 'MEDIATED', 'OPAQUE');
/**
 * What a backend lets us control: we can hold a change before it is durable, own the only request
 * path, or neither.
 */
export type Capability = Infer<typeof capabilitySchema>;

export const sourceSchema = choice('manifest', 'contract', 'rehearsed');
/** Where an approval came from. A frame says which sources an issuer may use. */
export type Source = Infer<typeof sourceSchema>;

/** Who may approve what. The frame includes its digest. */
export const policyRecord = defineRecord(
  'policy',
  1,
  1024 * 1024,
  closed({
    version: choice(1),
    issuers: dictionary(
      nameSchema,
      closed({
        keys: list(digestSchema, 1, 16),
        may: list(nameSchema, 0, 1000),
        sources: list(sourceSchema, 1, Number.POSITIVE_INFINITY),
        limits: optional(limitsSchema),
        /** Issuers, one of whom must sign too. Absent if one signature is enough. */
        second: optional(list(nameSchema, 1, 64)),
      }),
    ),
  }),
);
/** Who may approve what, within which limits. */
export type Policy = ReturnType<typeof policyRecord.parse>;

/**
 * Frame F of one adapter in one deployment: what a license presupposes. Any change makes older
 * licenses invalid.
 */
export const frameRecord = defineRecord(
  'frame',
  1,
  64 * 1024,
  closed({
    version: choice(1),
    adapter: nameSchema,
    capability: capabilitySchema,
    /** Digest of the registration: profile, stored values, targets. */
    registration: digestSchema,
    /** Digest of the adapter's kind, backend instance and code. */
    identity: digestSchema,
    channels: list(nameSchema, 0, 64),
    policy: digestSchema,
    /** Digest of the protocol and runtime code. */
    contract: digestSchema,
    /** Digest of the code of this adapter's operations, if it has any. */
    operations: optional(digestSchema),
  }),
);
/** F: what a license presupposes about the deployment that executes it. */
export type Frame = ReturnType<typeof frameRecord.parse>;
