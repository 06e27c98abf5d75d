import { sourceSchema } from './frame.ts';
import type { approvedRecord } from './manifest.ts';
import type { Note } from './note.ts';
import {
  type Digest,
  defineRecord,
  digestSchema,
  instantSchema,
  labelSchema,
  nameSchema,
  nonceSchema,
} from './record.ts';
import { choice, closed, integer, list, optional, text } from './schema.ts';

/**
 * License L: what an approver signs. It names A, the state it was read in, and the frame it
 * presupposes.
 */
export const licenseRecord = defineRecord(
  'license',
  1,
  64 * 1024,
  closed({
    version: choice(1),
    issuer: nameSchema,
    /** Digest of the approver's public key. */
    key: digestSchema,
    nonce: nonceSchema,
    source: sourceSchema,
    /** The operation whose contract computed A; present exactly where the source is `contract`. */
    operation: optional(nameSchema),
    task: labelSchema,
    taskState: digestSchema,
    /** The application's revision of the task state, if `taskState` covers one. For people. */
    revision: optional(text(0, 4096)),
    planRevision: integer(0),
    adapter: nameSchema,
    identity: digestSchema,
    approved: digestSchema,
    rendering: digestSchema,
    policy: digestSchema,
    frame: digestSchema,
    /**
     * Digest of the only action or request this license is for; absent: any action with this
     * outcome.
     */
    action: optional(digestSchema),
    notBefore: instantSchema,
    expiresAt: instantSchema,
    occurrences: integer(1, 1000),
    continuations: list(nameSchema, 0, 64),
    /**
     * Those of them that a mere match of registered fields releases too; absent where none does.
     */
    fieldMatch: optional(list(nameSchema, 1, 64)),
  }),
);
/** What an approver signs: which outcome, for which task and deployment, how often, until when. */
export type License = ReturnType<typeof licenseRecord.parse>;

/**
 * What is handed from the approver to the runtime: the signed license and the outcome it approves.
 */
export interface SignedLicense {
  readonly license: License;
  readonly approved: ReturnType<typeof approvedRecord.parse>;
  /**
   * Ed25519 over the license's domain label and canonical text, base64url; or the assertion of a
   * passkey whose challenge is the license's digest.
   */
  readonly signature: string;
  /** Another person's signature over the same license, where one is required. */
  readonly second?: SecondSignature;
}

/** Who else signed a license, with which key. */
export interface SecondSignature {
  readonly issuer: string;
  /** Digest of the public key. */
  readonly key: Digest;
  readonly signature: string;
}

/**
 * Everything an approver needs to sign: the license without issuer, key, nonce and dates, plus A
 * and its rendering. Signing renders A again from the same bytes and refuses when the two texts
 * differ. `note` is for the person who reads it and is not signed.
 */
export interface Proposal {
  readonly draft: Omit<License, 'issuer' | 'key' | 'nonce' | 'notBefore' | 'expiresAt'>;
  readonly approved: ReturnType<typeof approvedRecord.parse>;
  readonly rendering: string;
  readonly note?: Note;
}
