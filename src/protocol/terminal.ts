import { invariant } from '../errors.ts';
import type { Diff } from './diff.ts';
import { generatedFields } from './generated.ts';
import {
  defineRecord,
  digestSchema,
  executionSchema,
  instantSchema,
  labelSchema,
  nameSchema,
  occurrenceSchema,
} from './record.ts';
import { residueListSchema } from './residue.ts';
import {
  choice,
  closed,
  type Infer,
  integer,
  list,
  optional,
  plain,
  type Schema,
  text,
  variants,
} from './schema.ts';

/** Where an attempt was refused. */
export const gateSchema = choice(
  'action',
  'authority',
  'boundary',
  'stage',
  'comparison',
  'final-gate',
  'promotion',
  'dispatch',
  'recovery',
);
export type Gate = Infer<typeof gateSchema>;

const attempt = {
  version: choice(1),
  occurrence: occurrenceSchema,
  execution: executionSchema,
  /** Authority lineage: digest of the license under which the attempt ran. */
  lineage: digestSchema,
  adapter: nameSchema,
  task: labelSchema,
  approved: digestSchema,
  /** Digests of the runtime code (contract) and of the adapter with its observer. */
  contract: digestSchema,
  observer: digestSchema,
  recordedAt: instantSchema,
};

const diffSchema = closed({
  extra: list(plain),
  missing: list(plain),
  altered: list(plain),
  /** Effects left out because the diff was too large to store. */
  omitted: integer(0),
}) as Schema<unknown> as Schema<Diff>;

/** An outcome as records store it. */
export const outcomeSchema = variants('kind', {
  EXACT: { observed: digestSchema },
  DIVERGED: { observed: digestSchema, diff: diffSchema },
  INDETERMINATE: {
    gaps: list(text(0, 1000), 1, 64),
  },
});
/** A stored outcome: E is kept as a digest, the differences as a diff. */
export type RecordedOutcome = Infer<typeof outcomeSchema>;

/** How often an execution may be staged. */
export const MAX_TRIES = 64;

/**
 * Earlier tries under the same claim that other transactions prevented, and when. Each left nothing
 * behind.
 */
const tries = {
  tries: optional(list(closed({ at: instantSchema, reason: nameSchema }), 1, MAX_TRIES)),
};
/** A try that other transactions prevented. */
export type FailedTry = { readonly at: string; readonly reason: string };

/**
 * Present if registered fields were compared as read back. The terminal then does not claim who
 * wrote them.
 */
const fieldsOnly = { match: optional(choice('registered-fields')) };

/**
 * How one attempt ended. An outcome says whether E matched A; a terminal says what became of the
 * attempt.
 */
export const terminalRecord = defineRecord(
  'terminal',
  1,
  1024 * 1024,
  variants('kind', {
    committed: {
      ...attempt,
      claim: digestSchema,
      claimedAt: instantSchema,
      certificate: digestSchema,
      permit: digestSchema,
      consumedAt: instantSchema,
      observed: digestSchema,
      /** True if recovery rebuilt this verdict from the marker. */
      reconciled: choice(true, false),
      /**
       * Sequences that moved while the action ran. Unknown to recovery, and not part of what this
       * verdict claims.
       */
      residue: optional(residueListSchema),
      /** The values that the backend assigned to `generated` cells, if values are stored. */
      ...generatedFields,
      ...tries,
      ...fieldsOnly,
    },
    rejected: {
      ...attempt,
      at: gateSchema,
      reason: nameSchema,
      detail: text(0, 4000),
      claim: optional(digestSchema),
      certificate: optional(digestSchema),
      outcome: optional(outcomeSchema),
      /**
       * What the rollback did not undo. It is not part of what this verdict claims, so two writers
       * agree whatever they know about it.
       */
      residue: optional(residueListSchema),
      ...tries,
    },
    diverged: {
      ...attempt,
      claim: digestSchema,
      certificate: digestSchema,
      permit: digestSchema,
      consumedAt: instantSchema,
      outcome: outcomeSchema,
      ...fieldsOnly,
    },
    indeterminate: {
      ...attempt,
      gap: text(1, 4000),
      claim: digestSchema,
      certificate: optional(digestSchema),
      /** Both or neither: without them, nothing was promoted or sent under this claim. */
      permit: optional(digestSchema),
      consumedAt: optional(instantSchema),
    },
  }),
);
/** The recorded end of one attempt: committed, rejected, diverged or indeterminate. */
export type Terminal = ReturnType<typeof terminalRecord.parse>;
export type TerminalOf<K extends Terminal['kind']> = Extract<Terminal, { kind: K }>;

/** How E differs from A, if the terminal stores it. */
export function diffOfTerminal(terminal: Terminal): Diff | undefined {
  if (terminal.kind !== 'rejected' && terminal.kind !== 'diverged') return undefined;
  return terminal.outcome?.kind === 'DIVERGED' ? terminal.outcome.diff : undefined;
}

/** Whether two writers state the same verdict. Times of recording and details are not compared. */
export function agrees(a: Terminal, b: Terminal): boolean {
  if (a.kind !== b.kind || a.occurrence !== b.occurrence || a.execution !== b.execution)
    return false;
  if (a.lineage !== b.lineage || a.approved !== b.approved) return false;
  return a.kind !== 'committed' || isSameCommit(a, b as TerminalOf<'committed'>);
}

function isSameCommit(a: TerminalOf<'committed'>, b: TerminalOf<'committed'>): boolean {
  return (
    a.claim === b.claim &&
    a.certificate === b.certificate &&
    a.permit === b.permit &&
    a.observed === b.observed &&
    a.consumedAt === b.consumedAt
  );
}

/**
 * The assurance condition: `committed` implies EXACT, a valid claim at t_c and a permit consumed at
 * t_g. The schema already requires the digests. This returns the rule beyond the schema that the
 * terminal breaks, if any.
 */
export function findUnassured(terminal: Terminal): string | undefined {
  switch (terminal.kind) {
    case 'committed':
      return terminal.claimedAt <= terminal.consumedAt
        ? undefined
        : 'a permit is consumed after the claim';
    case 'diverged':
      return terminal.outcome.kind === 'DIVERGED'
        ? undefined
        : 'a diverged terminal carries a DIVERGED outcome';
    case 'indeterminate':
      return (terminal.permit === undefined) === (terminal.consumedAt === undefined)
        ? undefined
        : 'a permit and the time of its consumption are stated together';
    default:
      return undefined;
  }
}

/**
 * Throws if a terminal that this runtime writes breaks such a rule, which is a bug. Called before
 * insert and after select.
 */
export function assertAssured(terminal: Terminal): void {
  const broken = findUnassured(terminal);
  if (broken !== undefined) invariant(false, broken);
}
