import { EffectMatchError } from '../errors.ts';
import { canonical } from '../protocol/canon.ts';
import { type Refused, storableFault } from './attempt.ts';
import type { Admitted } from './deployment.ts';

/**
 * Has the adapter read an untrusted action. What it does not understand is a refusal, with what was
 * tried.
 */
export function readAction(
  admitted: Admitted,
  untrusted: unknown,
): { readonly kind: 'read'; readonly action: unknown } | Refused {
  try {
    return { kind: 'read', action: admitted.adapter.parseAction(untrusted) };
  } catch (error) {
    if (!(error instanceof EffectMatchError) || error.code !== 'ERR_EM_ACTION_INVALID') throw error;
    const message = storableFault(admitted, error).slice(0, 2000);
    const detail = withTried(admitted, message, untrusted);
    return { kind: 'refused', refusal: { reason: 'action-invalid', detail } };
  }
}

/** Adds what was tried to a refusal, unless the adapter's records keep values as digests only. */
export function withTried(admitted: Admitted, message: string, action: unknown): string {
  const tried = admitted.registration.values === 'plain' ? excerptOf(action) : undefined;
  return tried === undefined ? message : `${message}; it tried: ${tried}`;
}

const EXCERPT_MAX = 1500;

/** The beginning of an action, for people to read; undefined if it is not plain data. */
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
