import { unreachable } from '../errors.ts';
import {
  defineRecord,
  digestSchema,
  instantSchema,
  nameSchema,
  occurrenceSchema,
} from './record.ts';
import { checked, choice, closed, form, integer, optional } from './schema.ts';
import type { Terminal, TerminalOf } from './terminal.ts';

/** The highest `turn`. Each release after the first needs a signed decision. */
export const MAX_TURNS = 1000;

/**
 * One release per (occurrence, continuation): `released` before the dependent work runs,
 * `completed` after it. `reopened` is an operator's decision that work that never completed may be
 * released again; that release has the same `turn`.
 */
export const acknowledgementRecord = defineRecord(
  'acknowledgement',
  1,
  4096,
  checked(
    closed({
      version: choice(1),
      occurrence: occurrenceSchema,
      continuation: nameSchema,
      lineage: digestSchema,
      state: choice('released', 'completed', 'reopened'),
      /** The number of the release, from 2. Absent for the first one and for the completion. */
      turn: optional(integer(2, MAX_TURNS)),
      /** Who decided to release the work again, and on what evidence. */
      decision: optional(
        closed({
          operator: nameSchema,
          /** Digest of the operator's public key. */
          key: digestSchema,
          /** Digest of the evidence that the operator relies on. */
          evidence: digestSchema,
          signature: form(/^[A-Za-z0-9_-]{86}$/, 'a signature of 86 base64url characters'),
        }),
      ),
      at: instantSchema,
    }),
    ({ state, turn, decision }) =>
      (state === 'reopened') === (decision !== undefined) &&
      (state === 'reopened' ? turn !== undefined : state === 'released' || turn === undefined),
    'must have a turn and a decision exactly where work is released again',
  ),
);
/** States that a continuation was released, completed or reopened. */
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
  | 'already-released'
  /** Delayed work that was not handed over. */
  | 'not-released'
  /** Delayed work whose receipt is already recorded. */
  | 'already-completed'
  /** This work depends on other work of the same occurrence that has no receipt yet. */
  | 'not-completed';

/** Whether a worker may run, and the commit that allows it. */
export type Continuation =
  | { readonly kind: 'release'; readonly terminal: TerminalOf<'committed'> }
  | { readonly kind: 'halt'; readonly why: Halt };

/**
 * Decides from durable records whether dependent work may run. A missing terminal halts: absence of
 * a decision is never permission. `registered` lists the continuations that the license names,
 * `fieldMatch` those that a match of registered fields is enough for. The worker presents
 * `lineage`.
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
