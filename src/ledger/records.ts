import { z } from 'zod';
import { defineRecord, digestSchema } from '../protocol/record.ts';

/**
 * Ties a kept document to the digest it was kept under: the ledger does not know the label that
 * digest was made with.
 */
export const documentRecord = defineRecord(
  'document',
  1,
  1024,
  z.strictObject({ version: z.literal(1), digest: digestSchema, text: digestSchema }),
);
export type KeptDocument = ReturnType<typeof documentRecord.parse>;

/** The label of the digest that the record above carries. */
export const DOCUMENT_TEXT_DOMAIN = 'effectmatch/document-text/v1';
