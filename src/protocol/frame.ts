import { z } from 'zod';
import { limitsSchema } from './limits.ts';
import { defineRecord, digestSchema, nameSchema } from './record.ts';

export const capabilitySchema = z.enum(['PROMOTABLE', 'MEDIATED', 'OPAQUE']);
/**
 * What a backend lets us control: hold before durability, own the only request path, or neither.
 */
export type Capability = z.infer<typeof capabilitySchema>;

export const sourceSchema = z.enum(['manifest', 'contract', 'rehearsed']);
/** Where an approval came from. A frame says which sources an issuer may use. */
export type Source = z.infer<typeof sourceSchema>;

/** Who may approve what. Part of the frame through its digest. */
export const policyRecord = defineRecord(
  'policy',
  1,
  1024 * 1024,
  z.strictObject({
    version: z.literal(1),
    issuers: z.record(
      nameSchema,
      z.strictObject({
        keys: z.array(digestSchema).min(1).max(16),
        may: z.array(nameSchema).max(1000),
        sources: z.array(sourceSchema).min(1),
        limits: limitsSchema.exactOptional(),
      }),
    ),
  }),
);
/** Who may approve what, within which limits. */
export type Policy = ReturnType<typeof policyRecord.parse>;

/**
 * Frame F of one adapter in one deployment: what a license presupposes. Any change makes old
 * licenses refuse.
 */
export const frameRecord = defineRecord(
  'frame',
  1,
  64 * 1024,
  z.strictObject({
    version: z.literal(1),
    adapter: nameSchema,
    capability: capabilitySchema,
    /** Digest of the registration: profile, stored values, targets. */
    registration: digestSchema,
    /** Digest of adapter kind, backend instance and adapter code. */
    identity: digestSchema,
    channels: z.array(nameSchema).max(64),
    policy: digestSchema,
    /** Digest of the protocol and runtime code. */
    contract: digestSchema,
    /** Digest of the code of the operations for this adapter, where there are any. */
    operations: digestSchema.exactOptional(),
  }),
);
/** F: what a license presupposes of the deployment that executes it. */
export type Frame = ReturnType<typeof frameRecord.parse>;
