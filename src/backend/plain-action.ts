import { refuseAction, refuseRounded } from '../contract/action-input.ts';
import { EffectMatchError } from '../errors.ts';
import { canonical } from '../protocol/canon.ts';
import type { Value } from '../protocol/value.ts';

/** Untrusted input, copied as plain data: what the caller still holds cannot change it later. */
export function copyAction(input: unknown, maxCharacters = Number.POSITIVE_INFINITY): Value {
  const copy = copyPlain(input, maxCharacters);
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

function copyPlain(input: unknown, maxCharacters = Number.POSITIVE_INFINITY): Value {
  try {
    const { length } = canonical(input);
    if (length > maxCharacters)
      throw refuseAction(`the action is longer than ${maxCharacters} characters`);
    // Not parsed from that text: JSON.parse of V8 13.6 reads the key "\"" as "\\" if it has met that
    // one before. A proxy, which could answer differently this time, cannot be cloned.
    return structuredClone(input) as Value;
  } catch (cause) {
    if (cause instanceof EffectMatchError && cause.code === 'ERR_EM_ACTION_INVALID') throw cause;
    throw new EffectMatchError('ERR_EM_ACTION_INVALID', 'the action is not plain data', { cause });
  }
}
