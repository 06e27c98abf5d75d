import { z } from 'zod';
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
import { renderResidue, residueListSchema } from './residue.ts';
import { gateSchema, outcomeSchema } from './terminal.ts';

/**
 * What a shadow compared with: a signed license, an unsigned proposal or manifest, or nothing that
 * anybody approved.
 */
export const BASES = ['license', 'proposal', 'manifest', 'none'] as const;
/** One of {@link BASES}. */
export type Basis = (typeof BASES)[number];

const shadowed = {
  version: z.literal(1),
  /**
   * Drawn for this shadow and derived from no license, so that nothing that asks about the
   * occurrences of a license can ever find it.
   */
  occurrence: occurrenceSchema,
  basis: z.enum(BASES),
  /** Digest of the license, where there was one. It stays unspent. */
  license: digestSchema.exactOptional(),
  adapter: nameSchema,
  task: labelSchema,
  /** Digest of the outcome that was compared with. */
  approved: digestSchema.exactOptional(),
  /** Digests of the runtime code (contract) and of the adapter with its observer. */
  contract: digestSchema,
  observer: digestSchema,
  recordedAt: instantSchema,
  /** What the rollback of the rehearsal did not take back. */
  residue: residueListSchema.exactOptional(),
};

const seenSchema = z.strictObject({
  target: z.string().min(1).max(512),
  op: z.enum(['insert', 'update', 'delete']),
  count: z.int().min(1),
});

/**
 * What would have been decided about an action that was rehearsed beside production. It is no
 * terminal: nothing was claimed, nothing became durable, and nothing that settles or releases reads
 * this kind.
 */
export const shadowRecord = defineRecord(
  'shadow',
  1,
  1024 * 1024,
  z.discriminatedUnion('would', [
    /** The outcome is the one compared with, and no gate that was looked at would have refused. */
    z.strictObject({ ...shadowed, would: z.literal('commit'), observed: digestSchema }),
    z.strictObject({
      ...shadowed,
      would: z.literal('reject'),
      at: gateSchema,
      reason: nameSchema,
      detail: z.string().max(4000),
      outcome: outcomeSchema.exactOptional(),
    }),
    /** There was nothing to compare with: how many changes were seen, for somebody to approve. */
    z.strictObject({
      ...shadowed,
      would: z.literal('propose'),
      observed: digestSchema,
      seen: z.array(seenSchema).max(10_000),
    }),
    /** The rehearsal itself failed, so that nothing can be said. */
    z.strictObject({
      ...shadowed,
      would: z.literal('unknown'),
      code: z.string().regex(/^ERR_EM_[A-Z_]{1,64}$/),
      detail: z.string().max(4000),
    }),
  ]),
);
/** What would have been decided, as it is recorded. It is no verdict. */
export type Shadow = ReturnType<typeof shadowRecord.parse>;
export type ShadowOf<W extends Shadow['would']> = Extract<Shadow, { would: W }>;

const UNSIGNED: Readonly<Record<Basis, string>> = {
  license: '',
  proposal: ', if the proposal is signed as it is',
  manifest: ', if the manifest is signed as it is',
  none: '',
};

/**
 * What would have been decided, as text: one line that says so, then the differences where there
 * are any.
 */
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
      return [`would be rejected at ${at} (${reason}): ${spellOut(detail)}`, ...differences].join(
        '\n',
      );
    }
    case 'propose': {
      const counts = shadow.seen.map(
        ({ target, op, count }) => `${count} ${op}${count === 1 ? '' : 's'} of ${target}`,
      );
      return `nothing is approved to compare with; seen: ${spellOut(counts.join(', ') || 'no change')}`;
    }
    case 'unknown':
      return `not known, because it could not be rehearsed (${shadow.code}): ${spellOut(shadow.detail)}`;
    default:
      return unreachable(shadow);
  }
}

const SEEN_MAX = 200;

/** Observed changes like a diff, one per line; the first of many unless all are asked for. */
export function renderSeen(effects: readonly Effect[], options: RenderOptions = {}): string {
  const shown = options.full === true ? effects : effects.slice(0, SEEN_MAX);
  const lines = shown.map((effect) => `  ${renderObserved({ ...effect, count: 1 }, options)}`);
  const left = effects.length - shown.length;
  return [...lines, ...(left === 0 ? [] : [`Shortened: ${left} more were seen`])].join('\n');
}

function spellOut(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}
