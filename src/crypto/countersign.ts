import { EffectMatchError } from '../errors.ts';
import { checkCells } from '../protocol/approve.ts';
import { type License, licenseRecord, type SignedLicense } from '../protocol/license.ts';
import { approvedRecord } from '../protocol/manifest.ts';
import { renderLicense } from '../protocol/render-license.ts';
import { digestRecord, renderingDigest } from './digest.ts';
import { readFields, readOutcome } from './handover.ts';

/** A license that one person signed, and the text that the second person reads. */
interface Countersignable {
  readonly license: License;
  readonly approved: SignedLicense['approved'];
  /**
   * The first signature. Only the runtime verifies it; the second signature is useless without it.
   */
  readonly signature: string;
  readonly rendering: string;
}

/**
 * Checks a license that waits for a second signature, as an object or as JSON text: its outcome and
 * terms must render to the text whose digest it names. Throws `ERR_EM_MANIFEST_INVALID` if its
 * parts do not match.
 */
export function parseCountersignable(input: unknown): Countersignable {
  const what = 'license without a second signature';
  const fields = readFields(what, input, ['license', 'approved', 'signature']);
  const license = licenseRecord.parse(fields.license);
  const approved = readOutcome(input, fields.approved);
  if (typeof fields.signature !== 'string')
    throw new EffectMatchError('ERR_EM_RECORD_INVALID', `${what}: the signature is not text`);
  checkCells(approved.effects);
  const rendering = renderLicense(license, approved);
  if (renderingDigest(approved.salt, rendering) !== license.rendering)
    throw mismatch('it names another text than it renders to');
  if (digestRecord(approvedRecord, approved) !== license.approved)
    throw mismatch('it names another outcome');
  if (license.adapter !== approved.adapter)
    throw mismatch('license and outcome are for different adapters');
  return { license, approved, signature: fields.signature, rendering };
}

function mismatch(why: string): EffectMatchError<'ERR_EM_MANIFEST_INVALID'> {
  return new EffectMatchError(
    'ERR_EM_MANIFEST_INVALID',
    `the license contradicts itself: ${why}; do not sign it, and ask for a new one`,
  );
}
