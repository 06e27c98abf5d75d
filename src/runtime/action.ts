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
    const tried = admitted.registration.values === 'plain' ? excerptOf(untrusted) : undefined;
    const message = storableFault(admitted, error).slice(0, 2000);
    const detail = tried === undefined ? message : `${message}; it tried: ${tried}`;
    return { kind: 'refused', refusal: { reason: 'action-invalid', detail } };
  }
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
