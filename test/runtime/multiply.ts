import { digestRecord, renderingDigest } from '../../src/crypto/digest.ts';
import type { Proposal } from '../../src/protocol/license.ts';
import { approvedRecord } from '../../src/protocol/manifest.ts';
import { renderLicense } from '../../src/protocol/render-license.ts';

/**
 * The same proposal with another count of every effect, as an approver's own tool might make it.
 */
export function multiply({ draft, approved }: Proposal, times: number): Proposal {
  const effects = approved.effects.map((effect) => ({ ...effect, count: times }));
  const changed = approvedRecord.parse({ ...approved, effects });
  const rendering = renderLicense(draft, changed);
  const digests = {
    approved: digestRecord(approvedRecord, changed),
    rendering: renderingDigest(changed.salt, rendering),
  };
  return { draft: { ...draft, ...digests }, approved: changed, rendering };
}
