import { EffectMatchError } from '../../errors.ts';
import type { ApprovedEffect, CellRow } from '../../protocol/effect.ts';
import { findOversized } from '../../protocol/limits.ts';
import type { Row } from '../../protocol/value.ts';
import type { Plan, PlannedEffect } from './options.ts';

/**
 * The exact values of an approved outcome, one entry per effect, frozen: a request is derived from
 * nothing else.
 */
export function planOf(effects: readonly ApprovedEffect[]): Plan {
  const oversized = findOversized(effects);
  if (oversized !== undefined) throw new EffectMatchError('ERR_EM_MANIFEST_INVALID', oversized);
  const planned = effects.flatMap((effect) =>
    Array.from({ length: effect.count }, () => planEffect(effect)),
  );
  return asPlan(planned);
}

/** A plan as operations are given it. */
export function asPlan(effects: readonly PlannedEffect[]): Plan {
  const [effect] = effects;
  if (effect === undefined) {
    throw new EffectMatchError(
      'ERR_EM_MANIFEST_INVALID',
      'an outcome without effects needs no request; approve one',
    );
  }
  return Object.freeze({ effects: Object.freeze([...effects]), effect });
}

function planEffect({ op, target, key, before, after }: ApprovedEffect): PlannedEffect {
  return Object.freeze({ op, target, key: exact(key), before: exact(before), after: exact(after) });
}

function exact(cells: CellRow | undefined): Row {
  const known = Object.entries(cells ?? {}).flatMap(([column, cell]) =>
    'is' in cell ? [[column, cell.is] as const] : [],
  );
  return Object.freeze(Object.fromEntries(known));
}
