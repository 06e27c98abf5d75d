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
 * Decides an occurrence inside the backend. `committed` is written in the business transaction and
 * consumes the permit. `void` is written by recovery: the attempt can never commit.
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
      /** Kept here for recovery. */
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

/** Why an occurrence that has a marker cannot be executed. */
export function describeDecided(disposition: MarkerRecord['disposition']): {
  readonly reason: string;
  readonly detail: string;
} {
  return disposition === 'committed'
    ? {
        reason: 'already-committed',
        detail: 'already committed by an earlier execution; do not approve it again',
      }
    : {
        reason: 'already-void',
        detail: 'an earlier attempt was interrupted and recovered: it can no longer commit',
      };
}
