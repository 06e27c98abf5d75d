import { refusalsOf } from '../backend/setup.ts';
import { EffectMatchError } from '../errors.ts';

/** Creates the error for unusable options. */
export const refused = refusalsOf('http');

/** The manifest states something that cannot be requested, read or compared. */
export function invalid(
  what: string,
  options?: ErrorOptions,
): EffectMatchError<'ERR_EM_MANIFEST_INVALID'> {
  return new EffectMatchError('ERR_EM_MANIFEST_INVALID', what, options);
}
