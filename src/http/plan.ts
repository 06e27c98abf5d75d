import type { ApprovedEffect, CellRow } from '../protocol/effect.ts';
import { findOversized } from '../protocol/limits.ts';
import type { Row } from '../protocol/value.ts';
import { invalid } from './errors.ts';

/**
 * The exact values of an approved effect. Values left to the service (`generated`, `any`, …) are
 * not included.
 */
export interface PlannedEffect {
  readonly op: 'insert' | 'update' | 'delete';
  readonly target: string;
  readonly key: Row;
  readonly before: Row;
  readonly after: Row;
}

/** The approved outcome, which is all that a request is derived from. */
export interface Plan {
  readonly effects: readonly PlannedEffect[];
  /** The first effect, for operations with only one. */
  readonly effect: PlannedEffect;
}

/** The exact values of an approved outcome, one entry for each effect. The plan is frozen. */
export function planOf(approved: readonly ApprovedEffect[]): Plan {
  const oversized = findOversized(approved);
  if (oversized !== undefined) throw invalid(oversized);
  const effects = approved.flatMap((effect) =>
    Array.from({ length: effect.count }, () => planEffect(effect)),
  );
  const [effect] = effects;
  if (effect === undefined)
    throw invalid('an outcome without effects needs no request; approve one');
  return Object.freeze({ effects: Object.freeze(effects), effect });
}

function planEffect({ op, target, key, before, after }: ApprovedEffect): PlannedEffect {
  return Object.freeze({
    op,
    target,
    key: exact(key),
    before: exact(before),
    after: exact(after),
  });
}

function exact(cells: CellRow | undefined): Row {
  const known = Object.entries(cells ?? {}).flatMap(([column, cell]) =>
    'is' in cell ? [[column, cell.is] as const] : [],
  );
  return Object.freeze(Object.fromEntries(known));
}
