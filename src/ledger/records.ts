import { z } from 'zod';
import { defineRecord, digestSchema } from '../protocol/record.ts';

/**
 * What a ledger seals about an issuance beside the binding: the text of A it keeps for people to read. With digested
 * values that text no longer has the digest that was signed, so without a seal of its own it could be exchanged.
 */
export const issuanceRecord = defineRecord(
  'issuance',
  1,
  1024,
  z.strictObject({ version: z.literal(1), binding: digestSchema, approvedText: digestSchema }),
);
export type Issuance = ReturnType<typeof issuanceRecord.parse>;

/** Ties a kept document to the digest it was kept under: the ledger does not know the label that digest was made with. */
export const documentRecord = defineRecord(
  'document',
  1,
  1024,
  z.strictObject({ version: z.literal(1), digest: digestSchema, text: digestSchema }),
);
export type KeptDocument = ReturnType<typeof documentRecord.parse>;

/** Labels of the digests that the two records above carry. */
export const APPROVED_TEXT_DOMAIN = 'effectmatch/approved-text/v1';
export const DOCUMENT_TEXT_DOMAIN = 'effectmatch/document-text/v1';
