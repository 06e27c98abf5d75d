import { MAX_REASON } from './note.ts';
import {
  defineRecord,
  digestSchema,
  instantSchema,
  nameSchema,
  signatureSchema,
} from './record.ts';
import { checked, choice, closed, form, integer, text } from './schema.ts';

/** The id of a request. */
export const requestIdSchema = form(/^req_[0-9a-f]{40}$/, 'a request id: req_ and 40 hex digits');

/**
 * An approver's signed "no" to one request as proposed. It closes the request and forbids nothing
 * else: the agent may ask for something different.
 */
export const declineRecord = defineRecord(
  'decline',
  1,
  32 * 1024,
  closed({
    version: choice(1),
    request: requestIdSchema,
    /** How often the request was proposed. Declining an earlier proposal has no effect. */
    generation: integer(1),
    /** Digest of the outcome that was proposed. */
    approved: digestSchema,
    /** The reason, which the agent sees. */
    reason: checked(
      text(1, MAX_REASON),
      (reason) => !reason.includes('\0'),
      'has a NUL character, which databases cannot keep',
    ),
    issuer: nameSchema,
    /** Digest of the approver's public key. */
    key: digestSchema,
    at: instantSchema,
    /**
     * Covers the domain label and the canonical text of all other fields: Ed25519 in base64url, or
     * a passkey assertion whose challenge is their digest.
     */
    signature: signatureSchema,
  }),
);
/** An approver's signed "no" to one request. */
export type SignedDecline = ReturnType<typeof declineRecord.parse>;
