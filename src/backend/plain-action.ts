import { refuseRounded } from '../contract/action-input.ts';
import { EffectMatchError } from '../errors.ts';
import { canonical } from '../protocol/canon.ts';
import type { Value } from '../protocol/value.ts';

/** Untrusted input, copied as plain data: what the caller still holds cannot change it later. */
export function copyAction(input: unknown): Value {
  const copy = copyPlain(input);
  refuseRounded(copy, 'the action', 'write it as text, since JSON has no BigInt');
  return copy;
}

/**
 * What an application's own check lets through, copied. Whatever the check throws refuses the
 * action; `refusal` begins the sentence that says so.
 */
export function copyChecked(refusal: string, check: () => Value): Value {
  try {
    return copyPlain(check());
  } catch (cause) {
    if (cause instanceof EffectMatchError && cause.code === 'ERR_EM_ACTION_INVALID') throw cause;
    const why = cause instanceof Error ? cause.message : 'it was refused';
    throw new EffectMatchError('ERR_EM_ACTION_INVALID', `${refusal}: ${why}`, { cause });
  }
}

function copyPlain(input: unknown): Value {
  try {
    return JSON.parse(canonical(input)) as Value;
  } catch (cause) {
    throw new EffectMatchError('ERR_EM_ACTION_INVALID', 'the action is not plain data', { cause });
  }
}
