import { refusalsOf } from '../backend/setup.ts';
import { errorsOf } from '../errors.ts';

/** Creates the error for unusable options. */
export const refused = refusalsOf('http');

/** The manifest states something that cannot be requested, read or compared. */
export const invalid = errorsOf('ERR_EM_MANIFEST_INVALID');
