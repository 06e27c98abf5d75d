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

/** License L: what an approver signs. It names A, the task state, and the frame it presupposes. */
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
    /** The operation whose contract computed A. Present if and only if the source is `contract`. */
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
     * Digest of the only action or request that this license allows. If absent, any action with
     * this outcome is allowed.
     */
    action: optional(digestSchema),
    notBefore: instantSchema,
    expiresAt: instantSchema,
    occurrences: integer(1, 1000),
    continuations: list(nameSchema, 0, 64),
    /**
     * The continuations that a match of registered fields also releases. Absent if there are none.
     */
    fieldMatch: optional(list(nameSchema, 1, 64)),
  }),
);
/** What an approver signs: the outcome, the task and deployment, how often, and until when. */
export type License = ReturnType<typeof licenseRecord.parse>;

/** What the approver passes to the runtime: the signed license and the outcome it approves. */
export interface SignedLicense {
  readonly license: License;
  readonly approved: ReturnType<typeof approvedRecord.parse>;
  /**
   * Ed25519 over the license's domain label and canonical text, in base64url; or a passkey
   * assertion whose challenge is the license's digest.
   */
  readonly signature: string;
  /** Another person's signature over the same license, if one is required. */
  readonly second?: SecondSignature;
}

/** Who else signed a license, and with which key. */
export interface SecondSignature {
  readonly issuer: string;
  /** Digest of the public key. */
  readonly key: Digest;
  readonly signature: string;
}

/**
 * Everything an approver needs to sign: the license without issuer, key, nonce and dates, plus A
 * and its rendering. Signing renders A again from the same bytes and refuses if the texts differ.
 * `note` is for the reader and is not signed.
 */
export interface Proposal {
  readonly draft: Omit<License, 'issuer' | 'key' | 'nonce' | 'notBefore' | 'expiresAt'>;
  readonly approved: ReturnType<typeof approvedRecord.parse>;
  readonly rendering: string;
  readonly note?: Note;
}
