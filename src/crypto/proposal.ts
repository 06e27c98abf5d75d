import { EffectMatchError } from '../errors.ts';
import { checkCells } from '../protocol/approve.ts';
import { canonical } from '../protocol/canon.ts';
import { licenseRecord, type Proposal } from '../protocol/license.ts';
import { approvedRecord } from '../protocol/manifest.ts';
import { type Note, parseNote } from '../protocol/note.ts';
import { renderLicense } from '../protocol/render-license.ts';
import { actionDigest, digestRecord, renderingDigest } from './digest.ts';
import { readFields, readOutcome } from './handover.ts';

/** Placeholders for what the approver decides, so that the license schema can check the rest. */
const DECIDED_BY_APPROVER = {
  issuer: 'issuer',
  key: '0'.repeat(64),
  nonce: '0'.repeat(16),
  notBefore: '1970-01-01T00:00:00.000Z',
  expiresAt: '1970-01-01T00:00:00.000Z',
};

/**
 * Checks a proposal, given as an object or as JSON text. Its outcome and terms must render to the
 * text shown, and the draft must name the digests of both outcome and text. Throws
 * `ERR_EM_MANIFEST_INVALID` if they do not match, or if the outcome has a constraint that cannot be
 * evaluated.
 */
export function parseProposal(input: unknown): Proposal {
  const fields = readFields<'draft' | 'approved' | 'rendering' | 'note'>(
    'proposal',
    input,
    ['draft', 'approved', 'rendering'],
    'note',
  );
  const approved = readOutcome(input, fields.approved);
  checkCells(approved.effects);
  const draft = parseDraft(fields.draft);
  const rendering = renderLicense(draft, approved);
  if (fields.rendering !== rendering) throw mismatch('the text it shows is not what it renders to');
  if (renderingDigest(approved.salt, rendering) !== draft.rendering) {
    throw mismatch('its draft names another rendering');
  }
  if (digestRecord(approvedRecord, approved) !== draft.approved)
    throw mismatch('its draft names another outcome');
  if (draft.adapter !== approved.adapter)
    throw mismatch('draft and outcome are for different adapters');
  if (fields.note === undefined) return { draft, approved, rendering };
  const note = parseNote(fields.note);
  checkAction(note, draft, approved.salt);
  return { draft, approved, rendering, note };
}

/** The action shown must be the one that the license binds. */
function checkAction({ action }: Note, draft: Proposal['draft'], salt: string): void {
  if (action === undefined) return;
  if (draft.action !== actionDigest(action, salt))
    throw mismatch('the action it shows is not the one it is bound to');
}

/**
 * A draft is a license without the approver's fields. Refuses a draft that already has one of them.
 */
function parseDraft(input: unknown): Proposal['draft'] {
  canonical(input);
  if (typeof input !== 'object' || input === null) {
    throw new EffectMatchError('ERR_EM_RECORD_INVALID', 'proposal: the draft is not an object');
  }
  for (const field of Object.keys(DECIDED_BY_APPROVER)) {
    if (Object.hasOwn(input, field)) {
      throw new EffectMatchError(
        'ERR_EM_RECORD_INVALID',
        `proposal: ${field} is for the approver to decide`,
      );
    }
  }
  const { issuer, key, nonce, notBefore, expiresAt, ...draft } = licenseRecord.parse({
    ...input,
    ...DECIDED_BY_APPROVER,
  });
  return draft;
}

function mismatch(why: string): EffectMatchError<'ERR_EM_MANIFEST_INVALID'> {
  return new EffectMatchError(
    'ERR_EM_MANIFEST_INVALID',
    `the proposal contradicts itself: ${why}; do not sign it, and ask for a new one`,
  );
}
