import { refusalsOf } from '../backend/setup.ts';
import { EffectMatchError } from '../errors.ts';

/** Creates the error for unusable options. */
export const refused = refusalsOf('http');

/** The service did not do what the adapter needs. */
export function unavailable(why: string): EffectMatchError<'ERR_EM_ADAPTER_UNAVAILABLE'> {
  return new EffectMatchError('ERR_EM_ADAPTER_UNAVAILABLE', why);
}

/** The manifest states something that cannot be requested, read or compared. */
export function invalid(
  what: string,
  options?: ErrorOptions,
): EffectMatchError<'ERR_EM_MANIFEST_INVALID'> {
  return new EffectMatchError('ERR_EM_MANIFEST_INVALID', what, options);
}
