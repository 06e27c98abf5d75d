import { digestText } from '../crypto/digest.ts';
import { canonical } from '../protocol/canon.ts';
import { comparedEffects } from '../protocol/compared.ts';
import type { Diff } from '../protocol/diff.ts';
import type { Effect } from '../protocol/effect.ts';
import type { License, SignedLicense } from '../protocol/license.ts';
import { type Outcome, observedText } from '../protocol/outcome.ts';
import type { Digest, ExecutionId, OccurrenceId } from '../protocol/record.ts';
import { boundDiff, redactDiff } from '../protocol/redact.ts';
import type { RecordedOutcome } from '../protocol/terminal.ts';
import type { Admitted, Deployment } from './deployment.ts';

/** One try at one occurrence under one license, as far as its terminal names it. */
export interface AttemptFacts {
  readonly execution: ExecutionId;
  readonly occurrence: OccurrenceId;
  /** Digest of the license. */
  readonly lineage: Digest;
  readonly license: Pick<License, 'adapter' | 'task' | 'approved'>;
  readonly admitted: Admitted;
}

/** An attempt in progress: it also holds what the approver handed over. */
export interface Attempt extends AttemptFacts {
  readonly license: License;
  readonly signed: SignedLicense;
}

/**
 * Digest of E, as far as it is compared: two truthful observations of one outcome have the same. Keyed where the
 * deployment does not store values: a plain digest of few values can be guessed.
 */
export function observedDigest(deployment: Deployment, admitted: Admitted, effects: readonly Effect[]): Digest {
  const text = observedText(comparedEffects(admitted.registration, effects));
  return admitted.registration.values === 'digest'
    ? deployment.digestObserved(text)
    : digestText('effectmatch/observed/v1', text);
}

/**
 * What a service, a backend or an error says, as far as records may keep it. Such texts may quote values, which a
 * deployment that stores digests does not keep.
 */
export function storableText({ registration }: Pick<Admitted, 'registration'>, text: string): string {
  return registration.values === 'digest' ? 'the message is not kept, because it could quote values' : text;
}

/** The same for something that was thrown; its code says no values. */
export function storableFault(admitted: Pick<Admitted, 'registration'>, error: unknown): string {
  const text = storableText(admitted, String(error));
  const code = (error as { readonly code?: unknown } | null | undefined)?.code;
  const named = admitted.registration.values === 'digest' && typeof code === 'string' && /^[A-Z0-9_]{1,64}$/.test(code);
  return named ? `${code}; ${text}` : text;
}

const DIFF_ENTRIES_MAX = 200;
const DIFF_CHARACTERS_MAX = 200_000;

/** An outcome as journal and receipts keep it: E as a digest, the diff bounded and, where so configured, redacted. */
export function recordedOutcome(deployment: Deployment, admitted: Admitted, outcome: Outcome): RecordedOutcome {
  if (outcome.kind === 'INDETERMINATE')
    return { kind: outcome.kind, gaps: outcome.gaps.map((gap) => gap.toWellFormed()) };
  const observed = observedDigest(deployment, admitted, outcome.effects);
  if (outcome.kind === 'EXACT') return { kind: outcome.kind, observed };
  const digested = admitted.registration.values === 'digest';
  const diff = digested ? redactDiff(outcome.diff, deployment.digestValue) : outcome.diff;
  return { kind: outcome.kind, observed, diff: storableDiff(diff) };
}

/** As many entries as fit. No entries always do, so this ends. */
function storableDiff(diff: Diff): Diff {
  for (let entries = DIFF_ENTRIES_MAX; ; entries = Math.floor(entries / 4)) {
    const bounded = boundDiff(diff, entries);
    if (canonical(bounded).length <= DIFF_CHARACTERS_MAX) return bounded;
  }
}
