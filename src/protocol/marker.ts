import { generatedFields } from './generated.ts';
import {
  defineRecord,
  digestSchema,
  executionSchema,
  instantSchema,
  occurrenceSchema,
} from './record.ts';
import { choice, variants } from './schema.ts';

/**
 * What decides an occurrence inside the backend. `committed` travels in the business transaction
 * and consumes the permit; `void` is written by recovery and means that the attempt can never
 * commit.
 */
export const markerRecord = defineRecord(
  'marker',
  1,
  64 * 1024,
  variants('disposition', {
    committed: {
      version: choice(1),
      occurrence: occurrenceSchema,
      execution: executionSchema,
      approved: digestSchema,
      observed: digestSchema,
      certificate: digestSchema,
      claim: digestSchema,
      permit: digestSchema,
      consumedAt: instantSchema,
      /** So that recovery still knows them. */
      ...generatedFields,
    },
    void: {
      version: choice(1),
      occurrence: occurrenceSchema,
      execution: executionSchema,
      voidedAt: instantSchema,
    },
  }),
);
/** The row that decides an occurrence in its backend: committed, or void. */
export type MarkerRecord = ReturnType<typeof markerRecord.parse>;
export type VoidMarker = Extract<MarkerRecord, { disposition: 'void' }>;
export type CommittedMarker = Extract<MarkerRecord, { disposition: 'committed' }>;
