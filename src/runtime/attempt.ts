import { digestPieces } from '../crypto/digest.ts';
import { isFault, messageOf } from '../errors.ts';
import { canonical } from '../protocol/canon.ts';
import { canonicalBytes } from '../protocol/canon-size.ts';
import type { Diff } from '../protocol/diff.ts';
import type { Effect, StateRead } from '../protocol/effect.ts';
import type { License, SignedLicense } from '../protocol/license.ts';
import { type Outcome, observedLines } from '../protocol/outcome.ts';
import type { Digest, ExecutionId, OccurrenceId } from '../protocol/record.ts';
import { boundDiff, cutDiff, type DigestValue, redactDiff } from '../protocol/redact.ts';
import type { RecordedOutcome } from '../protocol/terminal.ts';
import type { Value } from '../protocol/value.ts';
import { comparedEffects } from '../protocol/volatile.ts';
import type { Admitted, Deployment } from './deployment.ts';

/** Why something was refused: a stable reason, and a sentence that says what to do. */
export interface Refusal {
  readonly reason: string;
  readonly detail: string;
}

/** A step that was refused. */
export interface Refused extends Refusal {
  readonly kind: 'refused';
}

/** Refuses a step. */
export function refuse(reason: string, detail: string): Refused {
  return { kind: 'refused', reason, detail };
}

/** One try at one occurrence under one license: the facts that its terminal names. */
export interface AttemptFacts {
  readonly execution: ExecutionId;
  readonly occurrence: OccurrenceId;
  /** Digest of the license. */
  readonly lineage: Digest;
  readonly license: Pick<License, 'adapter' | 'task' | 'approved'>;
  readonly admitted: Admitted;
}

/** An attempt in progress, with the signed license. */
export interface Attempt extends AttemptFacts {
  readonly license: License;
  readonly signed: SignedLicense;
  /** The state that the approval depends on. */
  readonly reads: readonly StateRead[];
}

/**
 * Digest of the compared part of E: two correct observations of one outcome have the same digest.
 * It is keyed if the deployment does not store values, because a plain digest of a few values can
 * be found by guessing.
 */
export function observedDigest(
  deployment: Deployment,
  admitted: Admitted,
  effects: Iterable<Effect>,
): Digest {
  const lines = observedLines(comparedEffects(admitted.registration, effects));
  return admitted.registration.values === 'digest'
    ? deployment.digestObserved(lines)
    : digestPieces('effectmatch/observed/v1', lines);
}

/**
 * The part of a message from a service, a backend or an error that records may keep. Messages may
 * quote values, so a deployment that stores digests does not keep them.
 */
export function storableText(
  { registration }: Pick<Admitted, 'registration'>,
  text: string,
): string {
  if (registration.values === 'digest')
    return 'the message is not kept, because it could quote values';
  return text.slice(0, 3900).toWellFormed();
}

/** The same for a thrown error. Its code contains no values, so it is kept. */
export function storableFault(admitted: Pick<Admitted, 'registration'>, error: unknown): string {
  const text = storableText(admitted, messageOf(error));
  const code = (error as { readonly code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' && /^[A-Z0-9_]{1,64}$/.test(code) ? `${text} (${code})` : text;
}

/** The refusal of an attempt in which an error was thrown. */
export function faultOf(admitted: Pick<Admitted, 'registration'>, error: unknown): Refused {
  return refuse('fault', storableFault(admitted, error));
}

/** The maximum size of a diff in a record, in bytes of canonical text. */
const DIFF_BYTES_MAX = 256 * 1024;

/**
 * The steps in which a diff is cut until it fits: the number of entries, and the bytes per value.
 * Long values are cut first, because which rows an agent tried to change matters more. A diff
 * without entries always fits.
 */
const DIFF_CUTS = [
  { entries: 200, valueBytes: 1024 * 1024 },
  { entries: 200, valueBytes: 4096 },
  { entries: 200, valueBytes: 256 },
  { entries: 50, valueBytes: 256 },
  { entries: 12, valueBytes: 256 },
  { entries: 3, valueBytes: 256 },
];

const GAPS_MAX = 64;
const GAP_CHARACTERS_MAX = 1000;

/**
 * An outcome as the journal and receipts keep it: E as a digest, and the diff bounded and, if so
 * configured, redacted. Its size does not depend on what an agent wrote: a record over the limit
 * could not be kept at all.
 */
export function recordedOutcome(
  deployment: Deployment,
  admitted: Admitted,
  outcome: Outcome,
): RecordedOutcome {
  if (outcome.kind === 'INDETERMINATE') {
    const gaps = outcome.gaps
      .slice(0, GAPS_MAX)
      .map((gap) => gap.slice(0, GAP_CHARACTERS_MAX).toWellFormed());
    return { kind: outcome.kind, gaps };
  }
  const observed = observedDigest(deployment, admitted, outcome.effects);
  if (outcome.kind === 'EXACT') return { kind: outcome.kind, observed };
  const digestValue =
    admitted.registration.values === 'digest' ? deployment.digestValue : undefined;
  return { kind: outcome.kind, observed, diff: storableDiff(outcome.diff, digestValue) };
}

function storableDiff(diff: Diff, digestValue: DigestValue | undefined): Diff {
  for (const { entries, valueBytes } of DIFF_CUTS) {
    const cut = cutDiff(boundDiff(diff, entries), valueBytes);
    const stored = digestValue === undefined ? cut : redactDiff(cut, digestValue);
    if (canonicalBytes(stored as unknown as Value) <= DIFF_BYTES_MAX) return stored;
  }
  return boundDiff(diff, 0);
}

/**
 * Lets the adapter parse an untrusted action. If it cannot, the refusal includes what was tried.
 */
export function readAction(
  admitted: Admitted,
  untrusted: unknown,
): { readonly kind: 'read'; readonly action: unknown } | Refused {
  try {
    return { kind: 'read', action: admitted.adapter.parseAction(untrusted) };
  } catch (error) {
    if (!isFault(error, 'ERR_EM_ACTION_INVALID')) throw error;
    const message = storableFault(admitted, error).slice(0, 2000);
    return refuse('action-invalid', withTried(admitted, message, untrusted));
  }
}

/** Adds what was tried to a refusal, unless the adapter's records keep values only as digests. */
export function withTried(admitted: Admitted, message: string, action: unknown): string {
  const tried = admitted.registration.values === 'plain' ? excerptOf(action) : undefined;
  return tried === undefined ? message : `${message}; it tried: ${tried}`;
}

const EXCERPT_MAX = 1500;

/** The start of an action, for people to read; undefined if it is not plain data. */
function excerptOf(untrusted: unknown): string | undefined {
  try {
    const text = canonical(untrusted);
    return text.length <= EXCERPT_MAX
      ? text
      : `${text.slice(0, EXCERPT_MAX)} … (${text.length} characters)`;
  } catch {
    return undefined;
  }
}
