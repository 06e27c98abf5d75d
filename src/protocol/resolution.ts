import {
  defineRecord,
  digestSchema,
  executionSchema,
  instantSchema,
  nameSchema,
  occurrenceSchema,
  signatureSchema,
} from './record.ts';
import { choice, closed } from './schema.ts';

/** What an operator found out about an effect that no evidence channel could establish. */
export const FINDINGS = ['happened', 'did-not-happen', 'happened-otherwise'] as const;
/** One of {@link FINDINGS}. */
export type Finding = (typeof FINDINGS)[number];

/**
 * An operator's signed decision about an `indeterminate` occurrence. It closes the case for people
 * only: it is not a terminal, releases nothing and sends nothing. Anything that must be done next
 * is a new effect under a new license.
 */
export const resolutionRecord = defineRecord(
  'resolution',
  1,
  4096,
  closed({
    version: choice(1),
    occurrence: occurrenceSchema,
    /** The attempt that holds the claim. */
    execution: executionSchema,
    /** Digest of the license. */
    lineage: digestSchema,
    finding: choice(...FINDINGS),
    /** Digest of the evidence that the operator relies on. */
    evidence: digestSchema,
    operator: nameSchema,
    /** Digest of the operator's public key. */
    key: digestSchema,
    at: instantSchema,
    /**
     * Covers the domain label and the canonical text of all other fields: Ed25519 in base64url, or
     * a passkey assertion whose challenge is their digest.
     */
    signature: signatureSchema,
  }),
);
/** An operator's signed decision about an indeterminate occurrence. It releases nothing. */
export type Resolution = ReturnType<typeof resolutionRecord.parse>;
