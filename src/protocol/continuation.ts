import { unreachable } from '../errors.ts';
import {
  defineRecord,
  digestSchema,
  instantSchema,
  nameSchema,
  occurrenceSchema,
} from './record.ts';
import { choice, closed } from './schema.ts';
import type { Terminal, TerminalOf } from './terminal.ts';

/**
 * One release per (occurrence, continuation): `released` before the dependent work runs,
 * `completed` after it.
 */
export const acknowledgementRecord = defineRecord(
  'acknowledgement',
  1,
  4096,
  closed({
    version: choice(1),
    occurrence: occurrenceSchema,
    continuation: nameSchema,
    lineage: digestSchema,
    state: choice('released', 'completed'),
    at: instantSchema,
  }),
);
/** That a continuation was released, or that its work is done. */
export type Acknowledgement = ReturnType<typeof acknowledgementRecord.parse>;

/** Why dependent work may not run. */
export type Halt =
  | 'no-terminal'
  | 'rejected'
  | 'diverged'
  | 'indeterminate'
  | 'unregistered'
  | 'field-match'
  | 'lineage'
  | 'state-missing'
  | 'already-released';

/** What a worker may do, and on the strength of which commit. */
export type Continuation =
  | { readonly kind: 'release'; readonly terminal: TerminalOf<'committed'> }
  | { readonly kind: 'halt'; readonly why: Halt };

/**
 * Whether dependent work may run, from what is durable. A missing terminal halts: absence of a
 * decision is never permission. `registered` are the continuations the license names, `fieldMatch`
 * those of them that a match of registered fields is enough for; `lineage` is what the asking
 * worker presents.
 */
export function continuationOf(
  terminal: Terminal | undefined,
  asked: {
    readonly continuation: string;
    readonly lineage: string;
    readonly registered: readonly string[];
    readonly fieldMatch?: readonly string[] | undefined;
  },
): Continuation {
  if (terminal === undefined) return { kind: 'halt', why: 'no-terminal' };
  switch (terminal.kind) {
    case 'committed':
      if (terminal.lineage !== asked.lineage) return { kind: 'halt', why: 'lineage' };
      if (!asked.registered.includes(asked.continuation))
        return { kind: 'halt', why: 'unregistered' };
      if (
        terminal.match === 'registered-fields' &&
        asked.fieldMatch?.includes(asked.continuation) !== true
      ) {
        return { kind: 'halt', why: 'field-match' };
      }
      return { kind: 'release', terminal };
    case 'rejected':
    case 'diverged':
    case 'indeterminate':
      return { kind: 'halt', why: terminal.kind };
    default:
      return unreachable(terminal);
  }
}
