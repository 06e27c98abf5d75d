import { unreachable } from '../errors.ts';
import type { Effect } from './effect.ts';
import {
  defineRecord,
  digestSchema,
  instantSchema,
  labelSchema,
  nameSchema,
  occurrenceSchema,
} from './record.ts';
import { type RenderOptions, renderDiff, renderObserved } from './render.ts';
import { showControls } from './render-text.ts';
import { renderResidue, residueListSchema } from './residue.ts';
import { choice, closed, form, integer, list, optional, text, variants } from './schema.ts';
import { gateSchema, outcomeSchema } from './terminal.ts';

/**
 * What a shadow was compared with: a signed license, an unsigned proposal or manifest, or nothing.
 */
export const BASES = ['license', 'proposal', 'manifest', 'none'] as const;
/** One of {@link BASES}. */
export type Basis = (typeof BASES)[number];

const shadowed = {
  version: choice(1),
  /**
   * Random, not derived from a license, so that no query for the occurrences of a license can ever
   * find it.
   */
  occurrence: occurrenceSchema,
  basis: choice(...BASES),
  /** Digest of the license, if there was one. It stays unspent. */
  license: optional(digestSchema),
  adapter: nameSchema,
  task: labelSchema,
  /** Digest of the outcome that the shadow was compared with. */
  approved: optional(digestSchema),
  /** Digests of the runtime code (contract) and of the adapter with its observer. */
  contract: digestSchema,
  observer: digestSchema,
  recordedAt: instantSchema,
  /** What the rollback of the rehearsal did not undo. */
  residue: optional(residueListSchema),
};

const seenSchema = closed({
  target: text(1, 512),
  op: choice('insert', 'update', 'delete'),
  count: integer(1),
});

/**
 * What would have been decided about an action that was rehearsed alongside production. It is not a
 * terminal: nothing was claimed, nothing became durable, and nothing that settles or releases reads
 * this kind.
 */
export const shadowRecord = defineRecord(
  'shadow',
  1,
  1024 * 1024,
  variants('would', {
    /** The outcome matched, and no gate that was checked would have refused. */
    commit: { ...shadowed, observed: digestSchema },
    reject: {
      ...shadowed,
      at: gateSchema,
      reason: nameSchema,
      detail: text(0, 4000),
      outcome: optional(outcomeSchema),
    },
    /**
     * There was nothing to compare with. Counts the changes that were seen, for a person to
     * approve.
     */
    propose: {
      ...shadowed,
      observed: digestSchema,
      seen: list(seenSchema, 0, 10_000),
    },
    /** The rehearsal itself failed, so nothing is known. */
    unknown: {
      ...shadowed,
      code: form(/^ERR_EM_[A-Z_]{1,64}$/, 'an error code'),
      detail: text(0, 4000),
    },
  }),
);
/** What would have been decided, as recorded. It is not a verdict. */
export type Shadow = ReturnType<typeof shadowRecord.parse>;

const UNSIGNED: Readonly<Record<Basis, string>> = {
  license: '',
  proposal: ', if the proposal is signed as it is',
  manifest: ', if the manifest is signed as it is',
  none: '',
};

/** What would have been decided, as text: one line with the decision, then any differences. */
export function renderShadow(shadow: Shadow, options: RenderOptions = {}): string {
  return [renderWould(shadow, options), ...renderResidue(shadow.residue ?? [])].join('\n');
}

function renderWould(shadow: Shadow, options: RenderOptions): string {
  switch (shadow.would) {
    case 'commit':
      return `would commit: what was seen is what is approved${UNSIGNED[shadow.basis]}`;
    case 'reject': {
      const { at, reason, detail, outcome } = shadow;
      const differences = outcome?.kind === 'DIVERGED' ? [renderDiff(outcome.diff, options)] : [];
      return [
        `would be rejected at ${at} (${reason}): ${showControls(detail)}`,
        ...differences,
      ].join('\n');
    }
    case 'propose': {
      const counts = shadow.seen.map(
        ({ target, op, count }) => `${count} ${op}${count === 1 ? '' : 's'} of ${target}`,
      );
      return `nothing is approved to compare with; seen: ${showControls(counts.join(', ') || 'no change')}`;
    }
    case 'unknown':
      return `not known, because it could not be rehearsed (${shadow.code}): ${showControls(shadow.detail)}`;
    default:
      return unreachable(shadow);
  }
}

const SEEN_MAX = 200;

/**
 * Observed changes, one per line, in the form of a diff. Only the first of many unless `full` is
 * set.
 */
export function renderSeen(effects: readonly Effect[], options: RenderOptions = {}): string {
  const shown = options.full === true ? effects : effects.slice(0, SEEN_MAX);
  const lines = shown.map((effect) => `  ${renderObserved({ ...effect, count: 1 }, options)}`);
  const left = effects.length - shown.length;
  return [...lines, ...(left === 0 ? [] : [`Shortened: ${left} more were seen`])].join('\n');
}
